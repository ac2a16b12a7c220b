"""The sandbox under 100 updates a second: latency and memory have to stay flat. `python -m benchmarks.sandbox_load`.

A person writes at an even pace; a bot takes each message by long polling and answers it. Latency is from the moment
a message is said until its answer was confirmed. Slice for slice it prints latency, and the sandbox's memory and CPU.
Latency is that of the whole machine; the CPU time for each answer is the sandbox's own, so flatness is judged by it.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any

import attrs

from benchmarks._tools import percentile
from telegram_bus.testing import Sandbox

RESULTS = Path(__file__).parent / "results" / "sandbox_load.jsonl"
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
# Answers after which all that is kept (messages, changes, record) is full: memory is flat from there on, or never.
FILLED = 20_000


@attrs.frozen
class Slice:
    """A part of the run: milliseconds from message to answer, the sandbox's MiB at its end and CPU ms for an answer."""

    at: float
    count: int
    p50: float
    p99: float
    most: float
    memory: float
    cpu: float


class Connection:
    """One kept-alive connection."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._http = http.client.HTTPConnection(sandbox.api_root.removeprefix("http://"), timeout=90)

    def post(self, path: str, **fields: Any) -> Any:
        self._http.request("POST", path, json.dumps(fields), {"Content-Type": "application/json"})
        return json.loads(self._http.getresponse().read())["result"]


class Load:
    """Threads of the person and the bot, and what was measured."""

    def __init__(self, sandbox: Sandbox, rate: float, threads: int) -> None:
        self.sandbox, self.rate = sandbox, rate
        self.said: dict[str, float] = {}
        self.times: list[float] = []
        self.ended = threading.Event()
        self.topics = [sandbox.create_topic(f"topic {number}") for number in range(threads)]

    def write(self) -> None:
        person, start, number = Connection(self.sandbox), time.monotonic(), 0
        while not self.ended.is_set():
            due = start + number / self.rate
            time.sleep(max(0.0, due - time.monotonic()))
            text = f"message {number}, about as long as what people write to a bot on an ordinary day"
            self.said[text] = time.monotonic()
            person.post("/sandbox/say", text=text, thread_id=self.topics[number % len(self.topics)])
            number += 1

    def answer(self) -> None:
        bot, offset, root = Connection(self.sandbox), 0, f"/bot{self.sandbox.token}"
        while not self.ended.is_set():
            for update in bot.post(f"{root}/getUpdates", offset=offset, timeout=5):
                offset = update["update_id"] + 1
                if (message := update.get("message")) and message.get("text") in self.said:
                    thread = {"message_thread_id": message["message_thread_id"]}
                    bot.post(f"{root}/sendMessage", chat_id=message["chat"]["id"], text=message["text"], **thread)
                    self.times.append((time.monotonic() - self.said.pop(message["text"])) * 1e3)


def main() -> int:
    """Run the load; 1 when memory or the cost of an answer grew, or the run was too short to tell."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sandbox_load", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--rate", type=float, default=100, help="messages a second")
    parser.add_argument("--threads", type=int, default=10, help="topics that they are written in")
    parser.add_argument("--slices", type=int, default=10)
    options = parser.parse_args()
    with Sandbox() as sandbox:
        slices = list(_measure(Load(sandbox, options.rate, options.threads), sandbox.pid, options))
    totals = itertools.accumulate(item.count for item in slices)
    filled = [item for item, total in zip(slices, totals, strict=True) if total >= FILLED]
    verdict = _judged(slices[: len(slices) - len(filled)], filled)
    at = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
    line = {"at": at, **vars(options), **verdict, "slices": [attrs.asdict(item) for item in slices]}
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(verdict))
    return 0 if verdict["flat"] else 1


def _judged(before: list[Slice], filled: list[Slice]) -> dict[str, Any]:
    if not before or len(filled) < 2:
        return {"flat": None, "why": f"the run was too short: it takes more than {FILLED} answers"}
    growth = filled[-1].memory - filled[0].memory
    cost = [statistics.median(item.cpu for item in part) for part in (before, filled)]
    flat = growth <= filled[0].memory * 0.05 and cost[1] <= 1.25 * cost[0]
    return {"flat": flat, "memory_growth_mib": round(growth, 1), "cpu_ms_before": cost[0], "cpu_ms_filled": cost[1]}


def _measure(load: Load, pid: int, options: argparse.Namespace) -> Any:
    workers = [threading.Thread(target=target, daemon=True) for target in (load.answer, load.write)]
    for worker in workers:
        worker.start()
    start, cpu, counted = time.monotonic(), _cpu(pid), 0
    for number in range(1, options.slices + 1):
        length = options.seconds / options.slices
        time.sleep(max(0.0, start + number * length - time.monotonic()))
        times, spent = load.times[counted:], _cpu(pid)
        counted += len(times)
        memory = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / 2**20
        p50, p99, most = (round(value, 2) for value in (percentile(times, 50), percentile(times, 99), max(times)))
        each = round((spent - cpu) * 1e3 / len(times), 2)
        item = Slice(round(number * length, 1), len(times), p50, p99, most, round(memory, 1), each)
        cpu = spent
        print(
            f"{item.at:7.0f} s  {item.count:6} answers  p50 {item.p50:6.2f} ms  p99 {item.p99:7.2f} ms  "
            f"{item.memory:6.1f} MiB  CPU {item.cpu:.2f} ms each",
            flush=True,
        )
        yield item
    load.ended.set()
    for worker in workers:
        worker.join(30)


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    sys.exit(main())
