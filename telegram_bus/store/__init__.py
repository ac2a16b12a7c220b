"""What must survive: one SQLite database a bot, one inbox a follower."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from telegram_bus.store.inbox import Inbox, Received, open_inbox
    from telegram_bus.store.leading import Store, open_store
    from telegram_bus.store.values import (
        Absence,
        Amendment,
        Claim,
        Collision,
        Counts,
        Listed,
        New,
        NewUpdate,
        Outcome,
        Repeat,
        Retention,
        StoredUpdate,
        Unknown,
    )

__all__ = [
    "Absence",
    "Amendment",
    "Claim",
    "Collision",
    "Counts",
    "Inbox",
    "Listed",
    "New",
    "NewUpdate",
    "Outcome",
    "Received",
    "Repeat",
    "Retention",
    "Store",
    "StoredUpdate",
    "Unknown",
    "open_inbox",
    "open_store",
]

_HOMES: Final = {
    "Inbox": "inbox",
    "Received": "inbox",
    "open_inbox": "inbox",
    "Store": "leading",
    "open_store": "leading",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for, and only then: a follower has an inbox, and no use for the leader's journal."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'values')}"), name)
    globals()[name] = value
    return value
