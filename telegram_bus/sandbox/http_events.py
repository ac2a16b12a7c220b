"""The stream of changes as server-sent events; who comes back continues where it was."""

from __future__ import annotations

import trio
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from telegram_bus.sandbox.engine import Engine
from telegram_bus.sandbox.http_guard import SECURITY_HEADERS

__all__ = ["EventStream"]

# Shows both ends that the other is alive while nothing happens.
HEARTBEAT = 15.0


class EventStream:
    """An ASGI application. The id of an event is `<instance>.<seq>`; `after` or Last-Event-ID names the last one seen.

    An event `reset` says that something is missing, so the state has to be read anew.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until the client goes."""
        request = Request(scope)
        seen = request.headers.get("last-event-id") or request.query_params.get("after", "")
        instance, _, seq = seen.rpartition(".")
        known = instance == self._engine.instance and seq.isdecimal()
        headers = {**SECURITY_HEADERS, "content-type": "text/event-stream"}
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": encoded})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._stream, int(seq) if known else -1, send)
            while (await receive())["type"] != "http.disconnect":
                pass
            nursery.cancel_scope.cancel()

    async def _stream(self, seq: int, send: Send) -> None:
        changes = self._engine.world.changes
        await _send(send, "retry: 500\n\n")
        while True:
            found = changes.texts_after(seq)
            if found is None:
                await _send(send, self._event("reset", changes.last, "{}"))
            elif found:
                await _send(send, "".join(self._event("change", at, text) for at, text in enumerate(found, seq + 1)))
            else:
                await self._idle(send)
                continue
            seq = changes.last if found is None else seq + len(found)

    async def _idle(self, send: Send) -> None:
        with trio.move_on_after(HEARTBEAT) as scope:
            await self._engine.wait_change()
        if scope.cancelled_caught:
            await _send(send, ": still here\n\n")

    def _event(self, name: str, seq: int, data: str) -> str:
        return f"id: {self._engine.instance}.{seq}\nevent: {name}\ndata: {data}\n\n"


async def _send(send: Send, text: str) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
