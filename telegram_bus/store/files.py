"""What followers were given: files that they may fetch (their own too), messages that they may react to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Final

__all__ = ["given_to", "note_given", "own_files", "record_files"]

REFRESH_MS: Final = 86_400_000
"""A file that is met again is kept for longer, but not written anew each time."""


def record_files(db: Connection, pairs: Iterable[tuple[str, str]], now_ms: int) -> None:
    """Note that these followers have these files, each (file id, key)."""
    db.executemany(
        "INSERT INTO files VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET since_ms = excluded.since_ms WHERE since_ms < ?",
        [(file_id, key, now_ms, now_ms - REFRESH_MS) for file_id, key in pairs],
    )


def own_files(db: Connection, key: str, file_ids: Sequence[str]) -> list[str]:
    """Those of the files that are the follower's."""
    return [
        file_id
        for file_id in file_ids
        if db.execute("SELECT 1 FROM files WHERE file_id = ? AND key = ?", (file_id, key)).fetchone()
    ]


def note_given(db: Connection, messages: Iterable[tuple[tuple[int, int], str]], now_ms: int) -> None:
    """Note that these people's messages, each ((chat, message), key), were given to followers."""
    db.executemany(
        "INSERT INTO given VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE "
        "SET key = excluded.key, since_ms = excluded.since_ms WHERE key != excluded.key OR since_ms < ?",
        [(chat, message, key, now_ms, now_ms - REFRESH_MS) for (chat, message), key in messages],
    )


def given_to(db: Connection, chat_id: int, message_id: int) -> str | None:
    """Who was given this person's message, as far as is known."""
    row = db.execute("SELECT key FROM given WHERE chat_id = ? AND message_id = ?", (chat_id, message_id)).fetchone()
    return row[0] if row else None
