"""A long pause that Telegram asked for: what people are told of it once it is over."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from telegram_bus.core.text import counted, duration

__all__ = ["LONG_PAUSE", "Parked"]

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
