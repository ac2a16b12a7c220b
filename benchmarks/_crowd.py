"""Many followers in one process, as light as can be: they register at once, then beat once a second each."""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time

from benchmarks._leader import Follower
from telegram_bus.core.codec import encode
from telegram_bus.host import raise_descriptor_limit

__all__ = ["crowd_keys"]

SLICE = 0.01  # seconds between two looks at whose beat is due
PATIENCE = 30.0  # as a follower waits for its registration


def crowd_keys(count: int) -> list[str]:
    """The binding keys of the first `count` of them."""
    return [Follower(f"crowd-{number}").instance_id for number in range(count)]


def _register(path: str, followers: list[Follower]) -> tuple[list[socket.socket], int]:
    """Connect and register all of them at once; returns their connections and how many failed."""
    selector, held, failed = selectors.DefaultSelector(), [], 0
    lines = [encode(follower.registration()) for follower in followers]
    for line in lines:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.setblocking(False)
        held.append(sock)
        try:
            sock.connect(path)
            sock.sendall(line)
        except OSError:
            failed += 1
        else:
            selector.register(sock, selectors.EVENT_READ)
    deadline = time.monotonic() + PATIENCE
    while selector.get_map() and time.monotonic() < deadline:
        for key, _ in selector.select(1.0):
            sock = key.fileobj  # type: ignore[assignment]  # what was registered
            selector.unregister(sock)
            failed += b'"ok":true' not in sock.recv(65536)
    return held, failed + len(selector.get_map())


def _beat(followers: list[Follower], held: list[socket.socket]) -> None:
    begin, sent = time.monotonic(), 0
    while True:
        time.sleep(SLICE)
        due = int((time.monotonic() - begin) * len(held))
        for number in range(sent, due):
            place = number % len(held)
            if number >= len(held):
                assert b'"ok":true' in held[place].recv(65536)  # of its last beat
            held[place].sendall(encode(followers[place].heartbeat()))
        sent = due


def main(path: str, count: int) -> None:
    """Says how long the registrations took, in JSON, and then beats until it is killed."""
    raise_descriptor_limit()
    followers = [Follower(f"crowd-{number}") for number in range(count)]
    begin = time.perf_counter()
    held, failed = _register(path, followers)
    print(json.dumps({"seconds": time.perf_counter() - begin, "failed": failed}), flush=True)
    for sock in held:
        sock.setblocking(True)
    if held:
        _beat(followers, held)
    time.sleep(3600)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
