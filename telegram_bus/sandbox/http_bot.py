"""The Bot API over HTTP: `/bot<token>/<method>`, as strict and as lenient as Telegram's server."""

from __future__ import annotations

import json
import re
import time
from typing import Any
from urllib.parse import parse_qsl

import trio
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.engine import Engine, Poll
from telegram_bus.sandbox.model_polls import Conflict
from telegram_bus.sandbox.model_types import Json
from telegram_bus.sandbox.record import Entry
from telegram_bus.sandbox.refusal import Refusal

__all__ = ["BotApi"]

_PATH = re.compile(r"/bot([^/]*)/(?:test/)?([^/]+)/?")
_TOKEN = re.compile(r"[1-9]\d{0,19}:[A-Za-z0-9_-]{30,}")
MAX_BODY = 50 << 20  # M14


class BotApi:
    """An ASGI application: every request is recorded, whoever hangs up too."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            method, args = await self._read(scope, receive)
        except Refusal as refusal:
            await _send(send, refusal.body())
            return
        except ClientDisconnect:
            return
        engine = self._engine
        entry = engine.record.begin(method, args.shown(), time.monotonic(), engine.now())
        engine.settle()
        answer = await self._answer(entry, args, receive)
        if answer is None:
            engine.record.hung_up(entry, time.monotonic())
        else:
            engine.record.end(entry, time.monotonic(), answer)
        engine.settle()
        if answer is not None:
            await _send(send, answer)

    async def _answer(self, entry: Entry, args: Args, receive: Receive) -> Json | None:
        # None when the client hung up.
        try:
            if entry.kind == "call":
                return {"ok": True, "result": self._engine.call(entry.method, args)}
            found = self._engine.ask(args)
            updates = found if isinstance(found, list) else await self._waited(found, receive)
        except Refusal as refusal:
            return refusal.body()
        return None if updates is None else {"ok": True, "result": updates}

    async def _waited(self, found: Poll | Conflict, receive: Receive) -> list[Json] | None:
        # Starlette and hypercorn leave a handler alone when its client goes: only this message tells.
        outcome: list[Json] | Refusal | None = None
        async with trio.open_nursery() as nursery:

            async def wait_answer() -> None:
                nonlocal outcome
                try:
                    if isinstance(found, Conflict):
                        await self._engine.refuse(found)
                    else:
                        outcome = await self._engine.wait_poll(found)
                except Refusal as refusal:
                    outcome = refusal
                nursery.cancel_scope.cancel()

            nursery.start_soon(wait_answer)
            while (await receive())["type"] != "http.disconnect":
                pass
            nursery.cancel_scope.cancel()
        if isinstance(found, Poll):
            self._engine.forget(found)
        if isinstance(outcome, Refusal):
            raise outcome
        return outcome

    async def _read(self, scope: Scope, receive: Receive) -> tuple[str, Args]:
        matched = _PATH.fullmatch(scope["path"])
        if matched is None or not _TOKEN.fullmatch(matched[1]):
            raise Refusal(404, "Not Found")
        if matched[1] != self._engine.world.token:
            raise Refusal(401, "Unauthorized")
        request = Request(scope, receive)
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > MAX_BODY:
            raise Refusal(413, "Request Entity Too Large")
        values: Json = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        return matched[2], Args(values | await _body(request))


async def _body(request: Request) -> Json:
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
        async with request.form(max_files=100, max_part_size=MAX_BODY) as form:
            return {
                name: value if isinstance(value, str) else await _uploaded(value) for name, value in form.multi_items()
            }
    except MultiPartException as error:
        raise Refusal(400, f"Bad Request: {error.message}") from error


async def _uploaded(file: UploadFile) -> Json:
    return {"file_name": file.filename, "size": file.size}


async def _send(send: Send, answer: Json) -> None:
    status = answer.get("error_code", 200)
    body = json.dumps(answer, separators=(",", ":")).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    retry_after = answer.get("parameters", {}).get("retry_after")
    if retry_after is not None:
        headers.append((b"retry-after", str(retry_after).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
