"""JSON as the protocol wants it: orjson, and the standard library for the little that orjson refuses."""

from __future__ import annotations

import json
from typing import Any, NoReturn

import orjson

from telegram_bus.core.errors import InvalidEnvelope

__all__ = ["dumps", "loads"]


def loads(data: bytes | bytearray | memoryview | str) -> Any:
    """Any JSON. Raises InvalidEnvelope for anything else: NaN, a byte-order mark, invalid UTF-8, 1,000 levels."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _loads_slowly(data)


def dumps(value: Any) -> bytes:
    """Any JSON without white space and newline; infinity is null. Raises InvalidEnvelope when it cannot be written."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        return _dumps_slowly(value)


def _loads_slowly(data: bytes | bytearray | memoryview | str) -> Any:
    """What orjson refuses and the protocol does not: lone surrogates and numbers that overflow."""
    try:
        text = data if isinstance(data, str) else bytes(data).decode("utf-8")
        return json.loads(text, parse_constant=_refuse_constant, parse_int=_parse_int)
    except RecursionError:
        raise InvalidEnvelope("the line is nested too deeply") from None
    except UnicodeDecodeError as fault:
        raise InvalidEnvelope(f"the line is not UTF-8 (byte {fault.start})") from None
    except ValueError as fault:
        raise InvalidEnvelope(f"the line is not JSON: {fault}") from None


def _parse_int(digits: str) -> int | float:
    # Beyond a double's range it is infinity, as in JavaScript; nor may a line buy quadratic time with its digits.
    return int(digits) if len(digits) < 300 else float(digits)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _dumps_slowly(value: Any) -> bytes:
    try:
        text = json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8", "backslashreplace")  # a lone surrogate becomes \udxxx, its escape
    except RecursionError:
        raise InvalidEnvelope("the value is nested too deeply to be written") from None


def _finite(value: Any) -> Any:
    match value:
        case float():
            return value if abs(value) < float("inf") else None
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list() | tuple():
            return [_finite(item) for item in value]
        case _:
            return value
