"""What a method does, by its name: which ones write messages, and which words stand for several methods."""

from __future__ import annotations

from fnmatch import fnmatchcase

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.refusal import Refusal

__all__ = ["is_edit", "is_send", "matches", "spends", "weight"]

# They begin with "send", but leave no message.
_FLEETING = frozenset({"sendchataction", "sendmessagedraft", "sendrichmessagedraft"})
_WRITING = ("send", "copymessage", "forwardmessage")


def is_send(method: str) -> bool:
    """Whether a method (in lower case) writes new messages."""
    return method.startswith(_WRITING) and method not in _FLEETING


def is_edit(method: str) -> bool:
    """Whether a method (in lower case) changes a message that is there."""
    return method.startswith("editmessage")


def spends(method: str) -> bool:
    """Whether a method (in lower case) counts for the flood limits: sends, edits and topic creation (M18)."""
    return is_send(method) or is_edit(method) or method == "createforumtopic"


def weight(method: str, args: Args) -> int:
    """How many messages a call makes: those of an album, and of what is copied or forwarded together, count each."""
    name = {"sendmediagroup": "media", "copymessages": "message_ids", "forwardmessages": "message_ids"}.get(method)
    try:
        several = args.parsed(name, "") if name else None
    except Refusal:
        return 1
    return max(1, len(several)) if isinstance(several, list) else 1


def matches(wanted: str, method: str) -> bool:
    """Whether `wanted` means this method: a name, names with commas, `*` in them, or one of the words

    "calls" (all but getUpdates), "sends" (what writes messages), "edits" (what changes them).
    """
    method = method.lower()
    return any(_means(word.strip().lower(), method) for word in wanted.split(","))


def _means(word: str, method: str) -> bool:
    match word:
        case "calls":
            return method != "getupdates"
        case "sends":
            return is_send(method)
        case "edits":
            return is_edit(method)
        case _:
            return fnmatchcase(method, word)
