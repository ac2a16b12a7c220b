"""Whether the parameters of a Bot API method are as its documentation describes them, and what stands in them."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from telegram_bus.core.methods_table import BOT_API, METHODS, TYPES
from telegram_bus.core.scopes import Problem

__all__ = ["Visit", "check", "file_fields", "may_attach", "nearest", "shown"]

Visit = Callable[[str, str, str, Any], str | None]
"""Told of each field: the type it is in (at the top: the method), its name, its kind as in the table, its value;
answers a rule that it breaks, or None."""

DEEPEST: Final = 32
"""Levels of nesting; Telegram itself takes 16 of what may hold itself (rich text)."""

LONGEST_NAME: Final = 64
"""Characters of a name for which one like it is looked for, which takes time by its square."""

_DECIMAL: Final = re.compile(r"-?[0-9]{1,19}")
_NAME: Final = re.compile(r"[A-Za-z0-9_]{1,64}")

_MOVED: Final[Mapping[str, str]] = {
    "allow_sending_without_reply": "reply_parameters",
    "disable_web_page_preview": "link_preview_options",
    "reply_to_message_id": "reply_parameters",
    "thumb": "thumbnail",
}
"""Fields of older versions of the Bot API, with what has replaced them."""

_WANTED: Final[Mapping[str, str]] = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "true": "true",
    "file": "text",
}


_EXACT: Final = {"int": int, "str": str, "bool": bool, "file": str}
"""Kinds for which a look at the type is enough."""


class _Field(NamedTuple):
    """A documented field; `kind` as in the table."""

    kind: str
    required: bool


class _Walk(NamedTuple):
    """One check: who is told of the fields, and which of them are filled by files that came with the call."""

    visit: Visit
    given: Collection[str]


def check(method: str, body: Mapping[str, Any], visit: Visit, given: Collection[str] = ()) -> Problem | None:
    """What is wrong with the parameters of a method that the table has; None: nothing.

    Null counts as absent, as Telegram reads it. Whole numbers may be decimal strings, everything else has its type:
    JSON as text, which the Bot API takes for nested values, is refused, since it would hide what is in it.
    """
    return _object(method, body, _Walk(visit, given), 0)


def file_fields(method: str) -> frozenset[str]:
    """The parameters of the method that a file may fill."""
    return frozenset(name for name, field in _fields(METHODS[method]).items() if field.kind == "file")


def may_attach(method: str, name: str) -> bool:
    """Whether a file of this name may come with the call, for `attach://name` to refer to."""
    return _NAME.fullmatch(name) is not None and name not in _fields(METHODS[method])


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one, if any is."""
    import difflib  # noqa: PLC0415 - for refusals only

    names = list(known)
    if (moved := _MOVED.get(name)) in names:
        return moved
    return next(iter(difflib.get_close_matches(name, names, 1)), None)


def shown(name: str) -> str:
    """A field's name as a message and a log may show it; any text may be a name in JSON."""
    return name if _NAME.fullmatch(name) else "(odd name)"


def _object(kind: str, body: Mapping[str, Any], walk: _Walk, depth: int) -> Problem | None:
    """The fields of a method or type; paths grow from the inside out, where something is wrong only."""
    line = METHODS[kind] if depth == 0 else TYPES[kind]
    fields = _fields(line)
    for name, value in body.items():
        if value is None:
            continue
        field = fields.get(name)
        if field is None:
            like = nearest(name[:LONGEST_NAME], fields)
            return Problem(
                shown(name), f"is no field of {kind} (Bot API {BOT_API})" + (f": use {like}" if like else "")
            )
        if rule := walk.visit(kind, name, field.kind, value):
            return Problem(name, rule)
        if type(value) is not _EXACT.get(field.kind) and (problem := _value(field.kind, value, walk, depth + 1)):
            return _inside(name, problem)
    for name in _required(line):
        if body.get(name) is None and not (depth == 0 and name in walk.given):
            return Problem(name, "is missing")
    return None


def _value(kind: str, value: Any, walk: _Walk, depth: int) -> Problem | None:
    if depth > DEEPEST:
        return Problem("", "is nested too deeply")
    kinds = _alternatives(kind)
    if isinstance(value, Mapping):
        return _one_of(kinds, value, walk, depth)
    if isinstance(value, list | tuple):
        inner = next((one[1:-1] for one in kinds if one.startswith("[")), None)
        if inner is None:
            return Problem("", f"must be {_wanted(kinds)}")
        for index, item in enumerate(value):
            if problem := _value(inner, item, walk, depth + 1):
                return _inside(str(index), problem)
        return None
    if any(_is_plain(one, value) for one in kinds):
        return None
    return Problem("", f"must be {_wanted(kinds)}{', not text' if type(value) is str else ''}")


def _one_of(kinds: tuple[str, ...], value: Mapping[str, Any], walk: _Walk, depth: int) -> Problem | None:
    """An object that is of one of some types: the one that its tag names, or else the one that fits best."""
    types = [one for one in kinds if one in TYPES]
    if not types:
        return Problem("", f"must be {_wanted(kinds)}")
    if len(types) > 1:
        tags = {one: tag for one in types if (tag := _tag(TYPES[one])) is not None}
        if tags:
            types = [one for one in types if tags.get(one) == value.get("type")]
            if not types:
                return Problem("type", f"must be {' or '.join(sorted(set(tags.values())))}")
        types.sort(key=lambda one: _fit(one, value), reverse=True)
    return _object(types[0], value, walk, depth)


def _fit(kind: str, value: Mapping[str, Any]) -> tuple[bool, int]:
    fields = _fields(TYPES[kind])
    return all(name in value for name, field in fields.items() if field.required), len(fields.keys() & value.keys())


def _inside(name: str, problem: Problem) -> Problem:
    return Problem(f"{name}.{problem.field}" if problem.field else name, problem.rule)


def _is_plain(kind: str, value: Any) -> bool:
    match kind:
        case "int":
            return type(value) is int or (type(value) is str and _DECIMAL.fullmatch(value) is not None)
        case "float":
            return type(value) is int or (type(value) is float and math.isfinite(value))
        case "str" | "file":
            return type(value) is str
        case "bool":
            return type(value) is bool
        case "true":
            return value is True
        case _:
            return kind[0] == "'" and value == kind[1:-1]


def _wanted(kinds: tuple[str, ...]) -> str:
    """What a field may be, for people; of many types the first."""
    shown = []
    for one in kinds:
        if one[0] == "'":
            shown.append(one)
        else:
            shown.append("a list" if one[0] == "[" else _WANTED.get(one) or f"an object ({one})")
    few = list(dict.fromkeys(shown))
    return " or ".join(few) if len(few) < 5 else f"{few[0]}, {few[1]} or one of {len(few) - 2} kinds of objects"


@functools.cache
def _fields(line: str) -> dict[str, _Field]:
    """The fields that a line of the table describes."""
    fields = {}
    for one in line.split():
        name, _, kind = one.partition(":")
        fields[name.removesuffix("!")] = _Field(kind, name.endswith("!"))
    return fields


@functools.cache
def _required(line: str) -> tuple[str, ...]:
    """Those of them that have to be there."""
    return tuple(name for name, field in _fields(line).items() if field.required)


@functools.cache
def _tag(line: str) -> str | None:
    """The only `type` that an object of this type may have."""
    field = _fields(line).get("type")
    return field.kind[1:-1] if field is not None and field.kind[0] == "'" else None


@functools.cache
def _alternatives(kind: str) -> tuple[str, ...]:
    """What `a|b` and types that are one of several come to, lists whole."""
    found: list[str] = []
    for one in _split(kind):
        line = TYPES.get(one, "")
        found.extend(_alternatives(line[1:]) if line.startswith("=") else [one])
    return tuple(dict.fromkeys(found))


def _split(kind: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, character in enumerate(kind):
        depth += (character == "[") - (character == "]")
        if character == "|" and not depth:
            parts.append(kind[start:at])
            start = at + 1
    return [*parts, kind[start:]]
