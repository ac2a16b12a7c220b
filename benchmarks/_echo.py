"""The raw baseline: Trio SocketStreams on both ends that echo 200 bytes; run as a module it is the server."""

from __future__ import annotations

import secrets
import sys
import time
from pathlib import Path

import trio

from benchmarks._tools import child, percentile, pinned

__all__ = ["measure_echo"]

LINE = b"x" * 199 + b"\n"
CORE = 0


def measure_echo(directory: Path, count: int) -> tuple[float, float]:
    """Round trips one at a time, both processes on one core, in seconds: p50 and p99."""
    path = directory / f"echo-{secrets.token_hex(4)}"
    with child("benchmarks._echo", str(path)), pinned(CORE):
        times = trio.run(_ask, path, count)
    return percentile(times, 50), percentile(times, 99)


async def _ask(path: Path, count: int) -> list[float]:
    times = []
    async with await trio.open_unix_socket(path) as stream:
        for _ in range(count):
            begin = time.perf_counter()
            await stream.send_all(LINE)
            await stream.receive_some(65536)
            times.append(time.perf_counter() - begin)
    return times


async def _echo(stream: trio.SocketStream) -> None:
    async with stream:
        while data := await stream.receive_some(65536):
            await stream.send_all(data)


async def _serve(path: str) -> None:
    with trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM) as listener:
        await listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        async with trio.open_nursery() as nursery:
            while True:
                connection, _ = await listener.accept()
                nursery.start_soon(_echo, trio.SocketStream(connection))


if __name__ == "__main__":
    with pinned(CORE):
        trio.run(_serve, sys.argv[1])
