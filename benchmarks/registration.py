"""Followers that come all at once, as after a change of leader, to a real leader that knows their threads."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from benchmarks._bus import Place, bind, leading, one_line, running
from benchmarks._crowd import crowd_keys
from benchmarks._tools import Measured, Run, benchmark
from telegram_bus.testing import Sandbox

COUNTS = ((26, None, ""), (200, None, ""), (1_000, 300.0, "232 to 255 fail"))  # how many, target (ms), reference
ROUNDS = 5


@benchmark("registration", "followers with threads, all at once, each on a connection of its own")
def registration(run: Run) -> Iterator[Measured]:
    """The median of several rounds; each round meets the members of the round before, who fall silent."""
    place = Place(run.directory / "registration")
    with Sandbox() as sandbox:
        bind(place, sandbox.chat_id, crowd_keys(COUNTS[-1][0]))
        with leading(place, sandbox.api_root, sandbox.token, sandbox.chat_id, "--no-spare"):
            path = str(place.profile.leader_socket)
            for count, target, reference in COUNTS:
                rounds = []
                for _ in range(1 if run.quick else ROUNDS):
                    with running(place, "benchmarks._crowd", path, str(count)) as crowd:
                        rounds.append(one_line(crowd))
                yield Measured(
                    name=f"{count:,} at once",
                    value=median(one["seconds"] for one in rounds) * 1e3,
                    unit="ms",
                    target=target,
                    reference=reference,
                )
                yield Measured(
                    name=f"{count:,} at once: failed, of all rounds",
                    value=sum(one["failed"] for one in rounds),
                    unit="",
                    target=0,
                    reference=reference,
                )
