"""What others still get while a peer misuses the bus: their throughput, their latency, the leader's memory."""

from __future__ import annotations

import time
from collections.abc import Iterator

import trio
from attrs import frozen

from benchmarks._leader import Follower, resources
from benchmarks._offender import KINDS
from benchmarks._tools import Measured, Run, benchmark, child, percentile
from telegram_bus.wire.client import open_client

LEADER = "benchmarks._leader"
OFFENDER = "benchmarks._offender"
AT_ONCE = 64
MEMORY = 32  # MB more than idle, at most
FIXED = {"newline": (25_000, 3.0), "reconnect": (5_000, 10.0)}  # requests a second; p99 in ms
SHARE, SLOWER = 0.9, 3  # what the others keep of the idle figures, where nothing is fixed


@frozen
class _Seen:
    rate: float
    p99: float  # seconds
    memory: float  # MB


@benchmark("flood", "others' requests, 64 at once and one at a time, while a peer floods or hoards")
def flood(run: Run) -> Iterator[Measured]:
    """The offender takes a core of its own; on two cores the others lose some of theirs to it whatever we do."""
    seconds = 0.5 if run.quick else 3.0
    idle = None
    for kind in (None, *KINDS):
        path = str(run.directory / f"flood-{kind}")
        with child(LEADER, path):
            if kind is None:
                idle = trio.run(_watch, path, seconds)
                yield Measured(name="nobody floods: others", value=idle.rate, unit="/s", better="more")
                yield Measured(name="nobody floods: p99", value=idle.p99 * 1e3, unit="ms")
                continue
            assert idle is not None
            with child(OFFENDER, kind, path):
                seen = trio.run(_watch, path, seconds)
        about = (KINDS[kind].__doc__ or kind).removesuffix(".")
        rate, p99 = FIXED.get(kind, (idle.rate * SHARE, idle.p99 * 1e3 * SLOWER))
        yield Measured(
            name=f"{kind}: others", value=seen.rate, unit="/s", target=rate, better="more", reference=_reference(kind)
        )
        yield Measured(name=f"{kind}: p99", value=seen.p99 * 1e3, unit="ms", target=p99)
        yield Measured(
            name=f"{kind}: memory more than idle ({about[:22]})",
            value=max(0.0, seen.memory - idle.memory),
            unit="MB",
            target=MEMORY,
        )


def _reference(kind: str) -> str:
    return "0/s, 1.6 GB" if kind in {"newline", "deaf"} else ""


async def _watch(path: str, seconds: float) -> _Seen:
    follower = Follower("honest")
    done = 0
    async with open_client(lambda: path) as client:
        await follower.join(client)

        async def ask() -> None:
            nonlocal done
            while True:
                ack = await client.request(follower.heartbeat())
                assert ack.ok, ack.message
                done += 1

        begin = time.perf_counter()
        with trio.move_on_after(seconds):
            async with trio.open_nursery() as nursery:
                for _ in range(AT_ONCE):
                    nursery.start_soon(ask)
        rate = done / (time.perf_counter() - begin)
        times = []
        begin = time.perf_counter()
        while time.perf_counter() - begin < seconds:
            before = time.perf_counter()
            await client.request(follower.heartbeat())
            times.append(time.perf_counter() - before)
        _, memory = await resources(client)
    return _Seen(rate, percentile(times, 99), memory)
