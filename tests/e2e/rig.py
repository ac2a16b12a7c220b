"""What tests with real processes share: a sandbox with a home for its bus, and followers that tell what they got."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import trio
from attrs import define, field

import telegram_bus
from telegram_bus.cli.asking import ask
from telegram_bus.cli.demo_bus import BUS, DemoBus
from telegram_bus.core.errors import BusError
from telegram_bus.home import Home, Profile
from telegram_bus.testing import Sandbox

__all__ = ["PATIENCE", "Agent", "Machine", "open_machine", "run", "until", "with_bus"]

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds that a test waits for what comes at once on an idle machine."""

LOOK = 0.05

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

# The command line, with other values for some constants: MODULE.NAME=SECONDS, separated by spaces.
HASTY = """
import importlib, sys
for change in sys.argv[1].split():
    place, seconds = change.split("=")
    module, _, name = place.rpartition(".")
    assert hasattr(importlib.import_module(module), name), place
    setattr(sys.modules[module], name, float(seconds))
from telegram_bus.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


def until(holds: Callable[[], T]) -> T:
    """Wait until something holds; returns what is true then."""
    deadline = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < deadline, f"it did not come to hold within {PATIENCE:.0f} s: {found!r}"
        time.sleep(LOOK)
    return found


@define(eq=False)
class Agent:
    """A follower process; what it printed stands in `output`."""

    process: subprocess.Popen[bytes]
    output: Path

    def said(self) -> list[str]:
        """The lines that it printed."""
        return self.output.read_text().splitlines()

    def got(self) -> list[str]:
        """The texts of the updates that it was given."""
        return [line.removeprefix("got ") for line in self.said() if line.startswith("got ")]

    def wait_said(self, text: str) -> str:
        """The first line with that text, waiting for it."""
        return until(lambda: next((line for line in self.said() if text in line), ""))

    def kill(self) -> None:
        """Ends it from one moment to the next."""
        self.process.kill()
        self.process.wait()


@define(eq=False)
class Machine:
    """A sandbox, a home, and the processes that a test starts; all of them end with it."""

    sandbox: Sandbox
    root: Path
    agents: list[Agent] = field(factory=list)
    leaders: list[subprocess.Popen[bytes]] = field(factory=list)
    variables: dict[str, str] = field(factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        """The environment of every process here; `variables` are added to it."""
        places = {"TELEGRAM_BUS_HOME": str(self.root), "XDG_STATE_HOME": str(self.root / "state")}
        return os.environ | places | self.variables

    @property
    def profile(self) -> Profile:
        return Home(self.root).profile("default")

    def lead(self, *options: str, hasty: Mapping[str, float] | None = None) -> subprocess.Popen[bytes]:
        """Starts a leader of the owner's private chat; `hasty` has shorter waits: {"telegram_bus.x.NAME": seconds}.

        A leader that a follower starts after it has the usual ones.
        """
        changes = " ".join(f"{place}={seconds}" for place, seconds in (hasty or {}).items())
        start = ["-c", HASTY, changes] if changes else ["-m", "telegram_bus"]
        command = ["leader", "--api-root", self.sandbox.api_root, "--chat", str(self.sandbox.chat_id), *options]
        environ = self.environ | {"TELEGRAM_BOT_TOKEN": self.sandbox.token}
        with self.log(len(self.leaders)).open("wb") as stderr:
            leader = subprocess.Popen([sys.executable, *start, *command], env=environ, stderr=stderr)
        self.leaders.append(leader)
        return leader

    def log(self, number: int) -> Path:
        """What the leader of this number says."""
        return self.root / f"leader-{number}.log"

    def follow(self, *arguments: str) -> Agent:
        """Starts a follower that tells what it is given; the first argument is its name."""
        return self.start(AGENT, *arguments)

    def start(self, code: str, *arguments: str, **variables: str) -> Agent:
        """Starts a program that may be a follower; it ends with the test."""
        output = self.root / f"agent-{len(self.agents)}.out"
        with output.open("wb") as stdout:
            command = [sys.executable, "-c", code, *arguments]
            process = subprocess.Popen(command, env=self.environ | variables, stdout=stdout)
        self.agents.append(Agent(process, output))
        return self.agents[-1]

    def run(self, *arguments: str, text: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """One command of ours with `text` as its input, until it has ended."""
        return _run(self.environ | variables, arguments, text)

    def status(self) -> dict[str, Any] | None:
        """What the leader of this moment says of itself; None where none answers."""
        with suppress(BusError, TimeoutError):
            return dict(ask(self.profile, "x.status.get", self.profile.follower_secret))
        return None

    def wait_status(self, wanted: Callable[[dict[str, Any]], object] = bool) -> dict[str, Any]:
        """The first status that is as wanted, waiting for it."""
        found = until(lambda: (status := self.status()) is not None and wanted(status) and status)
        assert isinstance(found, dict)
        return found

    def say(self, text: str, thread: int) -> None:
        self.sandbox.say(text, thread_id=thread)

    def wait_answer(self, text: str, thread: int) -> dict[str, Any]:
        return self.sandbox.wait_for_message(text, thread_id=thread, within=PATIENCE)

    def wait_thread(self, name: str) -> int:
        """The thread of that name, waiting for it."""
        return self.sandbox.wait_for_topic(name, within=PATIENCE)

    def kill_leader(self) -> int:
        """Kills whoever leads; returns its process id."""
        pid = json.loads(self.profile.leader_json.read_text())["pid"]
        os.kill(pid, signal.SIGKILL)
        return int(pid)

    def topics_made(self) -> int:
        return len(self.sandbox.record(kind="call", method="createForumTopic"))

    def end(self) -> None:
        """Ends everything: the followers cannot start another leader after a stop."""
        self.run("stop")
        processes = [agent.process for agent in self.agents] + self.leaders
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


@contextmanager
def open_machine(root: Path) -> Iterator[Machine]:
    """A machine with a sandbox that nobody used before."""
    with Sandbox() as sandbox:
        machine = Machine(sandbox, root)
        try:
            yield machine
        finally:
            machine.end()


def run(demo: DemoBus, *arguments: str, text: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """One command of ours on a demo's bus with `text` as its input, until it has ended."""
    return _run(demo.environ | variables, arguments, text)


def with_bus(demo: DemoBus, name: str, work: Callable[[telegram_bus.Bus], Coroutine[Any, Any, None]]) -> None:
    """Runs `work` as a follower in this process."""

    async def main() -> None:
        with trio.fail_after(PATIENCE):
            async with telegram_bus.join(name, home=demo.profile.home.root) as bus:
                await bus.wait_serving()
                await work(bus)

    trio.run(main)


def _run(environ: Mapping[str, str], arguments: tuple[str, ...], text: str) -> subprocess.CompletedProcess[str]:
    command = [*BUS, *arguments]
    return subprocess.run(
        command, env=environ, input=text, capture_output=True, text=True, timeout=2 * PATIENCE, check=False
    )
