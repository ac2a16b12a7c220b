"""Keyboards whose meaning the leader keeps, and what was chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from sqlite3 import Connection
from typing import Any, Final

from telegram_bus.core.buttons import Kept
from telegram_bus.core.jsontext import dumps, loads
from telegram_bus.store.commits import Commits

__all__ = ["End", "Keyboards", "end", "purge"]

_KEPT: Final = "id, key, content, holder, chat_id, message_id, answer, shown, taken"

End = tuple[str, dict[str, Any], tuple[int, int] | None]
"""What ended a keyboard: its id, the answer, and the (chat, message) that it was given under."""


class Keyboards:
    """The keyboards in the leader's store; every method is committed when it returns, and raises what `Store`'s do."""

    def __init__(self, commits: Commits) -> None:
        self._commits = commits

    async def keep(self, kept: Kept, now_ms: int) -> Kept:
        """Keep a keyboard and return it as it is kept: where there is one of this id that one, whatever it says."""
        return await self._commits.run(lambda db: _keep(db, kept, now_ms))

    async def find(self, keyboard_id: str) -> Kept | None:
        """The keyboard of this id."""
        return await self._commits.run(lambda db: _find(db, keyboard_id))

    async def open_questions(self) -> list[Kept]:
        """The questions that are not answered, whose answers people do not see yet, or nobody has taken."""
        return await self._commits.run(_open_questions)

    async def place(self, keyboard_id: str, place: tuple[int, int]) -> None:
        """The keyboard stands under this message."""
        await self._commits.run(
            lambda db: db.execute(
                "UPDATE keyboards SET chat_id = ?, message_id = ? WHERE id = ?", (*place, keyboard_id)
            )
        )

    async def end(self, what: End) -> bool:
        """End a keyboard; False where it had ended."""
        return await self._commits.run(lambda db: end(db, what))

    async def ask_again(self, questions: Sequence[tuple[str, str, str]], chat_id: int) -> None:
        """These questions, each (id, owner, request id of its call), stand nowhere any more, and shall be asked there.

        The calls that asked them are forgotten, so that they are made once more.
        """
        await self._commits.run(lambda db: _ask_again(db, questions, chat_id))

    async def to_ask_again(self) -> list[tuple[str, int]]:
        """The questions, each (id, chat), that shall be asked again and were not yet."""
        return await self._commits.run(_to_ask_again)

    async def note_shown(self, keyboard_id: str) -> None:
        """People see what became of a question."""
        await self._commits.run(lambda db: db.execute("UPDATE keyboards SET shown = 1 WHERE id = ?", (keyboard_id,)))

    async def note_taken(self, ids: Sequence[str]) -> None:
        """The answers to these questions were given to who asked."""
        await self._commits.run(
            lambda db: db.executemany("UPDATE keyboards SET taken = 1 WHERE id = ?", [(one,) for one in ids])
        )


def end(db: Connection, what: End) -> bool:
    """End a keyboard; False where it had ended, and then the first answer stays."""
    keyboard_id, answer, place = what
    chat_id, message_id = place or (None, None)
    return (
        db.execute(
            "UPDATE keyboards SET answer = ?, chat_id = coalesce(chat_id, ?), message_id = coalesce(message_id, ?) "
            "WHERE id = ? AND answer IS NULL",
            (dumps(answer), chat_id, message_id, keyboard_id),
        ).rowcount
        > 0
    )


def _ask_again(db: Connection, questions: Sequence[tuple[str, str, str]], chat_id: int) -> None:
    for keyboard_id, *call in questions:
        db.execute("UPDATE keyboards SET chat_id = ?, message_id = NULL WHERE id = ?", (chat_id, keyboard_id))
        db.execute("DELETE FROM calls WHERE key = ? AND request_id = ? AND state = 'settled'", call)


def _to_ask_again(db: Connection) -> list[tuple[str, int]]:
    return db.execute(
        "SELECT id, chat_id FROM keyboards WHERE question AND answer IS NULL AND chat_id NOT NULL "
        "AND message_id IS NULL ORDER BY made_ms"
    ).fetchall()


def purge(db: Connection, before_ms: int) -> int:
    """Delete the keyboards that were made before then."""
    return db.execute("DELETE FROM keyboards WHERE made_ms < ?", (before_ms,)).rowcount


def _keep(db: Connection, kept: Kept, now_ms: int) -> Kept:
    db.execute(
        "INSERT INTO keyboards (id, key, content, holder, question, made_ms) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (kept.id, kept.key, dumps(kept.content), kept.holder, kept.question is not None, now_ms),
    )
    found = _find(db, kept.id)
    assert found is not None
    return found


def _find(db: Connection, keyboard_id: str) -> Kept | None:
    rows = db.execute(f"SELECT {_KEPT} FROM keyboards WHERE id = ?", (keyboard_id,))  # noqa: S608
    return next(_kept(rows), None)


def _open_questions(db: Connection) -> list[Kept]:
    rows = db.execute(
        f"SELECT {_KEPT} FROM keyboards WHERE question AND (NOT shown OR (holder NOT NULL AND NOT taken)) "  # noqa: S608
        "ORDER BY made_ms"
    )
    return list(_kept(rows))


def _kept(rows: Iterable[tuple[Any, ...]]) -> Iterator[Kept]:
    for ident, key, content, holder, chat, message, answer, shown, taken in rows:
        yield Kept(
            id=ident,
            key=key,
            content=loads(content),
            holder=holder,
            place=None if chat is None or message is None else (chat, message),
            answer=None if answer is None else loads(answer),
            shown=bool(shown),
            taken=bool(taken),
        )
