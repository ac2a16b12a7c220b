"""A small HTTP server on the loopback whose answers a test writes, byte by byte where it must."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qsl

import h11
import trio
from attrs import define, field


@define
class Request:
    """What arrived: path, form fields, and the connection to answer on."""

    path: str
    fields: dict[str, str]
    headers: dict[str, str]
    stream: trio.SocketStream
    connection: h11.Connection
    body: bytes = b""

    @property
    def method(self) -> str:
        return self.path.rpartition("/")[2]

    async def answer(self, body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """Answer with JSON, or with bytes as they are."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [("content-length", str(len(content))), *(headers or {}).items()]
        await self.raw(h11.Response(status_code=status, headers=lines), h11.Data(content), h11.EndOfMessage())

    async def ok(self, result: Any) -> None:
        await self.answer({"ok": True, "result": result})

    async def refuse(self, code: int, description: str, **parameters: Any) -> None:
        body: dict[str, Any] = {"ok": False, "error_code": code, "description": description}
        await self.answer(body | ({"parameters": parameters} if parameters else {}), status=code)

    async def raw(self, *events: Any) -> None:
        await self.stream.send_all(b"".join(self.connection.send(event) or b"" for event in events))

    async def reset(self) -> None:
        """End the connection at once, unread bytes and all."""
        await self.stream.aclose()


Respond = Callable[[Request], Awaitable[None]]


@define
class Server:
    """Where it listens, and what was asked so far."""

    root: str
    requests: list[Request] = field(factory=list)
    _arrived: trio.Event = field(factory=trio.Event)

    @property
    def methods(self) -> list[str]:
        return [request.method for request in self.requests]

    async def arrived(self, count: int) -> None:
        """Wait until so many requests were read."""
        while len(self.requests) < count:
            await self._arrived.wait()

    def note(self, request: Request) -> None:
        self.requests.append(request)
        self._arrived.set()
        self._arrived = trio.Event()


@asynccontextmanager
async def serve(respond: Respond) -> AsyncIterator[Server]:
    """Serve on a free port; `respond` is called for each request, in its connection's task."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    server = Server(f"http://127.0.0.1:{listener.socket.getsockname()[1]}")

    async def handle(stream: trio.SocketStream) -> None:
        async with stream:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError):
                await _converse(stream, server, respond)

    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, handle, [listener])
        yield server
        nursery.cancel_scope.cancel()


async def _converse(stream: trio.SocketStream, server: Server, respond: Respond) -> None:
    connection = h11.Connection(h11.SERVER)
    head: h11.Request | None = None
    body = b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await stream.receive_some())
        elif isinstance(event, h11.Request):
            head, body = event, b""
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            assert head is not None
            headers = {name.decode(): value.decode() for name, value in head.headers}
            fields = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
            request = Request(head.target.decode(), fields, headers, stream, connection, body)
            server.note(request)
            await respond(request)
            if connection.states != {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
                return
            connection.start_next_cycle()
        else:
            return
