"""What a follower process costs, and a command that only asks: time until it is there, and memory."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import median

from benchmarks._bus import Place, bind, leading, memory, one_line, running
from benchmarks._tools import Measured, Run, benchmark
from telegram_bus.testing import Sandbox

ROUNDS = 15


@benchmark("follower", "a Python follower that joins, and `telegram-bus status`; medians")
def follower(run: Run) -> Iterator[Measured]:
    place = Place(run.directory / "follower")
    rounds = 3 if run.quick else ROUNDS
    with Sandbox() as sandbox:
        bind(place, sandbox.chat_id, ["guest"])
        with leading(place, sandbox.api_root, sandbox.token, sandbox.chat_id, "--no-spare"):
            said, whole, megabytes = [], [], []
            for _ in range(rounds):
                begin = time.perf_counter()
                with running(place, "benchmarks._follower", "guest", "take") as process:
                    said.append(one_line(process))
                    whole.append(time.perf_counter() - begin)
                    time.sleep(0.1)  # its first heartbeat
                    megabytes.append(memory(process.pid))
            bare = _whole(place, rounds, "-c", "pass")
            status = _whole(place, rounds, "-m", "telegram_bus", "status", "--json")
    yield Measured(name="bare python -c pass", value=bare * 1e3, unit="ms")
    yield Measured(
        name="import of telegram_bus.join",
        value=median(one["imported"] for one in said) * 1e3,
        unit="ms",
        reference="265 ms",
    )
    yield Measured(
        name="import and register, in the process",
        value=median(one["registered"] for one in said) * 1e3,
        unit="ms",
        target=350,
    )
    yield Measured(name="from the start of the process to registered", value=median(whole) * 1e3, unit="ms")
    yield Measured(name="memory, registered", value=median(megabytes), unit="MB", target=32)
    yield Measured(
        name="of telegram, httpx, asyncio, rich: imported", value=len(said[0]["unwanted"]), unit="", target=0
    )
    yield Measured(name="telegram-bus status, whole process", value=status * 1e3, unit="ms", target=150)


def _whole(place: Place, rounds: int, *arguments: str) -> float:
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        subprocess.run([sys.executable, *arguments], env=place.environ, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - begin)
    return median(times)
