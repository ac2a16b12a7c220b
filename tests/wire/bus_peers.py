"""A server with the responder of a test, and peers that speak raw lines to it over real Unix sockets."""

from __future__ import annotations

import json
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import trio
import trio.testing

from telegram_bus.core.envelopes import Ack, CallApi, Envelope, Heartbeat
from telegram_bus.wire.connection import Peer, credentials_of
from telegram_bus.wire.limits import Limits
from telegram_bus.wire.server import Answer, Responder, serve_bus

HEARTBEAT = {"kind": "follower.heartbeat", "instanceId": "one", "sentAtMs": 1}
SECRET = "secret"


def heartbeat(request_id: str = "h", **fields: Any) -> bytes:
    return line({**HEARTBEAT, "requestId": request_id, "auth": SECRET, **fields})


def call(request_id: str = "c", **fields: Any) -> bytes:
    """A request that `Work` takes for work that waits."""
    request = {"kind": "follower.callApi", "instanceId": "one", "sentAtMs": 1, "method": "call", "args": ["getMe"]}
    return line({**request, "requestId": request_id, "auth": SECRET, **fields})


def line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def beat(request_id: str = "h") -> Heartbeat:
    return Heartbeat(request_id=request_id, auth=SECRET, instance_id="one", sent_at_ms=1)


def api_call(request_id: str, *args: Any, method: str = "call") -> CallApi:
    return CallApi(request_id=request_id, auth=SECRET, instance_id="one", sent_at_ms=1, method=method, args=args)


def ok(envelope: Envelope, _peer: Peer) -> Ack:
    """Accept whatever has the secret."""
    return Ack(request_id=envelope.request_id, ok=envelope.auth == SECRET)


def nobody(_peer: Peer) -> bool:
    return False


def everybody(_peer: Peer) -> bool:
    return True


class Work:
    """A responder that gives heartbeats an ack at once, and calls one when the test says so."""

    def __init__(self, result: Any = None) -> None:
        self.started: list[str] = []
        self.ended: list[str] = []
        self.gate = trio.Event()
        self.result = result

    def __call__(self, envelope: Envelope, peer: Peer) -> Answer:
        return partial(self._work, envelope) if isinstance(envelope, CallApi) else ok(envelope, peer)

    async def _work(self, envelope: Envelope) -> Ack:
        self.started.append(envelope.request_id)
        await self.gate.wait()
        self.ended.append(envelope.request_id)
        return Ack(request_id=envelope.request_id, ok=True, result=self.result)

    async def let_go(self) -> None:
        """End the work that has begun, once nothing more can begin by itself."""
        await trio.testing.wait_all_tasks_blocked()
        self.gate.set()
        self.gate = trio.Event()


class RawPeer:
    """A peer that sends what it likes."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._buffer = b""

    async def send(self, *lines: bytes) -> None:
        await self.stream.send_all(b"".join(lines))

    async def answer(self) -> dict[str, Any]:
        """The next answer."""
        while b"\n" not in self._buffer:
            data = await self.stream.receive_some()
            assert data, "the server closed the connection"
            self._buffer += data
        first, _, self._buffer = self._buffer.partition(b"\n")
        ack = json.loads(first)
        assert ack["kind"] == "bus.ack"
        return dict(ack)

    async def ask(self, request: bytes) -> dict[str, Any]:
        await self.send(request)
        return await self.answer()

    async def answers_until_closed(self) -> list[dict[str, Any]]:
        """Wait until the server has closed the connection; return what it said before."""
        try:
            while data := await self.stream.receive_some():
                self._buffer += data
        except trio.BrokenResourceError:  # reset: there were requests that nobody has read
            pass
        return [json.loads(one) for one in self._buffer.split(b"\n")[:-1]]

    async def wait_closed(self) -> None:
        await self.answers_until_closed()


class Server:
    """A running server and a way to connect to it."""

    def __init__(self, path: Path, nursery: trio.Nursery) -> None:
        self.path = path
        self.nursery = nursery
        self.scope = trio.CancelScope()
        self.peers: list[RawPeer] = []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        self.listener.listen(4096)

    async def start(
        self,
        respond: Responder = ok,
        *,
        is_known: Callable[[Peer], bool] = nobody,
        limits: Limits | None = None,
        credentials: Callable[[socket.socket], Peer] = credentials_of,
        stranger: Callable[[Peer], None] | None = None,
    ) -> Server:
        async def run(*, task_status: trio.TaskStatus[None]) -> None:
            with self.scope:
                await serve_bus(
                    self.listener,
                    respond,
                    is_known=is_known,
                    limits=limits or Limits(),
                    credentials=credentials,
                    stranger=stranger,
                    task_status=task_status,
                )

        await self.nursery.start(run)
        return self

    async def connect(self) -> RawPeer:
        peer = RawPeer(await trio.open_unix_socket(self.path))
        self.peers.append(peer)
        return peer

    async def aclose(self) -> None:
        """End the server and all peers."""
        self.nursery.cancel_scope.cancel()
        self.listener.close()
        for peer in self.peers:
            await trio.aclose_forcefully(peer.stream)


class FakeServer:
    """A server that does what the test says with each connection."""

    def __init__(self, path: Path, nursery: trio.Nursery) -> None:
        self.path = path
        self.nursery = nursery
        self.accepted = 0

    async def start(self, serve: Callable[[trio.SocketStream], Awaitable[None]]) -> FakeServer:
        sock = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
        await sock.bind(str(self.path))
        sock.listen(100)

        async def run() -> None:
            with sock:
                while True:
                    connection, _ = await sock.accept()
                    self.accepted += 1
                    self.nursery.start_soon(one, trio.SocketStream(connection))

        async def one(stream: trio.SocketStream) -> None:
            async with stream:
                await serve(stream)

        self.nursery.start_soon(run)
        return self
