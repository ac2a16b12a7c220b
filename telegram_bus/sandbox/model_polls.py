"""Who polls: long waits, the busy-poller brake and the conflicts of getUpdates (U7, U8, U13 to U16)."""

from __future__ import annotations

import attrs

from telegram_bus.sandbox.model_queue import UpdateQueue
from telegram_bus.sandbox.model_types import Json

__all__ = ["Conflict", "Delivered", "Outcome", "Polls", "Waiting"]

BRAKE = 3.0  # U8: the same offset again within this time waits at least this long
BURST = 0.5  # U8: and within this time gets one update only
CONFLICT_PAUSE = 3.0  # U15

BY_OTHER = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
WEBHOOK_ACTIVE = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)
BY_WEBHOOK = "Conflict: terminated by setWebhook request"


@attrs.frozen
class Waiting:
    """A poll that found nothing: it waits until `until`, unless an update or another poll ends it."""

    ticket: int
    offset: int
    limit: int
    until: float


@attrs.frozen
class Delivered:
    """A poll's answer."""

    updates: list[Json]


@attrs.frozen
class Conflict:
    """A poll that another one ended; the refusal goes out after `after` seconds."""

    description: str
    after: float


Outcome = Delivered | Conflict


class Polls:
    """At most one poll waits. It is not told when its client goes: only a successor or its end removes it (U16)."""

    def __init__(self, queue: UpdateQueue) -> None:
        self._queue = queue
        self.waiting: Waiting | None = None
        self._tickets = 0
        self._last_offset: int | None = None
        self._last_start = 0.0
        self._next_conflict = 0.0
        self._ended: list[tuple[int, Outcome]] = []
        self._last_batch: list[Json] = []
        self._repeats = 0

    def ask(self, offset: int, limit: int, seconds: int, now: float) -> Delivered | Waiting:
        """Answer a poll at once, or make it the waiting one, in which case an older one is ended."""
        self.wake(now)
        if self._repeats and self._last_batch:
            self._repeats -= 1
            return Delivered(self._last_batch)
        again = offset == self._last_offset
        if again and seconds < BRAKE and now < self._last_start + BRAKE:
            seconds = int(BRAKE)
        if again and now < self._last_start + BURST:
            limit = 1
        self._last_offset, self._last_start = offset, now
        updates = self._queue.take(offset, limit, now)
        if updates or seconds == 0:
            return self._delivered(updates)
        self.end_waiting(BY_OTHER, now)
        self._tickets += 1
        self.waiting = Waiting(self._tickets, offset, limit, now + seconds)
        return self.waiting

    def wake(self, now: float) -> None:
        """Give the waiting poll what is there, or nothing when its time is over."""
        waiting = self.waiting
        if waiting is None:
            return
        if now >= waiting.until:
            self._end(Delivered([]))
        elif self._repeats and self._last_batch:
            self._repeats -= 1
            self._end(Delivered(self._last_batch))
        elif len(self._queue) and (updates := self._queue.take(waiting.offset, waiting.limit, now)):
            self._end(self._delivered(updates))

    def repeat(self, times: int, now: float) -> int:
        """Give the last batch so often again, at once and whatever was confirmed; returns how many updates it has."""
        self._repeats = times
        self.wake(now)
        return len(self._last_batch)

    def end_waiting(self, description: str, now: float) -> None:
        """End the waiting poll with a conflict; such answers are throttled."""
        if self.waiting is not None:
            self._end(self.conflict(description, now))

    def conflict(self, description: str, now: float) -> Conflict:
        """A conflict's answer: at once, or after a pause when one was given a moment ago (U15)."""
        if now < self._next_conflict:
            return Conflict(description, CONFLICT_PAUSE)
        self._next_conflict = now + CONFLICT_PAUSE
        return Conflict(description, 0.0)

    def ended(self) -> list[tuple[int, Outcome]]:
        """Tickets and outcomes since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def _delivered(self, updates: list[Json]) -> Delivered:
        self._last_batch = updates or self._last_batch
        return Delivered(updates)

    def _end(self, outcome: Outcome) -> None:
        if self.waiting is not None:
            self._ended.append((self.waiting.ticket, outcome))
            self.waiting = None
