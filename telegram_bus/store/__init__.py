"""What must survive: one SQLite database a bot, one inbox a follower."""

from __future__ import annotations

from telegram_bus.store.inbox import Inbox, Received, open_inbox
from telegram_bus.store.leading import Store, open_store
from telegram_bus.store.values import (
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
    "Binding",
    "Claim",
    "Collision",
    "Counts",
    "Inbox",
    "New",
    "NewUpdate",
    "Outcome",
    "Received",
    "Repeat",
    "Store",
    "StoredUpdate",
    "Unknown",
    "open_inbox",
    "open_store",
]
