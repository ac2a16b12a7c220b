"""What goes into the leader's journal and what comes out of it."""

from __future__ import annotations

from typing import Final, Literal

from attrs import field, frozen

__all__ = [
    "Absence",
    "Amendment",
    "Claim",
    "Collision",
    "Counts",
    "Listed",
    "New",
    "NewUpdate",
    "Outcome",
    "Repeat",
    "Retention",
    "StoredUpdate",
    "Unknown",
]

Outcome = Literal["accepted", "rejected", "expired", "answered", "dropped"]
"""How an update ended: its owner has it, its owner refused it for good, its owner was away for too long, the leader
answered it, nobody wanted it. Those that are `rejected` or `expired` are set aside: a person may look at them."""


@frozen(kw_only=True)
class NewUpdate:
    """An update as Telegram sent it: `body` is its raw JSON, `kind` the envelope to forward it in, or "other".

    One with an `outcome` is only kept for those who want to look at it.
    """

    update_id: int
    kind: str
    body: bytes = field(repr=False)
    owner_key: str | None = None
    chat_id: int | None = None
    thread_id: int | None = None
    message_id: int | None = None
    outcome: Outcome | None = None


@frozen(kw_only=True)
class Amendment:
    """An edit that changes an update which still waits: `seq` is that update, `body` what it is from now on.

    `seq` is None where that update comes in the same batch, changed already. With `otherwise` it is changed only while
    nobody owns it: whoever has it by then gets the edit as an update of its own, which is that.
    """

    update_id: int
    seq: int | None
    body: bytes = field(repr=False)
    otherwise: NewUpdate | None = None


@frozen(kw_only=True)
class StoredUpdate:
    """An update in the journal; `seq` grows with the order of arrival and is never used again."""

    seq: int
    update_id: int
    kind: str
    body: bytes = field(repr=False)
    owner_key: str | None
    chat_id: int | None
    thread_id: int | None
    admitted_ms: int
    attempts: int = 0


@frozen(kw_only=True)
class Listed:
    """An update for those who look after the bus; `outcome` None: it waits. `reason` says why it was set aside."""

    update: StoredUpdate
    outcome: Outcome | None
    settled_ms: int | None
    reason: str | None


@frozen(kw_only=True)
class Absence:
    """A follower that is away since then; `told`: people were told that something is kept for it."""

    key: str
    since_ms: int
    told: bool = False


@frozen
class New:
    """The call was never asked for; it is claimed now and may be sent."""


@frozen
class Repeat:
    """The call was made; `answer` is what was stored when it was settled."""

    answer: bytes = field(repr=False)


@frozen
class Unknown:
    """The call was claimed, by this leader or an earlier one, and nobody knows what became of it."""


@frozen
class Collision:
    """Another call has this id."""


Claim = New | Repeat | Unknown | Collision


@frozen(kw_only=True)
class Counts:
    """How many of each thing the journal holds."""

    waiting: int
    unowned: int
    settled: int
    bindings: int
    messages: int
    calls: int
    unsettled_calls: int
    aside: int


DAY_MS: Final = 24 * 3600 * 1000

BODY_MS: Final = DAY_MS
"""Settled updates are kept this long, with their bodies."""

ASIDE_MS: Final = 7 * DAY_MS
"""Updates that were set aside wait this long for a person."""

SEEN_MS: Final = 2 * DAY_MS
"""Ids of updates and of calls: Telegram keeps an update for 24 h at most, so twice that is on the safe side."""

OWNER_MS: Final = 90 * DAY_MS
"""Which follower sent a message, which its buttons and reactions need."""


@frozen(kw_only=True)
class Retention:
    """For how long (ms) settled updates, those set aside, ids, and the owners of messages are kept."""

    bodies: int = BODY_MS
    aside: int = ASIDE_MS
    ids: int = SEEN_MS
    owners: int = OWNER_MS
