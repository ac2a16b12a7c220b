"""Statements for what the lobby must remember: messages that nobody owns, who writes to whom, who is muted.

A place is (chat, thread), thread 0 being the main chat. What a chooser holds are rows of `updates` without an owner.
"""

from __future__ import annotations

from sqlite3 import Connection
from typing import NamedTuple

from telegram_bus.store.commits import Commits
from telegram_bus.store.journal import stored_updates
from telegram_bus.store.told import recall
from telegram_bus.store.values import StoredUpdate

__all__ = ["Chooser", "LobbyJournal", "purge"]

Place = tuple[int, int]


class Chooser(NamedTuple):
    """Where people are asked: its message (None: not known whether it is there), and how many updates wait."""

    chat_id: int
    place: int
    state: str
    message_id: int | None
    waiting: int


def unattended(db: Connection, limit: int, after_seq: int = 0) -> list[StoredUpdate]:
    """Updates behind `after_seq` that wait, have no owner, and are in no chooser; the oldest first."""
    where = "owner_key IS NULL AND outcome IS NULL AND seq > ? AND seq NOT IN (SELECT seq FROM held)"
    return stored_updates(db, f"{where} ORDER BY seq LIMIT ?", (after_seq, limit))


def unowned(db: Connection, chat_id: int, message_id: int) -> StoredUpdate | None:
    """The update that brought this message, if it waits and nobody has it."""
    where = "outcome IS NULL AND message_id = ? AND chat_id = ? AND owner_key IS NULL AND kind = 'message'"
    return next(iter(stored_updates(db, where, (message_id, chat_id))), None)


def hold(db: Connection, seq: int, place: Place, epoch: int, now_ms: int) -> tuple[bool, int]:
    """Keep the update until a person has chosen; says whether people have to be asked now, and how many wait.

    They have to be where they were not yet, or were by an earlier leader that cannot have seen that it was.
    """
    db.execute(
        "INSERT OR IGNORE INTO held SELECT seq, ?, ? FROM updates WHERE seq = ? AND owner_key IS NULL "
        "AND outcome IS NULL",
        (*place, seq),
    )
    waiting = _waiting(db, place)
    row = db.execute("SELECT state, message_id, epoch FROM choosers WHERE chat_id = ? AND place = ?", place).fetchone()
    if not waiting or (row is not None and row[0] == "open" and (row[1] is not None or row[2] == epoch)):
        return False, waiting
    db.execute(
        "INSERT INTO choosers (chat_id, place, state, epoch, since_ms) VALUES (?, ?, 'open', ?, ?) "
        "ON CONFLICT DO UPDATE SET state = 'open', message_id = NULL, epoch = excluded.epoch, "
        "closed_id = max(closed_id, coalesce(message_id, 0)), since_ms = excluded.since_ms",
        (*place, epoch, now_ms),
    )
    return True, waiting


def asked(db: Connection, place: Place, message_id: int | None) -> None:
    """People were asked by this message; None: they could not be, and the next message asks anew."""
    if message_id is None:
        db.execute("UPDATE choosers SET state = 'later' WHERE chat_id = ? AND place = ? AND state = 'open'", place)
    else:
        db.execute("UPDATE choosers SET message_id = ? WHERE chat_id = ? AND place = ?", (message_id, *place))


def unask(db: Connection, place: Place, message_id: int) -> None:
    """The question is not there any more: people may be asked anew."""
    db.execute(
        "UPDATE choosers SET state = 'later', closed_id = max(closed_id, message_id), message_id = NULL "
        "WHERE chat_id = ? AND place = ? AND message_id = ?",
        (*place, message_id),
    )


def move_to_main(db: Connection, place: Place) -> None:
    """The thread is gone: what waits in it waits in the main chat from now on."""
    db.execute("UPDATE held SET place = 0 WHERE chat_id = ? AND place = ?", place)
    _done(db, place)


def choosers(db: Connection) -> list[Chooser]:
    """All places where something waits."""
    rows = db.execute(
        "SELECT h.chat_id, h.place, coalesce(c.state, 'later'), c.message_id, count(*) FROM held AS h "
        "JOIN updates USING (seq) LEFT JOIN choosers AS c ON c.chat_id = h.chat_id AND c.place = h.place "
        "WHERE owner_key IS NULL AND outcome IS NULL GROUP BY h.chat_id, h.place ORDER BY min(h.seq)"
    )
    return [Chooser(*row) for row in rows]


def give(db: Connection, place: Place, key: str, message_id: int | None) -> list[StoredUpdate] | None:
    """What waits there is the key's now; None where this was answered before (by the same message)."""
    if not _is_open(db, place, message_id):
        return None
    return _assign(db, place, key)


def bound(db: Connection, place: Place, key: str) -> list[StoredUpdate]:
    """The thread belongs to the key now, and so does what waits in it."""
    return _assign(db, place, key)


def ignore(db: Connection, place: Place, message_id: int | None, now_ms: int) -> int | None:
    """Let go of what waits there; how many that were, or None where this was answered before."""
    if not _is_open(db, place, message_id):
        return None
    count = db.execute(
        "UPDATE updates SET outcome = 'dropped', settled_ms = ?, reason = 'a person ignored it' "
        "WHERE outcome IS NULL AND owner_key IS NULL AND seq IN (SELECT seq FROM held WHERE chat_id = ? AND place = ?)",
        (now_ms, *place),
    ).rowcount
    _done(db, place)
    return count


def later(db: Connection, place: Place, message_id: int | None) -> int | None:
    """Ask no more until something new comes; how many wait, or None where this was answered before."""
    if not _is_open(db, place, message_id):
        return None
    _close(db, place, "later")
    return _waiting(db, place)


def waiting_at(db: Connection, place: Place, message_id: int | None) -> int | None:
    """How many wait there; None where this was answered before."""
    return _waiting(db, place) if _is_open(db, place, message_id) else None


def choices(db: Connection) -> dict[Place, str]:
    """To whom each person writes in a chat without threads: (chat, user) to key."""
    return {(chat, user): key for chat, user, key in db.execute("SELECT chat_id, user_id, key FROM choices")}


def choose(db: Connection, chat_id: int, user_id: int, key: str | None, now_ms: int) -> None:
    """The person writes to the key from now on (None: to nobody)."""
    if key is None:
        db.execute("DELETE FROM choices WHERE chat_id = ? AND user_id = ?", (chat_id, user_id))
    else:
        db.execute("INSERT OR REPLACE INTO choices VALUES (?, ?, ?, ?)", (chat_id, user_id, key, now_ms))


def mutes(db: Connection) -> dict[str, int | None]:
    """Who is muted, until when (epoch, ms; None: until it is taken back)."""
    return dict(db.execute("SELECT key, until_ms FROM mutes").fetchall())


def mute(db: Connection, key: str, until_ms: int | None) -> None:
    """The key's messages make no sound until then."""
    db.execute("INSERT OR REPLACE INTO mutes VALUES (?, ?)", (key, until_ms))


def unmute(db: Connection, key: str) -> bool:
    """They do again; False where they did."""
    return db.execute("DELETE FROM mutes WHERE key = ?", (key,)).rowcount > 0


def move_chat(db: Connection, old: int, new: int) -> None:
    """A group became a supergroup: what waits and who writes to whom is the new chat's."""
    for table in ("choosers", "held", "choices"):
        db.execute(f"UPDATE OR REPLACE {table} SET chat_id = ? WHERE chat_id = ?", (new, old))  # noqa: S608


def purge(db: Connection, now_ms: int, keep_ms: int) -> int:
    """Delete what has no purpose any more: mutes that are over, choosers that were answered `keep_ms` ago."""
    gone = db.execute("DELETE FROM mutes WHERE until_ms < ?", (now_ms,)).rowcount
    gone += db.execute("DELETE FROM held WHERE seq NOT IN (SELECT seq FROM updates WHERE outcome IS NULL)").rowcount
    return gone + db.execute("DELETE FROM choosers WHERE state = 'done' AND since_ms < ?", (now_ms - keep_ms,)).rowcount


def _waiting(db: Connection, place: Place) -> int:
    row = db.execute(
        "SELECT count(*) FROM held JOIN updates USING (seq) WHERE held.chat_id = ? AND place = ? "
        "AND owner_key IS NULL AND outcome IS NULL",
        place,
    ).fetchone()
    return int(row[0])


def _is_open(db: Connection, place: Place, message_id: int | None) -> bool:
    row = db.execute(
        "SELECT state, message_id, closed_id FROM choosers WHERE chat_id = ? AND place = ?", place
    ).fetchone()
    if row is None or row[0] == "done":
        return False
    return message_id is None or message_id == row[1] or (row[1] is None and message_id > row[2])


def _assign(db: Connection, place: Place, key: str) -> list[StoredUpdate]:
    rows = db.execute(
        "UPDATE updates SET owner_key = ? WHERE outcome IS NULL AND owner_key IS NULL "
        "AND seq IN (SELECT seq FROM held WHERE chat_id = ? AND place = ?) RETURNING seq",
        (key, *place),
    ).fetchall()
    numbers = ",".join(str(row[0]) for row in rows)
    given = stored_updates(db, f"seq IN ({numbers}) ORDER BY seq", ())
    _done(db, place)
    return given


def _done(db: Connection, place: Place) -> None:
    db.execute("DELETE FROM held WHERE chat_id = ? AND place = ?", place)
    _close(db, place, "done")


def _close(db: Connection, place: Place, state: str) -> None:
    db.execute(
        "UPDATE choosers SET state = ?, closed_id = max(closed_id, coalesce(message_id, 0)), "
        "message_id = iif(? = 'done', NULL, message_id) WHERE chat_id = ? AND place = ?",
        (state, state, *place),
    )


class LobbyJournal:
    """The statements above in the leader's store: each is committed when it returns; raises what the store raises."""

    def __init__(self, commits: Commits, epoch: int) -> None:
        self._run = commits.run
        self._epoch = epoch

    async def unattended(self, limit: int, after_seq: int = 0) -> list[StoredUpdate]:
        """Updates behind `after_seq` that wait, have no owner, and are in no chooser; the oldest first."""
        return await self._run(lambda db: unattended(db, limit, after_seq))

    async def unowned(self, chat_id: int, message_id: int) -> StoredUpdate | None:
        """The update that brought this message, if it waits and nobody has it."""
        return await self._run(lambda db: unowned(db, chat_id, message_id))

    async def hold(self, seq: int, place: Place, now_ms: int) -> tuple[bool, int]:
        """Keep an update until a person has chosen: whether people have to be asked now, and how many wait."""
        return await self._run(lambda db: hold(db, seq, place, self._epoch, now_ms))

    async def ask_again(self, place: Place, now_ms: int) -> bool:
        """Claim that people are asked who may not have been; False where they were, or nothing waits there."""
        return await self._run(lambda db: hold(db, -1, place, self._epoch, now_ms)[0])

    async def asked(self, place: Place, message_id: int | None) -> None:
        """People were asked by this message; None: they could not be."""
        await self._run(lambda db: asked(db, place, message_id))

    async def unask(self, place: Place, message_id: int) -> None:
        """The question is not there any more: people may be asked anew."""
        await self._run(lambda db: unask(db, place, message_id))

    async def move_to_main(self, place: Place) -> None:
        """The thread is gone: what waits in it waits in the main chat from now on."""
        await self._run(lambda db: move_to_main(db, place))

    async def choosers(self) -> list[Chooser]:
        """All places where something waits, the longest wait first."""
        return await self._run(choosers)

    async def waiting_at(self, place: Place, message_id: int | None) -> int | None:
        """How many wait there; None where this was answered before."""
        return await self._run(lambda db: waiting_at(db, place, message_id))

    async def give(self, place: Place, key: str, message_id: int | None) -> list[StoredUpdate] | None:
        """What waits there is the key's now; None where this was answered before."""
        return await self._run(lambda db: give(db, place, key, message_id))

    async def bound(self, place: Place, key: str) -> list[StoredUpdate]:
        """The thread belongs to the key now, and so does what waits in it."""
        return await self._run(lambda db: bound(db, place, key))

    async def ignore(self, place: Place, message_id: int | None, now_ms: int) -> int | None:
        """Let go of what waits there; None where this was answered before."""
        return await self._run(lambda db: ignore(db, place, message_id, now_ms))

    async def later(self, place: Place, message_id: int | None) -> int | None:
        """Ask no more until something new comes; None where this was answered before."""
        return await self._run(lambda db: later(db, place, message_id))

    async def choices(self) -> dict[Place, str]:
        """To whom each person writes in a chat without threads: (chat, user) to key."""
        return await self._run(choices)

    async def choices_and(self, prefix: str) -> tuple[dict[Place, str], dict[str, str]]:
        """`choices` and `recall` in one: a new leader needs both before anything else."""
        return await self._run(lambda db: (choices(db), recall(db, prefix)))

    async def choose(self, chat_id: int, user_id: int, key: str | None, now_ms: int) -> None:
        """The person writes to the key from now on (None: to nobody)."""
        await self._run(lambda db: choose(db, chat_id, user_id, key, now_ms))

    async def mutes(self) -> dict[str, int | None]:
        """Who is muted, until when (epoch, ms; None: until it is taken back)."""
        return await self._run(mutes)

    async def mute(self, key: str, until_ms: int | None) -> None:
        """The key's messages make no sound until then."""
        await self._run(lambda db: mute(db, key, until_ms))

    async def unmute(self, key: str) -> bool:
        """They do again; False where they did."""
        return await self._run(lambda db: unmute(db, key))

    async def move_chat(self, old: int, new: int) -> None:
        """A group became a supergroup."""
        await self._run(lambda db: move_chat(db, old, new))

    async def purge(self, now_ms: int, keep_ms: int) -> int:
        """Delete what has no purpose any more; returns how many rows went."""
        return await self._run(lambda db: purge(db, now_ms, keep_ms))
