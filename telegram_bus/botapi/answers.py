"""What an HTTP answer of the Bot API means: a result, a refusal, or nothing that can be relied on."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson

from telegram_bus.core.errors import AnswerLost, ApiError, NotSent, RequestRefused

__all__ = ["begin_of", "form", "read_answer"]


def read_answer(method: str, status: int, body: bytes, retry_after: str | None = None) -> Any:
    """The `result` of an answer, as JSON values; `retry_after` is the header of that name.

    Raises ApiError with Telegram's own words; AnswerLost for every 5xx and for what is no answer of a Bot API
    server (cut off, from a captive portal), because the call may have been carried out; NotSent for a proxy's 407.
    """
    answer = _object(body)
    if status >= 500 or (answer is None and status < 400):
        raise AnswerLost(f"{method}: {_described(status, answer)}, and so nobody knows whether it was carried out")
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED and answer is None:
        raise NotSent(f"{method} was not sent: the proxy asks for a user and password (407)")
    if answer is None:
        raise ApiError(method, status, _phrase(status), retry_after=_seconds(retry_after))
    if answer.get("ok") is True and "result" in answer:
        return answer["result"]
    if answer.get("ok") is not False:
        raise AnswerLost(f"{method}: HTTP {status} with JSON that is no answer of a Bot API server")
    raise _refusal(method, status, answer, retry_after)


def begin_of(asked: int, status: int, content_range: str | None) -> int | None:
    """Where the body of an answer to `Range: bytes=asked-` begins in the file; None where it is no part of it."""
    if status == HTTPStatus.OK:
        return 0
    found = re.fullmatch(r"bytes ([0-9]{1,18})-[0-9]{1,18}/(?:[0-9]{1,18}|\*)", (content_range or "").strip())
    return asked if status == HTTPStatus.PARTIAL_CONTENT and found is not None and int(found[1]) == asked else None


def form(params: Mapping[str, Any]) -> dict[str, str]:
    """The parameters as Telegram takes them: flat strings, nested values as JSON text; None is left out.

    Raises RequestRefused for a value that cannot be written as JSON (nested too deeply, of a foreign type).
    """
    fields = {}
    for name, value in params.items():
        try:
            if value is not None:
                fields[_text(name)] = _text(value)
        except (TypeError, ValueError, RecursionError) as fault:
            raise RequestRefused(f"the parameter {name[:64]!r} cannot be written as JSON") from fault
    return fields


def _refusal(method: str, status: int, answer: dict[str, Any], header: str | None) -> ApiError:
    code, description, parameters = answer.get("error_code"), answer.get("description"), answer.get("parameters")
    if not isinstance(parameters, dict):
        parameters = {}
    retry_after, migrate_to = parameters.get("retry_after"), parameters.get("migrate_to_chat_id")
    return ApiError(
        method,
        code if type(code) is int else status,
        description if isinstance(description, str) else _phrase(status),
        retry_after=float(retry_after) if isinstance(retry_after, int | float) else _seconds(header),
        migrate_to_chat_id=migrate_to if type(migrate_to) is int else None,
    )


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:  # lone surrogates are legal JSON that orjson refuses
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _text(value: Any) -> str:
    if isinstance(value, str):  # a lone surrogate cannot be sent as UTF-8
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # orjson refuses lone surrogates and integers of more than 64 bits
        return json.dumps(value, separators=(",", ":"))


def _described(status: int, answer: dict[str, Any] | None) -> str:
    description = answer.get("description") if answer else None
    return f"HTTP {status} {description}" if isinstance(description, str) else f"HTTP {status} without a usable answer"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return f"HTTP status {status}"


def _seconds(header: str | None) -> float | None:
    return float(header) if header is not None and header.isascii() and header.isdigit() else None
