"""Flood control with real processes: nothing too early, also when the leader is killed; a pause outlives its leader."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from telegram_bus.core.meters import parse_limits
from telegram_bus.testing import Sandbox
from tests.e2e.test_faults import PATIENCE, Agent, Machine, until

SCALE = 20
LIMITS = f"overall=30/{1 / SCALE} private=1/{1 / SCALE} group=20/{60 / SCALE} typing=5/{1 / SCALE} burst=3"

TALKER = """
import sys, trio, telegram_bus
async def main():
    async with telegram_bus.join(sys.argv[1]) as bus:
        for number in range(int(sys.argv[2])):
            try:
                await bus.send(f"{sys.argv[1]}:{number}", once=str(number))
            except telegram_bus.CommitUnknown:
                pass  # its leader was killed while it was on its way
        print("said all", flush=True)
        await trio.sleep_forever()
trio.run(main)
"""

CHATTERBOX = """
import json, trio, telegram_bus
async def main():
    async with telegram_bus.join("chatter") as chatter, telegram_bus.join("result") as result:
        await chatter.send("chatter is here")
        await result.send("result is here")
        async with trio.open_nursery() as nursery:
            for number in range(12):
                nursery.start_soon(lambda number=number: chatter.send(f"step {number}", urgency="progress"))
            while (queue := await chatter.queue())["waiting"] < 5:
                await trio.sleep(0.01)
            print(json.dumps(queue), flush=True)
            await result.send("the result", urgency="final")
        print("said all", flush=True)
        await trio.sleep_forever()
trio.run(main)
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with Sandbox() as sandbox:
        machine = Machine(sandbox, tmp_path)
        try:
            yield machine
        finally:
            machine.end()


def talk(machine: Machine, name: str, count: int, program: str = TALKER) -> None:
    """A follower that says so many things."""
    output = machine.root / f"{name}.out"
    with output.open("wb") as stdout:
        command = [sys.executable, "-c", program, name, str(count)]
        machine.agents.append(Agent(subprocess.Popen(command, env=machine.environ, stdout=stdout), output))


def test_nothing_comes_too_early_although_leaders_are_killed(machine: Machine) -> None:
    machine.sandbox.flood_control(True, scale=SCALE)
    assert parse_limits(LIMITS).private.seconds == pytest.approx(1 / SCALE)
    machine.lead("--limits", LIMITS)
    until(machine.status)
    for number in range(3):
        talk(machine, f"talker-{number}", 60)
    for count in (40, 90):
        machine.sandbox.wait_for_record(count, within=PATIENCE, method="sendMessage", ok="true")
        machine.kill_leader()
    for agent in machine.agents:
        agent.wait_said("said all")
    assert machine.sandbox.flood()["violations"] == 0
    for number in range(3):
        texts = [call["params"]["text"] for call in machine.sandbox.record(method="sendMessage", ok="true")]
        mine = [int(text.partition(":")[2]) for text in texts if text.startswith(f"talker-{number}:")]
        assert mine == sorted(set(mine))
        assert len(mine) >= 60 - 2


def test_scenario_53_the_next_leader_waits_as_long_as_the_killed_one_was_told(machine: Machine) -> None:
    machine.lead()
    until(machine.status)
    machine.sandbox.refuse("sendMessage", 429, parameters={"retry_after": 8})
    talk(machine, "talker", 1)
    until(lambda: (machine.status() or {}).get("state") == "rate-limited")
    machine.kill_leader()
    machine.agents[0].wait_said("said all")
    [refused] = machine.sandbox.record(method="sendMessage", code=429)
    [sent] = machine.sandbox.record(method="sendMessage", ok="true")
    assert sent["began"] - refused["ended"] >= 7.9
    status = machine.status()
    assert status is not None
    assert status["epoch"] > 1


def test_a_result_goes_before_progress_and_a_follower_sees_what_waits(machine: Machine) -> None:
    machine.lead("--limits", "private=1/0.5 burst=1")
    until(machine.status)
    talk(machine, "both", 0, CHATTERBOX)
    machine.agents[0].wait_said("said all")
    queue = json.loads(machine.agents[0].wait_said("waiting"))
    assert queue["limit"] == 100
    assert queue["classes"]["progress"] == queue["waiting"] >= 5
    sent = [call["params"] for call in machine.sandbox.record(method="sendMessage", ok="true")]
    texts = [params["text"] for params in sent]
    after = texts[texts.index("the result") + 1 :]
    assert len([text for text in after if text.startswith("step")]) >= 5
    assert all(params.get("disable_notification") for params in sent if params["text"].startswith("step"))
    assert not sent[texts.index("the result")].get("disable_notification")
