"""The scopes of a follower's calls: each looks at a call's body and says why not, or None."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

from attrs import frozen

from telegram_bus.core.errors import InvalidEnvelope
from telegram_bus.core.jsontext import loads
from telegram_bus.core.values import Number, Target

__all__ = [
    "AGGREGATE",
    "CROSS_TARGET",
    "FILE_FIELDS",
    "Caller",
    "Owned",
    "Scope",
    "aggregate",
    "always",
    "commands",
    "cross_target",
    "local_file",
    "neighbour",
    "own_callback",
    "own_copy",
    "own_message",
    "own_reaction",
    "own_thread",
    "same_chat",
    "sent_message",
    "thread",
    "wire_id",
]

CROSS_TARGET: Final = "__piTelegramCrossTargetDelivery"
"""Marks a message that is meant for another agent's thread."""

AGGREGATE: Final = "__piTelegramAggregateDelivery"
"""Marks a message that is meant for the main chat."""

_DECIMAL: Final = re.compile(r"-?[0-9]{1,19}")


class Owned(Protocol):
    """What belongs to the follower that calls."""

    def message(self, chat_id: Number, message_id: Number, /) -> bool:
        """Whether it sent this message."""

    def seen(self, chat_id: Number, message_id: Number, /) -> bool:
        """Whether this message stands in its thread: it sent it, or it was delivered to it."""

    def callback(self, query_id: str, /) -> bool:
        """Whether this callback (or guest) query was delivered to it."""

    def file(self, file_id: str, /) -> bool:
        """Whether this file came in an update of its own, or in the answer to one of its calls."""


@frozen(kw_only=True)
class Caller:
    """Who calls: its destination, what belongs to it, which targets are other agents', and where its uploads lie.

    `upload_root` is the absolute directory that our own followers may upload from; None: they may not upload.
    """

    target: Target | None
    owned: Owned
    is_agent: Callable[[Target], bool]
    upload_root: str | None = None


Body = Mapping[str, Any]
Scope = Callable[[Body, Caller], str | None]


def wire_id(value: Any) -> Number | None:
    """An id that is a number or a decimal string; None for anything else."""
    if type(value) is str and _DECIMAL.fullmatch(value):
        return int(value)
    return value if type(value) in (int, float) else None


def always(_body: Body, _caller: Caller) -> str | None:
    """No condition."""
    return None


def same_chat(body: Body, caller: Caller) -> str | None:
    """The caller's chat, any thread."""
    if caller.target is None:
        return "the follower has no chat yet"
    if wire_id(body.get("chat_id")) != caller.target.chat_id:
        return f"chat_id must be {caller.target.chat_id}"
    return None


def thread(body: Body, caller: Caller) -> str | None:
    """The caller's chat and thread; without a thread of its own any thread (the compatible reading)."""
    if reason := same_chat(body, caller):
        return reason
    own = _thread_of(caller)
    if own is not None and wire_id(body.get("message_thread_id")) != own:
        return f"message_thread_id must be {own}"
    return None


def cross_target(body: Body, caller: Caller) -> str | None:
    """The caller's chat, another thread than its own."""
    if reason := same_chat(body, caller):
        return reason
    own = _thread_of(caller)
    if body.get("message_thread_id") is None:
        return None if own is not None else "message_thread_id must name a thread"
    named = wire_id(body["message_thread_id"])
    if named is None or named == own:
        return "message_thread_id must be that of another thread"
    return None


def aggregate(body: Body, caller: Caller) -> str | None:
    """The caller's chat, outside of all threads."""
    if reason := same_chat(body, caller):
        return reason
    return "message_thread_id must be absent" if body.get("message_thread_id") is not None else None


def sent_message(body: Body, caller: Caller) -> str | None:
    """A message in the caller's chat that it sent."""
    if reason := same_chat(body, caller):
        return reason
    message_id = wire_id(body.get("message_id"))
    if message_id is None or not caller.owned.message(_chat_of(caller), message_id):
        return "message_id must be that of a message which this follower sent"
    return None


def commands(body: Body, _caller: Caller) -> str | None:
    """A well-formed list of commands."""
    listed = body.get("commands")
    if type(listed) is list and all(
        type(one) is dict and type(one.get("command")) is str and type(one.get("description")) is str for one in listed
    ):
        return None
    return "commands must be a list of objects with command and description"


def own_thread(body: Body, caller: Caller) -> str | None:
    """Ours: exactly the caller's destination (no thread where it has none), in nested fields too."""
    if reason := same_chat(body, caller):
        return reason
    own = _thread_of(caller)
    if own is None and body.get("message_thread_id") is not None:
        return "message_thread_id must be absent: this follower has no thread"
    if own is not None and wire_id(body.get("message_thread_id")) != own:
        return f"message_thread_id must be {own}"
    return _nested(body, caller)


def own_message(body: Body, caller: Caller) -> str | None:
    """Ours: a message that the caller sent; nested fields checked."""
    return sent_message(body, caller) or _nested(body, caller)


def own_reaction(body: Body, caller: Caller) -> str | None:
    """Ours: a message in the caller's thread, whoever wrote it."""
    if reason := same_chat(body, caller):
        return reason
    return _seen("message_id", body.get("message_id"), caller) or _nested(body, caller)


def own_copy(body: Body, caller: Caller) -> str | None:
    """Ours: from the caller's thread into the caller's thread."""
    if reason := own_thread(body, caller):
        return reason
    if wire_id(body.get("from_chat_id")) != _chat_of(caller):
        return f"from_chat_id must be {_chat_of(caller)}"
    return _seen("message_id", body.get("message_id"), caller)


def own_callback(body: Body, caller: Caller) -> str | None:
    """Ours: a query that was delivered to the caller."""
    for name in ("callback_query_id", "guest_query_id"):
        if type(body.get(name)) is str and caller.owned.callback(body[name]):
            return _nested(body, caller)
    return "callback_query_id must be that of a callback which was delivered to this follower"


def neighbour(body: Body, caller: Caller) -> str | None:
    """Ours: the thread of another live agent of the same chat."""
    if reason := cross_target(body, caller):
        return reason
    named = wire_id(body.get("message_thread_id"))
    if named is None or not caller.is_agent(Target(chat_id=_chat_of(caller), thread_id=named)):
        return "message_thread_id must be that of another agent"
    return next((reason for name, value in _walk(body, "") if (reason := _misplaced(name, value, caller))), None)


_CHAT_FIELDS: Final = frozenset({"chat_id", "from_chat_id", "sender_chat_id"})

_FORBIDDEN: Final = frozenset(
    {
        "allow_paid_broadcast",  # spends the owner's Stars
        "business_connection_id",  # acts for another account
        "direct_messages_topic_id",  # another kind of thread
        "inline_message_id",  # a message whose owner nobody knows
        "receiver_user_id",
        "suggested_post_parameters",
    }
)
"""Fields that reach beyond the caller's thread."""

FILE_FIELDS: Final = frozenset(
    "animation audio cover document live_photo media photo sticker thumb thumbnail video video_note voice".split()
)
"""Fields that may name a file: a local Bot API server would read a path from its own disk."""

_STRUCTURED: Final = frozenset(
    {"caption_entities", "entities", "link_preview_options", "reaction", "reply_markup", "reply_parameters"}
)
"""Fields that the Bot API also takes as JSON text, which would hide what is in them."""


def _nested(body: Body, caller: Caller) -> str | None:
    for path, value in _walk(body, ""):
        reason = _misplaced(path, value, caller) or _elsewhere(path, value, caller)
        if reason is not None:
            return reason
    return None


def _elsewhere(path: str, value: Any, caller: Caller) -> str | None:
    """Threads and messages that are not the caller's."""
    name = path.rpartition(".")[2]
    if name == "message_thread_id" and value is not None and wire_id(value) != _thread_of(caller):
        return f"{path} must be {_thread_of(caller)}"
    if path in ("reply_to_message_id", "reply_parameters.message_id"):
        return _seen(path, value, caller)
    return None


def local_file(body: Body) -> str | None:
    """The path of a field that names a file on the disk of a Bot API server, also in JSON as text; None: none does."""
    for path, value in _walk(body, ""):
        if path.rpartition(".")[2] in FILE_FIELDS and type(value) is str and not _harmless_file(value):
            try:
                inner = loads(value.encode("utf-8", "surrogatepass"))
            except InvalidEnvelope:
                return path
            if not isinstance(inner, dict | list) or local_file({path: inner}) is not None:
                return path
    return None


def _misplaced(path: str, value: Any, caller: Caller) -> str | None:
    """Chats that are not the caller's, files of the leader's disk, fields that nobody may use."""
    name = path.rpartition(".")[2]
    if name != name.lower():
        return f"{path} is no field of the Bot API: they are in lower case"
    if name in _CHAT_FIELDS and wire_id(value) != _chat_of(caller):
        return f"{path} must be {_chat_of(caller)}"
    if name in _FORBIDDEN and value is not None:
        return f"{path} is not for followers"
    if name in _STRUCTURED and type(value) is str:
        return f"{path} must be an object or a list, not text"
    if name in FILE_FIELDS and type(value) is str and not _harmless_file(value):
        return f"{path} must be a file id, an https:// address or an attachment, not a path"
    return None


def _harmless_file(value: str) -> bool:
    """A file id, an address or an attachment; a list as JSON text, a path and file:// are not."""
    if re.match(r"(https?|attach)://", value):
        return True
    return re.fullmatch(r"[A-Za-z0-9_-]+", value) is not None


def _walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every field of a body with its path, nested ones too (without recursion: a body may be deep)."""
    waiting = [(path, value)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Mapping):
            for name, item in value.items():
                inner = f"{path}.{name}" if path else str(name)
                yield inner, item
                waiting.append((inner, item))
        elif isinstance(value, list | tuple):
            waiting.extend((f"{path}.{index}", item) for index, item in enumerate(value))


def _seen(path: str, message_id: Any, caller: Caller) -> str | None:
    named = wire_id(message_id)
    if named is not None and caller.owned.seen(_chat_of(caller), named):
        return None
    return f"{path} must be that of a message in this follower's thread"


def _thread_of(caller: Caller) -> Number | None:
    return caller.target.thread_id if caller.target is not None else None


def _chat_of(caller: Caller) -> Number:
    assert caller.target is not None, "asked after same_chat only"
    return caller.target.chat_id
