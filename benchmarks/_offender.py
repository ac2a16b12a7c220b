"""A process that misuses the bus in one of several ways, as fast as it can, until it is killed."""

from __future__ import annotations

import selectors
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from benchmarks._leader import Follower
from telegram_bus.core.codec import encode
from telegram_bus.host import raise_descriptor_limit

CHUNK = b"x" * 65536
MANY = 1_000


def connect(path: str) -> socket.socket:
    """A connection, as soon as the backlog takes one."""
    while True:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(path)
        except OSError:
            sock.close()
            time.sleep(0.001)
        else:
            return sock


def pour(path: str, data: bytes, first: bytes = b"", *, read: bool = False) -> None:
    """Send `first`, wait for its answer, then send `data` again and again; connect anew when closed."""
    while True:
        with connect(path) as sock, suppress(OSError):
            if first:
                sock.sendall(first)
                sock.recv(65536)
            sock.setblocking(not read)
            while True:
                with suppress(BlockingIOError):
                    sock.send(data)
                if read:
                    with suppress(BlockingIOError):
                        while len(sock.recv(262144)) == 262144:
                            pass


def newline(path: str) -> None:
    """One that streams without a newline."""
    pour(path, CHUNK)


def secret(path: str) -> None:
    """One whose secret is wrong."""
    pour(path, encode(Follower("thief").heartbeat()).replace(b"0123456789abcdef", b"fedcba9876543210") * 50)


def deaf(path: str) -> None:
    """A follower that pipelines and never reads."""
    follower = Follower("deaf")
    pour(path, encode(follower.heartbeat()) * 250, encode(follower.registration()))


def known(path: str) -> None:
    """A follower that pipelines at full speed, and reads."""
    follower = Follower("eager")
    pour(path, encode(follower.heartbeat()) * 250, encode(follower.registration()), read=True)


def reconnect(path: str) -> None:
    """50 that stream without a newline, and connect anew at once when closed."""
    selector = selectors.DefaultSelector()

    def add() -> None:
        sock = connect(path)
        sock.setblocking(False)
        selector.register(sock, selectors.EVENT_WRITE)

    for _ in range(50):
        add()
    while True:
        for key, _ in selector.select():
            sock = key.fileobj
            assert isinstance(sock, socket.socket)
            try:
                sock.send(CHUNK)
            except BlockingIOError:
                pass
            except OSError:
                selector.unregister(sock)
                sock.close()
                add()


def hold(path: str, data: bytes) -> None:
    """1,000 that send `data` once and then hold their connection."""
    raise_descriptor_limit()
    held = [connect(path) for _ in range(MANY)]
    for sock in held:
        with suppress(OSError):
            sock.sendall(data)
    ready()
    time.sleep(3600)


def idle(path: str) -> None:
    """1,000 that say nothing."""
    hold(path, b"")


def half(path: str) -> None:
    """1,000 with a half line each."""
    hold(path, b"x" * 1024)


def dripping(path: str) -> None:
    """1,000 that send a byte each in turn, and connect anew when closed."""
    raise_descriptor_limit()
    held = [connect(path) for _ in range(MANY)]
    ready()
    while True:
        for n, sock in enumerate(held):
            try:
                sock.send(b"x")
            except OSError:
                sock.close()
                held[n] = connect(path)
            time.sleep(0.0005)


def ready() -> None:
    print("ready", flush=True)


KINDS: dict[str, Callable[[str], None]] = {
    kind.__name__: kind for kind in (newline, secret, deaf, known, reconnect, idle, half, dripping)
}

if __name__ == "__main__":
    if sys.argv[1] not in {"idle", "half", "dripping"}:
        ready()
    KINDS[sys.argv[1]](sys.argv[2])
