"""What a real leader process takes with many followers: memory, and CPU at a heartbeat a second each."""

from __future__ import annotations

import time
from collections.abc import Iterator

import trio

from benchmarks._bus import Place, bind, cpu_seconds, leading, memory, one_line, running
from benchmarks._crowd import crowd_keys
from benchmarks._leader import Follower
from benchmarks._tools import Measured, Run, benchmark
from telegram_bus.testing import Sandbox
from telegram_bus.wire.client import open_client

COUNTS = (
    # followers; targets: MB, % of a core; the reference's
    (0, 75.0, None, "60 MB", ""),
    (26, None, None, "78 to 106 MB", ""),
    (200, None, 3.0, "146 to 217 MB", "7.4 %"),
    (1_000, 95.0, 8.0, "219 MB", "41 %"),
)
WINDOW = 10.0  # seconds
BEATS = 300_000  # five minutes of a thousand followers
CONSTANT = 4.0  # MB more after them


@benchmark("members", "a real leader that polls, with followers at a heartbeat a second each")
def members(run: Run) -> Iterator[Measured]:
    place = Place(run.directory / "members")
    with Sandbox() as sandbox:
        bind(place, sandbox.chat_id, crowd_keys(COUNTS[-1][0]))
        for count, most, share, memory_reference, cpu_reference in COUNTS:
            with leading(place, sandbox.api_root, sandbox.token, sandbox.chat_id, "--no-spare") as leader:
                path = str(place.profile.leader_socket)
                with running(place, "benchmarks._crowd", path, str(count)) as crowd:
                    assert one_line(crowd)["failed"] == 0
                    time.sleep(1.0)  # its members wake those that wait for changes
                    window = WINDOW / 5 if run.quick else WINDOW
                    before, begin = cpu_seconds(leader.pid), time.perf_counter()
                    time.sleep(window)
                    used = (cpu_seconds(leader.pid) - before) / (time.perf_counter() - begin)
                    yield Measured(
                        name=f"{count:,} followers: memory",
                        value=memory(leader.pid),
                        unit="MB",
                        target=most,
                        reference=memory_reference,
                    )
                    yield Measured(
                        name=f"{count:,} followers: CPU of a core",
                        value=used * 100,
                        unit="%",
                        target=share,
                        reference=cpu_reference,
                    )
        yield _growth(run, place, sandbox)


def _growth(run: Run, place: Place, sandbox: Sandbox) -> Measured:
    """What is left of many heartbeats: nothing should be."""
    count = BEATS // 10 if run.quick else BEATS
    with leading(place, sandbox.api_root, sandbox.token, sandbox.chat_id, "--no-spare") as leader:
        path = str(place.profile.leader_socket)
        trio.run(_beat, path, count // 10)
        before = memory(leader.pid)
        trio.run(_beat, path, count)
        return Measured(
            name=f"memory after {count:,} heartbeats, more than before",
            value=memory(leader.pid) - before,
            unit="MB",
            target=CONSTANT,
        )


async def _beat(path: str, count: int) -> None:
    follower = Follower("crowd-0")

    async def some() -> None:
        for _ in range(count // 64):
            ack = await client.request(follower.heartbeat())
            assert ack.ok, ack.message

    async with open_client(lambda: path) as client:
        await follower.join(client)
        async with trio.open_nursery() as nursery:
            for _ in range(64):
                nursery.start_soon(some)
