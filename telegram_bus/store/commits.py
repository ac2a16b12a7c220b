"""Group commit: whatever is queued while one transaction is being written goes into the next one, together."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import trio
from attrs import Factory, define, field

from telegram_bus import crash
from telegram_bus.core.errors import StateError

__all__ = ["Commits", "Operation", "lasts", "open_commits"]

T = TypeVar("T")

Operation = Callable[[sqlite3.Connection], T]
"""Statements of one operation; it runs in the worker thread and must touch nothing but the connection."""


@define(eq=False)
class _Batch:
    """Operations that share a transaction, and later what became of each: a result or an exception."""

    operations: list[Operation[Any]] = Factory(list)
    outcomes: list[Any] = Factory(list)
    written: trio.Event = Factory(trio.Event)


@define(eq=False)
class Commits:
    """The only way to a connection: operations of many tasks, written by one, in the order they were asked for."""

    _connection: sqlite3.Connection
    _guard: Operation[None]
    _path: str
    _batch: _Batch = field(factory=_Batch, init=False)
    _queued: trio.Event = field(factory=trio.Event, init=False)
    _limiter: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(1), init=False)
    _closing: bool = field(default=False, init=False)

    async def run(self, operation: Operation[T]) -> T:
        """Commit the operation and return what it returned, once it is on the disk.

        A caller that is cancelled stops waiting; the operation is committed all the same.

        Raises what the operation raised, StateError when the database cannot be written, LeadershipLost
        when the guard says so, trio.ClosedResourceError after the context ended.
        """
        if self._closing:
            raise trio.ClosedResourceError(f"{self._path} is closed")
        batch = self._batch
        place = len(batch.operations)
        batch.operations.append(operation)
        self._queued.set()
        await batch.written.wait()
        outcome = batch.outcomes[place]
        if isinstance(outcome, BaseException):
            raise outcome
        result: T = outcome
        return result

    def soon(self, operation: Operation[object]) -> None:
        """Commit the operation with those that come next; nobody hears of it, not even when it fails."""
        if not self._closing:
            self._batch.operations.append(operation)
            self._queued.set()

    async def serve(self) -> None:
        """Write batch after batch until `close`; what was queued before is written first.

        It is shielded: whatever ends the program's scopes, an operation that was taken is written.
        """
        with trio.CancelScope(shield=True):
            while True:
                while not self._batch.operations:
                    if self._closing:
                        return
                    await self._queued.wait()
                    self._queued = trio.Event()
                batch, self._batch = self._batch, _Batch()
                try:
                    batch.outcomes = await self._in_thread(batch)
                except Exception as fault:  # noqa: BLE001 - no thread to be had: the waiters must hear of it
                    batch.outcomes = [_unwritable(self._path, fault) for _ in batch.operations]
                batch.written.set()

    def close(self) -> None:
        """Take nothing more; `serve` ends when the queue is empty."""
        self._closing = True
        self._queued.set()

    async def _in_thread(self, batch: _Batch) -> list[Any]:
        return await trio.to_thread.run_sync(
            _write, self._connection, self._guard, batch.operations, self._path, limiter=self._limiter
        )


@asynccontextmanager
async def open_commits(connection: sqlite3.Connection, guard: Operation[None], path: str) -> AsyncIterator[Commits]:
    """Own the connection: write for as long as the context is open, then close it, in a worker thread.

    `guard` runs first in each transaction; what it raises is the outcome of every operation in it.
    """
    commits = Commits(connection, guard, path)
    fault: BaseException | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(commits.serve)
        try:
            yield commits
        except BaseException as raised:  # noqa: BLE001 - raised again below, where the nursery wraps it in no group
            fault = raised
        finally:
            commits.close()
            nursery.cancel_scope.shield = True
    with trio.CancelScope(shield=True):
        await trio.to_thread.run_sync(connection.close)
    if fault is not None:
        raise fault


def _write(
    connection: sqlite3.Connection, guard: Operation[None], operations: list[Operation[Any]], path: str
) -> list[Any]:
    """One transaction; an operation that fails is undone alone, unless the transaction is gone with it."""
    outcomes: list[Any] = []
    try:
        connection.execute("BEGIN IMMEDIATE")
        guard(connection)
        for operation in operations:
            outcomes.append(_attempt(connection, operation))
        crash.point("before-commit")
        connection.execute("COMMIT")
        crash.point("after-commit")
    except Exception as fault:  # noqa: BLE001 - a guard may raise anything, and every waiter must hear of it
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        return [_copy(fault, path) for _ in operations]
    return outcomes


def _attempt(connection: sqlite3.Connection, operation: Operation[Any]) -> Any:
    """Run the operation inside a savepoint and return its result, or what it raised."""
    connection.execute("SAVEPOINT operation")
    try:
        result = operation(connection)
    except Exception as fault:
        if not connection.in_transaction:  # disk full, input/output error: SQLite rolled back everything
            raise
        connection.execute("ROLLBACK TO operation")
        connection.execute("RELEASE operation")
        return _unstorable(fault) if isinstance(fault, UnicodeEncodeError | OverflowError) else fault
    connection.execute("RELEASE operation")
    return result


def _copy(fault: Exception, path: str) -> Exception:
    """An exception for each waiter: one that is raised in many tasks would collect all their tracebacks."""
    if isinstance(fault, sqlite3.Error):
        return _unwritable(path, fault)
    twin = type(fault)(*fault.args)
    twin.__cause__ = fault
    return twin


def lasts(error: StateError) -> bool:
    """Whether what failed is a file (it is damaged, say) and not its disk, which may have room again in a moment."""
    cause = error.__cause__
    return isinstance(cause, sqlite3.DatabaseError) and not isinstance(cause, sqlite3.OperationalError)


def _unstorable(fault: Exception) -> StateError:
    """What a peer makes up must not come as a surprise to a task that copes with every state of the disk."""
    what = "half a character (a lone surrogate)" if isinstance(fault, UnicodeEncodeError) else "too large a number"
    error = StateError(f"{what} cannot be stored; nothing was")
    error.__cause__ = fault
    return error


def _unwritable(path: str, fault: Exception) -> StateError:
    error = StateError(f"{path} cannot be written ({fault}); make room or mend the disk, nothing was stored")
    error.__cause__ = fault
    return error
