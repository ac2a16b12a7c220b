"""What goes wrong on a machine: files vanish, the store is lost, followers are killed, Telegram refuses."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from telegram_bus.home import Home, Profile
from telegram_bus.testing import Sandbox

PATIENCE = 60.0

# Says each state and update; answers all but "hang". "again" is answered to the first update that it ever saw.
AGENT = """
import sys, trio, telegram_bus

async def main():
    async with telegram_bus.join(name=sys.argv[1]) as bus, trio.open_nursery() as nursery:
        nursery.start_soon(say_states, bus)
        first = None
        async for update in bus:
            first = first or update
            print("got", update.text, flush=True)
            if update.text != "hang" or "patient" in sys.argv:
                await (first if update.text == "again" else update).reply(f"{sys.argv[1]} got: {update.text}")
                await update.done()
                print("done", update.text, flush=True)

async def say_states(bus):
    async for state in bus.states():
        print("state", state.phase, state.reason or "", flush=True)

trio.run(main)
"""


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@define(eq=False)
class Agent:
    """A follower process; what it printed stands in `output`."""

    process: subprocess.Popen[bytes]
    output: Path

    def said(self) -> list[str]:
        return self.output.read_text().splitlines()

    def got(self) -> list[str]:
        return [line.removeprefix("got ") for line in self.said() if line.startswith("got ")]

    def wait_said(self, text: str) -> str:
        until(lambda: any(text in line for line in self.said()))
        return next(line for line in self.said() if text in line)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@define(eq=False)
class Machine:
    """A sandbox, a home, and the processes that a test starts; all of them end with it."""

    sandbox: Sandbox
    root: Path
    agents: list[Agent] = field(factory=list)
    leaders: list[subprocess.Popen[bytes]] = field(factory=list)

    @property
    def environ(self) -> dict[str, str]:
        return os.environ | {"TELEGRAM_BUS_HOME": str(self.root), "XDG_STATE_HOME": str(self.root / "state")}

    @property
    def profile(self) -> Profile:
        return Home(self.root).profile("default")

    def lead(self, *options: str) -> subprocess.Popen[bytes]:
        command = ["leader", "--api-root", self.sandbox.api_root, "--chat", str(self.sandbox.chat_id), *options]
        environ = self.environ | {"TELEGRAM_BOT_TOKEN": self.sandbox.token}
        with self.log(len(self.leaders)).open("wb") as stderr:
            leader = subprocess.Popen([sys.executable, "-m", "telegram_bus", *command], env=environ, stderr=stderr)
        self.leaders.append(leader)
        return leader

    def log(self, number: int) -> Path:
        """What the leader of this number says."""
        return self.root / f"leader-{number}.log"

    def follow(self, *arguments: str) -> Agent:
        output = self.root / f"agent-{len(self.agents)}.out"
        with output.open("wb") as stdout:
            process = subprocess.Popen([sys.executable, "-c", AGENT, *arguments], env=self.environ, stdout=stdout)
        self.agents.append(Agent(process, output))
        return self.agents[-1]

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "telegram_bus", *arguments]
        return subprocess.run(command, env=self.environ, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def status(self) -> dict[str, Any] | None:
        done = self.run("status", "--json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def say(self, text: str, thread: int) -> None:
        self.sandbox.say(text, thread_id=thread)

    def wait_answer(self, text: str, thread: int) -> dict[str, Any]:
        return self.sandbox.wait_for_message(text, thread_id=thread, within=PATIENCE)

    def kill_leader(self) -> int:
        pid = json.loads(self.profile.leader_json.read_text())["pid"]
        os.kill(pid, signal.SIGKILL)
        return int(pid)

    def topics_made(self) -> int:
        return len(self.sandbox.record(kind="call", method="createForumTopic"))

    def end(self) -> None:
        self.run("stop")
        for process in [agent.process for agent in self.agents] + self.leaders:
            process.terminate()
            process.wait()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with Sandbox() as sandbox:
        machine = Machine(sandbox, tmp_path)
        try:
            yield machine
        finally:
            machine.end()


def test_a_killed_follower_handles_again_what_was_not_done_and_nothing_else(machine: Machine) -> None:
    machine.lead()
    agent = machine.follow("nora")
    thread = machine.sandbox.wait_for_topic("nora", within=PATIENCE)
    machine.say("first", thread)
    agent.wait_said("done first")
    machine.say("hang", thread)
    agent.wait_said("got hang")
    agent.kill()
    later = [f"later {number}" for number in range(20)]
    for text in later:
        machine.say(text, thread)

    second = machine.follow("nora", "patient")
    second.wait_said("done later 19")
    assert second.got() == ["hang", *later]
    second.kill()
    third = machine.follow("nora")
    machine.say("last", thread)
    third.wait_said("done last")
    assert third.got() == ["last"]
    assert machine.topics_made() == 1


def test_what_something_removed_from_the_profile_is_made_anew(machine: Machine) -> None:
    leader = machine.lead()
    old = machine.follow("old")
    old.wait_said("state serving")
    shutil.rmtree(machine.profile.run_dir)
    machine.profile.leader_json.unlink()
    new = machine.follow("new")
    new.wait_said("state serving")
    for name in ("old", "new"):
        thread = machine.sandbox.wait_for_topic(name, within=PATIENCE)
        machine.say("hello", thread)
        machine.wait_answer(f"{name} got: hello", thread)
    status = machine.status()
    assert status is not None
    assert status["pid"] == leader.pid


def test_a_lost_store_loses_no_thread_and_no_message(machine: Machine) -> None:
    machine.lead()
    agents = {name: machine.follow(name) for name in ("one", "two")}
    threads = {name: machine.sandbox.wait_for_topic(name, within=PATIENCE) for name in agents}
    for name, thread in threads.items():
        machine.say("hello", thread)
        agents[name].wait_said("done hello")
    machine.kill_leader()
    for name in ("bus.sqlite3", "bus.sqlite3-wal", "bus.sqlite3-shm"):
        (machine.profile.directory / name).unlink(missing_ok=True)
    for thread in threads.values():
        machine.say("again", thread)
    for name, thread in threads.items():  # the message that it answers is one that the new leader never saw
        assert "reply_to_message" not in machine.wait_answer(f"{name} got: again", thread)
        assert agents[name].got() == ["hello", "again"]
    assert machine.topics_made() == 2


def test_a_stop_is_not_undone_by_who_was_just_about_to_lead(machine: Machine) -> None:
    machine.lead()
    agent = machine.follow("nora")
    agent.wait_said("state serving")
    machine.kill_leader()
    agent.wait_said("state no leader starting a leader")
    assert machine.run("stop").returncode == 0
    agent.wait_said("state stopped")
    until(lambda: machine.status() is None)
    assert machine.run("start").returncode == 0
    first = machine.status()
    assert first is not None

    standby = machine.lead("--standby")
    until(lambda: "standing by" in machine.log(1).read_text())
    assert machine.run("stop").returncode == 0
    assert standby.wait(PATIENCE) == 0
    assert machine.status() is None


def test_where_there_are_no_threads_it_says_which_switch_to_turn_and_makes_them_once_it_is_turned(
    machine: Machine,
) -> None:
    machine.sandbox.settings(threaded_mode=False)
    machine.lead()
    agent = machine.follow("nora")
    agent.wait_said("state serving")
    machine.sandbox.wait_for_message("switch on Threaded Mode", within=PATIENCE)
    machine.sandbox.settings(threaded_mode=True)
    thread = machine.sandbox.wait_for_topic("nora", within=PATIENCE)
    machine.say("hello", thread)
    machine.wait_answer("nora got: hello", thread)


def test_what_a_person_outside_the_list_does_leaves_no_trace(machine: Machine) -> None:
    machine.lead()
    agent = machine.follow("nora")
    agent.wait_said("state serving")
    before = len(machine.sandbox.record(kind="call"))
    people = [user["id"] for user in machine.sandbox.state()["users"] if not user.get("is_bot")]
    stranger = next(person for person in people if person != machine.sandbox.chat_id)
    machine.sandbox.say("a stranger's words", user_id=stranger)
    thread = machine.sandbox.wait_for_topic("nora", within=PATIENCE)
    machine.say("hello", thread)  # updates come in order: when this is answered the stranger's has been seen
    machine.wait_answer("nora got: hello", thread)
    made = machine.sandbox.record(kind="call")[before:]
    assert [call["method"] for call in made if call["method"] != "getMe"] == ["sendMessage"]
    kept = b"".join(path.read_bytes() for path in machine.root.rglob("*") if path.is_file() and not path.is_socket())
    assert b"hello" in kept
    assert b"a stranger's words" not in kept
