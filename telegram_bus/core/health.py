"""The states of a leader that people see, and which of several is shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, get_args

from attrs import frozen

__all__ = ["STATES", "Condition", "LeaderState", "worst_first"]

LeaderState = Literal[
    "stopped",
    "stopping",
    "unauthorised",
    "webhook",
    "conflict",
    "storage",
    "deaf",
    "offline",
    "rate-limited",
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
