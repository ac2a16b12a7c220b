"""How much may leave: exact windows over what the server may have counted, with a share kept for answers to clicks.

A call is held from its start until one window after its *answer*. The server counts it somewhere between, so whatever
the delay on the way is, no window of the server's holds more than the limit.
"""

from __future__ import annotations

import math
import re
from collections import deque
from typing import Any, Final, NamedTuple

__all__ = ["DEFAULT_LIMITS", "Allowance", "Limits", "Rate", "kept_for_clicks", "kept_from_progress", "parse_limits"]

NEVER: Final = math.inf
_ROUNDING: Final = 1e-9

QUIET_WINDOWS: Final = 10
QUIET_LEAST: Final = 60.0
"""A lowered limit is raised by a step after so many windows (seconds, at least) without a 429 …"""

QUIET_MOST: Final = 86_400.0
"""… and twice as late each time the step was too early, up to a day."""

SHRINK: Final = 1.5
"""Where one at a time is too much still, the window grows by this factor."""


class Rate(NamedTuple):
    """At most `most` in any `seconds`."""

    most: int
    seconds: float


class Limits(NamedTuple):
    """What leaves: overall, in one private chat (on average, after `burst` at once), in one group, typing in one chat.

    The numbers are Telegram's (bot-api M18); of a burst it says only that a short one is let through, and the one for
    typing is ours: a show of typing lasts 5 s, so this is enough for twenty followers in a chat.
    """

    overall: Rate = Rate(30, 1.0)
    private: Rate = Rate(1, 1.0)
    burst: int = 3
    group: Rate = Rate(20, 60.0)
    typing: Rate = Rate(5, 1.0)

    def __str__(self) -> str:
        rates = [f"{name}={rate.most}/{rate.seconds:.9g}" for name, rate in zip(_RATES, self._rates(), strict=True)]
        return " ".join([*rates, f"burst={self.burst}"])

    def _rates(self) -> tuple[Rate, ...]:
        return self.overall, self.private, self.group, self.typing


_RATES: Final = ("overall", "private", "group", "typing")

DEFAULT_LIMITS: Final = Limits()


def parse_limits(text: str) -> Limits:
    """Limits from a text such as `group=10/60 burst=1` (count / seconds); what it does not name is as usual.

    Raises ValueError for anything else.
    """
    given: dict[str, Any] = {}
    for word in text.replace(",", " ").split():
        found = re.fullmatch(r"([a-z]+)=([1-9][0-9]{0,6})(?:/([0-9]{1,6}(?:\.[0-9]{1,12})?))?", word)
        name, seconds = (found[1], float(found[3] or 0)) if found else ("", 0.0)
        if found and name in _RATES and 0.0005 <= seconds <= 86_400:
            given[name] = Rate(int(found[2]), seconds)
        elif found and name == "burst" and found[3] is None:
            given[name] = int(found[2])
        else:
            raise ValueError(f"must be limits such as {DEFAULT_LIMITS}, count/seconds each; {word!r} is none")
    return DEFAULT_LIMITS._replace(**given)


SMALL: Final = 2
"""Nothing is kept of so few."""


def kept_for_clicks(count: int) -> int:
    """How many of so many messages are kept for answers to clicks: 10 %, at least one, none of one or two."""
    return -(-count // 10) if count > SMALL else 0


def kept_from_progress(count: int) -> int:
    """How many of so many messages are kept from edits and progress: half; else results wait for a window's end."""
    return count // 2


def sure_of_progress(count: int) -> int:
    """How many of so many messages edits and progress may be, though others leave them no room in their half."""
    return max(1, count // 6)


class _Window:
    """At most `count` within any `seconds`."""

    def __init__(self, count: int, seconds: float) -> None:
        self.count, self.seconds = count, seconds
        self.under_way = 0
        self._ended: deque[tuple[float, int]] = deque()
        self._held = 0

    def used(self, now: float) -> int:
        while self._ended and self._ended[0][0] <= now - self.seconds:
            self._held -= self._ended.popleft()[1]
        return self.under_way + self._held

    def wait(self, now: float, weight: int, most: int | None = None) -> float:
        most = self.count if most is None else most
        over = self.used(now) + min(weight, most) - most
        if over <= 0:
            return 0.0
        for ended, freed in self._ended:
            over -= freed
            if over <= 0:
                return max(0.0, ended + self.seconds - now)
        return NEVER  # until an answer comes

    def wait_for_many(self, now: float, weight: int) -> float:
        """About how long until so much has started, one after the other."""
        over = self.used(now) + weight - self.count
        if over <= 0:
            return 0.0
        rounds, left = divmod(over - 1, self.count)
        at = now
        for ended, freed in self._ended:
            left -= freed
            if left < 0:
                at = ended
                break
        return at + self.seconds * (rounds + 1) - now

    def end(self, now: float, weight: int) -> None:
        self.under_way -= weight
        self.recall(now, weight)

    def recall(self, ended: float, weight: int) -> None:
        """Something that was answered then; in the order of the answers."""
        self._ended.append((ended, weight))
        self._held += weight


class _Bucket:
    """`count` at once after a silence, and one each `seconds` on average."""

    def __init__(self, count: float, seconds: float) -> None:
        self.count, self.seconds = count, seconds
        self.under_way = 0
        self._full_at = -math.inf

    def _spent(self, now: float) -> float:
        return max(0.0, self._full_at - now) / self.seconds + self.under_way

    def used(self, now: float) -> int:
        return math.ceil(self._spent(now) - _ROUNDING)

    def wait(self, now: float, weight: int) -> float:
        over = self._spent(now) + min(weight, self.count) - self.count
        if over <= _ROUNDING:
            return 0.0
        if self.under_way + min(weight, self.count) > self.count:
            return NEVER
        return over * self.seconds

    def wait_for_many(self, now: float, weight: int) -> float:
        return max(0.0, (self._spent(now) + weight - self.count) * self.seconds)

    def end(self, now: float, weight: int) -> None:
        self.under_way -= weight
        self.recall(now, weight)

    def recall(self, ended: float, weight: int) -> None:
        self._full_at = max(self._full_at, ended) + weight * self.seconds


class Allowance:
    """One limit: what is left of it for all, and what for those that answer no click.

    It goes down when a 429 shows that the server's is lower, and comes back slowly.
    """

    def __init__(self, rate: Rate, *, burst: int | None = None, bounds_progress: bool = False) -> None:
        self._nominal = rate.most if burst is None else burst
        self._seconds = rate.seconds if burst is None else rate.seconds / rate.most
        self._count = self._nominal
        self._all: _Window | _Bucket
        self._ordinary: _Window | _Bucket
        self._progress = _Window(self._count, self._seconds) if bounds_progress else None
        if burst is None:
            self._all, self._ordinary = _Window(self._count, self._seconds), _Window(self._count, self._seconds)
        else:
            self._all, self._ordinary = _Bucket(self._count, self._seconds), _Bucket(self._count, self._seconds)
        self._set(self._count, 1.0, -math.inf)
        self._quiet = self._first_quiet = max(QUIET_LEAST, QUIET_WINDOWS * self._seconds)
        self._raised = False

    @property
    def level(self) -> tuple[int, float]:
        """What is allowed now: the count (of a bucket: at once), and by how much its time is stretched."""
        return self._count, self._stretch

    def wait(self, now: float, weight: int, *, click: bool) -> float:
        """Seconds until so much may start; `NEVER`: not before an answer has come."""
        if self.lowered:
            self._recover(now)
        most = self._all.wait(now, weight)
        return most if click else max(most, self._ordinary.wait(now, weight))

    def wait_progress(self, now: float, weight: int) -> float:
        """Seconds until so much that only shows progress may start, by its share of this limit.

        It takes only what others have left of half the window, but for the little that it is sure of: the other half
        is free for whoever comes.
        """
        if self._progress is None or isinstance(self._all, _Bucket):
            return 0.0
        sure = self._progress.wait(now, weight)
        return sure and min(sure, self._all.wait(now, weight, self._count - kept_from_progress(self._count)))

    def wait_for_many(self, now: float, weight: int) -> float:
        """About how long it takes until so much (no answers to clicks) has started."""
        return max(self._all.wait_for_many(now, weight), self._ordinary.wait_for_many(now, weight))

    def start(self, weight: int, *, click: bool, progress: bool = False) -> None:
        """Hold so much from now on."""
        for meter in self._meters(click=click, progress=progress):
            meter.under_way += weight

    def end(self, now: float, weight: int, *, click: bool, progress: bool = False) -> None:
        """It was answered, or may have arrived until now."""
        for meter in self._meters(click=click, progress=progress):
            meter.end(now, weight)

    def drop(self, weight: int, *, click: bool, progress: bool = False) -> None:
        """It surely did not count."""
        for meter in self._meters(click=click, progress=progress):
            meter.under_way -= weight

    def _meters(self, *, click: bool, progress: bool) -> tuple[_Window | _Bucket, ...]:
        if click:
            return (self._all,)
        if progress and self._progress is not None:
            return self._all, self._ordinary, self._progress
        return self._all, self._ordinary

    def recall(self, ended: float, weight: int, *, progress: bool = False) -> None:
        """What an earlier leader sent and had answered by then; in the order of the answers."""
        for meter in self._meters(click=False, progress=progress):
            meter.recall(ended, weight)

    def spend_all(self, now: float) -> None:
        """Nothing is known: as if everything had been spent at this moment."""
        self._all.recall(now, self._count)
        self._ordinary.recall(now, self._count)

    def idle(self, now: float) -> bool:
        """Whether forgetting it loses nothing."""
        return not self.lowered and not self._all.used(now) and not self._all.under_way

    def lower(self, now: float) -> None:
        """A 429 came although we kept to it: the real limit is lower, by what was let through about."""
        count, used = self._count, self._all.used(now)
        if self._raised:  # too early, if it was not long ago
            soon = now - self._changed_at < self._quiet
            self._quiet = min(QUIET_MOST, 2 * self._quiet) if soon else self._first_quiet
        self._raised = False
        if count > 1:
            self._set(min(count - 1, max(used, -(-count // 2))), self._stretch, now)
        else:
            self._set(1, self._stretch * SHRINK, now)

    def adopt(self, count: int, stretch: float, now: float) -> None:
        """Go on with what an earlier leader had come to."""
        if 1 <= count <= self._nominal and 1.0 <= stretch <= SHRINK**20:
            self._set(count, stretch, now)

    def _recover(self, now: float) -> None:
        while self.lowered and now - self._changed_at >= self._quiet:
            at, self._raised = self._changed_at + self._quiet, True
            if self._stretch > 1.0:
                self._set(self._count, max(1.0, self._stretch / SHRINK), at)
            else:
                self._set(self._count + 1, 1.0, at)

    def _set(self, count: int, stretch: float, now: float) -> None:
        self._stretch, self._changed_at = stretch, now
        self._count = self._all.count = count
        self.lowered = self.level != (self._nominal, 1.0)  # whether it is below its nominal value
        if isinstance(self._ordinary, _Bucket):  # a part of a message: a click finds room that much sooner
            self._ordinary.count = count - (count / 10 if count > SMALL else 0)
        else:
            self._ordinary.count = count - kept_for_clicks(count)
        self._all.seconds = self._ordinary.seconds = self._seconds * stretch
        if self._progress is not None:
            self._progress.count, self._progress.seconds = sure_of_progress(count), self._all.seconds
