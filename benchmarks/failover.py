"""How long a conversation stops when the leader dies: from SIGKILL or SIGSTOP to the next update in a program's hands.

Not part of `make bench`: it takes seconds a run. `python -m benchmarks.failover --runs 30 [--standby] --json`
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from benchmarks._bus import Place, bind, leading, one_line, running
from benchmarks._tools import percentile
from telegram_bus.cli.asking import ask
from telegram_bus.core.errors import BusError
from telegram_bus.host import process_birth_id, process_state
from telegram_bus.testing import Sandbox

PATIENCE = 60.0  # seconds for a bus to be whole again between two runs
TALKER = "talker"


def main() -> int:
    """Measure, and print a line a run (or only JSON); 1 when an update did not arrive."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failover", description=__doc__)
    parser.add_argument("--runs", type=int, default=30, help="how often the leader dies (30)")
    parser.add_argument("--followers", type=int, default=3, help="how many processes follow it (3)")
    parser.add_argument("--standby", action="store_true", help="with a leader that stands by")
    parser.add_argument("--cold", action="store_true", help="without the spare that a leader keeps")
    parser.add_argument("--freeze", action="store_true", help="stop the leader instead of killing it")
    parser.add_argument("--starter", action="store_true", help="kill the follower that would start the next one, too")
    parser.add_argument("--json", action="store_true", help="only JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tb-") as name, Sandbox() as sandbox:
        times = []
        for number, seconds in enumerate(_measure(options, sandbox, Place(Path(name)))):
            times.append(seconds)
            if not options.json:
                print(f"run {number + 1:3}: {seconds:.3f} s", file=sys.stderr)
    print(json.dumps(_summary(options, times)))
    return 0


def _summary(options: argparse.Namespace, times: list[float]) -> dict[str, Any]:
    return {
        "benchmark": "failover",
        "p50_s": round(percentile(times, 50), 3),
        "p99_s": round(percentile(times, 99), 3),
        "max_s": round(max(times), 3),
        "runs": len(times),
        "followers": options.followers,
        "standby": options.standby,
        "cold": options.cold,
        "freeze": options.freeze,
        "starter": options.starter,
        "load": round(os.getloadavg()[0], 1),
    }


def _measure(options: argparse.Namespace, sandbox: Sandbox, place: Place) -> Iterator[float]:
    bind(place, sandbox.chat_id, ())
    others = [f"guest-{number}" for number in range(1, options.followers)]
    bare = ("--no-spare",) if options.cold or options.standby else ()
    with ExitStack() as stack:
        stack.enter_context(leading(place, sandbox.api_root, sandbox.token, sandbox.chat_id, *bare))
        stack.callback(_end_leaders, place)
        followers = {
            key: stack.enter_context(running(place, "benchmarks._follower", key, "report", "starts"))
            for key in (TALKER, *others)  # in this order, so that the first one has the lowest slot
        }
        for follower in followers.values():
            one_line(follower)
        thread = sandbox.wait_for_topic(TALKER, within=PATIENCE)
        for number in range(options.runs):
            with _standby(place, options.standby):
                leader = _wait_whole(place, len(followers), spare=not options.cold)
                if options.starter:
                    _kill_starter(stack, place, followers, others)
                yield _one(leader, sandbox, thread, followers[TALKER], f"message {number}", options.freeze)


def _one(leader: int, sandbox: Sandbox, thread: int, talker: subprocess.Popen[str], text: str, freeze: bool) -> float:
    begin = time.monotonic()
    os.kill(leader, signal.SIGSTOP if freeze else signal.SIGKILL)
    sandbox.say(text, thread_id=thread)
    seen = one_line(talker)
    if seen["text"] != text:
        raise RuntimeError(f"expected {text!r}, got {seen!r}")
    return float(seen["at"]) - begin


def _kill_starter(
    stack: ExitStack, place: Place, followers: dict[str, subprocess.Popen[str]], others: list[str]
) -> None:
    """The follower with the lowest slot has a head start; the talker is spared, since it is what we listen to."""
    key = others[0]
    followers[key].kill()
    followers[key].wait()
    followers[key] = stack.enter_context(running(place, "benchmarks._follower", key, "report", "starts"))


@contextmanager
def _standby(place: Place, wanted: bool) -> Iterator[None]:
    """A further leader that waits for the locks; it is the next run's leader, so it is not ended here."""
    if wanted:
        command = [sys.executable, "-m", "telegram_bus", "leader", "--standby"]
        quiet = subprocess.DEVNULL
        process = subprocess.Popen(command, env=place.environ, stdout=quiet, stderr=subprocess.PIPE)
        assert process.stderr is not None
        for line in process.stderr:
            if b"standing by" in line:
                break
        _drained.append(process)
    yield


_drained: list[subprocess.Popen[bytes]] = []


def _wait_whole(place: Place, followers: int, *, spare: bool) -> int:
    """Wait until a leader serves all followers, and a spare one stands by where there should be; return its pid."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            status = ask(place.profile, "x.status.get", place.profile.follower_secret)
        except BusError:
            status = {"followers": [], "state": "away"}
        ready = status.get("standby") or not spare
        if len(status["followers"]) == followers and status["state"] == "serving" and ready:
            return int(status["pid"])
        time.sleep(0.05)
    raise RuntimeError(f"the bus did not become whole again: {status}")


def _end_leaders(place: Place) -> None:
    """Nobody but us knows of a leader that a follower started; the mark keeps a spare from taking its place."""
    place.profile.stopped.touch()
    try:
        pid = int(json.loads(place.profile.leader_json.read_bytes())["pid"])
    except (OSError, ValueError):
        return
    birth = process_birth_id(pid)
    if process_state(pid, birth) == "alive":
        os.kill(pid, signal.SIGKILL)
    for process in _drained:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


if __name__ == "__main__":
    sys.exit(main())
