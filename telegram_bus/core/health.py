"""The states of a leader that people see, and which of several is shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, get_args

from attrs import frozen

__all__ = ["STATES", "Condition", "LeaderState", "advice", "remedy", "worst_first"]

LeaderState = Literal[
    "stopped",
    "stopping",
    "unauthorised",
    "webhook",
    "conflict",
    "storage",
    "no chat",
    "deaf",
    "offline",
    "rate-limited",
    "threads lost",
    "no threads",
    "starting",
    "serving",
]

STATES: Final[tuple[LeaderState, ...]] = get_args(LeaderState)
"""The worst first: what only a person can mend stands before what passes. No leader says `stopped` of itself."""


@frozen
class Condition:
    """One state, and why, for people."""

    state: LeaderState
    detail: str | None = None


def worst_first(conditions: Iterable[Condition]) -> list[Condition]:
    """All conditions; `serving` and `starting` only where there is nothing else to say of polling."""
    return sorted(conditions, key=lambda condition: STATES.index(condition.state))


_ADVICE: Final[dict[LeaderState, str]] = {
    "unauthorised": "take the bot's present token from @BotFather and give it to telegram-bus leader",
    "webhook": "remove it (telegram-bus leader --delete-webhook), or use another bot",
    "conflict": "end that program, give one of the two a bot of its own, or have @BotFather make a new token",
    "storage": "make room on the disk, or mend it; it goes on by itself then",
    "no chat": "check --chat; in a private chat open the bot and press Start, to a group add it",
    "deaf": "look for another program that uses this bot's token",
    "offline": "look at this machine's network; it goes on by itself",
    "rate-limited": "Telegram asked to wait; it goes on by itself",
    "threads lost": "nothing is sent into threads meanwhile, and they stay their agents'; it goes on by itself",
}
"""What a person can do about a state whose detail does not say it already."""


def remedy(condition: Condition) -> str | None:
    """What a person can do; None where the detail says it, or there is nothing to do."""
    todo = _ADVICE.get(condition.state)
    return None if todo is None or todo in (condition.detail or "") else todo


def advice(condition: Condition) -> str:
    """What is wrong and what to do, in one line."""
    what = f"{condition.state}: {condition.detail}" if condition.detail else condition.state
    todo = remedy(condition)
    return what if todo is None else f"{what} — {todo}"
