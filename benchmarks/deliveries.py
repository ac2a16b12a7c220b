"""Updates with both commits: in the leader's journal, to the follower, into its inbox, and the receipt back."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import trio

from benchmarks._bus import Place, bind, one_line, running
from benchmarks._deliver import keys
from benchmarks._tools import Measured, Run, benchmark, percentile
from telegram_bus.store import NewUpdate, open_store
from telegram_bus.store.inbox import open_inbox
from telegram_bus.testing import Sandbox

FOLLOWERS = 10
ROWS = (0, 100_000)
ALONE, MANY = 500, 6_000
WAITERS = 100


@benchmark("deliveries", "update committed (fsync), delivered, committed by its follower (fsync), receipt back")
def deliveries(run: Run) -> Iterator[Measured]:
    """Followers are processes that really joined; updates arrive where the poller hands them over.

    Ratios are to the raw sync of one page: two of them are in each delivery.
    """
    sync = _sync(run.directory / "page", 50 if run.quick else 500)
    yield Measured(name="raw: write and sync one page, p50", value=sync * 1e3, unit="ms", ratio=1)
    yield from _commits(run, sync)
    alone, many = (ALONE // 10, MANY // 10) if run.quick else (ALONE, MANY)
    with Sandbox() as sandbox:
        for rows in ROWS:
            place = Place(run.directory / f"deliveries-{rows}")
            bind(place, sandbox.chat_id, keys(FOLLOWERS))
            _fill(place, rows)
            times, _ = _deliver(place, sandbox, "take", 1, alone, 0)
            p50 = percentile(times, 50)
            yield Measured(
                name=f"one at a time, {rows:,} rows, p50",
                value=p50 * 1e3,
                unit="ms",
                target=2.0,
                reference="4 to 23 ms, no fsync" if rows else "4.0 ms, no fsync",
                ratio=p50 / sync,
            )
            yield Measured(name=f"one at a time, {rows:,} rows, p99", value=percentile(times, 99) * 1e3, unit="ms")
            _, rate = _deliver(place, sandbox, "take", FOLLOWERS, 0, many)
            yield Measured(
                name=f"{FOLLOWERS} follower processes, {rows:,} rows",
                value=rate,
                unit="/s",
                target=1_900,
                better="more",
            )
        _, rate = _deliver(place, sandbox, "finish", FOLLOWERS, 0, many)
        yield Measured(name="the same, each update also finished (fsync)", value=rate, unit="/s", better="more")


def _deliver(place: Place, sandbox: Sandbox, then: str, *counts: int) -> tuple[list[float], float]:
    arguments = (str(place.root), sandbox.api_root, sandbox.token, then, sandbox.chat_id, *counts)
    with running(place, "benchmarks._deliver", *map(str, arguments)) as leader:
        figures = one_line(leader)
        leader.wait()
    return figures["times"], figures["rate"]


def _fill(place: Place, rows: int) -> None:
    """As many settled updates in the journal, and finished ones in the inboxes: all in that of the first follower."""
    now = time.time_ns() // 1_000_000
    body = b'{"update_id": 1, "message": {"text": "%s"}}' % (b"x" * 300)
    with closing(sqlite3.connect(place.profile.database)) as db, db:
        db.executemany("INSERT INTO seen VALUES (?, ?)", ((number, now) for number in range(rows)))
        db.executemany(
            "INSERT INTO updates "
            "(update_id, kind, body, owner_key, chat_id, thread_id, admitted_ms, outcome, settled_ms) "
            "VALUES (?, 'message', ?, 'f0', 1, 1, ?, 'accepted', ?)",
            ((number, body, now, now) for number in range(rows)),
        )
    for key in keys(FOLLOWERS):
        place.profile.ensure_follower(key)
        path = place.profile.inbox(key)
        trio.run(_make_inbox, path)
        with closing(sqlite3.connect(path)) as db, db:
            db.executemany(
                "INSERT INTO deliveries (delivery_id, kind, source_update_id, received_ms, done_ms) "
                "VALUES (?, 'message', ?, ?, ?)",
                ((f"filled-{number:064}", number, now, now) for number in range(rows if key == "f0" else rows // 10)),
            )


async def _make_inbox(path: Path) -> None:
    async with open_inbox(path):
        pass


def _sync(path: Path, count: int) -> float:
    """What the disk takes to keep 4 KB, in seconds."""
    times = []
    with path.open("wb", buffering=0) as file:
        for _ in range(count):
            begin = time.perf_counter()
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            times.append(time.perf_counter() - begin)
    return percentile(times, 50)


def _commits(run: Run, sync: float) -> Iterator[Measured]:
    """What the disk and SQLite give: the floor of all that follows."""
    times, rate = trio.run(_commit, run.directory / "commits.sqlite3", 50 if run.quick else 500)
    p50 = percentile(times, 50)
    yield Measured(name="one commit of the journal, alone, p50", value=p50 * 1e3, unit="ms", ratio=p50 / sync)
    yield Measured(name=f"commits of the journal, {WAITERS} waiters", value=rate, unit="/s", better="more")


async def _commit(path: Path, count: int) -> tuple[list[float], float]:
    def update(number: int) -> NewUpdate:
        return NewUpdate(update_id=number, kind="message", body=b"x" * 600, owner_key="f0", chat_id=1, thread_id=1)

    async with open_store(path, holder="benchmark") as store:
        times = []
        for number in range(count):
            begin = time.perf_counter()
            await store.admit_batch([update(number)], None, 0)
            times.append(time.perf_counter() - begin)

        async def some(lane: int) -> None:
            for number in range(count // 10):
                await store.admit_batch([update(count + lane * count + number)], None, 0)

        begin = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for lane in range(WAITERS):
                nursery.start_soon(some, lane)
        return times, count // 10 * WAITERS / (time.perf_counter() - begin)
