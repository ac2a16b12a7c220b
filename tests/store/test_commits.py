"""Group commit: one transaction for all who wait, one failure for the one who failed."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import trio
import trio.testing

from telegram_bus.core.errors import StateError
from telegram_bus.store.commits import Commits, open_commits


def connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE IF NOT EXISTS rows (value INTEGER UNIQUE)")
    return connection


def no_guard(_db: sqlite3.Connection) -> None:
    """Everything may pass."""


def opened(path: Path) -> AbstractAsyncContextManager[Commits]:
    return open_commits(connect(path), no_guard, "the database")


def rows(path: Path) -> list[int]:
    connection = connect(path)
    try:
        return [row[0] for row in connection.execute("SELECT value FROM rows ORDER BY rowid")]
    finally:
        connection.close()


def insert(db: sqlite3.Connection, value: int) -> int:
    db.execute("INSERT INTO rows VALUES (?)", (value,))
    return value


async def test_operations_of_many_tasks_are_all_written_in_the_order_they_were_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "db"
    returned = []
    asked = []

    async def add(commits: Commits, value: int) -> None:
        asked.append(value)
        returned.append(await commits.run(lambda db: insert(db, value)))

    async with opened(path) as commits, trio.open_nursery() as nursery:
        for value in range(50):
            nursery.start_soon(add, commits, value)
    assert sorted(returned) == list(range(50))
    assert rows(path) == asked


async def test_many_waiters_share_a_transaction(tmp_path: Path) -> None:
    begun: list[None] = []

    def guard(_db: sqlite3.Connection) -> None:
        begun.append(None)

    async with open_commits(connect(tmp_path / "db"), guard, "db") as commits, trio.open_nursery() as nursery:
        for value in range(100):
            nursery.start_soon(commits.run, lambda db, value=value: insert(db, value))
    assert len(begun) <= 2


async def test_one_failing_operation_fails_alone_and_is_undone_whole(tmp_path: Path) -> None:
    path = tmp_path / "db"
    failed = []

    def twice(db: sqlite3.Connection) -> None:
        insert(db, 100)
        insert(db, 100)

    async def fail(commits: Commits) -> None:
        with pytest.raises(sqlite3.IntegrityError) as caught:
            await commits.run(twice)
        failed.append(caught.value)

    async with opened(path) as commits, trio.open_nursery() as nursery:
        nursery.start_soon(commits.run, lambda db: insert(db, 1))
        nursery.start_soon(fail, commits)
        nursery.start_soon(commits.run, lambda db: insert(db, 2))
    assert len(failed) == 1
    assert sorted(rows(path)) == [1, 2]


async def test_a_cancelled_waiter_does_not_cancel_the_commit(tmp_path: Path) -> None:
    path = tmp_path / "db"
    async with opened(path) as commits:
        with trio.CancelScope() as scope:
            scope.cancel()
            await commits.run(lambda db: insert(db, 7))
        assert scope.cancelled_caught
        await commits.run(lambda db: insert(db, 8))
    assert rows(path) == [7, 8]


async def test_what_was_asked_for_before_the_end_is_written_although_everything_is_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with trio.CancelScope() as scope:
        async with opened(path) as commits, trio.open_nursery() as nursery:
            for value in range(20):
                nursery.start_soon(commits.run, lambda db, value=value: insert(db, value))
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    assert sorted(rows(path)) == list(range(20))


async def test_what_queues_behind_a_slow_commit_is_written_although_everything_is_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "db"
    writing, go_on = trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()

    def slow(db: sqlite3.Connection) -> None:
        token.run_sync_soon(writing.set)
        go_on.wait()
        insert(db, 100)

    with trio.CancelScope() as scope:
        async with opened(path) as commits, trio.open_nursery() as nursery:
            nursery.start_soon(commits.run, slow)
            await writing.wait()
            for value in range(3):
                nursery.start_soon(commits.run, lambda db, value=value: insert(db, value))
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
            go_on.set()
    assert sorted(rows(path)) == [0, 1, 2, 100]


async def test_a_shielded_farewell_can_still_be_written_while_everything_is_being_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with trio.CancelScope() as scope:
        async with opened(path) as commits:
            try:
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
                await trio.sleep_forever()
            finally:
                with trio.fail_after(30, shield=True):
                    await trio.lowlevel.checkpoint()
                    await commits.run(lambda db: insert(db, 1))
    assert rows(path) == [1]


async def test_the_guard_decides_for_a_whole_transaction(tmp_path: Path) -> None:
    path = tmp_path / "db"

    def guard(_db: sqlite3.Connection) -> None:
        raise LookupError("not yours")

    async with open_commits(connect(path), guard, "db") as commits:
        with pytest.raises(LookupError, match="not yours"):
            await commits.run(lambda db: insert(db, 1))
    assert rows(path) == []


async def test_a_disk_without_room_is_said_with_the_path_and_nothing_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "db"
    connection = connect(path)
    connection.execute("CREATE TABLE bodies (body BLOB)")
    connection.execute("PRAGMA max_page_count = 6")

    def fill(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO bodies VALUES (zeroblob(1000000))")

    async with open_commits(connection, no_guard, "the database") as commits:
        with pytest.raises((StateError, sqlite3.OperationalError), match="full"):
            await commits.run(fill)
        await commits.run(lambda db: insert(db, 1))
    assert rows(path) == [1]


async def test_a_database_that_cannot_be_written_is_a_state_error_for_every_waiter(tmp_path: Path) -> None:
    path = tmp_path / "db"
    connection = connect(path)
    connection.execute("PRAGMA query_only = ON")
    blocker = connect(path)
    blocker.execute("BEGIN IMMEDIATE")
    connection.execute("PRAGMA busy_timeout = 0")
    faults: list[StateError] = []

    async def ask(commits: Commits) -> None:
        with pytest.raises(StateError, match="the database cannot be written") as caught:
            await commits.run(lambda db: insert(db, 1))
        faults.append(caught.value)

    async with open_commits(connection, no_guard, "the database") as commits:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, commits)
            nursery.start_soon(ask, commits)
        blocker.execute("ROLLBACK")
        blocker.close()
    assert len(set(map(id, faults))) == 2


async def test_after_the_end_nothing_is_taken_and_the_connection_is_closed(tmp_path: Path) -> None:
    connection = connect(tmp_path / "db")
    async with open_commits(connection, no_guard, "db") as commits:
        pass
    with pytest.raises(trio.ClosedResourceError):
        await commits.run(lambda db: insert(db, 1))
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


async def test_what_the_body_raises_comes_out_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="mine"):
        async with opened(tmp_path / "db"):
            raise LookupError("mine")
