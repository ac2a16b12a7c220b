"""The processes of a run of chaos: started, killed, frozen, starved of disk, started anew, and ended with it."""

from __future__ import annotations

import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import trio
from attrs import define, field, frozen

from benchmarks._bus import Place
from telegram_bus.crash import VARIABLE
from telegram_bus.home import HOME_VARIABLE
from telegram_bus.host import open_process, process_birth_id, process_state
from telegram_bus.roles.record import read_leader

__all__ = ["FOLLOWER_POINTS", "LEADER_POINTS", "SENDING", "Rig", "Slot", "python"]

LEADER_POINTS: Final = (
    "after-epoch", "after-publish", "after-poll", "after-admit", "before-forward", "after-forward", "after-settle",
    "after-accept", "after-claim", "after-release", "after-send", "after-settle-call",
    "after-doubt", "after-tell", "after-again",
    "after-intend-thread", "after-make-thread", "after-bind-thread",
    "after-intend-clean-up", "before-clean-up", "after-clean-up",
)  # fmt: skip
FOLLOWER_POINTS: Final = ("after-register", "after-append", "after-take", "after-answer", "before-done", "after-done")
RARE: Final = {
    "after-epoch": 1, "after-publish": 1, "after-register": 3, "after-answer": 15, "after-release": 1,
    "after-doubt": 1, "after-tell": 1, "after-again": 1,
    "after-intend-thread": 3, "after-make-thread": 3, "after-bind-thread": 3,
    "after-intend-clean-up": 3, "before-clean-up": 3, "after-clean-up": 3,
}  # fmt: skip
SENDING: Final = {
    "after-accept", "after-claim", "after-release", "after-send", "after-settle-call", "after-answer",
    "after-doubt", "after-tell", "after-again",
}  # fmt: skip

LOOK: Final = 0.05


@frozen
class Slot:
    """A place for a process: `points` are the crash points that one there may get, `pauses` how long it stays empty.

    One that `waits` at first may have a crash point from the start.
    """

    name: str
    command: tuple[str, ...]
    points: tuple[str, ...]
    pauses: tuple[float, ...]
    environ: dict[str, str] = field(factory=dict, repr=False)
    waits: bool = False


@define(eq=False)
class Rig:
    """Everything that runs, and what was done to it. Times are monotonic seconds.

    `armed` is the share of processes that get a crash point, which strikes when it is passed `passes` times at most.
    """

    place: Place
    chance: random.Random
    armed: float
    passes: int
    freezing: bool
    deaths: dict[int, float] = field(factory=dict)
    counts: Counter[str] = field(factory=Counter)
    armings: Counter[str] = field(factory=Counter)
    thawed_late: list[float] = field(factory=list)
    running: dict[str, trio.Process] = field(factory=dict)
    calm: bool = True  # at first and at last, so that everybody comes up
    ending: bool = False
    _orders: dict[int, str] = field(factory=dict)
    _frozen: set[int] = field(factory=set)

    async def keep(self, slot: Slot) -> None:
        """Have a process in the slot until the end: whenever one has ended, start the next."""
        out = self.place.root / "out"
        out.mkdir(exist_ok=True)
        while not self.over():
            order = self._order(slot)
            environ = self.place.environ | slot.environ | ({VARIABLE: order} if order else {})
            with (out / f"{slot.name}.log").open("ab") as log:
                process = await trio.lowlevel.open_process(
                    slot.command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environ
                )
            self.running[slot.name] = process
            if order:
                self._orders[process.pid] = order
            try:
                await process.wait()
            finally:
                with suppress(ProcessLookupError):  # it has ended, unless we are cancelled
                    process.kill()
                with trio.CancelScope(shield=True):
                    await process.wait()
                assert process.stdin is not None
                with trio.CancelScope(shield=True):
                    await process.stdin.aclose()
            if not self.over():
                self._note_end(slot, process)
            if not self.calm:
                await trio.sleep(self.chance.choice(slot.pauses))

    def over(self) -> bool:
        """Whether processes end because we are done, not because of what was done to them."""
        return self.ending

    def _order(self, slot: Slot) -> str:
        if (self.calm and not slot.waits) or not slot.points or self.chance.random() >= self.armed:
            return ""
        fewest = min(self.armings[point] for point in slot.points)
        point = self.chance.choice([point for point in slot.points if self.armings[point] == fewest])
        self.armings[point] += 1
        count = self.chance.randint(1, min(self.passes, RARE.get(point, self.passes)))
        how = ":freeze" if self.freezing and self.chance.random() < 0.2 else ""
        return f"{point}:{count}{how}"

    def _note_end(self, slot: Slot, process: trio.Process) -> None:
        order = self._orders.pop(process.pid, "")
        if process.pid in self.deaths:
            return
        self.deaths[process.pid] = time.monotonic()
        if process.pid in self._frozen:
            return  # ended because it was silent
        if process.returncode == -signal.SIGKILL and order:
            self.counts[f"kill {order.split(':')[0]}"] += 1
        elif process.returncode == -signal.SIGKILL:
            self.counts["killed by others"] += 1  # a frozen leader, by a follower
        else:
            self.counts[f"ended by itself: {slot.name} {process.returncode}"] += 1

    # -- who there is

    def leader(self) -> int | None:
        """The pid of the leader that published itself last, if it lives."""
        record = read_leader(self.place.profile)
        if record is None or process_state(record.pid, record.holder.birth) != "alive":
            return None
        return record.pid

    def follower(self) -> int | None:
        """Any one of the follower processes."""
        pids = [
            process.pid
            for name, process in self.running.items()
            if name.startswith("followers") and process.returncode is None and process.pid not in self.deaths
        ]
        return self.chance.choice(pids) if pids else None

    def ours(self) -> Iterator[int]:
        """Every process that belongs to this bus, also leaders that followers have started."""
        mark = f"{HOME_VARIABLE}={self.place.environ[HOME_VARIABLE]}".encode()
        for path in Path("/proc").glob("[0-9]*/environ"):
            with suppress(OSError):
                if mark in path.read_bytes().split(b"\0"):
                    yield int(path.parent.name)

    # -- what is done to them

    def kill(self, pid: int, what: str) -> None:
        """SIGKILL. The time is noted before, so that nothing of it comes earlier."""
        with suppress(OSError), _handle(pid) as send:
            self.deaths[pid] = time.monotonic()
            send(signal.SIGKILL)
            self.counts[f"kill {what}"] += 1

    async def freeze(self, pid: int, what: str, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after a while, unless it was ended meanwhile."""
        birth, began = process_birth_id(pid), time.monotonic()
        with suppress(OSError), _handle(pid) as send:
            self._frozen.add(pid)
            send(signal.SIGSTOP)
            self.counts[f"freeze {what}"] += 1
            try:
                with trio.move_on_after(seconds):
                    while process_state(pid, birth) == "alive":  # noqa: ASYNC110 - another process
                        await trio.sleep(LOOK)
                    self._ended_frozen(pid, time.monotonic() - began)
            finally:
                self._frozen.discard(pid)
                send(signal.SIGCONT)

    def _ended_frozen(self, pid: int, seconds: float) -> None:
        self.deaths.setdefault(pid, time.monotonic())
        self.thawed_late.append(seconds)

    async def thaw(self) -> None:
        """Let those go on, after a while, that a crash point has frozen; until cancelled."""
        async with trio.open_nursery() as nursery:
            while True:
                await trio.sleep(LOOK)
                for pid, order in list(self._orders.items()):
                    if order.endswith(":freeze") and pid not in self._frozen and _is_stopped(pid):
                        del self._orders[pid]
                        name = order.split(":")[0]
                        nursery.start_soon(self.freeze, pid, name, 0.2 if self.calm else self.chance.uniform(0.2, 3))

    async def starve(self, pid: int, what: str, seconds: float) -> None:
        """No file of the process may grow or be written for a while: SQLite and we see a failing disk."""
        try:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        except OSError:
            return
        self.counts[f"disk {what}"] += 1
        try:
            await trio.sleep(seconds)
        finally:
            self._feed()

    def _feed(self) -> None:
        """Whoever was started by a starved process is one too."""
        for pid in self.ours():
            with suppress(OSError):
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    async def end(self) -> None:
        """Nothing of this bus is left: first those go that would start others."""
        self.ending = True
        for name, process in self.running.items():
            if name.startswith("followers"):
                process.kill()
        while pids := [pid for pid in self.ours() if not _is_zombie(pid)]:
            for pid in pids:
                with suppress(OSError), _handle(pid) as send:
                    send(signal.SIGKILL)
            await trio.sleep(LOOK)


@contextmanager
def _handle(pid: int) -> Iterator[Callable[[int], None]]:
    """Signals for exactly the process that has the pid now."""
    handle = open_process(pid)
    try:

        def send(number: int) -> None:
            with suppress(ProcessLookupError):
                handle.signal(number)

        yield send
    finally:
        handle.close()


def _stat(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _is_stopped(pid: int) -> bool:
    return _stat(pid) == "T"


def _is_zombie(pid: int) -> bool:
    return _stat(pid) in {"Z", ""}


def python(module: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs a module with this interpreter."""
    return (sys.executable, "-m", module, *arguments)
