"""The way from any thread into the thread in which Trio runs, for programs that block."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

import trio

from telegram_bus.core.errors import NoLeader

__all__ = ["Portal", "deadline_of_this"]

T = TypeVar("T")

deadline_of_this: ContextVar[float | None] = ContextVar("deadline", default=None)
"""When, in `time.monotonic`, what this thread or asyncio task asks for has to be done."""


class Portal:
    """The way into the thread in which Trio runs."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self._lock = threading.Lock()
        self._token: trio.lowlevel.TrioToken | None = None
        self._nursery: trio.Nursery | None = None
        self._thread = 0
        self._process = os.getpid()
        self._stopped = False

    def open(self) -> bool:
        """In the Trio thread: from now on `stop` is heard; False where it was called before."""
        with self._lock:
            self._token, self._thread = trio.lowlevel.current_trio_token(), threading.get_ident()
            return not self._stopped

    @contextmanager
    def serving(self, nursery: trio.Nursery) -> Iterator[None]:
        """In the Trio thread: work is taken while the block runs."""
        self._nursery = nursery
        try:
            yield
        finally:
            self._nursery = None

    def stop(self) -> None:
        """From any thread: leave the bus."""
        with self._lock:
            self._stopped = True
            if self._token is not None:
                with suppress(trio.RunFinishedError):
                    self._token.run_sync_soon(self.scope.cancel, "the program left the bus")

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """From any other thread: do the work there, and wait for its end.

        Raises what it raises, TimeoutError, and NoLeader once the bus was left. A KeyboardInterrupt cancels it.
        """
        if threading.get_ident() == self._thread:
            raise RuntimeError("this is the thread of the bus itself: in asynchronous code use telegram_bus.join()")
        if os.getpid() != self._process:
            raise RuntimeError("a bus does not survive a fork: join in the child, under a name of its own")
        deadline = deadline_of_this.get()
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        future: Future[T] = Future()
        scope = trio.CancelScope()
        assert self._token is not None
        try:
            self._token.run_sync_soon(self._begin, work, future, scope, left)
        except trio.RunFinishedError:
            raise _left() from None
        try:
            return future.result()
        except CancelledError:
            raise _left() from None
        finally:
            if not future.done():  # interrupted
                future.cancel()
                with suppress(trio.RunFinishedError):
                    self._token.run_sync_soon(scope.cancel, "nobody waits for it any more")

    def soon(self, work: Callable[[], Awaitable[object]]) -> None:
        """From any thread: do the work there some time, unless the bus is left."""
        assert self._token is not None
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._begin, work, Future(), trio.CancelScope(), None)

    async def hold(self, work: Callable[..., Awaitable[object]], *args: Any) -> Any:
        """In the Trio thread: have the work go on until the bus is left; returns what it starts with."""
        if self._nursery is None:
            raise _left()
        return await self._nursery.start(work, *args)

    def _begin(
        self, work: Callable[[], Awaitable[T]], future: Future[T], scope: trio.CancelScope, left: float | None
    ) -> None:
        if self._nursery is None:
            future.cancel()
            return
        if left is not None:
            scope.deadline = trio.current_time() + left
        self._nursery.start_soon(_do, work, future, scope)


async def _do(work: Callable[[], Awaitable[T]], future: Future[T], scope: trio.CancelScope) -> None:
    try:
        with scope:
            result = await work()
            if not future.cancelled():
                future.set_result(result)
    except Exception as fault:  # noqa: BLE001 - it belongs to the thread that waits
        if not future.cancelled():
            future.set_exception(fault)
    finally:
        if not future.done():
            if scope.cancelled_caught:
                future.set_exception(TimeoutError("the time is over; what was asked for may still be done"))
            else:  # the bus was left
                future.cancel()


def _left() -> NoLeader:
    return NoLeader("this follower has left the bus; join it anew")
