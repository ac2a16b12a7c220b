"""What to do after a poll: pure decisions over faults, times and a jitter between 0 and 1."""

from __future__ import annotations

from typing import Any, Final, Literal

from attrs import evolve, frozen

from telegram_bus.core.errors import AnswerLost, ApiError, BusError, StateError

__all__ = [
    "ALLOWED_UPDATES",
    "STOOD_DOWN",
    "PollState",
    "Standing",
    "State",
    "Step",
    "after_fault",
    "after_success",
    "backoff",
    "sift",
]

State = Literal["starting", "serving", "offline", "rate-limited", "conflict", "webhook", "unauthorised", "storage"]

ALLOWED_UPDATES: Final = ("message", "edited_message", "callback_query", "message_reaction", "my_chat_member")
"""Named in every poll: the setting sticks on the server, and reactions come only when they are named."""

SLOW_SECONDS: Final = 60.0
"""Between tries when only a person can help."""

CONFLICTS: Final = 5
"""So often another poller is answered in kind before we stand down: each try robs it."""

STOOD_DOWN: Final = "stood down"
"""Stands in the detail of a conflict that has lasted."""

RETRY_SECONDS: Final = 5.0
"""For a 429 that names no time."""

FIRST_SECONDS: Final = 0.5
LONGEST_SECONDS: Final = 30.0


@frozen(kw_only=True)
class PollState:
    """How polling goes; `detail` is for people, times are seconds of Trio's clock."""

    state: State
    detail: str | None
    since: float
    last_completed: float | None


@frozen(kw_only=True)
class Standing:
    """What the next decision depends on."""

    started: float
    failures: int = 0
    conflicts: int = 0
    last_conflict: float | None = None


@frozen(kw_only=True)
class Step:
    """The state to show, how long to wait before the next poll, and the new standing."""

    state: State
    detail: str
    delay: float
    standing: Standing


def after_success(standing: Standing, *, now: float, window: float) -> Standing:
    """A completed poll ends a row of failures; it ends a conflict only when that has been quiet for two windows.

    Two pollers that rob each other both complete polls in between.
    """
    quiet = standing.last_conflict is None or now - standing.last_conflict > 2 * window
    return evolve(standing, failures=0, conflicts=0 if quiet else standing.conflicts)


def after_fault(standing: Standing, fault: BusError, *, now: float, window: float, jitter: float) -> Step:
    """Decide what a poll that failed, or a batch that could not be stored, leads to."""
    failed = evolve(standing, failures=standing.failures + 1)
    pause = backoff(standing.failures, jitter)
    match fault:
        case StateError():
            return Step(state="storage", detail=str(fault), delay=pause, standing=failed)
        case ApiError(code=429):
            delay = RETRY_SECONDS if fault.retry_after is None else fault.retry_after
            detail = f"Telegram asked for a pause of {delay:g} s"
            return Step(state="rate-limited", detail=detail, delay=delay, standing=standing)
        case ApiError(code=409) if "webhook" in fault.description.lower():
            return Step(state="webhook", detail=fault.description, delay=SLOW_SECONDS, standing=failed)
        case ApiError(code=409):
            return _after_conflict(failed, now, window, jitter)
        case ApiError(code=401 | 404):
            detail = f"Telegram does not know this bot token, or no longer ({fault.description})"
            return Step(state="unauthorised", detail=detail, delay=SLOW_SECONDS, standing=failed)
        case _:
            return Step(state="offline", detail=str(fault), delay=pause, standing=failed)


def backoff(failures: int, jitter: float) -> float:
    """Seconds to wait after so many failures before this one: doubled each time, half of it left to chance."""
    longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(failures, 10))
    return longest * (0.5 + jitter / 2)


def sift(answer: Any) -> tuple[list[dict[str, Any]], int]:
    """The updates of an answer that have an id, and the offset that confirms them all.

    Ids may start anew lower, so only the batch itself counts. Raises AnswerLost for an answer that is no list, or one
    whose updates all lack an id: it cannot be confirmed, and asking again at once would not help.
    """
    if not isinstance(answer, list):
        raise AnswerLost("getUpdates: the answer is not a list of updates")
    updates = [item for item in answer if isinstance(item, dict) and type(item.get("update_id")) is int]
    if not updates:
        raise AnswerLost(f"getUpdates: not one of {len(answer)} updates has an id")
    return updates, max(item["update_id"] for item in updates) + 1


def _after_conflict(standing: Standing, now: float, window: float, jitter: float) -> Step:
    if now - standing.started <= window:  # our predecessor's poll may still hang at the server
        detail = "waiting for an earlier poll of this bot to end"
        return Step(state="starting", detail=detail, delay=backoff(1, jitter), standing=standing)
    conflicts = standing.conflicts + 1
    standing = evolve(standing, conflicts=conflicts, last_conflict=now)
    detail = "another program polls with the same bot token"
    if conflicts > CONFLICTS:
        detail += f"; {STOOD_DOWN}, trying again every {SLOW_SECONDS:g} s"
        return Step(state="conflict", detail=detail, delay=SLOW_SECONDS, standing=standing)
    return Step(state="conflict", detail=detail, delay=backoff(conflicts, jitter), standing=standing)
