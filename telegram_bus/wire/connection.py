"""One end of a bus connection: a raw Unix socket as lines in and corked lines out."""

from __future__ import annotations

import os
import socket
from collections import deque
from typing import Final

import trio
from attrs import field, frozen

from telegram_bus import host
from telegram_bus.core.framing import LineSplitter
from telegram_bus.wire.descriptors import (
    CONTROL_SIZE,
    RECEIVE_FLAGS,
    Descriptors,
    TooManyDescriptors,
    pack,
    unpack,
)
from telegram_bus.wire.limits import KIB

__all__ = ["Connection", "Peer", "credentials_of", "is_trusted"]

READ: Final = 65 * KIB  # one recv: enough to see that an unknown peer's line is too long
HELD: Final = 8  # groups of descriptors whose lines are not complete; more is no peer of ours
LONG_READ: Final = 256 * KIB  # within a long line: what a Unix socket's buffer holds (wmem_default is 208 KiB)


@frozen
class Peer:
    """The process at the other end, as the kernel says: its pid (0 from another PID namespace) and uid.

    `descriptors` are the open files that came beside a request of it.
    """

    pid: int
    uid: int
    descriptors: Descriptors | None = field(default=None, eq=False, repr=False)


def credentials_of(sock: socket.socket) -> Peer:
    """Who connected this Unix socket, or who listens on it; raises OSError when it is gone already."""
    return Peer(*host.peer_credentials(sock))


def is_trusted(peer: Peer) -> bool:
    """Only our own user, and root, who can read everything of ours anyway, take part in the bus."""
    return peer.uid in {0, os.geteuid()}


class Connection:
    """Lines in, lines out, over a connected Unix socket, which it owns and makes non-blocking.

    What is `put` goes out with the next `flush`, all in one send. What the peer does not take then waits until
    `drain` has sent it. One task at a time may `receive` and one may `drain`. A broken connection closes
    itself; the reader gets to know as None or as trio.ClosedResourceError.

    Open files travel beside a line that is `put` with them. Where `takes` is set, those that the peer sent wait in
    `held`, one group a line; elsewhere the kernel closes them.

    Raw, because trio.SocketStream takes two failing system calls and 16 microseconds more for each round trip.
    """

    __slots__ = (
        "_beside",
        "_due",
        "_fd",
        "_largest",
        "_out",
        "_sock",
        "drained",
        "expected",
        "held",
        "lines",
        "progress_at",
        "queued",
        "takes",
        "unsent",
    )

    def __init__(self, sock: socket.socket, limit: int) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._fd = sock.fileno()
        self._out: list[bytes] = []
        self._largest = 0
        self._due = False  # some task is about to flush
        self._beside: deque[tuple[int, Descriptors]] = deque()  # what goes with the byte at this place of the stream
        self.held: deque[Descriptors] = deque()
        self.takes = False  # recvmsg takes some microseconds more than recv
        self.expected = False  # whether the other side takes them
        self.lines = LineSplitter(limit)
        self.queued = 0  # bytes that were ever put
        self.unsent = 0  # bytes of them that the kernel has not taken
        self.progress_at = 0.0  # when it last took some while others waited
        self.drained: trio.Event | None = None  # while a `drain` is due or runs: set at its end

    @property
    def closed(self) -> bool:
        return self._fd < 0

    @property
    def backlog(self) -> int:
        """Bytes that wait beside the largest line among them."""
        return max(0, self.unsent - self._largest)

    async def receive(self) -> list[bytes] | None:
        """Wait for bytes; return the lines they complete (perhaps none), or None at the end of the stream.

        Raises LineTooLong, and trio.ClosedResourceError when the connection was closed meanwhile. Always a
        checkpoint.
        """
        await self.wait_readable()
        return self.receive_nowait()

    def receive_nowait(self) -> list[bytes] | None:
        """As `receive`, once the connection is readable; raises TooManyDescriptors too."""
        size = READ if self.lines.pending < READ else LONG_READ
        try:
            data = self._receive_both(size) if self.takes else self._sock.recv(size)
        except BlockingIOError:
            return []
        except OSError:  # reset by the peer
            self.close()
            return None
        return self.lines.feed(data) if data else None

    def _receive_both(self, size: int) -> bytes:
        data, ancillary, flags, _address = self._sock.recvmsg(size, CONTROL_SIZE, RECEIVE_FLAGS)
        if ancillary:
            self.held.append(unpack(ancillary, flags))
            if len(self.held) > HELD:
                raise TooManyDescriptors("open files came beside lines that do not end")
        return data

    def drop_held(self) -> None:
        """Close the open files that no request has claimed."""
        while self.held:
            self.held.popleft().close()

    async def wait_readable(self) -> None:
        """Wait until the peer has sent something or left; raises trio.ClosedResourceError."""
        if self._fd < 0:
            raise trio.ClosedResourceError
        await trio.lowlevel.wait_readable(self._fd)

    def put(self, line: bytes, beside: Descriptors | None = None) -> int:
        """Add a line, with its end, to what goes out next; return how many bytes were put before it.

        `beside` are open files that travel with it; the connection closes them.
        """
        before = self.queued
        if beside is not None:
            self._beside.append((before, beside))
        self._out.append(line)
        size = len(line)
        self.queued = before + size
        self.unsent += size
        if size > self._largest:  # noqa: PLR1730 - max() takes three times as long
            self._largest = size
        return before

    @property
    def sent(self) -> int:
        """How many bytes the kernel ever took."""
        return self.queued - self.unsent

    def flush(self) -> bool:
        """Send what was put, as far as the peer takes it; False when the caller must start a `drain`."""
        if self.drained is not None or not self._out or self._fd < 0:
            return True
        out = self._out
        data = out[0] if len(out) == 1 else b"".join(out)
        try:
            sent = self._send_both(memoryview(data)) if self._beside else self._sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.close()
            return True
        self.unsent -= sent
        if self.unsent:
            self._out = [data[sent:]]
            self.drained = trio.Event()
            self.progress_at = trio.current_time()
            return False
        out.clear()
        self._largest = 0
        return True

    async def flush_soon(self) -> bool:
        """Flush once the tasks that run in this turn have put theirs too; False as `flush` says."""
        if self._due:
            return True
        self._due = True
        await trio.lowlevel.cancel_shielded_checkpoint()
        self._due = False
        return self.flush()

    async def drain(self) -> None:
        """Send what `flush` left, and what is put meanwhile, until nothing is left or the peer is gone."""
        try:
            while self._out:
                data = memoryview(b"".join(self._out))
                self._out = []
                while data:
                    data = data[await self._send(data) :]
            self._largest = 0
        except (OSError, trio.ClosedResourceError):
            self.close()
        finally:
            if self.drained is not None:
                self.drained.set()
                self.drained = None

    async def _send(self, data: memoryview) -> int:
        if self._fd < 0:
            raise trio.ClosedResourceError
        await trio.lowlevel.wait_writable(self._fd)
        try:
            sent = self._send_both(data) if self._beside else self._sock.send(data)
        except BlockingIOError:  # writable is a hint
            return 0
        self.unsent -= sent
        self.progress_at = trio.current_time()
        return sent

    def _send_both(self, data: memoryview) -> int:
        """Send what comes before the next open files, or they and the first part of their line."""
        place, beside = self._beside[0]
        if gap := place - self.sent:
            return self._sock.send(data[:gap])
        until = self._beside[1][0] - place if len(self._beside) > 1 else len(data)
        sent = self._sock.sendmsg([data[:until]], pack(beside))
        self._beside.popleft()
        beside.close()
        return sent

    async def wait_drained(self) -> None:
        """Wait until a `drain` that is due has ended; always a checkpoint."""
        if self.drained is not None:
            await self.drained.wait()
        else:
            await trio.lowlevel.checkpoint()

    def close(self) -> None:
        """Close the socket; whoever waits on it gets trio.ClosedResourceError. Harmless when repeated."""
        if self._fd >= 0:
            trio.lowlevel.notify_closing(self._fd)
            self._fd = -1
            self._sock.close()
            self.drop_held()
            for _place, beside in self._beside:
                beside.close()
            self._beside.clear()
