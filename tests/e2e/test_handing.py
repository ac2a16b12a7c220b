"""Work changes hands between processes, one of which dies at each step: at the end exactly one has done it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from telegram_bus.crash import VARIABLE
from telegram_bus.testing import Sandbox
from tests.e2e.test_faults import Agent, Machine, until

AGENT = """
import sys, trio, telegram_bus

async def main():
    async with telegram_bus.join(name=sys.argv[1]) as bus:
        async for update in bus:
            print("got", update.text, update.handed_by, update.note, flush=True)
            if sys.argv[1] == "donor" and update.text.startswith("give"):
                try:
                    to = await update.hand_over(update.text.split()[1], note="please")
                    print("gave", to.key, to.present, flush=True)
                except telegram_bus.RequestRefused as refused:
                    print("kept", refused, flush=True)
                    await update.done()
                continue
            await update.reply(f"{sys.argv[1]} did: {update.text}", once="answer")
            await update.done()
            print("done", update.text, flush=True)

trio.run(main)
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with Sandbox() as sandbox:
        machine = Machine(sandbox, tmp_path)
        machine.lead()
        try:
            yield machine
        finally:
            machine.end()


def follow(machine: Machine, name: str, crash: str = "") -> Agent:
    output = machine.root / f"agent-{len(machine.agents)}.out"
    with output.open("wb") as stdout:
        command = [sys.executable, "-c", AGENT, name]
        process = subprocess.Popen(command, env=machine.environ | {VARIABLE: crash}, stdout=stdout)
    agent = Agent(process, output)
    machine.agents.append(agent)
    return agent


def times(machine: Machine, text: str) -> int:
    calls = [entry for entry in machine.sandbox.record(kind="call") if entry["ok"]]
    return sum(1 for entry in calls if str(entry["params"].get("text", "")).startswith(text))


def test_work_goes_to_another_follower_with_its_note_and_is_answered_in_that_ones_thread(machine: Machine) -> None:
    donor, worker = follow(machine, "donor"), follow(machine, "worker")
    here = machine.sandbox.wait_for_topic("donor", within=60)
    there = machine.sandbox.wait_for_topic("worker", within=60)
    machine.sandbox.say("give worker the tests", thread_id=here)
    assert donor.wait_said("gave") == "gave worker True"
    assert worker.wait_said("got") == "got give worker the tests donor please"
    machine.sandbox.wait_for_message("worker did: give worker the tests", thread_id=there, within=60)
    machine.sandbox.wait_for_message("Handed over to worker.", thread_id=here, within=60)

    machine.sandbox.say("give nobody this", thread_id=here)
    assert "no agent is called nobody; there are: donor, worker" in donor.wait_said("kept")
    machine.sandbox.say("give donor this", thread_id=here)
    donor.wait_said("donor is the follower that asks")

    worker.kill()
    machine.sandbox.say("give worker the rest", thread_id=here)
    machine.sandbox.wait_for_message("Handed over to worker", thread_id=here, within=60)
    back = follow(machine, "worker")
    back.wait_said("done give worker the rest")


@pytest.mark.parametrize(
    ("who", "point"),
    [
        ("donor", "after-freeze"),
        ("donor", "before-handed"),
        ("leader", "after-hand-over"),
        ("worker", "after-append"),
        ("worker", "after-take"),
        ("worker", "before-done"),
    ],
)
def test_whoever_dies_at_whatever_step_the_work_is_done_once(
    tmp_path: Path, who: str, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Sandbox() as sandbox:
        machine = Machine(sandbox, tmp_path)
        try:
            if who == "leader":
                monkeypatch.setenv(VARIABLE, point)
            leader = machine.lead()
            monkeypatch.delenv(VARIABLE, raising=False)
            agents = {name: follow(machine, name, point if name == who else "") for name in ("donor", "worker")}
            here = sandbox.wait_for_topic("donor", within=60)
            there = sandbox.wait_for_topic("worker", within=60)
            sandbox.say("give worker it", thread_id=here)
            dying = leader if who == "leader" else agents[who].process
            until(lambda: dying.poll() is not None)
            assert dying.returncode == -signal.SIGKILL
            if who != "leader":
                agents[who] = follow(machine, who)
            sandbox.wait_for_message("worker did: give worker it", thread_id=there, within=60)
            agents["worker"].wait_said("done give worker it")
            sandbox.wait_for_message("Handed over to worker", thread_id=here, within=60)
            sandbox.say("and you?", thread_id=here)
            agents["donor"].wait_said("done and you?")
            assert times(machine, "worker did") == 1
            assert times(machine, "Handed over") == 1
            assert "donor did: give" not in "".join(agents["donor"].said())
            assert not any(line.startswith("done give") for line in agents["donor"].said())
        finally:
            machine.end()
