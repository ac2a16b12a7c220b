"""What memory knows at once and the store a moment later: much of it in one transaction, kept while a disk is full."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Generic, TypeVar

import trio

from telegram_bus.core.errors import StateError

__all__ = ["Saving"]

log = logging.getLogger(__name__)

SAVE_EVERY: Final = 1.0
"""Seconds in which what is noted is gathered into one transaction."""

SAVE_AGAIN: Final = 5.0
"""Seconds until a disk that failed is tried again."""

MOST: Final = 16_384  # of what waits for a disk that takes none; the oldest are let go

K = TypeVar("K")
V = TypeVar("V")


class Saving(Generic[K, V]):
    """What waits to be stored; `what` names it, for people."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._unsaved: dict[K, V] = {}
        self._noted = trio.Event()

    def note(self, items: Mapping[K, V]) -> None:
        """To be stored soon; the newest value of a key counts."""
        if items:
            self._unsaved |= items
            self._noted.set()

    async def run(self, write: Callable[[Mapping[K, V]], Awaitable[object]]) -> None:
        """Have what is noted stored by `write`, until cancelled; raises LeadershipLost."""
        while True:
            await self._noted.wait()
            await trio.sleep(SAVE_EVERY)
            self._noted = trio.Event()
            saving, self._unsaved = self._unsaved, {}
            try:
                await write(saving)
            except StateError as error:  # a full disk
                log.warning("%s is not stored: %s", self._what, error)
                self._unsaved = dict(list((saving | self._unsaved).items())[-MOST:])
                await trio.sleep(SAVE_AGAIN)
                self._noted.set()
