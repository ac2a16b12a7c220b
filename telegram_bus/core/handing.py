"""Work that one follower gives to another: which updates it becomes, and what marks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from telegram_bus.core.errors import RequestRefused
from telegram_bus.core.extensions import HandedPart
from telegram_bus.core.updates import SOURCE_MARKER

__all__ = ["HANDED", "PARTS", "UPDATE_KINDS", "handed_updates", "marks", "unmarked"]

HANDED: Final = "telegram_bus_handed_over"
"""The field of a Telegram object that says who gave it away: {"by": name, "note": text or null}."""

UPDATE_KINDS: Final = {
    "message": "message",
    "edited_message": "edited_message",
    "callback": "callback_query",
    "reaction": "message_reaction",
}
"""What a follower calls a kind of update, and the name under which an update carries it."""

HANDED_UPDATES: Final = 2**51
"""Update ids from here on are made of tokens; Telegram's are below 2**31, those of agents' messages begin at 2**52."""

TOKENS: Final = 2**42
PARTS: Final = 128


def unmarked(body: dict[str, Any]) -> dict[str, Any]:
    """A Telegram object as Telegram sent it."""
    return {name: value for name, value in body.items() if name not in (SOURCE_MARKER, HANDED)}


def marks(body: dict[str, Any]) -> tuple[str | None, str | None]:
    """Who gave the object away, and the note to it."""
    found = body.get(HANDED)
    if not isinstance(found, dict):
        return None, None
    by, note = found.get("by"), found.get("note")
    return (by if isinstance(by, str) else None), (note if isinstance(note, str) else None)


def handed_updates(token: int, parts: Sequence[HandedPart], by: str, note: str | None) -> list[dict[str, Any]]:
    """The updates that the parts become. The same token makes the same ids, so that they are admitted once.

    Raises RequestRefused for a token or for parts that cannot be.
    """
    if not 0 <= token < TOKENS:
        raise RequestRefused("token must be an integer from 0 to 2**42 - 1")
    if not 1 <= len(parts) <= PARTS:
        raise RequestRefused(f"parts must be 1 to {PARTS} Telegram objects")
    updates = []
    for number, part in enumerate(parts):
        if part.kind not in UPDATE_KINDS.values() or not isinstance(part.body, dict):
            raise RequestRefused(f"parts[{number}] must have a kind ({', '.join(UPDATE_KINDS.values())}) and an object")
        body = {**unmarked(part.body), HANDED: {"by": by, "note": note}}
        updates.append({"update_id": HANDED_UPDATES + token * PARTS + number, part.kind: body})
    return updates
