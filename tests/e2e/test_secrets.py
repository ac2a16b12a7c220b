"""The secret of the bus: a leader may have it from a file of its own, and a follower without it waits."""

from __future__ import annotations

import json
from pathlib import Path

from telegram_bus.cli.demo_bus import BUS, open_demo_bus
from tests.e2e.rig import PATIENCE, run, until


def test_a_secret_of_ones_own_lets_followers_in_and_one_without_it_waits(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("chosen by a person\n")
    secret.chmod(0o600)
    with open_demo_bus(tmp_path) as bus:
        until(lambda: run(bus, "status").returncode == 0)
        assert run(bus, "stop").returncode == 0
        assert bus.processes.pop("leader").wait(PATIENCE) == 0
        bus.start("leader", [*BUS, "leader", "--secret-file", str(secret)])
        until(lambda: run(bus, "status").returncode == 0)

        known = bus.profile.follower_secret
        assert known.read_text() == secret.read_text()
        known.unlink()
        bus.start("cat", [*BUS, "follower", "--name", "cat", "--", "cat"])
        until(lambda: f"cannot read {known}" in bus.log("cat").read_text())
        assert "cat: no leader" in bus.log("cat").read_text()
        known.write_text(secret.read_text())
        known.chmod(0o600)
        thread = bus.thread_of("cat")
        seen = bus.person.say("hello", thread)
        assert bus.person.reply(thread, seen, PATIENCE)["text"] == "hello"
        assert [each["key"] for each in json.loads(run(bus, "status", "--json").stdout)["followers"]] == ["cat"]
