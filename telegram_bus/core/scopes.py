"""The scopes of the compatible policy: each looks at a call's body and says what is wrong with it, or None."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

from attrs import frozen

from telegram_bus.core.errors import InvalidEnvelope
from telegram_bus.core.jsontext import loads
from telegram_bus.core.values import Number, Target

__all__ = [
    "AGGREGATE",
    "CROSS_TARGET",
    "FILE_FIELDS",
    "Body",
    "Caller",
    "Owned",
    "Problem",
    "Scope",
    "aggregate",
    "always",
    "chat_of",
    "commands",
    "cross_target",
    "local_file",
    "named_files",
    "same_chat",
    "sent_message",
    "thread",
    "thread_of",
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


class Problem(NamedTuple):
    """What is wrong with a call: the path of the field, and the rule that it breaks, as the end of a sentence."""

    field: str
    rule: str


Body = Mapping[str, Any]
Scope = Callable[[Body, Caller], Problem | None]


def wire_id(value: Any) -> Number | None:
    """An id that is a number or a decimal string; None for anything else."""
    if type(value) is str and _DECIMAL.fullmatch(value):
        return int(value)
    return value if type(value) in (int, float) else None


def always(_body: Body, _caller: Caller) -> Problem | None:
    """No condition."""
    return None


def same_chat(body: Body, caller: Caller) -> Problem | None:
    """The caller's chat, any thread."""
    if caller.target is None:
        return Problem("chat_id", "cannot be any: the follower has no chat yet")
    if wire_id(body.get("chat_id")) != caller.target.chat_id:
        return Problem("chat_id", f"must be {caller.target.chat_id}")
    return None


def thread(body: Body, caller: Caller) -> Problem | None:
    """The caller's chat and thread; without a thread of its own any thread (the compatible reading)."""
    if reason := same_chat(body, caller):
        return reason
    own = thread_of(caller)
    if own is not None and wire_id(body.get("message_thread_id")) != own:
        return Problem("message_thread_id", f"must be {own}")
    return None


def cross_target(body: Body, caller: Caller) -> Problem | None:
    """The caller's chat, another thread than its own."""
    if reason := same_chat(body, caller):
        return reason
    own = thread_of(caller)
    if body.get("message_thread_id") is None:
        return None if own is not None else Problem("message_thread_id", "must name a thread")
    named = wire_id(body["message_thread_id"])
    if named is None or named == own:
        return Problem("message_thread_id", "must be that of another thread")
    return None


def aggregate(body: Body, caller: Caller) -> Problem | None:
    """The caller's chat, outside of all threads."""
    if reason := same_chat(body, caller):
        return reason
    return None if body.get("message_thread_id") is None else Problem("message_thread_id", "must be absent")


def sent_message(body: Body, caller: Caller) -> Problem | None:
    """A message in the caller's chat that it sent."""
    if reason := same_chat(body, caller):
        return reason
    message_id = wire_id(body.get("message_id"))
    if message_id is None or not caller.owned.message(chat_of(caller), message_id):
        return Problem("message_id", "must be that of a message which this follower sent")
    return None


def commands(body: Body, _caller: Caller) -> Problem | None:
    """A well-formed list of commands."""
    listed = body.get("commands")
    if type(listed) is list and all(
        type(one) is dict and type(one.get("command")) is str and type(one.get("description")) is str for one in listed
    ):
        return None
    return Problem("commands", "must be a list of objects with command and description")


def thread_of(caller: Caller) -> Number | None:
    """The caller's own thread, None where it has none."""
    return caller.target.thread_id if caller.target is not None else None


def chat_of(caller: Caller) -> Number:
    """The caller's chat; for use where `same_chat` has passed."""
    assert caller.target is not None, "asked after same_chat only"
    return caller.target.chat_id


FILE_FIELDS: Final = frozenset(
    "animation audio cover document live_photo media photo sticker thumb thumbnail video video_note voice".split()
)
"""Fields that may name a file: a local Bot API server would read a path from its own disk."""

_NESTED_FIELDS: Final = frozenset({"rich_message"})
"""Fields that name no file themselves, and whose objects may: the Bot API takes those as JSON in a text, too."""


def local_file(body: Body) -> str | None:
    """The path of a field that names a file on the disk of a Bot API server, also in JSON as text; None: none does."""
    for path, value in _walk(body, ""):
        name = path.rpartition(".")[2]
        if type(value) is not str or not (name in FILE_FIELDS or name in _NESTED_FIELDS) or _harmless_file(value):
            continue
        try:
            inner = loads(value.encode("utf-8", "surrogatepass"))
        except InvalidEnvelope:
            inner = None
        if isinstance(inner, dict | list):
            if local_file({path: inner}) is not None:
                return path
        elif name in FILE_FIELDS:
            return path
    return None


def named_files(body: Body) -> Iterator[str]:
    """The texts of a body that may be ids of files."""
    for path, value in _walk(body, ""):
        if path.rpartition(".")[2] in FILE_FIELDS and type(value) is str and re.fullmatch(r"[A-Za-z0-9_-]+", value):
            yield value


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
