"""What goes into the leader's journal and what comes out of it."""

from __future__ import annotations

from typing import Final, Literal

from attrs import field, frozen

__all__ = [
    "Binding",
    "Claim",
    "Collision",
    "Counts",
    "New",
    "NewUpdate",
    "Outcome",
    "Repeat",
    "StoredUpdate",
    "Unknown",
]

Outcome = Literal["accepted", "rejected", "answered", "dropped"]
"""How an update ended: its owner has it, its owner refused it for good, the leader answered it, nobody wanted it."""


@frozen(kw_only=True)
class NewUpdate:
    """An update as Telegram sent it: `body` is its raw JSON, `kind` the envelope to forward it in, or "other"."""

    update_id: int
    kind: str
    body: bytes = field(repr=False)
    owner_key: str | None = None
    chat_id: int | None = None
    thread_id: int | None = None


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
class Binding:
    """A follower's key and its thread; `thread_id` is None as long as the thread was only intended.

    An intention that is found at a start means that a topic may have been created and its id was lost.
    """

    key: str
    chat_id: int
    thread_id: int | None
    name: str
    since_ms: int


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


BODY_MS: Final = 24 * 3600 * 1000
"""Settled updates are kept this long, with their bodies."""

SEEN_MS: Final = 48 * 3600 * 1000
"""Ids of updates and of calls: Telegram keeps an update for 24 h at most, so twice that is on the safe side."""

OWNER_MS: Final = 90 * 24 * 3600 * 1000
"""Which follower sent a message, which its buttons and reactions need."""
