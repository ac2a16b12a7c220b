"""The statements of the leader's journal: synchronous functions of a connection, inside somebody's transaction."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from sqlite3 import Connection
from typing import Any, Final

from telegram_bus.core.errors import LeadershipLost, StateError
from telegram_bus.store.values import (
    BODY_MS,
    OWNER_MS,
    SEEN_MS,
    Binding,
    Claim,
    Collision,
    Counts,
    New,
    NewUpdate,
    Outcome,
    Repeat,
    StoredUpdate,
    Unknown,
)

__all__ = [
    "admit_batch",
    "assign",
    "bind_thread",
    "bindings",
    "check_term",
    "claim_call",
    "counts",
    "intend_thread",
    "newest_owners",
    "note_attempt",
    "offset",
    "owner_of",
    "pending",
    "pending_owners",
    "purge",
    "recent",
    "record_messages",
    "rename_binding",
    "settle",
    "settle_call",
    "start_term",
    "unbind",
    "waiting",
    "withdraw_call",
]

_UPDATE: Final = "seq, update_id, kind, body, owner_key, chat_id, thread_id, admitted_ms, attempts"

_ADMIT: Final = (
    "INSERT INTO updates (update_id, kind, body, owner_key, chat_id, thread_id, admitted_ms) "
    "VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING " + _UPDATE
)


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
    db: Connection, updates: Sequence[NewUpdate], next_offset: int | None, now_ms: int
) -> list[StoredUpdate]:
    """Keep the updates that were never seen, and the offset that confirms them all (None: it stays)."""
    kept = []
    for update in updates:
        mark = db.execute("INSERT INTO seen VALUES (?, ?) ON CONFLICT DO NOTHING", (update.update_id, now_ms))
        if mark.rowcount == 0:
            continue
        values = (
            update.update_id,
            update.kind,
            update.body,
            update.owner_key,
            update.chat_id,
            update.thread_id,
            now_ms,
        )
        row = db.execute(_ADMIT, values).fetchone()
        kept.append(_stored(row))
    if next_offset is not None:
        db.execute("UPDATE term SET poll_offset = ?", (next_offset,))
    return kept


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


def pending_owners(db: Connection) -> list[str | None]:
    """Whose updates wait, the longest wait first."""
    rows = db.execute("SELECT owner_key FROM updates WHERE outcome IS NULL GROUP BY owner_key ORDER BY min(seq)")
    return [row[0] for row in rows]


def recent(db: Connection, limit: int) -> list[StoredUpdate]:
    """The newest updates, settled or not, the oldest of them first."""
    rows = db.execute(f"SELECT {_UPDATE} FROM updates ORDER BY seq DESC LIMIT ?", (limit,))  # noqa: S608
    return [_stored(row) for row in rows][::-1]


def newest_owners(db: Connection, limit: int) -> list[tuple[int, int, str]]:
    """Who sent the newest messages, each (chat, message, key), the oldest of them first."""
    rows = db.execute("SELECT chat_id, message_id, key FROM messages ORDER BY sent_ms DESC LIMIT ?", (limit,))
    return [(chat, message, key) for chat, message, key in rows][::-1]


def waiting(db: Connection) -> dict[str | None, int]:
    """How many updates wait for each owner."""
    rows = db.execute("SELECT owner_key, count(*) FROM updates WHERE outcome IS NULL GROUP BY owner_key")
    return {row[0]: int(row[1]) for row in rows}


def settle(db: Connection, seq: int, outcome: Outcome, now_ms: int) -> bool:
    """End an update; False where it had ended before (the first outcome stays)."""
    return _changed(
        db,
        "UPDATE updates SET outcome = ?, settled_ms = ? WHERE seq = ? AND outcome IS NULL",
        (outcome, now_ms, seq),
    )


def note_attempt(db: Connection, seq: int) -> int:
    """Count one more attempt to deliver; returns the new number, 0 where the update does not wait."""
    row = db.execute(
        "UPDATE updates SET attempts = attempts + 1 WHERE seq = ? AND outcome IS NULL RETURNING attempts", (seq,)
    ).fetchone()
    return int(row[0]) if row else 0


def bindings(db: Connection) -> list[Binding]:
    """Every binding, by key."""
    rows = db.execute("SELECT key, chat_id, thread_id, name, since_ms FROM bindings ORDER BY key")
    return [
        Binding(key=key, chat_id=chat, thread_id=thread, name=name, since_ms=ms) for key, chat, thread, name, ms in rows
    ]


def intend_thread(db: Connection, key: str, chat_id: int, name: str, now_ms: int) -> None:
    """Note that a topic is about to be created for the key; an earlier binding of the key ends."""
    db.execute("INSERT OR REPLACE INTO bindings VALUES (?, ?, NULL, ?, ?)", (key, chat_id, name, now_ms))


def bind_thread(db: Connection, key: str, target: tuple[int, int], name: str, now_ms: int) -> None:
    """Give the thread (chat, thread) to the key; a thread has one owner, so another's binding to it ends."""
    db.execute("INSERT OR REPLACE INTO bindings VALUES (?, ?, ?, ?, ?)", (key, *target, name, now_ms))


def unbind(db: Connection, key: str) -> bool:
    """Forget the key's thread; False where it had none."""
    return _changed(db, "DELETE FROM bindings WHERE key = ?", (key,))


def rename_binding(db: Connection, key: str, name: str) -> bool:
    """The key's thread has another name now; False where the key has none."""
    return _changed(db, "UPDATE bindings SET name = ? WHERE key = ?", (name, key))


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


def claim_call(db: Connection, call: tuple[str, str], digest: str, epoch: int, now_ms: int) -> Claim:
    """Claim the call (key, request id) before it is sent, or say what is known of it."""
    row = db.execute("SELECT digest, answer FROM calls WHERE key = ? AND request_id = ?", call).fetchone()
    if row is None:
        db.execute("INSERT INTO calls VALUES (?, ?, ?, ?, ?, NULL, NULL)", (*call, digest, epoch, now_ms))
        return New()
    if row[0] != digest:
        return Collision()
    return Unknown() if row[1] is None else Repeat(row[1])


def settle_call(db: Connection, call: tuple[str, str], answer: bytes, now_ms: int) -> None:
    """Store the answer that a repetition of the call gets. Raises StateError where it was never claimed."""
    if not _changed(
        db, "UPDATE calls SET answer = ?, settled_ms = ? WHERE key = ? AND request_id = ?", (answer, now_ms, *call)
    ):
        raise StateError(f"the call {call[1]} of {call[0]} was never claimed, or its claim has expired")


def withdraw_call(db: Connection, call: tuple[str, str]) -> bool:
    """Take back a claim whose call was surely not sent; a settled one stays (False)."""
    return _changed(db, "DELETE FROM calls WHERE key = ? AND request_id = ? AND answer IS NULL", call)


def purge(db: Connection, now_ms: int) -> int:
    """Delete what has outlived its purpose; returns the number of rows. What waits is never deleted."""
    statements = (
        ("DELETE FROM updates WHERE settled_ms < ?", BODY_MS),
        ("DELETE FROM seen WHERE seen_ms < ?", SEEN_MS),
        ("DELETE FROM calls WHERE claimed_ms < ?", SEEN_MS),
        ("DELETE FROM messages WHERE sent_ms < ?", OWNER_MS),
    )
    return sum(db.execute(statement, (now_ms - age,)).rowcount for statement, age in statements)


def counts(db: Connection) -> Counts:
    """Count everything; takes milliseconds at 100,000 rows."""
    row = db.execute(
        "SELECT (SELECT count(*) FROM updates WHERE outcome IS NULL), "
        "(SELECT count(*) FROM updates WHERE outcome IS NULL AND owner_key IS NULL), "
        "(SELECT count(*) FROM updates WHERE settled_ms IS NOT NULL), (SELECT count(*) FROM bindings), "
        "(SELECT count(*) FROM messages), (SELECT count(*) FROM calls), "
        "(SELECT count(*) FROM calls WHERE answer IS NULL)"
    ).fetchone()
    names = ("waiting", "unowned", "settled", "bindings", "messages", "calls", "unsettled_calls")
    return Counts(**dict(zip(names, row, strict=True)))


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
