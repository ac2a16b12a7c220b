"""The arguments of a Bot API request: query string, JSON, urlencoded, multipart with files; 50 MB at most."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.types import Message, Receive, Scope

from telegram_bus.sandbox.args import Upload
from telegram_bus.sandbox.model_types import Json
from telegram_bus.sandbox.refusal import Refusal

__all__ = ["read_arguments", "swallow"]

MAX_UPLOAD = 50 << 20  # M14
# A body of that length can hold one file of the greatest size, with the fields around it.
MAX_BODY = MAX_UPLOAD + (1 << 16)
MAX_FILES = 100


async def read_arguments(scope: Scope, receive: Receive) -> Json:
    """All arguments by name; raises `Refusal`, or Starlette's `ClientDisconnect` when the client goes meanwhile."""
    values: Json = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    try:
        body = await _body(Request(scope, _Counted(receive)))
    except _TooLarge as error:
        raise Refusal(413, "Request Entity Too Large") from error
    return values | body


async def swallow(receive: Receive) -> None:
    """Take the rest of a body that is not wanted: who is cut off while it sends does not hear why."""
    while (message := await receive())["type"] == "http.request" and message.get("more_body", False):
        pass


class _TooLarge(MultiPartException):
    # Of that class, so that Starlette's parser closes the files it began.
    def __init__(self) -> None:
        super().__init__("too large")


class _Counted:
    """Receives a body of bounded length."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._seen = 0

    async def __call__(self) -> Message:
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        if self._seen > MAX_BODY:
            raise _TooLarge
        return message


async def _body(request: Request) -> Json:
    length = request.headers.get("content-length", "0")
    if length.isdigit() and int(length) > MAX_BODY:
        raise _TooLarge
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return await _multipart(request)
    body = await request.body()
    if not body:
        return {}
    if kind == "application/json":
        return _json_body(body)
    if kind == "application/x-www-form-urlencoded":
        return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
    return {}


def _json_body(body: bytes) -> Json:
    try:
        parsed: Any = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, "Bad Request: can't parse request: invalid JSON") from error
    if not isinstance(parsed, dict):
        raise Refusal(400, "Bad Request: can't parse request: expected an Object")
    return parsed


async def _multipart(request: Request) -> Json:
    try:
        async with request.form(max_files=MAX_FILES, max_part_size=MAX_BODY) as form:
            return {
                name: value if isinstance(value, str) else await _uploaded(value) for name, value in form.multi_items()
            }
    except _TooLarge:
        raise
    except MultiPartException as error:
        raise Refusal(400, f"Bad Request: {error.message}") from error


async def _uploaded(file: UploadFile) -> Upload:
    if (file.size or 0) > MAX_UPLOAD:
        raise _TooLarge
    return Upload(file.filename or "", await file.read())
