"""A leader is killed: a follower starts the next one, and the conversation goes on in the same threads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from telegram_bus.testing import Sandbox

PATIENCE = 60.0

AGENT = """
import sys, trio, telegram_bus

async def main():
    async with telegram_bus.join(name=sys.argv[1]) as bus:
        async for update in bus:
            await update.reply(f"{sys.argv[1]} got: {update.text}")
            await update.done()
            print("done", flush=True)

trio.run(main)
"""


class Bus:
    """A leader and the processes that its test starts; all of them end with it."""

    def __init__(self, sandbox: Sandbox, home: Path) -> None:
        self.sandbox = sandbox
        self.environ = os.environ | {"TELEGRAM_BUS_HOME": str(home), "XDG_STATE_HOME": str(home)}
        self.processes: list[subprocess.Popen[bytes]] = []

    def lead(self) -> None:
        environ = self.environ | {"TELEGRAM_BOT_TOKEN": self.sandbox.token}
        command = ["leader", "--api-root", self.sandbox.api_root, "--chat", str(self.sandbox.chat_id), "--linger", "5"]
        leader = [sys.executable, "-m", "telegram_bus", *command]
        self.processes.append(subprocess.Popen(leader, env=environ, stderr=subprocess.DEVNULL))
        self.wait_status(lambda status: status["state"] == "serving")

    def follow(self, name: str) -> int:
        command = [sys.executable, "-c", AGENT, name]
        self.processes.append(
            subprocess.Popen(command, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        )
        return self.sandbox.wait_for_topic(name, within=PATIENCE)

    def wait_done(self) -> None:
        """Until each follower has finished one more update: its answer is settled on both sides."""
        for process in self.processes:
            if process.stdout is not None:
                assert process.stdout.readline() == b"done\n"

    def status(self) -> dict[str, object] | None:
        command = [sys.executable, "-m", "telegram_bus", "status", "--json"]
        done = subprocess.run(command, env=self.environ, capture_output=True, text=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def wait_status(self, wanted: object) -> dict[str, object]:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            status = self.status()
            if status is not None and wanted(status):  # type: ignore[operator]
                return status
        raise TimeoutError(f"the bus did not come to it: {self.status()}")

    def end(self) -> None:
        for process in self.processes:
            process.terminate()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        subprocess.run(
            [sys.executable, "-m", "telegram_bus", "stop"], env=self.environ, capture_output=True, check=False
        )


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with Sandbox() as sandbox:
        bus = Bus(sandbox, tmp_path)
        try:
            yield bus
        finally:
            bus.end()


def test_three_followers_go_on_in_their_threads_when_the_leader_is_killed(bus: Bus) -> None:
    bus.lead()
    threads = {name: bus.follow(name) for name in ("one", "two", "three")}
    first = bus.wait_status(lambda status: len(status["followers"]) == 3)
    for name, thread in threads.items():
        bus.sandbox.say(f"hello {name}", thread_id=thread)
        bus.sandbox.wait_for_message(f"{name} got: hello {name}", thread_id=thread, within=PATIENCE)
    bus.wait_done()

    os.kill(int(str(first["pid"])), signal.SIGKILL)
    for name, thread in threads.items():  # at once: these arrive while nobody leads
        bus.sandbox.say(f"still there, {name}?", thread_id=thread)
    for name, thread in threads.items():
        bus.sandbox.wait_for_message(f"{name} got: still there, {name}?", thread_id=thread, within=PATIENCE)

    second = bus.wait_status(lambda status: len(status["followers"]) == 3)
    assert second["pid"] != first["pid"]
    assert second["epoch"] == int(str(first["epoch"])) + 1
    before = {f["key"]: (f["thread_id"], f["slot"]) for f in first["followers"]}  # type: ignore[attr-defined]
    after = {f["key"]: (f["thread_id"], f["slot"]) for f in second["followers"]}  # type: ignore[attr-defined]
    assert before == after
    calls = [entry["method"] for entry in bus.sandbox.record(kind="call")]
    assert calls.count("createForumTopic") == 3
    answers = [
        m["text"]
        for thread in threads.values()
        for m in bus.sandbox.messages(thread_id=thread)
        if m["from"]["is_bot"] and "text" in m
    ]
    assert len(answers) == len(set(answers)) == 6


def leaders_of(bus: Bus) -> list[int]:
    """All leader processes of the bus's home, spares included."""
    found = []
    for directory in Path("/proc").iterdir():
        try:
            words = (directory / "cmdline").read_bytes().split(b"\0")
            environ = (directory / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"leader" in words and f"TELEGRAM_BUS_HOME={bus.environ['TELEGRAM_BUS_HOME']}".encode() in environ:
            found.append(int(directory.name))
    return found


def test_a_spare_leader_takes_over_at_once_and_goes_when_the_bus_is_stopped(bus: Bus) -> None:
    bus.environ["TELEGRAM_BUS_SPARE"] = "yes"
    bus.lead()
    thread = bus.follow("one")
    first = bus.wait_status(lambda status: status["standby"])
    [spare] = set(leaders_of(bus)) - {first["pid"]}
    os.kill(int(str(first["pid"])), signal.SIGKILL)
    bus.sandbox.say("still there?", thread_id=thread)
    bus.sandbox.wait_for_message("one got: still there?", thread_id=thread, within=PATIENCE)
    second = bus.wait_status(lambda status: len(status["followers"]) == 1 and status["standby"])
    assert second["pid"] == spare

    os.kill(spare, signal.SIGTERM)  # a leader that is told to end while it is needed is missed as well
    bus.sandbox.say("and now?", thread_id=thread)
    bus.sandbox.wait_for_message("one got: and now?", thread_id=thread, within=PATIENCE)
    third = bus.wait_status(lambda status: len(status["followers"]) == 1)
    assert third["pid"] not in (first["pid"], spare)
    assert third["epoch"] == int(str(first["epoch"])) + 2

    subprocess.run([sys.executable, "-m", "telegram_bus", "stop"], env=bus.environ, capture_output=True, check=True)
    deadline = time.monotonic() + PATIENCE
    while set(leaders_of(bus)) - {first["pid"]}:  # the first one is this process's child, and not yet waited for
        assert time.monotonic() < deadline
        time.sleep(0.05)
