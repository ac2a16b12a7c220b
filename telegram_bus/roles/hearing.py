"""Whether polls bring what there is: a bot that is deaf though it looks healthy, and a machine that slept."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import trio

from telegram_bus.core.errors import BusError

__all__ = ["watch_clocks", "watch_hearing"]

log = logging.getLogger(__name__)

LOOK_EVERY: Final = 60.0
"""Seconds between two questions how much waits at Telegram; each costs one small call."""

SUSPICIOUS: Final = 2
"""So many looks in a row have to find something that no poll brought."""

TICK: Final = 1.0
SLEPT: Final = 5.0
"""Seconds by which the wall clock may run ahead of the monotonic one, which stands still while the machine sleeps."""


async def watch_hearing(
    call: Callable[[str, Mapping[str, Any]], Awaitable[Any]],
    *,
    serving: Callable[[], bool],
    received: Callable[[], int],
    report: Callable[[str | None], None],
) -> None:
    """Ask again and again how much waits at Telegram, until cancelled. `getWebhookInfo` changes nothing.

    `serving`: polling looks healthy; `received`: updates that polls have brought so far. `report` gets the reason once
    the bot is deaf, and None at each look that finds it hearing.
    """
    suspicions, last = 0, received()
    while True:
        await trio.sleep(LOOK_EVERY)
        brought, last = received() - last, received()
        if brought or not serving():
            suspicions = 0
            report(None)
            continue
        try:
            pending = (await call("getWebhookInfo", {})).get("pending_update_count")
        except (BusError, AttributeError) as error:
            log.debug("how much waits at Telegram is not known: %s", error)
            continue
        suspicions = suspicions + 1 if isinstance(pending, int) and pending > 0 and received() == last else 0
        deaf = suspicions >= SUSPICIOUS
        report(f"Telegram holds {pending} updates that polls do not bring" if deaf else None)


async def watch_clocks(woke: Callable[[float], None], *, wall: Callable[[], float] = time.time) -> None:
    """Tell, until cancelled, for how many seconds the machine slept, once it is awake again."""
    while True:
        before = wall() - trio.current_time()
        await trio.sleep(TICK)
        slept = wall() - trio.current_time() - before
        if slept > SLEPT:
            woke(slept)
