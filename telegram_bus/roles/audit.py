"""The audit log: which requests a leader refused, of whom and by which rule, never what they contained."""

from __future__ import annotations

import json
import logging
import os
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import trio
from attrs import define, field

from telegram_bus.log import harmless, redacted
from telegram_bus.wire.connection import Peer

__all__ = ["Audit"]

log = logging.getLogger(__name__)

BURST: Final = 20
PER_SECOND: Final = 1.0
"""Refusals of one follower that are written at once, and how many more a second; the others are counted."""

LARGEST: Final = 1_000_000
"""Bytes of the file before it is renamed to `audit.jsonl.1`."""

KEPT: Final = 2
"""Renamed files that are kept."""

LONGEST: Final = 200
"""Characters of each text in a line; followers choose their own names."""

_APPENDING: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Past no link, and without waiting for whoever might read a fifo in the file's place."""

ASKERS: Final = 256
"""Followers whose rates are remembered: more than there are, and a bound for those that make up names."""


@define
class _Rate:
    """What one asker may still have written, since when, and what was only counted."""

    left: float
    since: float
    hidden: int = 0


@define(kw_only=True, eq=False)
class Audit:
    """The log at `path`: JSON lines of time, who (None: nobody that is known), pid, method, field, rule.

    `note` returns at once; the lines are written in a thread. What a flood leaves out is counted in a line
    {"time", "who", "left_out"}.
    """

    path: Path
    now_ms: Callable[[], int] = field(repr=False)
    clock: Callable[[], float] = field(default=trio.current_time, repr=False)
    _rates: OrderedDict[str | None, _Rate] = field(factory=OrderedDict)
    _lines: list[dict[str, Any]] = field(factory=list)
    _wake: trio.Event = field(factory=trio.Event)
    _failing: bool = False

    def note(self, who: str | None, pid: int, method: str, where: str | None, rule: str) -> None:
        """A request was refused; `where` is the path of the field. Call it in the leader's own thread."""
        rate = self._rate(who)
        if rate.left < 1:
            rate.hidden += 1
        else:
            rate.left -= 1
            self._tell_hidden(who, rate)
            self._lines.append(self._entry(who, pid=pid or None, method=method, field=where, rule=rule))
        self._wake.set()

    def note_stranger(self, peer: Peer) -> None:
        """A process of another user connected, and was hung up on."""
        self.note(None, peer.pid, "connect", "uid", f"must be that of this leader, not {peer.uid}")

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write what is noted until cancelled, and what is left then."""
        task_status.started()
        try:
            while True:
                await self._wake.wait()
                self._wake = trio.Event()
                await self._write()
                while any(rate.hidden for rate in self._rates.values()):
                    await trio.sleep(1 / PER_SECOND)
                    self._tell_all_hidden()
                    await self._write()
        finally:
            for who, rate in self._rates.items():
                self._tell_hidden(who, rate)
            self._append(self._taken())

    def _rate(self, who: str | None) -> _Rate:
        now = self.clock()
        rate = self._rates.get(who)
        if rate is None:
            rate = self._rates[who] = _Rate(BURST, now)
            if len(self._rates) > ASKERS:
                self._tell_hidden(*self._rates.popitem(last=False))
        self._rates.move_to_end(who)
        rate.left, rate.since = min(BURST, rate.left + (now - rate.since) * PER_SECOND), now
        return rate

    def _tell_all_hidden(self) -> None:
        for who, rate in list(self._rates.items()):
            if rate.hidden and self._rate(who).left >= 1:
                rate.left -= 1
                self._tell_hidden(who, rate)

    def _tell_hidden(self, who: str | None, rate: _Rate) -> None:
        if rate.hidden:
            self._lines.append(self._entry(who, left_out=rate.hidden))
            rate.hidden = 0

    def _entry(self, who: str | None, **facts: Any) -> dict[str, Any]:
        time = datetime.fromtimestamp(self.now_ms() / 1000, UTC).isoformat(timespec="milliseconds")
        return {"time": time, "who": who, **facts}

    def _taken(self) -> bytes:
        lines, self._lines = self._lines, []
        return b"".join(_line(one) for one in lines)

    async def _write(self) -> None:
        if data := self._taken():
            with trio.CancelScope(shield=True):  # what was taken is written, also when the leader ends just now
                await trio.to_thread.run_sync(self._append, data)

    def _append(self, data: bytes) -> None:
        """In a thread, one call at a time. A full disk costs the lines, and one warning."""
        if not data:
            return
        try:
            self._rotate(len(data))
            descriptor = os.open(self.path, _APPENDING, 0o600)
            try:
                os.write(descriptor, data)
            finally:
                os.close(descriptor)
        except OSError as error:
            if not self._failing:
                log.warning("refusals are not noted in %s: %s", self.path, error.strerror)
            self._failing = True
        else:
            self._failing = False

    def _rotate(self, more: int) -> None:
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return
        if size and size + more > LARGEST:
            for number in range(KEPT, 0, -1):
                older = self.path.with_name(f"{self.path.name}.{number - 1}") if number > 1 else self.path
                if older.exists():
                    older.replace(self.path.with_name(f"{self.path.name}.{number}"))


def _line(entry: dict[str, Any]) -> bytes:
    short = {name: redacted(value)[:LONGEST] if isinstance(value, str) else value for name, value in entry.items()}
    return harmless(json.dumps(short, ensure_ascii=False)).encode() + b"\n"
