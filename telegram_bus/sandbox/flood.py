"""Flood control as Telegram's servers do it: sends, edits and topic creation in one account (M18), and uploads of one

size (M16) and messages that wait to be sent (M17) besides. Pure.

Shares no code with the product's own limiter: it is there to find that one out.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from telegram_bus.sandbox.model_types import Json

__all__ = ["Excess", "Flood", "Limits"]

TOLERANCE = 0.05  # seconds by which a call may come early: clocks and schedulers are no better than that
MINUTE = 60.0
# Chats, and sizes of uploads, whose history is kept; those that are silent for longest go first.
KEPT_CHATS = 1_000
LIMITS = ("overall", "private", "group", "same_size", "under_way")
LONG_WAIT = 60.0  # what M16 and M17 tell, whatever there was
LARGE = 100_000  # bytes; greater uploads are looked at for their size (M16)
# Seconds that an upload of one size is to keep from the last: those that it takes at this rate, within bounds (M16).
UPLOAD_RATE = 10_000_000
SPACING = (0.2, 0.9)
# Seconds by which uploads of one size may be ahead of that: which is not published, so this is our choice.
AHEAD = 1.0
MOST_UNDER_WAY = 310  # messages of one chat that have no answer yet (M17)


def _amount(_limits: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1_000_000:
        raise ValueError(f"{attribute.name} must be a number above 0")


@attrs.frozen(kw_only=True)
class Limits:
    """How much is allowed: `overall` a second, `private` a second in one private chat after a burst of `burst`,

    `group` a minute in one group. `scale` divides these seconds and minutes, and the tolerance, so that a long
    experiment takes less time. Raises ValueError for what is no amount.
    """

    on: bool = attrs.field(default=False, validator=attrs.validators.instance_of(bool))
    overall: float = attrs.field(default=30, validator=_amount)
    private: float = attrs.field(default=1, validator=_amount)
    burst: float = attrs.field(default=3, validator=_amount)
    group: float = attrs.field(default=20, validator=_amount)
    scale: float = attrs.field(default=1, validator=_amount)


@attrs.frozen
class Excess:
    """A call that came too early: by which limit (one of `LIMITS`), and the whole seconds to wait."""

    limit: str
    retry_after: int


@attrs.define
class _Window:
    """At most `count` calls within any `seconds`."""

    count: float
    seconds: float
    times: deque[float] = attrs.field(factory=deque)

    def wait(self, now: float, weight: int) -> float:
        while self.times and self.times[0] <= now - self.seconds:
            self.times.popleft()
        over = len(self.times) + weight - self.count
        if over <= 0 or not self.times:
            return 0.0
        # What weighs more than the whole limit passes once nothing else is in the window.
        last = min(math.ceil(over), len(self.times)) - 1
        return self.times[last] + self.seconds - now

    def spend(self, now: float, weight: int) -> None:
        self.times.extend([now] * weight)


@attrs.define
class _Bucket:
    """`rate` calls a second, and up to `burst` of them at once after a silence."""

    rate: float
    burst: float
    full_at: float = -math.inf  # when all that was spent has come back

    def wait(self, now: float, weight: int) -> float:
        room = self.burst / self.rate
        return max(0.0, max(self.full_at, now) + min(weight / self.rate, room) - room - now)

    def spend(self, now: float, weight: int) -> None:
        self.full_at = max(self.full_at, now) + weight / self.rate


class _OneSize(_Bucket):
    """Uploads of one size, `spacing` seconds apart but for some at once; a call counts once, an album too."""

    def __init__(self, size: int) -> None:
        spacing = min(max(size / UPLOAD_RATE, SPACING[0]), SPACING[1])
        super().__init__(1 / spacing, 1 + AHEAD / spacing)

    def wait(self, now: float, weight: int) -> float:  # noqa: ARG002 - one shape for all meters
        return LONG_WAIT if super().wait(now, 1) > TOLERANCE else 0.0

    def spend(self, now: float, weight: int) -> None:  # noqa: ARG002
        super().spend(now, 1)


@attrs.define
class _UnderWay:
    """The messages of one chat that have no answer yet, which are counted elsewhere."""

    chat_id: int
    counts: Counter[int]

    def wait(self, now: float, weight: int) -> float:  # noqa: ARG002
        return LONG_WAIT if self.counts[self.chat_id] + weight > MOST_UNDER_WAY else 0.0

    def spend(self, now: float, weight: int) -> None:
        """Nothing: see `Flood.begin`."""


@attrs.define
class _Account:
    limit: str
    meter: _Window | _Bucket | _UnderWay
    shut_until: float = -math.inf


class Flood:
    """Judges calls, one after the other; `violations` counts those that came too early, by limit."""

    def __init__(self) -> None:
        self.limits = Limits()
        self.violations = dict.fromkeys(LIMITS, 0)
        self._accounts: dict[tuple[str, int], _Account] = {}
        self._under_way = Counter[int]()  # counted whether it is on or off

    def change(self, limits: Limits) -> None:
        """Take over new limits; what was spent is forgotten, the count of violations is not."""
        self.limits = limits
        self._accounts = {}

    def forget_violations(self) -> None:
        """Count from 0 again."""
        self.violations = dict.fromkeys(self.violations, 0)

    def begin(self, chat_id: int, messages: int) -> None:
        """So many messages are on their way into a chat from now until `end`."""
        self._under_way[chat_id] += messages

    def end(self, chat_id: int, messages: int) -> None:
        """They were answered, or nobody waits for them any more."""
        self._under_way[chat_id] -= messages
        if self._under_way[chat_id] <= 0:
            del self._under_way[chat_id]

    def judge(self, chat_id: int, weight: int, now: float, *, uploaded: int = 0, sends: bool = True) -> Excess | None:
        """Count a call of so many messages (chat 0: of no known chat), or say why it is refused.

        `uploaded` are the bytes of its files, `sends` says whether the messages are new ones.

        Who is refused is shut out until the time that was said; calls before that are violations, too.
        """
        if not self.limits.on:
            return None
        accounts = list(self._concerned(chat_id, uploaded, sends=sends))
        waits = [(max(item.meter.wait(now, weight), item.shut_until - now), item) for item in accounts]
        longest, account = max(waits, key=lambda pair: pair[0])
        if longest <= TOLERANCE / self.limits.scale:
            for item in accounts:
                item.meter.spend(now, weight)
            return None
        self.violations[account.limit] += 1
        seconds = math.ceil(longest)
        account.shut_until = max(account.shut_until, now + seconds)
        return Excess(account.limit, seconds)

    def state(self) -> Json:
        """The limits and the count of violations."""
        return {**attrs.asdict(self.limits), "violations": sum(self.violations.values()), "by_limit": self.violations}

    def _concerned(self, chat_id: int, uploaded: int, *, sends: bool) -> Iterator[_Account]:
        limits = self.limits
        yield self._account("overall", 0, lambda: _Window(limits.overall, 1.0 / limits.scale))
        if chat_id > 0:
            yield self._account("private", chat_id, lambda: _Bucket(limits.private * limits.scale, limits.burst))
        elif chat_id < 0:
            yield self._account("group", chat_id, lambda: _Window(limits.group, MINUTE / limits.scale))
        if uploaded > LARGE:
            yield self._account("same_size", uploaded, lambda: _OneSize(uploaded))
        if chat_id and sends:
            yield self._account("under_way", chat_id, lambda: _UnderWay(chat_id, self._under_way))

    def _account(self, limit: str, number: int, make: Callable[[], _Window | _Bucket | _UnderWay]) -> _Account:
        found = self._accounts.pop((limit, number), None) or _Account(limit, make())
        self._accounts[limit, number] = found
        if len(self._accounts) > KEPT_CHATS:
            self._accounts.pop(next(iter(self._accounts)))
        return found
