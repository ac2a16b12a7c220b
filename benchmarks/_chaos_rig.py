"""The processes of a run of chaos: started, killed, frozen, starved of disk, started anew, and ended with it."""

from __future__ import annotations

import os
import random
import re
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
from telegram_bus.crash import STRUCK, VARIABLE
from telegram_bus.home import HOME_VARIABLE
from telegram_bus.host import open_process, process_birth_id, process_state
from telegram_bus.roles.record import read_leader

__all__ = ["CHOOSING", "HANDING", "SENDING", "Rig", "Slot", "python"]

SENDING: Final = frozenset({
    "after-accept", "after-claim", "after-release", "after-send", "after-settle-call", "after-answer",
    "after-doubt", "after-tell", "after-again",
})  # fmt: skip
HANDING: Final = frozenset({"after-hand-over", "after-freeze", "before-handed"})
CHOOSING: Final = frozenset({"before-show-answer", "after-hold", "after-give", "after-park-thread"})
OFTEN: Final = {"before-commit": 10, "after-commit": 10, "before-call": 3, "after-call": 3}
"""How much more often than others these points are passed."""
RARE: Final = {
    "after-begin": 1, "after-epoch": 1, "after-record": 1, "after-publish": 1, "after-register": 3, "after-answer": 15,
    "after-release": 1, "after-doubt": 1, "after-tell": 1, "after-again": 1,
    "after-intend-thread": 3, "after-make-thread": 3, "after-bind-thread": 3, "after-park-thread": 1,
    "after-intend-clean-up": 3, "before-clean-up": 3, "after-clean-up": 3,
    "after-hand-over": 5, "after-freeze": 3, "before-handed": 3,
    "before-show-answer": 1, "after-hold": 1, "after-give": 1,
}  # fmt: skip
"""How often these are passed in the life of a process, at most."""

AT_ONCE: Final = 4
"""Crash points of one process; whichever it passes first strikes."""

LOOK: Final = 0.05
TAIL: Final = 1 << 20  # bytes at the end of a log in which a point that has struck is looked for


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

    `armed` is the share of processes that get crash points, which strike when they are passed `passes` times at most:
    those that have struck the fewest times until then. `strikes` counts them, `told` are leaders that shall end in
    order, `leaders` all that may ever have led.
    """

    place: Place
    chance: random.Random
    armed: float
    passes: int
    freezing: bool
    deaths: dict[int, float] = field(factory=dict)
    counts: Counter[str] = field(factory=Counter)
    armings: Counter[str] = field(factory=Counter)
    strikes: Counter[str] = field(factory=Counter)
    told: set[int] = field(factory=set)
    leaders: set[int] = field(factory=set)
    thawed_late: list[float] = field(factory=list)
    running: dict[str, trio.Process] = field(factory=dict)
    calm: bool = True  # at first and at last, so that everybody comes up
    ending: bool = False
    _orders: dict[int, str] = field(factory=dict)
    _frozen: set[int] = field(factory=set)
    _thawed: Counter[int] = field(factory=Counter)  # how many of a process's points have frozen it

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
            if slot.environ:
                self.leaders.add(process.pid)
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
        shuffled = self.chance.sample(slot.points, len(slot.points))
        points = sorted(shuffled, key=lambda point: (self.strikes[point], self.armings[point]))[:AT_ONCE]
        self.armings.update(points)
        return ",".join(map(self._one_order, points))

    def _one_order(self, point: str) -> str:
        most = self.passes * OFTEN.get(point, 1)
        count = self.chance.randint(1, min(most, RARE.get(point, most)))
        how = ":freeze" if self.freezing and self.chance.random() < 0.2 else ""
        return f"{point}:{count}{how}"

    def _note_end(self, slot: Slot, process: trio.Process) -> None:
        order = self._orders.pop(process.pid, "")
        if process.pid in self.deaths:
            return
        if process.pid in self.told and process.returncode == 0:
            return
        self.deaths[process.pid] = time.monotonic()
        if process.pid in self._frozen:
            return  # ended because it was silent
        struck = self._struck(process.pid) if order else []
        if process.returncode == -signal.SIGKILL and len(struck) > self._thawed[process.pid]:
            self.strikes[struck[-1]] += 1
            self.counts[f"kill {struck[-1]}"] += 1
        elif process.returncode == -signal.SIGKILL:
            self.counts["killed by others"] += 1  # a frozen leader, by a follower
        else:
            self.counts[f"ended by itself: {slot.name} {process.returncode}"] += 1

    def _struck(self, pid: int) -> list[str]:
        """Which crash points have struck in a process, in order: it has said so in stderr."""
        found: list[str] = []
        said = re.compile(f"{STRUCK}([a-z-]+) in {pid}\n".encode())
        for path in (*(self.place.root / "out").glob("*.log"), self.place.profile.leader_log):
            with suppress(OSError), path.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL))
                found += [name.decode() for name in said.findall(log.read())]
        return found

    # -- who there is

    def leader(self) -> int | None:
        """The pid of the leader that published itself last, if it lives."""
        record = read_leader(self.place.profile)
        if record is None or process_state(record.pid, record.holder.birth) != "alive":
            return None
        self.leaders.add(record.pid)
        return record.pid

    def is_armed(self, pid: int) -> bool:
        """Whether a crash point may strike in the process."""
        return pid in self._orders

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

    def tell(self, pid: int) -> None:
        """SIGTERM: a leader that hands over in order, and a successor that comes at once."""
        with suppress(OSError), _handle(pid) as send:
            self.told.add(pid)
            send(signal.SIGTERM)
            self.counts["told leader"] += 1

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
                    if ":freeze" not in order or pid in self._frozen or not _is_stopped(pid):
                        continue
                    struck = self._struck(pid)[self._thawed[pid] :]
                    name = struck[-1] if struck else "at a point"  # its log may be on a disk that fails
                    self._thawed[pid] += len(struck)
                    self.strikes[name] += 1
                    seconds = 0.2 if self.calm else self.chance.uniform(0.2, 3)
                    nursery.start_soon(self.freeze, pid, name, seconds)

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
