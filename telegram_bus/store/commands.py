"""What followers offer for the menu of commands, and which menu Telegram was given last."""

from __future__ import annotations

from collections.abc import Iterable
from sqlite3 import Connection

__all__ = ["forget_offers", "menu_digest", "note_menu", "note_offer", "offers"]


def offers(db: Connection) -> list[tuple[str, bytes]]:
    """Who offers what: (key, commands as they were put in), in the order of the keys."""
    return [(key, commands) for key, commands in db.execute("SELECT key, commands FROM offers ORDER BY key")]


def note_offer(db: Connection, key: str, commands: bytes | None, now_ms: int) -> None:
    """The follower's offer replaces its last one (None: it offers nothing any more)."""
    if commands is None:
        db.execute("DELETE FROM offers WHERE key = ?", (key,))
    else:
        db.execute("INSERT OR REPLACE INTO offers VALUES (?, ?, ?)", (key, commands, now_ms))


def forget_offers(db: Connection, keys: Iterable[str]) -> None:
    """These followers are gone for good."""
    db.executemany("DELETE FROM offers WHERE key = ?", [(key,) for key in keys])


def menu_digest(db: Connection, chat_id: int) -> str | None:
    """What tells the menu that the chat was given last from others; None: it has none of ours."""
    row = db.execute("SELECT digest FROM menus WHERE chat_id = ?", (chat_id,)).fetchone()
    return row[0] if row else None


def note_menu(db: Connection, chat_id: int, digest: str | None, now_ms: int) -> None:
    """Telegram has this menu for the chat now; None: ours was taken away."""
    if digest is None:
        db.execute("DELETE FROM menus WHERE chat_id = ?", (chat_id,))
    else:
        db.execute("INSERT OR REPLACE INTO menus VALUES (?, ?, ?)", (chat_id, digest, now_ms))
