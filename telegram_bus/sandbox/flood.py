"""Flood control as Telegram's servers do it (M18): sends, edits and topic creation in one account. Pure.

Shares no code with the product's own limiter: it is there to find that one out.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from telegram_bus.sandbox.model_types import Json

__all__ = ["Excess", "Flood", "Limits"]

TOLERANCE = 0.05  # seconds by which a call may come early: clocks and schedulers are no better than that
MINUTE = 60.0
# Chats whose history is kept; those that are silent for longest go first.
KEPT_CHATS = 1_000


def _amount(_limits: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1_000_000:
        raise ValueError(f"{attribute.name} must be a number above 0")


@attrs.frozen(kw_only=True)
class Limits:
    """How much is allowed: `overall` a second, `private` a second in one private chat after a burst of `burst`,

    `group` a minute in one group. Raises ValueError for what is no amount.
    """

    on: bool = attrs.field(default=False, validator=attrs.validators.instance_of(bool))
    overall: float = attrs.field(default=30, validator=_amount)
    private: float = attrs.field(default=1, validator=_amount)
    burst: float = attrs.field(default=3, validator=_amount)
    group: float = attrs.field(default=20, validator=_amount)


@attrs.frozen
class Excess:
    """A call that came too early: by which limit ("overall", "private", "group"), and the whole seconds to wait."""

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


@attrs.define
class _Account:
    limit: str
    meter: _Window | _Bucket
    shut_until: float = -math.inf


class Flood:
    """Judges calls, one after the other; `violations` counts those that came too early, by limit."""

    def __init__(self) -> None:
        self.limits = Limits()
        self.violations = dict.fromkeys(("overall", "private", "group"), 0)
        self._accounts: dict[int, _Account] = {}

    def change(self, limits: Limits) -> None:
        """Take over new limits; what was spent is forgotten, the count of violations is not."""
        self.limits = limits
        self._accounts = {}

    def forget_violations(self) -> None:
        """Count from 0 again."""
        self.violations = dict.fromkeys(self.violations, 0)

    def judge(self, chat_id: int, weight: int, now: float) -> Excess | None:
        """Count a call of so many messages (chat 0: of no known chat), or say why it is refused.

        Who is refused is shut out until the time that was said; calls before that are violations, too.
        """
        if not self.limits.on:
            return None
        accounts = list(self._concerned(chat_id))
        waits = [(max(item.meter.wait(now, weight), item.shut_until - now), item) for item in accounts]
        longest, account = max(waits, key=lambda pair: pair[0])
        if longest <= TOLERANCE:
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

    def _concerned(self, chat_id: int) -> Iterator[_Account]:
        limits = self.limits
        yield self._account(0, lambda: _Account("overall", _Window(limits.overall, 1.0)))
        if chat_id > 0:
            yield self._account(chat_id, lambda: _Account("private", _Bucket(limits.private, limits.burst)))
        elif chat_id < 0:
            yield self._account(chat_id, lambda: _Account("group", _Window(limits.group, MINUTE)))

    def _account(self, chat_id: int, make: Callable[[], _Account]) -> _Account:
        found = self._accounts.pop(chat_id, None) or make()
        self._accounts[chat_id] = found
        if len(self._accounts) > KEPT_CHATS:
            self._accounts.pop(next(iter(self._accounts)))
        return found
