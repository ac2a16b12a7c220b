"""What a Bot API call is to the budget: the limits it counts for, its urgency, and what it makes needless."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final, Literal, NamedTuple

__all__ = ["HINTS", "Hint", "Kind", "Nature", "Urgency", "content", "nature_of", "replaces", "unchanged"]

Hint = Literal["click", "final", "progress"]
"""What a follower may say of its call: it answers a person's click, it is a result, it only shows progress."""

Kind = Literal["spend", "other", "typing", "free"]
"""`spend`: counts in its chat and overall (M18: sends, edits, topic creation); `other`: overall only; `typing`: has a
limit of its own; `free`: not limited (M12: answers to buttons)."""


class Urgency(IntEnum):
    """The classes of calls, the most urgent first."""

    CLICK = 0
    FINAL = 1
    MESSAGE = 2
    PROGRESS = 3
    TYPING = 4


HINTS: Final[Mapping[str, Urgency]] = {
    "click": Urgency.CLICK,
    "final": Urgency.FINAL,
    "progress": Urgency.PROGRESS,
}

_FLEETING: Final = frozenset({"sendmessagedraft", "sendrichmessagedraft"})
_WRITING: Final = ("send", "copymessage", "forwardmessage")
_SEVERAL: Final = {"sendmediagroup": "media", "copymessages": "message_ids", "forwardmessages": "message_ids"}
_WHOLE_EDITS: Final = frozenset({"editmessagetext", "editmessagecaption", "editmessagemedia"})
_MARKUP: Final = "editmessagereplymarkup"
_CONTENT: Final = ("text", "parse_mode", "entities", "link_preview_options", "reply_markup")
"""What a message of text consists of, for sendMessage and editMessageText alike."""

_UNCHANGED: Final = ("message is not modified", "topic_not_modified")


class Nature(NamedTuple):
    """`stream` names the queue within a follower's calls whose order is kept; `weight` counts an album's messages.

    Of the calls with the same `key` that wait in a stream only the newest is made (None: each is made).
    """

    kind: Kind
    stream: str
    urgency: Urgency
    weight: int = 1
    key: tuple[Any, ...] | None = None


def nature_of(method: str, params: Mapping[str, Any], *, hint: str | None = None, upload: bool = False) -> Nature:
    """What a call is to the budget; `hint` is one of `HINTS`, anything else is passed over."""
    name = method.lower()
    if name.startswith("answer"):
        return Nature("free", "free", Urgency.CLICK)
    if name == "sendchataction":
        shown = (params.get("message_thread_id"), params.get("action"))
        return Nature("typing", "typing", Urgency.TYPING, 1, shown)
    if name in _FLEETING:
        draft = params.get("draft_id")
        key = None if draft is None else (params.get("message_thread_id"), draft)
        return Nature("other", "draft", Urgency.PROGRESS, 1, key)
    urgency = HINTS.get(hint, Urgency.MESSAGE) if hint is not None else Urgency.MESSAGE
    if name.startswith("editmessage"):
        if upload:  # which holds up no other edit
            return Nature("spend", "upload", urgency, 1, _edited(params))
        if urgency in (Urgency.MESSAGE, Urgency.PROGRESS):
            return Nature("spend", "edit", Urgency.PROGRESS, 1, _edited(params))
        return Nature("spend", "click" if urgency is Urgency.CLICK else "edit", urgency, 1, _edited(params))
    if name == "createforumtopic":
        return Nature("spend", "topic", Urgency.FINAL)
    if not name.startswith(_WRITING):
        return Nature("other", "other", urgency)
    stream = "upload" if upload else "click" if urgency is Urgency.CLICK else "message"
    several = params.get(_SEVERAL[name]) if name in _SEVERAL else None
    return Nature("spend", stream, urgency, max(1, len(several)) if isinstance(several, list | tuple) else 1)


def replaces(newer: str, older: str) -> bool:
    """Whether an edit by the method `newer` makes one of the same message by `older` needless."""
    new, old = newer.lower(), older.lower()
    return new == old or (new in _WHOLE_EDITS and old == _MARKUP)


def content(method: str, params: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """What a message shows after this call, to be compared; None where that is not looked at."""
    name = method.lower()
    if name in ("sendmessage", "editmessagetext"):
        return ("text", *(params.get(one) for one in _CONTENT))
    return None


def unchanged(method: str, description: str) -> bool:
    """Whether a refusal says that everything is already as the call wanted it: that is a success (scenario 64)."""
    text = description.lower()
    return any(sign in text for sign in _UNCHANGED) and method.lower().startswith(("edit", "close", "reopen", "hide"))


def _edited(params: Mapping[str, Any]) -> tuple[Any, ...] | None:
    message = params.get("message_id", params.get("inline_message_id"))
    return None if message is None else (str(message),)
