"""The line protocol of `follower --jsonl`: what a program may ask for, checked, and what it is told (docs/jsonl.md)."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from typing import Any, Final

from attrs import field, frozen

from telegram_bus.core import checks
from telegram_bus.core.checks import Check, Mismatch
from telegram_bus.core.errors import (
    AnswerLost,
    ApiError,
    BusError,
    CommitUnknown,
    Expired,
    InvalidEnvelope,
    NoLeader,
    RequestRefused,
)
from telegram_bus.core.files import ALBUM_KINDS, EDITABLE, SENDABLE
from telegram_bus.core.jsontext import dumps, loads

__all__ = ["BadRequest", "Request", "error_of", "line", "parse"]

Fields = Mapping[str, Check]


class BadRequest(Exception):
    """A line that asks for nothing that there is; `field` names what is wrong in it, `id` is the line's own."""

    def __init__(self, message: str, *, field: str | None = None, id: Any = None) -> None:  # noqa: A002 - the wire's name
        super().__init__(message)
        self.field = field
        self.id = id


@frozen(kw_only=True)
class Request:
    """What a program asks for: `do`, with its checked fields. `id` is None where no answer is wanted."""

    do: str
    id: Any = None
    fields: dict[str, Any] = field(factory=dict)


@frozen
class _Doing:
    required: Fields
    optional: Fields = field(factory=dict)
    one_of: tuple[str, ...] = ()
    """Exactly one of these optional fields has to be there."""


def line(value: Mapping[str, Any]) -> str:
    """An object as a line."""
    return dumps(dict(value)).decode() + "\n"


def parse(text: bytes) -> Request:
    """The request on a line. Raises BadRequest."""
    try:
        raw = loads(text)
    except InvalidEnvelope as fault:
        raise BadRequest(f"the line is no JSON: {fault}") from None
    if type(raw) is not dict:
        raise BadRequest("a request is a JSON object")
    given = {name: value for name, value in raw.items() if value is not None}
    ident = given.pop("id", None)
    if type(ident) not in (str, int, type(None)):
        raise BadRequest("id must be a string or an integer", field="id")
    do = given.pop("do", None)
    doing = _DOINGS.get(do) if type(do) is str else None
    if doing is None:
        problem = "do is missing" if do is None else f"do {do!r:.64} is unknown"
        raise BadRequest(f"{problem}; there are {', '.join(_DOINGS)}", field="do", id=ident)
    try:
        return Request(do=do, id=ident, fields=_checked(doing, given))
    except Mismatch as fault:
        path = ".".join(fault.path)
        raise BadRequest(f"{do}: {path} {fault.problem}", field=path, id=ident) from None


def error_of(fault: BaseException) -> dict[str, Any]:
    """A fault as the `error` of an answer: `code`, `message`, and what else is known of it."""
    match fault:
        case BadRequest():
            facts: dict[str, Any] = {"code": "bad-request", "field": fault.field}
        case ApiError():
            facts = {
                "code": "api",
                "method": fault.method,
                "api_code": fault.code,
                "description": fault.description,
                "retry_after": fault.retry_after,
                "migrate_to_chat_id": fault.migrate_to_chat_id,
            }
        case CommitUnknown():
            facts = {"code": "commit-unknown"}
        case AnswerLost():
            facts = {"code": "answer-lost"}
        case NoLeader():
            facts = {"code": "left"}
        case Expired():
            facts = {"code": "expired"}
        case RequestRefused():
            facts = {"code": fault.code or "refused", "method": fault.method}
        case BusError():
            facts = {"code": "state"}
        case OSError():
            facts = {"code": "file"}
        case _:
            facts = {"code": "bad-request"}
    return {"message": str(fault), **{name: value for name, value in facts.items() if value is not None}}


def _checked(doing: _Doing, given: dict[str, Any]) -> dict[str, Any]:
    checked = {}
    for name, value in given.items():
        check = doing.required.get(name) or doing.optional.get(name)
        if check is None:
            known = [*doing.required, *doing.optional]
            raise Mismatch(f"is no field of it; there are {', '.join(known) if known else 'none'}", name)
        try:
            checked[name] = check(value)
        except Mismatch as fault:
            raise fault.inside(name) from None
    for name in doing.required:
        if name not in checked:
            raise Mismatch("is missing", name)
    if doing.one_of and sum(name in checked for name in doing.one_of) != 1:
        raise Mismatch(f"is needed: exactly one of {', '.join(doing.one_of)}", doing.one_of[0])
    return checked


def _buttons(value: Any) -> Any:
    """Rows of buttons, or an object with `rows` and more to say of them."""
    if type(value) is dict:
        return _checked(_KEYBOARD, {name: one for name, one in value.items() if one is not None})
    return _rows(value)


def _rows(value: Any) -> list[list[tuple[str, Any]]]:
    rows: tuple[Any, ...] = checks.array_of(checks.array_of(_button, 1), 0)(value)
    return [list(row) for row in rows]


def _button(value: Any) -> tuple[str, Any]:
    if type(value) is not list or len(value) != 2 or type(value[0]) is not str:
        raise Mismatch("must be [label, data], the label a string")
    return value[0], value[1]


def _choice(value: Any) -> str | tuple[str, Any]:
    return value if type(value) is str else _button(value)


def _seconds(value: Any) -> float:
    found = checks.number(value)
    if math.isfinite(found) and found >= 0:
        return float(found)
    raise Mismatch("must be a number of seconds")


def _texts(value: Any) -> dict[str, str]:
    for name, text in checks.json_object(value).items():
        if type(text) is not str:
            raise Mismatch("must be a string", name)
    return dict(value)


def _content(value: Any) -> bytes:
    try:
        return base64.b64decode(checks.text(value), validate=True)
    except (binascii.Error, ValueError):
        raise Mismatch("must be base64") from None


def _agent(value: Any) -> str | int:
    return value if type(value) is int else checks.filled_text(value)


def _item(value: Any) -> dict[str, Any]:
    return _checked(_ITEM, {name: one for name, one in checks.json_object(value).items() if one is not None})


_TEXT: Final = {"text": checks.filled_text}
_MESSAGE: Final[Fields] = {
    "buttons": _buttons,
    "parse_mode": checks.choice("HTML", "MarkdownV2"),
    "silent": checks.boolean,
    "once": checks.filled_text,
    "markdown": checks.boolean,
}
_LONG: Final[Fields] = {"most_parts": checks.positive_integer}
_URGENCY: Final[Fields] = {"urgency": checks.choice("final", "progress")}
_PROGRESS: Final[Fields] = {"progress": checks.boolean}
_REPLY_TO: Final[Fields] = {"reply_to": checks.positive_integer}
_UPDATE: Final[Fields] = {"update": checks.text}
_MESSAGE_ID: Final[Fields] = {"message_id": checks.positive_integer}
_SOURCE: Final[Fields] = {"path": checks.filled_text, "base64": _content}
_WHICH: Final = ("path", "base64")
_ITEM: Final = _Doing(
    {}, {**_SOURCE, "kind": checks.choice(*ALBUM_KINDS), "caption": checks.text, "name": checks.filled_text}, _WHICH
)

_KEYBOARD: Final = _Doing({"rows": _rows}, {"one_time": checks.boolean, "users": checks.array_of(checks.integer)})

_DOINGS: Final[Mapping[str, _Doing]] = {
    "send": _Doing(_TEXT, {**_MESSAGE, **_LONG, **_URGENCY, **_REPLY_TO}),
    "reply": _Doing({**_UPDATE, **_TEXT}, {**_MESSAGE, **_LONG, **_URGENCY}),
    "edit": _Doing(
        {**_MESSAGE_ID, **_TEXT},
        {**{name: _MESSAGE[name] for name in ("buttons", "parse_mode", "markdown")}, **_URGENCY},
    ),
    "delete": _Doing(_MESSAGE_ID),
    "react": _Doing(_MESSAGE_ID, {"emoji": checks.text}),
    "offer_commands": _Doing({"commands": _texts}),
    "typing": _Doing({}, {"seconds": _seconds}),
    "activity": _Doing({}, {"text": checks.text, "needs_person": checks.boolean}),
    "ask": _Doing(
        {"question": checks.filled_text},
        {
            "choices": checks.array_of(_choice),
            "once": checks.filled_text,
            "allow_text": checks.boolean,
            "users": checks.array_of(checks.integer),
        },
    ),
    "answer": _Doing(_UPDATE, {"text": checks.text, "alert": checks.boolean}),
    "send_file": _Doing(
        {},
        {
            **_SOURCE,
            "caption": checks.text,
            "kind": checks.choice(*SENDABLE),
            "name": checks.filled_text,
            **_MESSAGE,
            **_REPLY_TO,
            **_PROGRESS,
        },
        _WHICH,
    ),
    "edit_file": _Doing(
        _MESSAGE_ID,
        {
            **_SOURCE,
            "caption": checks.text,
            "kind": checks.choice(*EDITABLE),
            "name": checks.filled_text,
            **{name: _MESSAGE[name] for name in ("buttons", "parse_mode", "markdown")},
            **_PROGRESS,
        },
        _WHICH,
    ),
    "send_album": _Doing(
        {"files": checks.array_of(_item, 2, 10)},
        {
            "caption": checks.text,
            "silent": checks.boolean,
            "once": checks.filled_text,
            "markdown": checks.boolean,
            **_REPLY_TO,
            **_PROGRESS,
        },
    ),
    "stream": _Doing(
        {"stream": checks.filled_text, "text": checks.text},
        {
            **_UPDATE,
            **{name: check for name, check in _MESSAGE.items() if name != "parse_mode"},
            **_LONG,
            **_REPLY_TO,
            "drafts": checks.boolean,
        },
    ),
    "stream_end": _Doing({"stream": checks.filled_text}, {"text": checks.text, "give_up": checks.boolean}),
    "download": _Doing(
        {},
        {**_UPDATE, "file_id": checks.filled_text, "name": checks.filled_text, "into": checks.filled_text},
        ("update", "file_id"),
    ),
    "call": _Doing({"method": checks.filled_text}, {"params": checks.json_object}),
    "tell": _Doing({"agent": _agent, **_TEXT}),
    "queue": _Doing({}),
    "members": _Doing({}),
    "watch_members": _Doing({}),
    "state": _Doing({}, {"wait": _seconds}),
    "hand_over": _Doing({**_UPDATE, "to": checks.filled_text}, {"note": checks.text}),
    "done": _Doing(_UPDATE),
}
"""Everything that a program may ask for."""
