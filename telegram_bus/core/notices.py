"""What the leader tells people of its own accord, and the backlog that it found at Telegram.

People are told of messages, also where an update was a pressed button or a reaction: they know no updates.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define

from telegram_bus.core.lobby import age
from telegram_bus.core.text import counted

__all__ = ["Backlog", "back", "expired", "kept", "set_aside"]

_HOW = "telegram-bus updates list"

OLD_SECONDS = 60.0
"""What is younger at its arrival came in the usual course of things: a succession takes a second, a restart a few."""


def kept(name: str, since: str | None) -> str:
    """Something waits for an agent that is away; `since` is a time of day, None where that is not known."""
    return f"Kept for {name}, away{f' since {since}' if since else ''}; it gets this when it is back."


def back(name: str, waiting: int, oldest_seconds: float) -> str:
    """An agent of which people were told that it is away has come back."""
    old = f"{age(oldest_seconds)} old"
    return f"{name} is back and gets {counted(waiting, 'kept message')}" + (
        f" ({old})." if waiting == 1 else f", the oldest {old}."
    )


def expired(name: str, count: int, after_seconds: float) -> str:
    """What waited too long was set aside."""
    return f"{counted(count, 'message')} for {name} expired: it was away for {age(after_seconds)} or more. See: {_HOW}"


def set_aside(name: str, reason: str) -> str:
    """An update can be given to nobody."""
    return f"This did not get to {name} and was set aside: {reason}. See: {_HOW}"


@define
class Backlog:
    """Updates that had waited at Telegram because nobody polled; counted until they have all come."""

    count: int = 0
    oldest: float = 0.0

    def add(self, ages: Iterable[float], *, more: bool) -> str | None:
        """Take the ages (s) of a batch; a text for people once no `more` are to come at once."""
        old = [one for one in ages if one > OLD_SECONDS]
        self.count += len(old)
        self.oldest = max([self.oldest, *old])
        if more or not self.count:
            return None
        text = (
            f"1 message had waited at Telegram for {age(self.oldest)} while nobody asked for it. It is delivered now, "
            "marked with its age."
            if self.count == 1
            else f"{self.count} messages had waited at Telegram while nobody asked for them, the oldest for "
            f"{age(self.oldest)}. They are delivered now, marked with their age."
        )
        self.count, self.oldest = 0, 0.0
        return text
