"""What counts for Telegram's limits, for the leader that comes next: the last calls, pauses, lowered limits."""

from __future__ import annotations

from sqlite3 import Connection
from typing import Final, NamedTuple

from attrs import define

from telegram_bus.store.commits import Commits

__all__ = ["ALL", "Hold", "Spent", "SpentJournal"]

ALL: Final = 0
"""Stands for the chat of what concerns all; it is no chat's id. Its row also says that calls are noted at all."""

KEPT_MS: Final = 600_000
"""Ten windows of a minute, the longest that Telegram has."""

_SWEEP_EVERY: Final = 128


class Spent(NamedTuple):
    """A call that counts; it was answered then (or the leader died before). `progress`: it only showed that."""

    chat_id: int | None
    weight: int
    ended_ms: int
    progress: bool


class Hold(NamedTuple):
    """A pause that Telegram wants, until then (0: none), and a limit that proved lower (`most` 0: it did not)."""

    chat_id: int
    until_ms: int
    most: int
    stretch: float


@define(eq=False)
class SpentJournal:
    """Notes of one term. What is noted `soon` is committed with whatever is committed next; nobody waits for it."""

    _commits: Commits
    _epoch: int

    async def begin(self, now_ms: int) -> tuple[list[Spent], list[Hold], bool]:
        """What earlier leaders noted, in the order of the answers, and whether that is all.

        It is not where calls were made a short time ago which were not noted (by an older version).
        """
        return await self._commits.run(lambda db: _begin(db, now_ms))

    def started_soon(self, number: int, chat_id: int | None, weight: int, now_ms: int) -> None:
        """A call is about to leave; what is committed after this is committed with it or later.

        An odd number is that of one which only shows progress.
        """
        epoch = self._epoch

        def note(db: Connection) -> None:
            db.execute("INSERT INTO spent VALUES (?, ?, ?, ?, ?, NULL)", (epoch, number, chat_id, weight, now_ms))
            if number // 2 % _SWEEP_EVERY == 0:
                purge(db, now_ms)

        self._commits.soon(note)

    def ended_soon(self, number: int, now_ms: int) -> None:
        """It was answered, or it never left."""
        values = (now_ms, self._epoch, number)
        self._commits.soon(
            lambda db: db.execute("UPDATE spent SET ended_ms = ? WHERE epoch = ? AND number = ?", values)
        )

    def hold_soon(self, holds: list[Hold]) -> None:
        """These pauses and lowered limits hold from now on, and no others."""

        def note(db: Connection) -> None:
            db.execute("DELETE FROM holds")
            rows = {hold.chat_id: hold for hold in [Hold(ALL, 0, 0, 1.0), *holds]}
            db.executemany("INSERT INTO holds VALUES (?, ?, ?, ?)", rows.values())

        self._commits.soon(note)

    async def flush(self) -> None:
        """Return once what was noted is on the disk."""
        await self._commits.run(lambda _: None)


def purge(db: Connection, now_ms: int) -> int:
    """Forget what does not count any more; returns how many rows went."""
    return db.execute("DELETE FROM spent WHERE ended_ms < ?", (now_ms - KEPT_MS,)).rowcount


def _begin(db: Connection, now_ms: int) -> tuple[list[Spent], list[Hold], bool]:
    # what was under way when its leader died may have arrived until now
    db.execute("UPDATE spent SET ended_ms = ? WHERE ended_ms IS NULL OR ended_ms > ?", (now_ms, now_ms))
    purge(db, now_ms)
    spent = db.execute("SELECT chat_id, weight, ended_ms, number & 1 FROM spent ORDER BY ended_ms").fetchall()
    holds = [Hold(*row) for row in db.execute("SELECT chat_id, until_ms, most, stretch FROM holds")]
    sure = any(hold.chat_id == ALL for hold in holds)
    if not sure:
        db.execute("INSERT INTO holds VALUES (?, 0, 0, 1.0)", (ALL,))
        since = (now_ms - KEPT_MS,)
        recent = db.execute("SELECT 1 FROM messages WHERE sent_ms > ? LIMIT 1", since).fetchone()
        sure = recent is None and db.execute("SELECT 1 FROM calls WHERE since_ms > ? LIMIT 1", since).fetchone() is None
    return [Spent(chat, weight, ended, bool(progress)) for chat, weight, ended, progress in spent], holds, sure
