"""Named points at which a process of the bus can be made to die or to freeze, for those who try what it survives."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["POINTS", "VARIABLE", "point", "unarmed"]

VARIABLE: Final = "TELEGRAM_BUS_CRASH"
"""`NAME`, `NAME:COUNT` or `NAME:COUNT:freeze`: this process kills (or stops) itself when it passes NAME for the
COUNT-th time. A leader that a follower starts does not inherit it."""

POINTS: Final = (
    # a leader, in the order of an update's and of a call's way
    "after-epoch",
    "after-publish",
    "after-poll",
    "after-admit",
    "before-forward",
    "after-forward",
    "after-settle",
    "after-accept",
    "after-claim",
    "after-release",
    "after-send",
    "after-settle-call",
    "after-doubt",
    "after-tell",
    "after-again",
    "before-show-answer",
    "after-hold",
    "after-give",
    "after-intend-thread",
    "after-make-thread",
    "after-bind-thread",
    "after-park-thread",
    "after-intend-clean-up",
    "before-clean-up",
    "after-clean-up",
    "after-hand-over",
    # a follower
    "after-register",
    "after-append",
    "after-take",
    "after-answer",
    "after-freeze",
    "before-handed",
    "before-done",
    "after-done",
)
"""Between every two things that last: what is in a store, what Telegram was told, what the other side was told."""

_armed: str | None = None
_left = 0
_signal = signal.SIGKILL


def _arm(order: str) -> None:
    global _armed, _left, _signal  # noqa: PLW0603 - the process dies of it
    name, _, rest = order.partition(":")
    count, _, how = rest.partition(":")
    if name in POINTS:
        _armed, _left = name, int(count or 1)
        _signal = signal.SIGSTOP if how == "freeze" else signal.SIGKILL


def point(name: str) -> None:
    """Nothing happens here, unless `$TELEGRAM_BUS_CRASH` says so."""
    if name == _armed:
        _strike()


def _strike() -> None:
    global _left  # noqa: PLW0603
    _left -= 1
    if _left == 0:
        os.kill(os.getpid(), _signal)


@contextmanager
def unarmed() -> Iterator[None]:
    """What is passed meanwhile does not count: a rehearsal."""
    global _armed  # noqa: PLW0603
    before, _armed = _armed, None
    try:
        yield
    finally:
        _armed = before


_arm(os.environ.get(VARIABLE, ""))
