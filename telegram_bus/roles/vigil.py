"""While a leader leaves a heartbeat unanswered its lease is watched, so that a frozen one is ended in time."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Final

import trio

from telegram_bus.core.election import Judgement, Suspect
from telegram_bus.core.errors import StateError
from telegram_bus.home import Profile
from telegram_bus.locks import FileLock
from telegram_bus.roles.holder import DEFAULT_TIMES, Times, watch_holder
from telegram_bus.roles.starter import PARENT_VARIABLE

__all__ = ["SILENCE", "watch_silent_leader"]

log = logging.getLogger(__name__)

LATE: Final = 1.0
"""Seconds that every answer may take before it is worth a look at the lease."""

UNHEARD: Final = 3.0
"""Seconds without a renewal, after that, which people are told of."""

SILENCE: Final = 16.0
"""Seconds after which a connection is given up: time to find out (8 + 2), and for a frozen leader to end (3)."""


async def watch_silent_leader(
    profile: Profile, *, may_start: bool, report: Callable[[str], None], times: Times = DEFAULT_TIMES
) -> None:
    """Watch the leader's lease until cancelled, which is when it answers; end it when it is frozen.

    `report` gets the reason to wait. Only a follower that `may_start` the next leader ends this one.
    """
    await trio.sleep(LATE)

    def judge(judgement: Judgement, _: object) -> None:
        if isinstance(judgement, Suspect) and judgement.silent > UNHEARD:
            report("the leader does not answer")

    with ExitStack() as locks:
        may_end = partial(_may_end, profile, may_start and not os.environ.get(PARENT_VARIABLE), locks)
        await watch_holder(profile, judge, may_end=may_end, times=times)


def _may_end(profile: Profile, may_start: bool, locks: ExitStack) -> bool:
    """Of those who wait only one ends it: who holds the start lock, which is kept until the watch is over."""
    if not may_start:
        return False
    try:
        lock = FileLock.try_lock(profile.start_lock)
    except StateError as error:
        log.warning("the frozen leader cannot be ended: %s", error)
        return False
    if lock is None:
        return False
    locks.enter_context(lock)
    return True
