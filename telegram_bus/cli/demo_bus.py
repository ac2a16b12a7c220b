"""A whole bus in a directory of its own: a sandbox, a leader and any followers, each as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Literal

from attrs import define, field

from telegram_bus.cli.asking import ask
from telegram_bus.cli.demo_sandbox import Person
from telegram_bus.cli.stop import stop_leader
from telegram_bus.core.errors import BusError, NoLeader
from telegram_bus.home import Home, Profile

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BUS", "START", "DemoBus", "open_demo_bus"]

BUS: Final = (sys.executable, "-m", "telegram_bus")
"""The command line of this very installation."""

START: Final = 30.0
"""Seconds for everything to come up: on an idle machine it takes one or two."""

_STOP: Final = 8.0
"""Seconds for a process that was asked to end; then it is killed."""

_LOOK: Final = 0.05
_LAST_LINES: Final = 15


@define(kw_only=True, eq=False)
class DemoBus:
    """The processes of one bus; `person` is who writes to the agents, `environ` what followers are started with."""

    directory: Path
    profile: Profile
    person: Person
    environ: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]] = field(factory=dict)

    def start(self, name: str, command: Sequence[str], environ: Mapping[str, str] | None = None) -> None:
        """Starts a process of the bus in a session of its own, so that Ctrl-C reaches this program alone."""
        with self.log(name).open("ab") as log:
            self.processes[name] = subprocess.Popen(  # noqa: S603 - our own commands
                command,
                env=self.environ | dict(environ or {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def log(self, name: str) -> Path:
        """What that process printed."""
        return self.directory / f"{name}.log"

    def thread_of(self, name: str, seconds: float = START) -> int:
        """The id of the thread of a live follower, waiting for it; raises BusError when a process of ours ended."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.check()
            for follower in self.followers():
                if follower.get("name") == name and follower.get("thread_id"):
                    return int(follower["thread_id"])
            time.sleep(_LOOK)
        raise TimeoutError(f"the follower {name!r} got no thread within {seconds:.0f} s{self._last_words('leader')}")

    def followers(self) -> list[dict[str, Any]]:
        """The live followers, as the leader of this moment tells; none while there is no leader."""
        try:
            status = ask(self.profile, "x.status.get", self.profile.follower_secret)
        except (NoLeader, TimeoutError):
            return []
        return list(status["followers"])

    def check(self) -> None:
        """Raises BusError when a process has ended by itself."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                raise BusError(f"the {name} ended with exit status {process.returncode}{self._last_words(name)}")

    def stop(self) -> None:
        """Ends everything: followers first, so that none starts a successor, then whoever leads by now."""
        others = [process for name, process in self.processes.items() if name not in {"leader", "sandbox"}]
        _end(others)
        with suppress(BusError, TimeoutError):
            stop_leader(self.profile, _STOP)
        _end([process for process in self.processes.values() if process not in others])

    def _last_words(self, name: str) -> str:
        lines = self.log(name).read_text("utf-8", "replace").splitlines() if self.log(name).exists() else []
        return "".join(f"\n  {line}" for line in lines[-_LAST_LINES:])


@contextmanager
def open_demo_bus(
    directory: Path, port: int = 0, *, place: Literal["private", "forum", "group"] = "private"
) -> Iterator[DemoBus]:
    """A sandbox and a leader that serves its owner, in `directory`, until the block ends.

    `place` is the chat of the sandbox that it works in.
    """
    environ = _environment(directory)
    sandbox, address = _start_sandbox(directory, environ, port)
    bus = DemoBus(
        directory=directory,
        profile=Home(directory / "home").profile("default"),
        person=Person(address),
        environ=environ,
        processes={"sandbox": sandbox},
    )
    try:
        owner = str(address["chat_id"])
        chat = ("--chat", owner) if place == "private" else ("--chat", str(address[f"{place}_id"]), "--allow", owner)
        options = ("--api-root", address["api_root"], *chat)
        bus.start("leader", [*BUS, "leader", *options], {"TELEGRAM_BOT_TOKEN": address["token"]})
        yield bus
    finally:
        bus.stop()


def _environment(directory: Path) -> dict[str, str]:
    """Ours without what belongs to another bus; nothing is written anywhere but below `directory`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("TELEGRAM_") or name == "TELEGRAM_BUS_LIMITS"
    }
    return kept | {
        "TELEGRAM_BUS_HOME": str(directory / "home"),
        "XDG_STATE_HOME": str(directory / "state"),
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
    }


def _start_sandbox(
    directory: Path, environ: Mapping[str, str], port: int
) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    with (directory / "sandbox.log").open("wb") as log:
        # it ends with its stdin, hence with us, whatever ends us
        process = subprocess.Popen(  # noqa: S603 - our own command
            [*BUS, "sandbox", "--json", "--until-eof", "--port", str(port)],
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        process.wait()
        words = (directory / "sandbox.log").read_text("utf-8", "replace").strip().removeprefix("telegram-bus: ")
        raise BusError(f"the sandbox did not start: {words}")
    return process, json.loads(line)


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Asks all of them to end, then waits, then kills them with their process groups; none is left."""
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + _STOP
    for process in processes:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
