"""Named points at which a process of the bus can be made to die or to freeze, for those who try what it survives."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

__all__ = ["FOLLOWER_POINTS", "LEADER_POINTS", "POINTS", "STRUCK", "VARIABLE", "point", "unarmed"]

VARIABLE: Final = "TELEGRAM_BUS_CRASH"
"""`NAME`, `NAME:COUNT` or `NAME:COUNT:freeze`: this process kills (or stops) itself when it passes NAME for the
COUNT-th time. Several of them, with commas: whichever comes first. A leader that a follower starts inherits none."""

STRUCK: Final = "crash point "
"""What stands in stderr when a point has struck, before its name and the process."""

LEADER_POINTS: Final = (
    # in the order of its start, of an update's and of a call's way
    "after-begin",
    "after-epoch",
    "after-record",
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
    # around each transaction and each call to Telegram, whatever it is for
    "before-commit",
    "after-commit",
    "before-call",
    "after-call",
)
FOLLOWER_POINTS: Final = (
    "after-register",
    "after-append",
    "after-take",
    "after-answer",
    "after-freeze",
    "before-handed",
    "before-done",
    "after-done",
    # around each transaction of its inbox
    "before-commit",
    "after-commit",
)
POINTS: Final = tuple(dict.fromkeys(LEADER_POINTS + FOLLOWER_POINTS))
"""Between every two things that last: what is in a store, what Telegram was told, what the other side was told."""

_orders: dict[str, tuple[int, signal.Signals]] = {}


def _arm(orders: str) -> None:
    for order in orders.split(","):
        name, _, rest = order.partition(":")
        count, _, how = rest.partition(":")
        if name in POINTS:
            _orders[name] = (int(count or 1), signal.SIGSTOP if how == "freeze" else signal.SIGKILL)


def point(name: str) -> None:
    """Nothing happens here, unless `$TELEGRAM_BUS_CRASH` says so."""
    if name in _orders:
        _pass(name)


def _pass(name: str) -> None:
    left, number = _orders[name]
    _orders[name] = (left - 1, number)
    if left == 1:
        with suppress(OSError):  # stderr may be closed, or on a disk that fails
            os.write(2, f"{STRUCK}{name} in {os.getpid()}\n".encode())
        os.kill(os.getpid(), number)


@contextmanager
def unarmed() -> Iterator[None]:
    """What is passed meanwhile does not count: a rehearsal."""
    before = dict(_orders)
    _orders.clear()
    try:
        yield
    finally:
        _orders.update(before)


_arm(os.environ.get(VARIABLE, ""))
