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

    def values(self) -> AsyncIterator[T]:
        """The value now, then the newest one after each change, for ever."""
        return _Values(self)

    async def wait_news(self, seen: trio.Event | None) -> tuple[T, trio.Event]:
        """The value once it has changed since `seen`, with what to wait for the next time with."""
        if seen is None:
            await trio.lowlevel.checkpoint()
        else:
            await seen.wait()
        return self._value, self._changed


class _Values(Generic[T]):
    """No generator: those must be closed by whoever leaves them early, and a `break` does not."""

    def __init__(self, watched: Watched[T]) -> None:
        self._watched = watched
        self._seen: trio.Event | None = None

    def __aiter__(self) -> _Values[T]:
        return self

    async def __anext__(self) -> T:
        value, self._seen = await self._watched.wait_news(self._seen)
        return value
