"""The daily commands and wrapped programs, against a sandbox and a real leader."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from telegram_bus.cli.demo_bus import BUS, DemoBus, open_demo_bus

PATIENCE = 30.0


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoBus]:
    with open_demo_bus(tmp_path_factory.mktemp("bus")) as running:
        until(lambda: command(running, "status").returncode == 0)
        yield running


def command(bus: DemoBus, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*BUS, *arguments], env=bus.environ | variables, capture_output=True, text=True, timeout=60, check=False
    )


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def follow(bus: DemoBus, name: str, *program: str, **variables: str) -> int:
    bus.start(name, [*BUS, "follower", "--name", name, "--", *program], variables)
    return bus.thread_of(name)


def end(bus: DemoBus, name: str) -> int:
    process = bus.processes.pop(name)
    process.terminate()
    return process.wait(PATIENCE)


def test_status_shows_leader_and_followers_to_people_and_programs(bus: DemoBus) -> None:
    thread = follow(bus, "Build Server", "cat")
    shown = command(bus, "status")
    assert shown.returncode == 0
    assert "leader    serving" in shown.stdout
    assert "Build Server  build-server" in shown.stdout
    assert "\x1b" not in shown.stdout
    status = json.loads(command(bus, "status", "--json").stdout)
    assert status["pid"] == bus.processes["leader"].pid
    assert status["bot"]["id"] == bus.person.address["bot_id"]
    assert [(each["key"], each["thread_id"]) for each in status["followers"]] == [("build-server", thread)]
    assert {"version", "state", "detail", "epoch", "since_ms", "chat", "last_poll_ms", "waiting"} <= set(status)
    assert end(bus, "Build Server") == 0


def test_status_loads_nothing_heavy_to_ask_a_leader(bus: DemoBus) -> None:
    heavy = ("trio", "telegram", "rich", "attrs", "cattrs", "orjson", "httpx", "sqlite3", "asyncio")
    code = f"""if True:
        import sys
        from telegram_bus.__main__ import main
        code = main(["status"])
        print(code, sorted(set({heavy!r}) & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-c", code], env=bus.environ, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


def test_a_program_gets_neither_token_nor_secrets(bus: DemoBus) -> None:
    token = bus.person.address["token"]
    secret = bus.profile.follower_secret.read_text().strip()
    leaky = {"TELEGRAM_BOT_TOKEN": token, "HIDDEN": f"bot{token}/getMe", "DEEPER": f"<{secret}>", "HARMLESS": "yes"}
    script = "env; read -r line"
    thread = follow(bus, "env", "sh", "-c", script, **leaky)
    text = bus.person.reply(thread, 0, PATIENCE, containing="HARMLESS")["text"]
    lines = text.splitlines()
    assert {"HARMLESS=yes", "TELEGRAM_BUS_PARENT=env"} <= set(lines)
    assert token not in text
    assert secret not in text
    assert not [line for line in lines if line.startswith(("HIDDEN=", "DEEPER=", "TELEGRAM_BOT_TOKEN="))]
    assert end(bus, "env") == 0


def test_a_message_for_a_program_that_is_down_waits_for_its_next_start(bus: DemoBus) -> None:
    thread = follow(bus, "once", "sh", "-c", "read -r line; echo got $line; exit 5")
    seen = bus.person.say("first", thread)
    assert bus.person.reply(thread, seen, PATIENCE)["text"] == "got first"
    assert bus.person.reply(thread, seen, PATIENCE, containing="ended")["text"] == "sh ended with exit status 5."
    assert bus.processes.pop("once").wait(PATIENCE) == 1
    seen = bus.person.say("second", thread)
    bus.start("once", [*BUS, "follower", "--name", "once", "--", "sh", "-c", "read -r line; echo now $line"])
    assert bus.person.reply(thread, seen, PATIENCE)["text"] == "now second"
    assert bus.processes.pop("once").wait(PATIENCE) == 0


def test_stderr_is_logged_and_a_stopped_program_is_announced(bus: DemoBus) -> None:
    thread = follow(bus, "noisy", "sh", "-c", "echo complaint >&2; echo ready; exec sleep 600")
    assert bus.person.reply(thread, 0, PATIENCE)["text"] == "ready"
    assert end(bus, "noisy") == 0
    last = bus.person.reply(thread, 0, PATIENCE, containing="ended")["text"]
    assert last == "sh was ended by SIGTERM (signal 15)."
    assert (bus.profile.follower_dir("noisy") / "program.log").read_text() == "complaint\n"


def test_a_pseudo_terminal_is_for_programs_that_hold_back_output(bus: DemoBus) -> None:
    # python blocks its output when it is piped, and not on a terminal
    script = "for line in __import__('sys').stdin: print('terminal', line.strip())"
    bus.start("pty", [*BUS, "follower", "--name", "pty", "--pty", "--", "python3", "-c", script])
    thread = bus.thread_of("pty")
    seen = bus.person.say("hello", thread)
    assert bus.person.reply(thread, seen, PATIENCE)["text"] == "terminal hello"
    assert end(bus, "pty") == 0


def test_a_stopped_bus_stays_stopped_until_it_is_started(bus: DemoBus) -> None:
    thread = follow(bus, "patient", "cat")
    leader = bus.processes.pop("leader")
    stopped = command(bus, "stop")
    assert (stopped.returncode, stopped.stderr) == (0, "")
    assert f"pid {leader.pid}" in stopped.stdout
    assert leader.wait(PATIENCE) == 0
    status = command(bus, "status")
    assert status.returncode == 3
    assert "was stopped" in status.stderr
    again = command(bus, "stop")
    assert again.returncode == 0
    assert "no leader was running" in again.stdout
    until(lambda: "patient: stopped" in bus.log("patient").read_text())

    inside = command(bus, "start", TELEGRAM_BUS_PARENT="patient")
    assert inside.returncode == 2
    assert command(bus, "status").returncode == 3

    started = command(bus, "start")
    assert started.returncode == 0, started.stderr
    pid = json.loads(command(bus, "status", "--json").stdout)["pid"]
    assert f"pid {pid}" in started.stdout
    assert command(bus, "start").stdout == started.stdout
    assert bus.thread_of("patient") == thread
    seen = bus.person.say("still there?", thread)
    assert bus.person.reply(thread, seen, PATIENCE)["text"] == "still there?"

    logs = command(bus, "logs", "-n", "100")
    assert logs.returncode == 0
    assert "INFO" in logs.stdout
    assert bus.person.address["token"] not in logs.stdout
    assert end(bus, "patient") == 0
    assert command(bus, "stop").returncode == 0
