"""What waits, for those who ask; and what people are told once a long pause that Telegram asked for is over."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from telegram_bus.core.budget import Budget
from telegram_bus.core.text import counted, duration
from telegram_bus.core.urgency import Urgency

__all__ = ["LONG_PAUSE", "Parked", "pause_of", "queue_of"]

LONG_PAUSE: Final = 60.0
"""A pause that people are told of: a shorter one they hardly notice."""


class Parked:
    """Since when, until when, and how much was dropped meanwhile; times are those of the sender's clock."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.report = report
        self.since = self.until = -math.inf
        self.dropped = 0

    def note(self, now: float, until: float) -> None:
        """Telegram wants a pause until then."""
        if until - now >= LONG_PAUSE:
            if self.until <= now:
                self.since, self.dropped = now, 0
            self.until = max(self.until, until)

    def check(self, now: float) -> float:
        """Tell people when a long pause is over. Returns when to look again."""
        if self.until == -math.inf:
            return math.inf
        if now < self.until:
            return self.until
        text = (
            f"Telegram made this bot pause for {duration(self.until - self.since)} (too many messages). It goes on now"
        )
        if self.dropped:
            text += f"; {counted(self.dropped, 'message')} that only showed progress {_was(self.dropped)} dropped"
        self.until, self.dropped = -math.inf, 0
        self.report(text + ".")
        return math.inf


def _was(count: int) -> str:
    return "was" if count == 1 else "were"


def queue_of(budget: Budget, owner: str, limit: int, now: float) -> dict[str, Any]:
    """What waits of a follower's calls; `limit` is how many may."""
    waiting = budget.waiting(owner)
    counts = dict.fromkeys((one.name.lower() for one in Urgency), 0)
    for ticket in waiting:
        counts[ticket.nature.urgency.name.lower()] += 1
    paused = max((budget.paused_until(ticket.place) for ticket in waiting), default=-math.inf)
    return {
        "waiting": len(waiting),
        "limit": limit,
        "classes": counts,
        "pausedMs": round(max(0.0, paused - now) * 1000),
    }


def pause_of(budget: Budget, now: float) -> str | None:
    """What a 429 keeps back and for how long, in words; None: nothing."""
    pauses = [(until, chat) for kind, chat, until in budget.pauses(now) if kind == "spend"]
    if not pauses:
        return None
    until, chat = max(pauses, key=lambda pause: pause[0])
    what = "all messages" if chat is None or len(pauses) > 1 else f"messages into chat {chat}"
    return f"Telegram wants a pause of {what} for {duration(until - now)} more (429)"
