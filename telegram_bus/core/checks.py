"""Strict readers of single JSON values: each takes a value and returns it, or raises `Mismatch`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any, Final

from telegram_bus.core.identity import MAX_SAFE_INTEGER
from telegram_bus.core.values import AgentSelector, Number, ProtocolIdentity, Target

__all__ = [
    "WHITE_SPACE",
    "Check",
    "Mismatch",
    "agent_selector",
    "anything",
    "array",
    "array_of",
    "ascending_ids",
    "boolean",
    "bounded_text",
    "choice",
    "filled_text",
    "integer",
    "json_object",
    "matching",
    "number",
    "positive_integer",
    "protocol_identity",
    "safe_integer",
    "target",
    "target_with_both",
    "text",
    "units",
]

Check = Callable[[Any], Any]

WHITE_SPACE: Final = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What JavaScript's `trim` takes away; Python's `strip` differs in U+001C to U+001F, U+0085 and U+FEFF."""

_CAPABILITY: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")
_INT64: Final = 2.0**63
_MAX_CAPABILITIES: Final = 32
_MAX_IDENTITY_TEXT: Final = 128


class Mismatch(Exception):
    """A value is not what its field holds; `path` grows from the inside out."""

    def __init__(self, problem: str, *path: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.path = list(path)

    def inside(self, name: str) -> Mismatch:
        """The same, seen from the object that holds the field `name`."""
        self.path.insert(0, name)
        return self


def anything(value: Any) -> Any:
    """Any JSON, unread."""
    return value


def text(value: Any) -> str:
    """A string."""
    if type(value) is str:
        return value
    raise Mismatch("must be a string")


def filled_text(value: Any) -> str:
    """A string with more than white space in it."""
    if type(value) is str and value.strip(WHITE_SPACE):
        return value
    raise Mismatch("must be a string that is not blank")


def units(value: str) -> int:
    """The length of a string in UTF-16 code units, as JavaScript counts."""
    return len(value) if value.isascii() else len(value.encode("utf-16-le", "surrogatepass")) // 2


def bounded_text(least: int, most: int | None = None) -> Check:
    """A string of `least` to `most` UTF-16 units (None: of any length)."""
    wanted = f"must be a string of {least} to {most} characters" if most else "must be a string that is not empty"

    def check(value: Any) -> str:
        if type(value) is str and least <= units(value) and (most is None or units(value) <= most):
            return value
        raise Mismatch(wanted)

    return check


def matching(pattern: str, wanted: str) -> Check:
    """A string that a regular expression matches from end to end."""
    compiled = re.compile(pattern)

    def check(value: Any) -> str:
        if type(value) is str and compiled.fullmatch(value):
            return value
        raise Mismatch(f"must be {wanted}")

    return check


def choice(*allowed: str) -> Check:
    """One of some strings."""
    wanted = "must be " + " or ".join(repr(one) for one in allowed)

    def check(value: Any) -> str:
        if type(value) is str and value in allowed:
            return value
        raise Mismatch(wanted)

    return check


def boolean(value: Any) -> bool:
    """True or false."""
    if type(value) is bool:
        return value
    raise Mismatch("must be true or false")


def number(value: Any) -> Number:
    """A number; one with an integral value comes back as an int, unless 64 bits cannot hold it."""
    if type(value) is int:
        return value
    if type(value) is float:
        return int(value) if value.is_integer() and abs(value) < _INT64 else value
    raise Mismatch("must be a number")


def integer(value: Any) -> int:
    """A number with an integral value, of any magnitude."""
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer():
        return int(value)
    raise Mismatch("must be an integer")


def positive_integer(value: Any) -> int:
    """An integer above 0, of any magnitude."""
    found = integer(value)
    if found > 0:
        return found
    raise Mismatch("must be a positive integer")


def safe_integer(least: int | None = None) -> Check:
    """An integer of at most 2^53-1 in magnitude, and of at least `least`."""
    wanted = "must be a safe integer" if least is None else f"must be a safe integer of at least {least}"
    bottom = -MAX_SAFE_INTEGER if least is None else least

    def check(value: Any) -> int:
        try:
            found = integer(value)
        except Mismatch:
            raise Mismatch(wanted) from None
        if bottom <= found <= MAX_SAFE_INTEGER:
            return found
        raise Mismatch(wanted)

    return check


def json_object(value: Any) -> dict[str, Any]:
    """An object with anything in it."""
    if type(value) is dict:
        return value
    raise Mismatch("must be an object")


def array(value: Any) -> tuple[Any, ...]:
    """An array of anything."""
    if type(value) is list:
        return tuple(value)
    raise Mismatch("must be an array")


def array_of(check: Check, least: int = 0, most: int | None = None) -> Check:
    """An array of `least` to `most` values that all pass `check`."""
    wanted = f"must be an array of {least} to {most} values" if most else "must be an array"

    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or len(value) < least or (most is not None and len(value) > most):
            raise Mismatch(wanted)
        try:
            return tuple([check(item) for item in value])
        except Mismatch:
            raise _first_mismatch(check, value) from None

    return read


def _first_mismatch(check: Check, values: list[Any]) -> Mismatch:
    for index, item in enumerate(values):
        try:
            check(item)
        except Mismatch as fault:
            return fault.inside(str(index))
    raise AssertionError("a check that failed once must fail again")


_update_id = safe_integer(0)


def ascending_ids(value: Any) -> tuple[int, ...]:
    """One or more safe integers of at least 0, each above the one before."""
    ids: tuple[int, ...] = array_of(_update_id)(value)
    if ids and all(low < high for low, high in itertools.pairwise(ids)):
        return ids
    raise Mismatch("must be one or more strictly ascending ids")


def protocol_identity(value: Any) -> ProtocolIdentity:
    """An identity of protocol section 4."""
    if type(value) is not dict:
        raise Mismatch("must be an object")
    version = safe_integer(1)(value.get("protocolVersion"))
    build = bounded_text(1, _MAX_IDENTITY_TEXT)(value.get("runtimeBuild"))
    capabilities = value.get("capabilities")
    if build.strip(WHITE_SPACE) != build or type(capabilities) is not list or len(capabilities) > _MAX_CAPABILITIES:
        raise Mismatch("must be a protocol identity")
    for one in capabilities:
        if type(one) is not str or len(one) > _MAX_IDENTITY_TEXT or not _CAPABILITY.fullmatch(one):
            raise Mismatch("must be a protocol identity")
    if any(low >= high for low, high in itertools.pairwise(capabilities)):
        raise Mismatch("must have strictly ascending capabilities")
    return ProtocolIdentity(protocol_version=version, runtime_build=build, capabilities=tuple(capabilities))


def target(value: Any) -> Target:
    """A chat, and a thread when it is named by a number."""
    if type(value) is not dict:
        raise Mismatch("must be an object")
    chat_id = _under("chatId", number, value.get("chatId"))
    thread_id = value.get("threadId")
    if type(thread_id) is not int:
        thread_id = number(thread_id) if type(thread_id) is float else None
    return Target(chat_id=chat_id, thread_id=thread_id)


def target_with_both(value: Any) -> Target:
    """A chat and a thread."""
    found = target(value)
    if found.thread_id is None:
        raise Mismatch("must be a number", "threadId")
    return found


def agent_selector(value: Any) -> AgentSelector:
    """Exactly one of a thread's id and its name, perhaps with a chat."""
    if type(value) is not dict:
        raise Mismatch("must be an object")
    thread_id = _or_none(positive_integer, value.get("threadId"))
    thread_name = _or_none(filled_text, value.get("threadName"))
    if (thread_id is None) == (thread_name is None):
        raise Mismatch("must name exactly one of threadId (a positive integer) and threadName (not blank)")
    return AgentSelector(
        thread_id=thread_id,
        thread_name=None if thread_name is None else thread_name.strip(WHITE_SPACE),
        chat_id=_or_none(integer, value.get("chatId")),
    )


def _or_none(check: Check, value: Any) -> Any:
    try:
        return check(value)
    except Mismatch:
        return None


def _under(name: str, check: Check, value: Any) -> Any:
    try:
        return check(value)
    except Mismatch as fault:
        raise fault.inside(name) from None
