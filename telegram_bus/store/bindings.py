"""The statements about threads: who has which, which are being made, which shall go."""

from __future__ import annotations

from collections.abc import Iterable
from sqlite3 import Connection
from typing import assert_never

from telegram_bus.core.bindings import Binding, CleanUp, Creation, Gone

__all__ = ["holds", "kept", "note"]


def kept(db: Connection) -> list[Binding | Creation | CleanUp]:
    """All that there is about threads, each kind in the order in which it began."""
    bindings = db.execute(
        "SELECT key, chat_id, thread_id, name, since_ms, holder, by_person, closed, gone_ms, remade_ms FROM bindings "
        "ORDER BY since_ms, key"
    )
    creations = db.execute("SELECT key, chat_id, name, begun_ms, holder FROM creations ORDER BY begun_ms, key")
    clean_ups = db.execute(
        "SELECT chat_id, thread_id, key, how, why, since_ms FROM clean_ups ORDER BY since_ms, thread_id"
    )
    return [
        *(Binding(*row)._replace(by_person=bool(row[6]), closed=bool(row[7])) for row in bindings),
        *(Creation(*row) for row in creations),
        *(CleanUp(*row) for row in clean_ups),
    ]


def note(db: Connection, changes: Iterable[Binding | Creation | CleanUp | Gone]) -> None:
    """Store the rows, each in the place of an earlier one of the same key or thread; take those away that are gone."""
    for change in changes:
        match change:
            case Binding():
                db.execute("INSERT OR REPLACE INTO bindings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", change)
            case Creation():
                db.execute("INSERT OR REPLACE INTO creations VALUES (?, ?, ?, ?, ?)", change)
            case CleanUp():
                db.execute("INSERT OR REPLACE INTO clean_ups VALUES (?, ?, ?, ?, ?, ?)", change)
            case Gone(row=row):
                _delete(db, row)
            case _:
                assert_never(change)


def holds(db: Connection, row: CleanUp) -> bool:
    """Whether the thread shall still be cleaned up in this way."""
    found = db.execute("SELECT how FROM clean_ups WHERE chat_id = ? AND thread_id = ?", row[:2]).fetchone()
    return found is not None and found[0] == row.how


def _delete(db: Connection, row: Binding | Creation | CleanUp) -> None:
    match row:
        case Binding():
            db.execute("DELETE FROM bindings WHERE key = ?", (row.key,))
        case Creation():
            db.execute("DELETE FROM creations WHERE key = ?", (row.key,))
        case CleanUp():
            db.execute("DELETE FROM clean_ups WHERE chat_id = ? AND thread_id = ?", (row.chat_id, row.thread_id))
        case _:
            assert_never(row)
