"""The sandbox's door: a listener that can be closed for a while, and connections that can be cut in the middle."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress
from functools import partial

import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ASGIFramework

__all__ = ["HOST", "Gate", "open_listener"]

HOST = "127.0.0.1"
# Between two tries to have a port back that somebody else took meanwhile.
RETRY = 0.05

Client = tuple[str, int]


def open_listener(port: int = 0) -> socket.socket:
    """A socket bound to a port of 127.0.0.1, 0 for any free one; raises OSError when the port is taken.

    It does not listen yet: who connects is refused, and the port is ours.
    """
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
    except OSError:
        listener.close()
        raise
    return listener


class Gate:
    """Lets connections in, and keeps an eye on each. hypercorn's own `serve` hides both from us."""

    def __init__(self) -> None:
        self._streams: dict[Client, trio.SocketStream] = {}
        self._accepting = trio.CancelScope()
        self._closed_until = 0.0

    async def serve(
        self,
        app: ASGIFramework,
        listener: socket.socket,
        config: Config,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve an ASGI application on a bound socket, which is taken over, until cancelled."""
        port = listener.getsockname()[1]
        handle = partial(self._handle, ASGIWrapper(app), config, WorkerContext(None))
        async with trio.open_nursery() as connections:
            while True:
                listener.listen(config.backlog)
                accepting = trio.SocketListener(trio.socket.from_stdlib_socket(listener))
                task_status.started()
                task_status = trio.TASK_STATUS_IGNORED
                with trio.CancelScope() as self._accepting:
                    await trio.serve_listeners(handle, [accepting], handler_nursery=connections)
                # Bound, but not listening: connections are refused, and nobody else gets the port.
                listener = await _bind_again(port)
                with ExitStack() as unless_open:
                    unless_open.callback(listener.close)
                    await trio.sleep_until(self._closed_until)
                    unless_open.pop_all()

    def refuse(self, seconds: float, spare: Client) -> None:
        """Close the listener for so long and cut all connections but the one to `spare`; not extended while closed."""
        self._closed_until = max(self._closed_until, trio.current_time() + seconds)
        for client in list(self._streams):
            if client != spare:
                self.cut(client)
        self._accepting.cancel()

    def cut(self, client: Client) -> None:
        """End a connection now; what was sent on it still arrives."""
        if (stream := self._streams.get(client)) is not None:
            with suppress(OSError):
                stream.socket.shutdown(socket.SHUT_RDWR)

    async def _handle(
        self, app: ASGIWrapper, config: Config, context: WorkerContext, stream: trio.SocketStream
    ) -> None:
        try:
            client: Client = stream.socket.getpeername()
        except OSError:
            await trio.aclose_forcefully(stream)
            return
        self._streams[client] = stream
        try:
            # hypercorn names the type of encrypted streams and takes plain ones as well.
            await TCPServer(app, config, context, {}, stream)  # type: ignore[arg-type]
        finally:
            del self._streams[client]


async def _bind_again(port: int) -> socket.socket:
    while True:
        try:
            return open_listener(port)
        except OSError:
            await trio.sleep(RETRY)
