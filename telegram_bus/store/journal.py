"""The statements of the leader's journal: synchronous functions of a connection, inside somebody's transaction."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Any, Final

from attrs import evolve

from telegram_bus.core.errors import LeadershipLost
from telegram_bus.store import budget, buttons, outbox
from telegram_bus.store.values import (
    SEEN_MS,
    Absence,
    Amendment,
    Counts,
    Listed,
    NewUpdate,
    Outcome,
    Retention,
    StoredUpdate,
)

__all__ = [
    "absences",
    "admit_batch",
    "admitted_for",
    "assign",
    "check_term",
    "counts",
    "drop",
    "expire",
    "listed",
    "newest_owners",
    "newest_seq",
    "note_absence",
    "note_attempt",
    "note_presence",
    "offset",
    "owner_of",
    "pending",
    "purge",
    "recent",
    "recent_answers",
    "record_messages",
    "retry",
    "settle",
    "start_term",
    "waiting",
    "waiting_message",
]

_UPDATE: Final = "seq, update_id, kind, body, owner_key, chat_id, thread_id, admitted_ms, attempts"

_LISTED: Final = f"{_UPDATE}, outcome, settled_ms, reason"

_ADMIT: Final = (
    "INSERT INTO updates "
    "(update_id, kind, body, owner_key, chat_id, thread_id, admitted_ms, message_id, outcome, settled_ms) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING " + _UPDATE
)

_SEE: Final = (
    "INSERT INTO seen VALUES (?, ?) ON CONFLICT DO UPDATE SET seen_ms = excluded.seen_ms WHERE seen_ms < ?"  # too old
)

_ASIDE: Final = "outcome IN ('rejected', 'expired')"


def start_term(db: Connection, holder: str, after_epoch: int) -> tuple[str, int]:
    """Begin the next epoch, above `after_epoch` too; returns the store's id and the epoch."""
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO term VALUES (1, ?, 0, '', 0) ON CONFLICT DO NOTHING", (secrets.token_hex(16),))
    row = db.execute(
        "UPDATE term SET epoch = max(epoch, ?) + 1, holder = ? RETURNING store_id, epoch", (after_epoch, holder)
    ).fetchone()
    db.execute("COMMIT")
    return row[0], row[1]


def check_term(epoch: int, db: Connection) -> None:
    """Raises LeadershipLost when a later epoch has begun."""
    row = db.execute("SELECT epoch, holder FROM term").fetchone()
    if row is None or row[0] != epoch:
        successor = f"{row[1]} leads in epoch {row[0]}" if row else "the journal was emptied"
        raise LeadershipLost(f"epoch {epoch} is over: {successor}; nothing was written")


def offset(db: Connection) -> int:
    """The offset of the next poll."""
    return int(db.execute("SELECT poll_offset FROM term").fetchone()[0])


def admit_batch(
    db: Connection,
    updates: Sequence[NewUpdate],
    next_offset: int | None,
    now_ms: int,
    amendments: Sequence[Amendment] = (),
) -> list[StoredUpdate]:
    """Keep the updates that were not seen lately, and the offset that confirms them all (None: it stays).

    Returns those that wait from now on; `amendments` change updates that waited before.
    """
    kept = [_admit(db, update, now_ms) for update in updates if _see(db, update.update_id, now_ms)]
    for edit in amendments:
        if _see(db, edit.update_id, now_ms) and edit.seq is not None and not _amend(db, edit):
            kept += [_admit(db, late, now_ms) for late in _late(db, edit)]
    if next_offset is not None:
        db.execute("UPDATE term SET poll_offset = ?", (next_offset,))
    return [stored for stored in kept if stored is not None]


def _admit(db: Connection, update: NewUpdate, now_ms: int) -> StoredUpdate | None:
    """Keep an update; None where it does not wait."""
    values = (
        update.update_id,
        update.kind,
        update.body,
        update.owner_key,
        update.chat_id,
        update.thread_id,
        now_ms,
        update.message_id,
        update.outcome,
        None if update.outcome is None else now_ms,
    )
    row = db.execute(_ADMIT, values).fetchone()
    return _stored(row) if update.outcome is None else None


def _amend(db: Connection, edit: Amendment) -> bool:
    unowned = "" if edit.otherwise is None else "AND owner_key IS NULL"
    statement = f"UPDATE updates SET body = ? WHERE seq = ? AND outcome IS NULL {unowned}"  # noqa: S608
    return _changed(db, statement, (edit.body, edit.seq))


def _late(db: Connection, edit: Amendment) -> list[NewUpdate]:
    """The edit for whoever got the update in the meantime."""
    row = db.execute("SELECT owner_key FROM updates WHERE seq = ? AND owner_key NOT NULL", (edit.seq,)).fetchone()
    return [evolve(edit.otherwise, owner_key=row[0])] if row and edit.otherwise is not None else []


def _see(db: Connection, update_id: int, now_ms: int) -> bool:
    """Note the id; False where it was seen already. One that is long past belongs to another update: ids restart."""
    return _changed(db, _SEE, (update_id, now_ms, now_ms - SEEN_MS))


def admitted_for(db: Connection, update_id: int, now_ms: int) -> tuple[bool, str | None]:
    """Whether the id was admitted in the last 48 h, and for whom, as long as that is known."""
    seen = db.execute("SELECT 1 FROM seen WHERE update_id = ? AND seen_ms >= ?", (update_id, now_ms - SEEN_MS))
    if seen.fetchone() is None:
        return False, None
    row = db.execute("SELECT owner_key FROM updates WHERE update_id = ? ORDER BY seq DESC", (update_id,)).fetchone()
    return True, row[0] if row else None


def waiting_message(db: Connection, owner_key: str, chat_id: int, message_id: int) -> StoredUpdate | None:
    """The owner's update that brought this message and still waits."""
    row = db.execute(
        f"SELECT {_UPDATE} FROM updates WHERE outcome IS NULL AND message_id = ? AND chat_id = ? "  # noqa: S608
        "AND owner_key = ? AND kind = 'message'",
        (message_id, chat_id, owner_key),
    ).fetchone()
    return _stored(row) if row else None


def newest_seq(db: Connection) -> int:
    """The number of the update that was stored last; 0 where there is none."""
    return int(db.execute("SELECT coalesce(max(seq), 0) FROM updates").fetchone()[0])


def assign(db: Connection, seq: int, owner_key: str | None) -> bool:
    """Give a waiting update to an owner; False where it does not wait."""
    return _changed(db, "UPDATE updates SET owner_key = ? WHERE seq = ? AND outcome IS NULL", (owner_key, seq))


def pending(db: Connection, owner_key: str | None, limit: int) -> list[StoredUpdate]:
    """The owner's waiting updates (None: those of nobody), the oldest first."""
    rows = db.execute(
        f"SELECT {_UPDATE} FROM updates WHERE outcome IS NULL AND owner_key IS ? ORDER BY seq LIMIT ?",  # noqa: S608
        (owner_key, limit),
    )
    return [_stored(row) for row in rows]


def recent(db: Connection, limit: int) -> list[StoredUpdate]:
    """The newest updates, settled or not, the oldest of them first."""
    rows = db.execute(f"SELECT {_UPDATE} FROM updates ORDER BY seq DESC LIMIT ?", (limit,))  # noqa: S608
    return [_stored(row) for row in rows][::-1]


def stored_updates(db: Connection, where: str, values: Sequence[int | str]) -> list[StoredUpdate]:
    """The updates of which this condition is true, for the other modules of the store."""
    return [_stored(row) for row in db.execute(f"SELECT {_UPDATE} FROM updates WHERE {where}", values)]  # noqa: S608


def recent_answers(db: Connection, limit: int) -> list[tuple[str, bytes]]:
    """The answers to the newest calls, each with the key of its caller, the oldest of them first."""
    rows = db.execute("SELECT key, answer FROM calls WHERE answer NOT NULL ORDER BY since_ms DESC LIMIT ?", (limit,))
    return [(key, answer) for key, answer in rows][::-1]


def newest_owners(db: Connection, limit: int) -> list[tuple[int, int, str]]:
    """Who sent the newest messages, each (chat, message, key), the oldest of them first."""
    rows = db.execute("SELECT chat_id, message_id, key FROM messages ORDER BY sent_ms DESC LIMIT ?", (limit,))
    return [(chat, message, key) for chat, message, key in rows][::-1]


def waiting(db: Connection) -> dict[str | None, int]:
    """How many updates wait for each owner."""
    rows = db.execute("SELECT owner_key, count(*) FROM updates WHERE outcome IS NULL GROUP BY owner_key")
    return {row[0]: int(row[1]) for row in rows}


def settle(db: Connection, seq: int, outcome: Outcome, now_ms: int, reason: str | None = None) -> bool:
    """End an update; False where it had ended before (the first outcome stays)."""
    return _changed(
        db,
        "UPDATE updates SET outcome = ?, settled_ms = ?, reason = ? WHERE seq = ? AND outcome IS NULL",
        (outcome, now_ms, reason, seq),
    )


def expire(db: Connection, owner_key: str, before_ms: int, now_ms: int, reason: str) -> list[int]:
    """Set aside what waits for the owner since before then; returns the numbers of those updates."""
    rows = db.execute(
        "UPDATE updates SET outcome = 'expired', settled_ms = ?, reason = ? "
        "WHERE owner_key = ? AND outcome IS NULL AND admitted_ms < ? RETURNING seq",
        (now_ms, reason, owner_key, before_ms),
    )
    return [row[0] for row in rows]


def listed(db: Connection, aside: bool, limit: int, since_ms: int = 0) -> list[Listed]:
    """What waits or (`aside`) was set aside since then, the oldest first."""
    which, values = (f"{_ASIDE} AND settled_ms >= ?", (since_ms, limit)) if aside else ("outcome IS NULL", (limit,))
    rows = db.execute(f"SELECT {_LISTED} FROM updates WHERE {which} ORDER BY seq LIMIT ?", values)  # noqa: S608
    return [_listed(row) for row in rows]


def retry(db: Connection, seq: int) -> StoredUpdate | None:
    """An update that was set aside waits again, as if it had never been tried; None where it was not set aside."""
    row = db.execute(
        "UPDATE updates SET outcome = NULL, settled_ms = NULL, reason = NULL, attempts = 0 "  # noqa: S608
        f"WHERE seq = ? AND {_ASIDE} AND owner_key NOT NULL RETURNING {_UPDATE}",
        (seq,),
    ).fetchone()
    return _stored(row) if row else None


def drop(db: Connection, seq: int, now_ms: int) -> Listed | None:
    """Let go of an update that waits or was set aside, and return it as it was; None where it does neither."""
    row = db.execute(
        f"SELECT {_LISTED} FROM updates WHERE seq = ? AND (outcome IS NULL OR {_ASIDE})",  # noqa: S608
        (seq,),
    ).fetchone()
    db.execute(
        "UPDATE updates SET outcome = 'dropped', settled_ms = ?, reason = 'dropped by hand' WHERE seq = ?",
        (now_ms, seq if row else None),
    )
    return _listed(row) if row else None


def absences(db: Connection) -> list[Absence]:
    """The followers that were away when the last leader looked."""
    rows = db.execute("SELECT key, since_ms, told FROM absences ORDER BY key")
    return [Absence(key=key, since_ms=since, told=bool(told)) for key, since, told in rows]


def note_absence(db: Connection, absence: Absence) -> None:
    """Remember that a follower is away, and whether people know that something is kept for it."""
    db.execute("INSERT OR REPLACE INTO absences VALUES (?, ?, ?)", (absence.key, absence.since_ms, int(absence.told)))


def note_presence(db: Connection, key: str) -> None:
    """The follower is here (again)."""
    db.execute("DELETE FROM absences WHERE key = ?", (key,))


def note_attempt(db: Connection, seq: int) -> int:
    """Count one more attempt to deliver; returns the new number, 0 where the update does not wait."""
    row = db.execute(
        "UPDATE updates SET attempts = attempts + 1 WHERE seq = ? AND outcome IS NULL RETURNING attempts", (seq,)
    ).fetchone()
    return int(row[0]) if row else 0


def record_messages(db: Connection, key: str, messages: Iterable[tuple[int, int, int | None]], now_ms: int) -> None:
    """Note who sent the messages, each (chat, message, thread)."""
    db.executemany(
        "INSERT OR REPLACE INTO messages (chat_id, message_id, thread_id, key, sent_ms) VALUES (?, ?, ?, ?, ?)",
        [(chat, message, thread, key, now_ms) for chat, message, thread in messages],
    )


def owner_of(db: Connection, chat_id: int, message_id: int) -> str | None:
    """Who sent the message, as far as is known."""
    row = db.execute("SELECT key FROM messages WHERE chat_id = ? AND message_id = ?", (chat_id, message_id)).fetchone()
    return row[0] if row else None


def purge(db: Connection, now_ms: int, keep: Retention) -> int:
    """Delete what has outlived its purpose; returns the number of rows. What waits is never deleted."""
    statements = (
        (f"DELETE FROM updates WHERE settled_ms < ? AND NOT {_ASIDE}", keep.bodies),  # noqa: S608
        (f"DELETE FROM updates WHERE settled_ms < ? AND {_ASIDE}", keep.aside),  # noqa: S608
        ("DELETE FROM seen WHERE seen_ms < ?", keep.ids),
        ("DELETE FROM messages WHERE sent_ms < ?", keep.owners),
        ("DELETE FROM files WHERE since_ms < ?", keep.owners),
        ("DELETE FROM given WHERE since_ms < ?", keep.owners),
    )
    rows = sum(db.execute(statement, (now_ms - age,)).rowcount for statement, age in statements)
    return (
        rows + outbox.purge(db, now_ms - keep.ids) + buttons.purge(db, now_ms - keep.owners) + budget.purge(db, now_ms)
    )


def counts(db: Connection) -> Counts:
    """Count everything; takes milliseconds at 100,000 rows."""
    row = db.execute(
        "SELECT (SELECT count(*) FROM updates WHERE outcome IS NULL), "  # noqa: S608
        "(SELECT count(*) FROM updates WHERE outcome IS NULL AND owner_key IS NULL), "
        "(SELECT count(*) FROM updates WHERE settled_ms IS NOT NULL), (SELECT count(*) FROM bindings), "
        "(SELECT count(*) FROM messages), (SELECT count(*) FROM calls), "
        "(SELECT count(*) FROM calls WHERE state != 'settled'), "
        f"(SELECT count(*) FROM updates WHERE {_ASIDE})"
    ).fetchone()
    names = ("waiting", "unowned", "settled", "bindings", "messages", "calls", "unsettled_calls", "aside")
    return Counts(**dict(zip(names, row, strict=True)))


def _listed(row: tuple[Any, ...]) -> Listed:
    *update, outcome, settled_ms, reason = row
    return Listed(update=_stored(tuple(update)), outcome=outcome, settled_ms=settled_ms, reason=reason)


def _changed(db: Connection, statement: str, values: tuple[Any, ...]) -> bool:
    return db.execute(statement, values).rowcount > 0


def _stored(row: tuple[Any, ...]) -> StoredUpdate:
    seq, update_id, kind, body, owner_key, chat_id, thread_id, admitted_ms, attempts = row
    return StoredUpdate(
        seq=seq,
        update_id=update_id,
        kind=kind,
        body=body,
        owner_key=owner_key,
        chat_id=chat_id,
        thread_id=thread_id,
        admitted_ms=admitted_ms,
        attempts=attempts,
    )
