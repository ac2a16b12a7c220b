"""A value that tasks can wait on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

import trio

__all__ = ["Watched"]

T = TypeVar("T")


class Watched(Generic[T]):
    """A value that changes now and then; who waits sees the newest one, not each one between."""

    def __init__(self, value: T) -> None:
        self._value = value
        self._changed = trio.Event()

    @property
    def value(self) -> T:
        """The value now."""
        return self._value

    def set(self, value: T) -> None:
        """Change the value and wake who waits; an equal value wakes nobody."""
        if value == self._value:
            return
        self._value = value
        self._changed.set()
        self._changed = trio.Event()

    async def wait_for(self, wanted: Callable[[T], bool]) -> T:
        """Wait until the value is a wanted one (perhaps at once) and return it."""
        while not wanted(self._value):
            await self._changed.wait()
        return self._value

    async def wait_changed(self) -> None:
        """Wait until the value changes once more."""
        await self._changed.wait()

    async def values(self) -> AsyncIterator[T]:
        """The value now, then the newest one after each change, for ever."""
        while True:
            value, changed = self._value, self._changed
            yield value
            await changed.wait()
