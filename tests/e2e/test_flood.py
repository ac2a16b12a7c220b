"""Flood control with real processes: nothing too early, also when the leader is killed; a pause outlives its leader."""

from __future__ import annotations

import json

import pytest

from telegram_bus.core.meters import parse_limits
from tests.e2e.rig import PATIENCE, Machine

SCALE = 20
EACH = 35  # messages of a talker
PAUSE = 8  # seconds, longer than a successor takes to come, also on a machine that is busy
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
            for number in range(16):
                nursery.start_soon(lambda number=number: chatter.send(f"step {number}", urgency="progress"))
            while (queue := await chatter.queue())["waiting"] < 5:
                await trio.sleep(0.01)
            print(json.dumps(queue), flush=True)
            await result.send("the result", urgency="final")
        print("said all", flush=True)
        await trio.sleep_forever()
trio.run(main)
"""


def test_nothing_comes_too_early_although_leaders_are_killed(machine: Machine) -> None:
    machine.sandbox.flood_control(True, scale=SCALE)
    assert parse_limits(LIMITS).private.seconds == pytest.approx(1 / SCALE)
    machine.lead("--limits", LIMITS)
    machine.wait_status()
    for number in range(3):
        machine.start(TALKER, f"talker-{number}", str(EACH))
    for count in (EACH, 2 * EACH):
        machine.sandbox.wait_for_record(count, within=PATIENCE, method="sendMessage", ok="true")
        machine.kill_leader()
    for agent in machine.agents:
        agent.wait_said("said all")
    assert machine.sandbox.flood()["violations"] == 0
    for number in range(3):
        texts = [call["params"]["text"] for call in machine.sandbox.record(method="sendMessage", ok="true")]
        mine = [int(text.partition(":")[2]) for text in texts if text.startswith(f"talker-{number}:")]
        assert mine == sorted(set(mine))
        assert len(mine) >= EACH - 2


def test_scenario_53_the_next_leader_waits_as_long_as_the_killed_one_was_told(machine: Machine) -> None:
    machine.lead()
    machine.wait_status()
    machine.sandbox.refuse("sendMessage", 429, parameters={"retry_after": PAUSE})
    talker = machine.start(TALKER, "talker", "1")
    machine.wait_status(lambda status: status["state"] == "rate-limited")
    machine.kill_leader()
    talker.wait_said("said all")
    [refused] = machine.sandbox.record(method="sendMessage", code=429)
    [sent] = machine.sandbox.record(method="sendMessage", ok="true")
    assert sent["began"] - refused["ended"] >= PAUSE - 0.1
    assert machine.wait_status()["epoch"] > 1


def test_a_result_goes_before_progress_and_a_follower_sees_what_waits(machine: Machine) -> None:
    machine.lead("--limits", "private=1/0.25 burst=1")
    machine.wait_status()
    both = machine.start(CHATTERBOX)
    both.wait_said("said all")
    queue = json.loads(both.wait_said("waiting"))
    assert queue["limit"] == 100
    assert queue["classes"]["progress"] == queue["waiting"] >= 5
    sent = [call["params"] for call in machine.sandbox.record(method="sendMessage", ok="true")]
    texts = [params["text"] for params in sent]
    after = texts[texts.index("the result") + 1 :]
    assert len([text for text in after if text.startswith("step")]) >= 5
    assert all(params.get("disable_notification") for params in sent if params["text"].startswith("step"))
    assert not sent[texts.index("the result")].get("disable_notification")
