"""Small things that a leader remembers for the next one: what people were told of the chat, what agents say they do.

Each has a name and a text; those of followers begin with one of the prefixes, and go with the follower.
"""

from __future__ import annotations

from sqlite3 import Connection
from typing import Final

from telegram_bus.store.commits import Commits

__all__ = ["DOING", "ICON", "SILENT", "Told", "forget_departed", "recall"]

DOING: Final = "doing:"
ICON: Final = "icon:"
SILENT: Final = "silent "
"""Before a follower's key, in what is remembered: what it said it does, what the icon of its thread shows, and that it
fell silent and was not proven dead."""


class Told:
    """What is remembered; each change is committed when it returns, and raises what the store raises."""

    def __init__(self, commits: Commits) -> None:
        self._run = commits.run

    async def tell(self, what: str, value: str) -> bool:
        """Claim that people are told, or remember it; False where it was exactly this before."""
        statement = (
            "INSERT INTO told VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value "
            "WHERE value != excluded.value"
        )
        return await self._run(lambda db: db.execute(statement, (what, value)).rowcount > 0)

    async def recall(self, prefix: str) -> dict[str, str]:
        """All that is remembered under names that begin so."""
        return await self._run(lambda db: recall(db, prefix))

    async def forget(self, what: str) -> None:
        """It is not remembered any more."""
        await self._run(lambda db: db.execute("DELETE FROM told WHERE what = ?", (what,)) and None)


def recall(db: Connection, prefix: str) -> dict[str, str]:
    """All that is remembered under names that begin so."""
    return dict(
        db.execute("SELECT what, value FROM told WHERE substr(what, 1, ?) = ?", (len(prefix), prefix)).fetchall()
    )


def forget_departed(db: Connection, before_ms: int) -> int:
    """Forget who is away since before then, has no thread and nothing that waits; returns how many rows went."""
    gone = db.execute(
        "DELETE FROM absences WHERE since_ms < ? AND key NOT IN (SELECT key FROM bindings) "
        "AND key NOT IN (SELECT owner_key FROM updates WHERE outcome IS NULL AND owner_key NOT NULL) RETURNING key",
        (before_ms,),
    ).fetchall()
    names = [(prefix + key,) for (key,) in gone for prefix in (DOING, ICON, SILENT)]
    return len(gone) + max(0, db.executemany("DELETE FROM told WHERE what = ?", names).rowcount)
