"""From an update at Telegram to its handler: a real leader polls the sandbox, a real follower says when it has it."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from functools import partial

import trio

from benchmarks._bus import Place, bind, leading, one_line, running
from benchmarks._tools import Measured, Run, benchmark, percentile
from telegram_bus.sandbox.engine import Engine
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_doings import say
from telegram_bus.sandbox.serve import Address, open_listener, serve_sandbox

COUNT = 300
IDLE = 0.03  # seconds of silence between two updates: longer than it takes until the next poll waits


@benchmark("latency", "a message at the sandbox until it is in the program's hands, idle bus, both journals with fsync")
def latency(run: Run) -> Iterator[Measured]:
    times = trio.run(_measure, run, COUNT // 10 if run.quick else COUNT)
    p50 = percentile(times, 50)
    yield Measured(
        name="sandbox to handler, p50", value=p50 * 1e3, unit="ms", target=8, reference="", ratio=p50 / run.echo
    )
    yield Measured(name="sandbox to handler, p99", value=percentile(times, 99) * 1e3, unit="ms")


async def _measure(run: Run, count: int) -> list[float]:
    """The sandbox runs in this process, so that the clock starts when the update is there, and no earlier."""
    engine = Engine(World(random.SystemRandom()))
    async with trio.open_nursery() as nursery:
        address: Address = await nursery.start(serve_sandbox, engine, open_listener())
        place = Place(run.directory / "latency")
        times = await trio.to_thread.run_sync(_converse, engine, address, place, count)
        nursery.cancel_scope.cancel()
    return times


def _converse(engine: Engine, address: Address, place: Place, count: int) -> list[float]:
    """Write to a follower again and again; how long each message took, in seconds."""
    bind(place, address.chat_id, ())
    times = []
    with (
        leading(place, address.api_root, address.token, address.chat_id, "--no-spare"),
        running(place, "benchmarks._follower", "guest", "report") as follower,
    ):
        one_line(follower)
        for number in range(-(count // 10), count):
            time.sleep(IDLE)
            begin = trio.from_thread.run_sync(_say, engine, f"message {number}")
            seen = one_line(follower)
            assert seen["text"] == f"message {number}", seen
            if number >= 0:
                times.append(seen["at"] - begin)
    return times


def _say(engine: Engine, text: str) -> float:
    """The owner writes into the one thread there is; returns when (seconds of the monotonic clock)."""
    world = engine.world
    chat = world.chats[world.owner.id]
    (thread,) = chat.topics
    begin = time.monotonic()
    engine.act(partial(say, world, chat, world.owner, text, thread_id=thread))
    return begin
