"""How a follower without a leader gets one: it finds it, waits for whoever starts it, or starts it, one at a time."""

from __future__ import annotations

import json
import logging
import math
import os
import random
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import trio
from attrs import evolve, field, frozen, mutable

from telegram_bus.core.election import (
    CannotTell,
    Follow,
    Judgement,
    Situation,
    Start,
    StartStep,
    Stay,
    WaitForLeader,
    decide_start,
    next_delay,
    restart_delay,
)
from telegram_bus.core.errors import BusError, NoLeader, SettingsError, StateError
from telegram_bus.home import Profile, read_regular
from telegram_bus.locks import FileLock
from telegram_bus.roles.bell import listen
from telegram_bus.roles.detached import StartedLeader, last_words, start_leader_detached
from telegram_bus.roles.holder import DEFAULT_TIMES, POLL, Times, answering_leader, describe, watch_holder
from telegram_bus.roles.record import ENDED, LeaderRecord, read_leader

__all__ = [
    "PARENT_VARIABLE",
    "LeaderStopped",
    "StartedLeader",
    "ensure_leader",
    "start_leader",
    "start_leader_detached",
]

log = logging.getLogger(__name__)

PARENT_VARIABLE: Final = "TELEGRAM_BUS_PARENT"
"""Set for the programs that a follower wraps; under it nothing starts a leader unasked."""

LOCK_EVERY: Final = 0.25
"""Seconds between two tries for the start lock: a starter that died is replaced so fast."""
STANDBY_SECONDS: Final = 1.5
"""What a standby has for taking over, which is a matter of milliseconds; then it counts as frozen itself."""
LOOK: Final = 0.01
"""Seconds between two looks at leader.json while there is no leader: a look takes 2 µs."""
STUCK: Final = 60.0
"""Seconds after which whoever holds the start lock must be suspended itself (Ctrl-Z): a start takes a third of that.

The leader's own locks still let only one lead, so starting without the start lock costs no more than CPU.
"""
STUCK_SPREAD: Final = 20.0
FORGET_FAILURES: Final = 600.0
NOTE_MAX: Final = 1 << 16  # bytes of what start.lock tells


class LeaderStopped(NoLeader):
    """A person stopped the bus; members wait until the mark is gone."""


async def ensure_leader(
    profile: Profile,
    *,
    may_start: bool = True,
    head_start: float = 0.0,
    report: Callable[[str], None] = log.debug,
    times: Times = DEFAULT_TIMES,
) -> LeaderRecord:
    """The leader of the profile, which answered a request or rang a moment ago; started if need be and `may_start`.

    `head_start` seconds are left to others first. `report` gets the reasons for waiting. Gives up only for a reason:
    raises LeaderStopped while the bus is stopped, NoLeader(reason) when no leader can be had for now (try again later),
    StateError when files of ours are in the way.
    """
    record = await answering_leader(profile, times.probe)
    if record is not None:
        return record
    search = _Search(
        profile,
        may_start and not os.environ.get(PARENT_VARIABLE),
        report,
        times,
        starts_at=trio.current_time() + head_start,
    )
    return await search.run()


async def start_leader(profile: Profile, *, report: Callable[[str], None] = log.info) -> LeaderRecord:
    """For a person who asks for it: remove the mark `stopped`, and start a leader where none answers.

    Raises as `ensure_leader` does, but an earlier failed start does not hold it back.
    """
    may_start = not os.environ.get(PARENT_VARIABLE)
    if may_start:
        profile.stopped.unlink(missing_ok=True)
    record = await answering_leader(profile)
    if record is not None:
        return record
    return await _Search(profile, may_start, report, DEFAULT_TIMES, obeys_back_off=False).run()


@frozen(kw_only=True)
class _Failures:
    """What start.lock tells of the starts that failed; `at` is wall-clock time, shared by all followers."""

    count: int = 0
    at: float = 0.0
    reason: str = ""

    @classmethod
    def read(cls, path: Path) -> _Failures:
        try:
            noted = json.loads(read_regular(path, NOTE_MAX) or b"{}")
            return cls(count=int(noted["count"]), at=float(noted["at"]), reason=str(noted["reason"]))
        except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return cls()  # none, or just being written

    def retry_in(self, now: float) -> float:
        since = now - self.at
        # a clock that was set back must not hold anybody back
        return restart_delay(self.count) - since if since >= 0 else 0.0

    def and_now(self, now: float, reason: str) -> _Failures:
        """These and one more; what failed long ago does not count."""
        recent = self.count if 0 <= now - self.at < FORGET_FAILURES else 0
        return _Failures(count=recent + 1, at=now, reason=reason)

    def note(self) -> str:
        return json.dumps({"count": self.count, "at": self.at, "reason": self.reason})


@mutable(eq=False)
class _Search:
    """One search for a leader; it knows a little of what it saw, and holds the start lock at times."""

    profile: Profile
    may_start: bool
    report: Callable[[str], None]
    times: Times
    obeys_back_off: bool = True
    starts_at: float = -math.inf
    _began: float = field(factory=trio.current_time)
    _lock: FileLock | None = None
    _lock_tried: float = -LOCK_EVERY
    _doubt: str | None = None
    _found: LeaderRecord | None = None
    _first: LeaderRecord | None = field(init=False)
    _record: tuple[int, int] | None = field(init=False)
    _bell: trio.SocketStream | None = None
    _bypass_after: float = field(factory=lambda: STUCK + random.uniform(0, STUCK_SPREAD))
    _last_reason: str = field(default="no leader answers")

    def __attrs_post_init__(self) -> None:
        self._record, self._first = _identity(self.profile.leader_json), read_leader(self.profile)

    async def run(self) -> LeaderRecord:
        outcome: LeaderRecord | BusError
        self._bell = await listen(self.profile)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch)
                try:
                    outcome = await self._look_until_sure()
                except BusError as error:
                    outcome = error  # raised below, out of the nursery's group
                nursery.cancel_scope.cancel("the search is over")
        finally:
            self._drop_lock()
            self._hush()
        if isinstance(outcome, BusError):
            raise outcome
        return outcome

    async def _look_until_sure(self) -> LeaderRecord:
        delay: float | None = None
        began = trio.current_time()
        patience = self.times.lease + self.times.probe + self.times.farewell + self.times.patience
        while True:
            match self._next_step():
                case Follow():
                    assert self._found is not None
                    return self._found
                case Stay(reason, stopped):
                    raise LeaderStopped(reason) if stopped else NoLeader(reason)
                case Start():
                    return await self._start()
                case WaitForLeader(reason):
                    self._say(reason)
            if self._doubt is not None:
                raise NoLeader(self._doubt)
            if trio.current_time() - began > patience:
                raise NoLeader(self._last_reason)
            delay = next_delay(delay, random.random())
            self._found = None
            with trio.move_on_after(delay):
                self._found = await (self._wait_for_bell() if self._bell is not None else self._new_record())
                delay = None  # it is there, or about to be
            self._record = _identity(self.profile.leader_json)
            if self._found is None:
                self._found = await answering_leader(self.profile, self.times.probe)

    async def _wait_for_bell(self) -> LeaderRecord | None:
        """Wait until whoever stands by has become the leader or given up; a leader of which nobody knew is new."""
        assert self._bell is not None
        with suppress(trio.BrokenResourceError):
            await self._bell.receive_some(1)
        self._hush()
        record = read_leader(self.profile)
        if record is None or record.state == ENDED or (self._first and record.instance == self._first.instance):
            return None
        return record

    async def _new_record(self) -> None:
        """Wait until leader.json is another file: who becomes the leader writes it, and a look costs microseconds."""
        while _identity(self.profile.leader_json) == self._record:  # noqa: ASYNC110 - another process writes it
            await trio.sleep(LOOK)

    def _hush(self) -> None:
        if self._bell is not None:
            self._bell.socket.close()
            self._bell = None

    def _next_step(self) -> StartStep:
        """Look at the files, take the start lock where that is our turn, and decide."""
        failures = _Failures.read(self.profile.start_lock)
        at = Situation(
            answered=self._found is not None,
            stopped=self.profile.stopped.exists(),
            may_start=self.may_start,
            configured=True,
            retry_in=failures.retry_in(time.time()) if self.obeys_back_off else 0.0,
            last_failure=failures.reason or None,
            start_lock_held=True,
            leader_lock_free=True,
        )
        step = decide_start(at)
        if not isinstance(step, Start):
            return step
        # nothing speaks against a start: now look at what costs more
        if trio.current_time() - self._began < STANDBY_SECONDS and self._somebody_stands_by():
            return decide_start(evolve(at, standby=True))
        if not _interpreter(self.profile):
            return decide_start(evolve(at, configured=False))
        held = self._have_lock() or self._lock_is_stuck()
        return decide_start(
            evolve(at, start_lock_held=held, leader_lock_free=held and not FileLock.is_held(self.profile.leader_lock))
        )

    def _somebody_stands_by(self) -> bool:
        try:
            return FileLock.is_held(self.profile.standby_lock)
        except StateError:  # no profile yet, say: whoever starts a leader hears of it
            return False

    def _have_lock(self) -> bool:
        now = trio.current_time()
        if now < self.starts_at:
            return False
        if self._lock is None and now - self._lock_tried >= LOCK_EVERY:
            self._lock_tried = now
            self.profile.ensure()
            self._lock = FileLock.try_lock(self.profile.start_lock)
            if self._lock is not None:
                with suppress(OSError):
                    self._lock.touch()  # so that others see for how long it is held
        return self._lock is not None

    def _lock_is_stuck(self) -> bool:
        with suppress(OSError):
            return time.time() - self.profile.start_lock.stat().st_mtime > self._bypass_after
        return False

    async def _start(self) -> LeaderRecord:
        """Start a leader and wait until it (or another) answers; the start lock is held meanwhile."""
        interpreter = _interpreter(self.profile)
        assert interpreter is not None
        self._say("starting a leader")
        try:
            started = await start_leader_detached(self.profile, interpreter)
            record = await self._until_it_answers(started)
        except NoLeader as failure:
            earlier = _Failures.read(self.profile.start_lock)
            self._note(earlier.and_now(time.time(), str(failure)).note())
            raise
        self._note("")
        return record

    def _note(self, note: str) -> None:
        if self._lock is not None:
            with suppress(OSError):  # a full disk: the others then try more often
                self._lock.write_note(note)

    async def _until_it_answers(self, started: StartedLeader) -> LeaderRecord:
        with trio.move_on_after(self.times.patience):
            while True:
                exited = started.has_exited()
                record = await answering_leader(self.profile, self.times.probe)
                if record is not None:
                    return record
                if exited:
                    raise NoLeader(last_words(self.profile, started.log_offset))
                await trio.sleep(POLL)
        raise NoLeader(
            f"the leader that was started, process {started.pid}, did not answer within {self.times.patience:g} s; "
            f"look into {self.profile.leader_log}"
        )

    async def _watch(self) -> None:
        """Only who holds the start lock ends a frozen leader, so that one process does it."""

        def judge(judgement: Judgement, _: LeaderRecord | None) -> None:
            if isinstance(judgement, CannotTell) and self._lock is not None:
                self._doubt = (
                    f"the leader neither answers nor renews its lease, but {judgement.reason}; "
                    f"end it by hand: {describe(self.profile, living=True)}"
                )

        await watch_holder(self.profile, judge, may_end=lambda: self._lock is not None, times=self.times)

    def _say(self, reason: str) -> None:
        if reason != self._last_reason:
            self._last_reason = reason
            self.report(reason)

    def _drop_lock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _interpreter(profile: Profile) -> str | None:
    """What starts a successor, None where nothing can; config.toml is read here only, and no token kept."""
    from telegram_bus.roles.settings import stored_interpreter  # noqa: PLC0415 - 15 ms a follower rarely needs

    try:
        return stored_interpreter(profile)
    except SettingsError as error:  # a person mends it, and then the next try finds a leader
        raise NoLeader(f"no leader answers, and none can be started: {error}") from error
