"""The statements of the outbox: calls that must not be made twice, from their acceptance until their outcome.

A call is `accepted` (kept, and surely not sent), `claimed` (it may be at Telegram at this moment), `unknown` (a leader
died, or the network broke, while it was claimed) or `settled` (there is an answer: a result or a refusal).
"""

from __future__ import annotations

from sqlite3 import Connection
from typing import Any, Final, NamedTuple

from telegram_bus.core.errors import StateError
from telegram_bus.store.values import Claim, Collision, New, Repeat, Unknown

__all__ = [
    "LEADER",
    "Begun",
    "Open",
    "accept_call",
    "accepted_calls",
    "again",
    "begin_term",
    "claim_call",
    "doubt_call",
    "known_call",
    "park",
    "purge",
    "release_call",
    "settle_call",
    "tell_doubt",
    "unpark",
    "untold_calls",
    "withdraw_call",
]

LEADER: Final = ""
"""Whose the leader's own calls are: no follower has this key."""

_OPEN: Final = "seq, key, request_id, digest, method, body, state, tries, since_ms"


class Open(NamedTuple):
    """A call without an answer; `body` holds its parameters (JSON), None where they include an upload.

    `tries` is how often a person has had it sent again.
    """

    seq: int
    key: str
    request_id: str
    digest: str
    method: str
    body: bytes | None
    state: str
    tries: int
    since_ms: int


def known_call(db: Connection, call: tuple[str, str], digest: str) -> Claim:
    """What is known of the call (key, request id); `New`: nothing, or that it is accepted and was surely not sent."""
    row = db.execute("SELECT digest, state, answer FROM calls WHERE key = ? AND request_id = ?", call).fetchone()
    if row is None:
        return New()
    known, state, answer = row
    if known != digest:
        return Collision()
    if state == "settled":
        return Repeat(answer)
    return New() if state == "accepted" else Unknown()


def accept_call(
    db: Connection, call: tuple[str, str], digest: str, what: tuple[str, bytes | None], epoch: int, now_ms: int
) -> Claim:
    """Keep the call (key, request id), `what` being its method and parameters, until it is settled.

    `New` permits to send it: from here on it will be, by this leader or the next one. One that was accepted before
    takes the newer parameters.
    """
    known = known_call(db, call, digest)
    if isinstance(known, New):
        _put(db, call, digest, what, "accepted", epoch, now_ms)
    return known


def claim_call(
    db: Connection, call: tuple[str, str], digest: str, what: tuple[str, bytes | None], epoch: int, now_ms: int
) -> Claim:
    """Claim the call (key, request id) just before it is sent, whether it was accepted before or not."""
    known = known_call(db, call, digest)
    if isinstance(known, New):
        _put(db, call, digest, what, "claimed", epoch, now_ms)
    return known


def _put(
    db: Connection, call: tuple[str, str], digest: str, what: tuple[str, bytes | None], state: str, *when: int
) -> None:
    db.execute(
        "INSERT INTO calls (key, request_id, digest, method, body, state, epoch, since_ms) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key, request_id) DO UPDATE SET "
        "method = excluded.method, body = excluded.body, state = excluded.state, epoch = excluded.epoch",
        (*call, digest, *what, state, *when),
    )


def settle_call(db: Connection, call: tuple[str, str], answer: bytes, now_ms: int) -> None:
    """Store the answer that a repetition of the call gets. Raises StateError where it was never accepted or claimed."""
    if not _changed(
        db,
        "UPDATE calls SET state = 'settled', answer = ?, settled_ms = ?, body = NULL WHERE key = ? AND request_id = ?",
        (answer, now_ms, *call),
    ):
        raise StateError(f"the call {call[1]} of {call[0]} was never claimed, or its claim has expired")


def release_call(db: Connection, call: tuple[str, str], body: bytes | None = None) -> bool:
    """A claimed call was surely not sent and is to be sent later, with the parameters `body` where those are given."""
    return _changed(
        db,
        "UPDATE calls SET state = 'accepted', body = coalesce(?, body) "
        "WHERE key = ? AND request_id = ? AND state IN ('claimed', 'accepted')",
        (body, *call),
    )


def withdraw_call(db: Connection, call: tuple[str, str]) -> bool:
    """Forget a call that was surely not sent and will not be; one that is unknown or settled stays (False)."""
    return _changed(db, "DELETE FROM calls WHERE key = ? AND request_id = ? AND state IN ('accepted', 'claimed')", call)


def doubt_call(db: Connection, call: tuple[str, str]) -> Open | None:
    """Nobody knows whether the claimed call was carried out; returns it, None where it was not claimed."""
    row = db.execute(
        "UPDATE calls SET state = 'unknown', told = (key = '') "  # noqa: S608
        f"WHERE key = ? AND request_id = ? AND state = 'claimed' RETURNING {_OPEN}",
        call,
    ).fetchone()
    return Open(*row) if row else None


class Begun(NamedTuple):
    """What a new leader finds: whose accepted calls wait to be sent, the newest unknown ones, the parked chats."""

    keys: list[str]
    unknown: list[Open]
    parked: dict[int, str]


def begin_term(db: Connection, epoch: int, limit: int) -> Begun:
    """What an earlier leader had claimed is unknown from now on; of the unknown calls the `limit` newest are returned.

    All in one, because followers wait meanwhile.
    """
    db.execute("UPDATE calls SET state = 'unknown', told = (key = '') WHERE state = 'claimed' AND epoch < ?", (epoch,))
    return Begun(
        keys=[key for (key,) in db.execute("SELECT DISTINCT key FROM calls WHERE state = 'accepted'")],
        unknown=_newest_unknown(db, limit),
        parked={chat_id: why for chat_id, why, _ in db.execute("SELECT chat_id, why, since_ms FROM parked")},
    )


def accepted_calls(db: Connection, key: str, after_seq: int, limit: int) -> list[Open]:
    """The key's accepted calls in the order of their acceptance, from the one behind `after_seq` on."""
    rows = db.execute(
        f"SELECT {_OPEN} FROM calls WHERE state = 'accepted' AND key = ? AND seq > ? "  # noqa: S608
        "ORDER BY seq LIMIT ?",
        (key, after_seq, limit),
    )
    return [Open(*row) for row in rows]


def untold_calls(db: Connection, limit: int) -> list[Open]:
    """Unknown calls that no person has been told of yet, the oldest first."""
    rows = db.execute(
        f"SELECT {_OPEN} FROM calls WHERE state = 'unknown' AND NOT told ORDER BY seq LIMIT ?",  # noqa: S608
        (limit,),
    )
    return [Open(*row) for row in rows]


def tell_doubt(
    db: Connection, seq: int, notice: tuple[str, str, str, bytes] | None, epoch: int, now_ms: int
) -> Open | None:
    """Accept the notice (request id, digest, method, parameters) about an unknown call, as the leader's own call.

    Returns the notice to be sent; None where the call is not unknown, or was told of before, or no notice is given.
    """
    if not _changed(db, "UPDATE calls SET told = 1 WHERE seq = ? AND state = 'unknown' AND NOT told", (seq,)):
        return None
    if notice is None:
        return None
    request_id, digest, method, body = notice
    accept_call(db, (LEADER, request_id), digest, (method, body), epoch, now_ms)
    row = db.execute(
        f"SELECT {_OPEN} FROM calls WHERE key = ? AND request_id = ? AND state = 'accepted'",  # noqa: S608
        (LEADER, request_id),
    ).fetchone()
    return Open(*row) if row else None


def again(db: Connection, seq: int, tries: int, now_ms: int) -> Open | None:
    """A person wants the unknown call sent again; accepts it, once for each number of `tries` before.

    None where it is not unknown (any more), has been sent again meanwhile, or is forgotten.
    """
    row = db.execute(
        "UPDATE calls SET state = 'accepted', tries = tries + 1, since_ms = ? "  # noqa: S608
        f"WHERE seq = ? AND state = 'unknown' AND tries = ? AND body NOT NULL RETURNING {_OPEN}",
        (now_ms, seq, tries),
    ).fetchone()
    return Open(*row) if row else None


def _newest_unknown(db: Connection, limit: int) -> list[Open]:
    rows = db.execute(
        f"SELECT {_OPEN} FROM calls WHERE state = 'unknown' ORDER BY seq DESC LIMIT ?",  # noqa: S608
        (limit,),
    )
    return [Open(*row) for row in rows]


def purge(db: Connection, before_ms: int) -> int:
    """Forget the calls of before then; those that are still to be sent stay. Returns how many went."""
    return db.execute("DELETE FROM calls WHERE since_ms < ? AND state != 'accepted'", (before_ms,)).rowcount


def park(db: Connection, chat_id: int, why: str, now_ms: int) -> None:
    """Nothing can be sent to the chat for now."""
    db.execute(
        "INSERT INTO parked VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET why = excluded.why", (chat_id, why, now_ms)
    )


def unpark(db: Connection, chat_id: int) -> bool:
    """The chat can be written to again; False where it was not parked."""
    return _changed(db, "DELETE FROM parked WHERE chat_id = ?", (chat_id,))


def _changed(db: Connection, statement: str, values: tuple[Any, ...]) -> bool:
    return db.execute(statement, values).rowcount > 0
