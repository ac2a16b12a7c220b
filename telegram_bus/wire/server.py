"""The server side of the bus: accepts who may connect, and gives each a session."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NoReturn

import trio

from telegram_bus.wire.connection import Connection, Peer, credentials_of, is_trusted
from telegram_bus.wire.crowd import Crowd
from telegram_bus.wire.limits import DEFAULT_LIMITS, Limits
from telegram_bus.wire.session import Answer, Responder, Session

if TYPE_CHECKING:
    import socket

__all__ = ["Answer", "Peer", "Responder", "serve_bus"]

log = logging.getLogger(__name__)

EXHAUSTED: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
EXHAUSTED_PAUSE: Final = 0.1  # before accepting again; who wants to connect waits in the listen backlog
BATCH: Final = 16  # connections accepted in one turn


async def serve_bus(
    listener: socket.socket,
    respond: Responder,
    *,
    is_known: Callable[[Peer], bool],
    limits: Limits = DEFAULT_LIMITS,
    credentials: Callable[[socket.socket], Peer] = credentials_of,
    stranger: Callable[[Peer], None] | None = None,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> NoReturn:
    """Answer the requests of all who connect to `listener`, until cancelled; the listener stays open.

    `respond` must not block; an exception of it, or of the work it returns, becomes an ack with `ok` false.
    `is_known` tells whether a peer is that of a live registration, `stranger` is told of peers of another user, which
    are hung up on. Work goes on when its peer leaves.
    Raises trio.ClosedResourceError when the listener is closed.
    """
    listener.setblocking(False)
    crowd = Crowd(limits)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(crowd.sweep)
        task_status.started()
        while True:
            await crowd.wait_for_room()
            try:
                await trio.lowlevel.wait_readable(listener)
            except trio.ClosedResourceError:
                if listener.fileno() < 0:
                    raise
                continue  # the endpoint has put a new socket under the same descriptor
            try:
                for _ in range(min(BATCH, limits.connections - len(crowd.sessions))):
                    sock, _address = listener.accept()
                    peer = _trusted_peer(sock, credentials, crowd, stranger)
                    if peer is not None:
                        session = Session(Connection(sock, limits.unknown_line), peer, crowd, respond, is_known)
                        nursery.start_soon(session.run)
            except BlockingIOError:
                pass  # that were all
            except OSError as error:
                if error.errno in EXHAUSTED:  # else the peer has left already
                    log.warning("cannot accept a connection: %s", error.strerror)
                    await trio.sleep(EXHAUSTED_PAUSE)


def _trusted_peer(
    sock: socket.socket,
    credentials: Callable[[socket.socket], Peer],
    crowd: Crowd,
    stranger: Callable[[Peer], None] | None,
) -> Peer | None:
    """Who has connected; closes the socket of one who may not."""
    try:
        peer = credentials(sock)
    except OSError:  # it has left already
        sock.close()
        return None
    if is_trusted(peer):
        return peer
    crowd.complain(peer, f"belongs to user {peer.uid}")
    if stranger is not None:
        stranger(peer)
    sock.close()
    return None
