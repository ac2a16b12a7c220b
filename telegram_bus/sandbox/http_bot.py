"""The Bot API over HTTP: `/bot<token>/<method>`, as strict and as lenient as Telegram's server."""

from __future__ import annotations

import re
import time
from functools import partial

import trio
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.engine import Engine, Poll
from telegram_bus.sandbox.http_answer import Exchange, encode_answer, send_answer
from telegram_bus.sandbox.http_body import read_arguments, swallow
from telegram_bus.sandbox.http_faults import answer_faultily
from telegram_bus.sandbox.model_polls import Conflict
from telegram_bus.sandbox.model_types import Json
from telegram_bus.sandbox.record import Entry
from telegram_bus.sandbox.refusal import Refusal

__all__ = ["BotApi"]

_PATH = re.compile(r"/bot([^/]*)/(?:test/)?([^/]+)/?")
_TOKEN = re.compile(r"[1-9]\d{0,19}:[A-Za-z0-9_-]{30,}")


class BotApi:
    """An ASGI application: every request is recorded, whoever hangs up too."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        exchange = Exchange(scope, receive, send)
        try:
            method, args = await self._read(scope, receive)
        except Refusal as refusal:
            await (_refuse_unread if refusal.code == 413 else send_answer)(exchange, refusal.body())
            return
        except ClientDisconnect:
            return
        engine = self._engine
        entry = engine.record.begin(method, args.shown(), time.monotonic(), engine.now())
        engine.settle()
        excess = engine.judge(entry, args)
        if excess is not None:
            await self._end(entry, _too_many(excess.retry_after), exchange)
            return
        with engine.under_way(entry, args):
            if (order := engine.strike(entry, args)) is not None:
                await answer_faultily(engine, entry, order, partial(self._answer, entry, args), exchange)
            else:
                await self._end(entry, await self._answer(entry, args, receive), exchange)

    async def _end(self, entry: Entry, answer: Json | None, exchange: Exchange) -> None:
        # None when the client hung up.
        if answer is None:
            self._engine.record.hung_up(entry, time.monotonic())
        else:
            self._engine.record.end(entry, time.monotonic(), answer)
        self._engine.settle()
        if answer is not None:
            await send_answer(exchange, answer)

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
        return matched[2], Args(await read_arguments(scope, receive))


def _too_many(retry_after: int) -> Json:
    return Refusal(429, f"Too Many Requests: retry after {retry_after}", {"retry_after": retry_after}).body()


async def _refuse_unread(exchange: Exchange, answer: Json) -> None:
    # The answer goes out while the client still sends; the rest is swallowed, and the connection is not used again.
    status, headers, body = encode_answer(answer)
    await exchange.start(status, [*headers, (b"connection", b"close")])
    await exchange.body(body, more=True)
    await swallow(exchange.receive)
    await exchange.body(b"")
