"""Round trips through the multiplexing client and the real requests, each side a process of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import trio

from benchmarks._echo import measure_echo
from benchmarks._leader import Follower, resources
from benchmarks._tools import Measured, Run, benchmark, child, percentile, pinned
from telegram_bus.core.envelopes import Envelope
from telegram_bus.wire.client import BusClient, open_client

CORE = 0
LEADER = "benchmarks._leader"


@benchmark("roundtrip", "heartbeat and getMe, 1 / 8 / 64 at once")
def roundtrip(run: Run) -> Iterator[Measured]:
    """Alone both sides share one core: the pure CPU path; many at once each may have its own."""
    count = 2_000 if run.quick else 20_000
    path = run.directory / "alone"
    with child(LEADER, str(path), "--core", str(CORE)), pinned(CORE):
        for name in ("heartbeat", "getMe"):
            echo, _ = measure_echo(run.directory, count)  # beside it in time too: a shared machine has its moods
            times, cpu = trio.run(_alone, str(path), name, count)
            p50, p99 = percentile(times, 50), percentile(times, 99)
            yield Measured(
                name=f"{name}, one at a time, one core, p50",
                value=p50 * 1e6,
                unit="µs",
                target=1.5 * echo * 1e6,
                reference="232 µs",
                ratio=p50 / echo,
            )
            yield Measured(
                name=f"{name}, one at a time, one core, p99",
                value=p99 * 1e6,
                unit="µs",
                target=300,
                reference="872 µs",
                ratio=p99 / echo,
            )
            yield Measured(
                name=f"{name}, leader's CPU, one at a time",
                value=cpu / count * 1e6,
                unit="µs",
                target=40,
                reference="190 µs",
            )
    path = run.directory / "many"
    with child(LEADER, str(path)):
        for name in ("heartbeat", "getMe"):
            for at_once, target, reference in ((8, 25_000, "5,800"), (64, 50_000, "6,400")):
                rate, cpu = trio.run(_many, str(path), name, at_once, count * 4)
                yield Measured(
                    name=f"{name}, {at_once} at once",
                    value=rate,
                    unit="/s",
                    target=target,
                    better="more",
                    reference=f"{reference}/s",
                )
                if at_once == 64:
                    yield Measured(
                        name=f"{name}, leader's CPU, 64 at once",
                        value=cpu * 1e6,
                        unit="µs",
                        target=10,
                        reference="190 µs",
                    )


def _source(name: str) -> tuple[Follower, Callable[[], Envelope]]:
    follower = Follower("bench")
    return follower, follower.heartbeat if name == "heartbeat" else follower.get_me


async def _alone(path: str, name: str, count: int) -> tuple[list[float], float]:
    follower, make = _source(name)
    async with open_client(lambda: path) as client:
        await follower.join(client)
        for _ in range(count // 10):
            await client.request(make())
        before, _ = await resources(client)
        times = [await _timed(client, make) for _ in range(count)]
        after, _ = await resources(client)
    return times, after - before


async def _timed(client: BusClient, make: Callable[[], Envelope]) -> float:
    request = make()
    begin = time.perf_counter()
    ack = await client.request(request)
    end = time.perf_counter()
    assert ack.ok, ack.message
    return end - begin


async def _many(path: str, name: str, at_once: int, count: int) -> tuple[float, float]:
    follower, make = _source(name)

    async def ask(times: int) -> None:
        for _ in range(times):
            ack = await client.request(make())
            assert ack.ok, ack.message

    async with open_client(lambda: path) as client:
        await follower.join(client)
        await ask(count // 50)
        before, _ = await resources(client)
        begin = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for _ in range(at_once):
                nursery.start_soon(ask, count // at_once)
        seconds = time.perf_counter() - begin
        after, _ = await resources(client)
    done = count // at_once * at_once
    return done / seconds, (after - before) / done
