"""What a follower sends in parts under a name: kept whole before the first part goes out, so that it can go on."""

from __future__ import annotations

from sqlite3 import Connection
from typing import Final

__all__ = ["find_plan", "keep_plan", "plan_ids"]

KEPT_MS: Final = 48 * 3600 * 1000
"""As long as the leader remembers what a call with a name came to."""


def find_plan(db: Connection, call_id: str, now_ms: int) -> bytes | None:
    """What was kept under this id, for 48 h."""
    since_ms = now_ms - KEPT_MS
    row = db.execute("SELECT body FROM plans WHERE call_id = ? AND kept_ms >= ?", (call_id, since_ms)).fetchone()
    return None if row is None else bytes(row[0])


def plan_ids(db: Connection, now_ms: int) -> set[str]:
    """The ids under which something is kept."""
    return {row[0] for row in db.execute("SELECT call_id FROM plans WHERE kept_ms >= ?", (now_ms - KEPT_MS,))}


def keep_plan(db: Connection, call_id: str, body: bytes, now_ms: int) -> None:
    """Keep it; what is older than 48 h goes."""
    db.execute("DELETE FROM plans WHERE kept_ms < ?", (now_ms - KEPT_MS,))
    db.execute("INSERT OR REPLACE INTO plans (call_id, body, kept_ms) VALUES (?, ?, ?)", (call_id, body, now_ms))
