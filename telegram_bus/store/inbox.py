"""A follower's inbox: what it has acknowledged and not yet worked off, and what it must recognise again."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from sqlite3 import Connection
from typing import Final

import trio
from attrs import define, field, frozen

from telegram_bus.store.commits import Commits, open_commits
from telegram_bus.store.database import open_database
from telegram_bus.store.plans import find_plan, keep_plan, plan_ids
from telegram_bus.store.schema import INBOX

__all__ = ["Frozen", "Inbox", "Received", "open_inbox"]

KEPT_MS: Final = 48 * 3600 * 1000
"""How long the id of a finished delivery is remembered; the leader gives up repeating it long before."""

_RECEIVED: Final = "delivery_id, kind, source_update_id, body, received_ms, item, follows, album"
_FROZEN: Final = "item, recipient, token, note"


@frozen(kw_only=True)
class Received:
    """A delivery that waits for its handler; `body` is the JSON of the Telegram object it carries.

    It is a part of the `item` that began with that delivery, or (None) begins one itself, which may be what came late
    for the item that it `follows`. `album` is what the messages of one album share.
    """

    delivery_id: str
    kind: str
    source_update_id: int
    body: bytes = field(repr=False)
    received_ms: int
    item: str | None = None
    follows: str | None = None
    album: str | None = None


@frozen
class Frozen:
    """An item that is being given to another follower (`recipient`, a name or key): nobody's to work on meanwhile."""

    item: str
    recipient: str
    token: int
    note: str | None = None


@define(eq=False)
class Inbox:
    """Deliveries in order of arrival; each method is committed, with fsync, when it returns.

    They raise StateError when the disk fails. A caller that is cancelled stops waiting, the commit happens.
    """

    notice: str | None
    _commits: Commits
    _clock: Callable[[], float]
    _plans: set[str] | None = None  # the ids of what is kept, once they were asked for

    async def append(
        self,
        delivery_id: str,
        kind: str,
        source_update_id: int,
        body: bytes,
        *,
        item: str | None = None,
        follows: str | None = None,
        album: str | None = None,
    ) -> bool:
        """Keep a delivery until its item is done; False where it was received before, done or not."""
        values = (delivery_id, kind, source_update_id, body, self.now_ms(), item, follows, album)
        return await self._commits.run(lambda db: _append(db, values))

    async def amend(self, delivery_id: str, body: bytes, *, by: str, source_update_id: int, late: bytes) -> bool:
        """Change a delivery that waits by another one (`by`), which is done with that; False where that came before.

        Where the first one is done by now, `by` waits itself, with the body `late`.
        """
        now_ms = self.now_ms()

        def amend(db: Connection) -> bool:
            if not _append(db, (by, "edited_message", source_update_id, late, now_ms, None, None, None)):
                return False
            waits = "UPDATE deliveries SET body = ? WHERE delivery_id = ? AND done_ms IS NULL"
            if db.execute(waits, (body, delivery_id)).rowcount:
                _done(db, by, now_ms)
            return True

        return await self._commits.run(amend)

    async def reopen(self, delivery_id: str, body: bytes) -> None:
        """A delivery that was done with by changing another one waits itself after all."""
        statement = "UPDATE deliveries SET done_ms = NULL, body = ? WHERE delivery_id = ?"
        await self._commits.run(lambda db: db.execute(statement, (body, delivery_id)) and None)

    async def done(self, delivery_id: str) -> None:
        """The handler has finished the item: its bodies are deleted, the ids are remembered for 48 h."""
        now_ms = self.now_ms()
        await self._commits.run(lambda db: _done(db, delivery_id, now_ms))

    async def freeze(self, frozen: Frozen) -> Frozen | None:
        """Note that an item is being given away; returns what was noted of it first. None: the item is done."""
        now_ms = self.now_ms()
        return await self._commits.run(lambda db: _freeze(db, frozen, now_ms))

    async def thaw(self, item: str) -> None:
        """The item was not taken: it is ours again."""
        await self._commits.run(lambda db: db.execute("DELETE FROM handing WHERE item = ?", (item,)) and None)

    async def frozen(self) -> list[Frozen]:
        """What was being given away and is not done, the oldest first."""
        return await self._commits.run(_frozen)

    async def item(self, item: str) -> list[Received]:
        """The parts of an item that is not done, in order of arrival."""
        return await self._commits.run(lambda db: _pending(db, item))

    async def pending(self) -> list[Received]:
        """What was received and is not done, in order of arrival."""
        return await self._commits.run(_pending)

    async def albums(self, limit: int) -> list[tuple[str, str]]:
        """The newest albums, each with the id of the item that its first part is in; the oldest of them first."""
        return await self._commits.run(lambda db: _albums(db, limit))

    async def plan(self, call_id: str) -> bytes | None:
        """What was kept under this id in the last 48 h. Where nothing was, that is known without the disk."""
        now_ms = self.now_ms()
        if self._plans is None:
            known = await self._commits.run(lambda db: plan_ids(db, now_ms))
            self._plans = known if self._plans is None else self._plans
        if call_id not in self._plans:
            return None
        return await self._commits.run(lambda db: find_plan(db, call_id, now_ms))

    async def keep_plan(self, call_id: str, body: bytes) -> None:
        """Keep for 48 h what is going to be sent in parts, so that whoever goes on with it sends the same."""
        now_ms = self.now_ms()
        await self._commits.run(lambda db: keep_plan(db, call_id, body, now_ms))
        if self._plans is not None:  # else they are read when they are asked for
            self._plans.add(call_id)

    def now_ms(self) -> int:
        """The time (epoch, ms) by the clock of this inbox."""
        return int(self._clock() * 1000)


@asynccontextmanager
async def open_inbox(path: Path, *, clock: Callable[[], float] = time.time) -> AsyncIterator[Inbox]:
    """Open the inbox as the holder of its lock; `clock` gives seconds of the wall clock.

    `Inbox.notice` says, for people, when a damaged inbox was set aside. Raises StateError like `open_store`.
    """
    opened = await trio.to_thread.run_sync(open_database, path, INBOX)
    async with open_commits(opened.connection, _no_guard, str(path)) as commits:
        yield Inbox(opened.notice, commits, clock)


def _append(db: Connection, values: tuple[str, str, int, bytes, int, str | None, str | None, str | None]) -> bool:
    row = db.execute(
        f"INSERT INTO deliveries ({_RECEIVED}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",  # noqa: S608
        values,
    )
    return row.rowcount > 0


def _done(db: Connection, delivery_id: str, now_ms: int) -> None:
    db.execute(
        "UPDATE deliveries SET done_ms = ?, body = NULL WHERE (delivery_id = ? OR item = ?) AND done_ms IS NULL",
        (now_ms, delivery_id, delivery_id),
    )
    db.execute("DELETE FROM handing WHERE item = ?", (delivery_id,))
    db.execute("DELETE FROM deliveries WHERE done_ms < ?", (now_ms - KEPT_MS,))


def _freeze(db: Connection, frozen: Frozen, now_ms: int) -> Frozen | None:
    waits = "SELECT 1 FROM deliveries WHERE delivery_id = ? AND done_ms IS NULL"
    if db.execute(waits, (frozen.item,)).fetchone() is None:
        return None
    db.execute(
        "INSERT OR IGNORE INTO handing VALUES (?, ?, ?, ?, ?)",
        (frozen.item, frozen.recipient, frozen.token, frozen.note, now_ms),
    )
    return Frozen(*db.execute(f"SELECT {_FROZEN} FROM handing WHERE item = ?", (frozen.item,)).fetchone())  # noqa: S608


def _frozen(db: Connection) -> list[Frozen]:
    rows = db.execute(f"SELECT {_FROZEN} FROM handing ORDER BY since_ms, item")  # noqa: S608
    return [Frozen(*row) for row in rows]


def _pending(db: Connection, item: str | None = None) -> list[Received]:
    """What is not done, in order of arrival: all of it, or one item's parts."""
    which = "" if item is None else "AND (delivery_id = ? OR item = ?)"
    values = () if item is None else (item, item)
    rows = db.execute(
        f"SELECT {_RECEIVED} FROM deliveries WHERE done_ms IS NULL {which} ORDER BY seq",  # noqa: S608
        values,
    )
    return [
        Received(
            delivery_id=delivery,
            kind=kind,
            source_update_id=source,
            body=body,
            received_ms=ms,
            item=item,
            follows=follows,
            album=album,
        )
        for delivery, kind, source, body, ms, item, follows, album in rows
    ]


def _albums(db: Connection, limit: int) -> list[tuple[str, str]]:
    rows = db.execute(
        "SELECT album, coalesce(follows, item, delivery_id) FROM deliveries "
        "WHERE album IS NOT NULL ORDER BY seq DESC LIMIT ?",
        (limit,),
    )
    return [(album, item) for album, item in rows][::-1]


def _no_guard(_db: Connection) -> None:
    """Nobody else has the inbox: its lock is the proof."""
