"""Work changes hands between processes, one of which dies at each step: at the end exactly one has done it."""

from __future__ import annotations

import signal

import pytest

from telegram_bus.crash import VARIABLE
from tests.e2e.rig import PATIENCE, Agent, Machine

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


def follow(machine: Machine, name: str, crash: str = "") -> Agent:
    return machine.start(AGENT, name, **{VARIABLE: crash})


def times(machine: Machine, text: str) -> int:
    calls = [entry for entry in machine.sandbox.record(kind="call") if entry["ok"]]
    return sum(1 for entry in calls if str(entry["params"].get("text", "")).startswith(text))


def test_work_goes_to_another_follower_with_its_note_and_is_answered_in_that_ones_thread(machine: Machine) -> None:
    machine.lead()
    donor, worker = follow(machine, "donor"), follow(machine, "worker")
    here = machine.wait_thread("donor")
    there = machine.wait_thread("worker")
    machine.sandbox.say("give worker the tests", thread_id=here)
    assert donor.wait_said("gave") == "gave worker True"
    assert worker.wait_said("got") == "got give worker the tests donor please"
    machine.sandbox.wait_for_message("worker did: give worker the tests", thread_id=there, within=PATIENCE)
    machine.sandbox.wait_for_message("Handed over to worker.", thread_id=here, within=PATIENCE)

    machine.sandbox.say("give nobody this", thread_id=here)
    assert "no agent is called nobody; there are: donor, worker" in donor.wait_said("kept")
    machine.sandbox.say("give donor this", thread_id=here)
    donor.wait_said("donor is the follower that asks")

    worker.kill()
    machine.sandbox.say("give worker the rest", thread_id=here)
    machine.sandbox.wait_for_message("Handed over to worker", thread_id=here, within=PATIENCE)
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
    machine: Machine, who: str, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if who == "leader":
        monkeypatch.setenv(VARIABLE, point)
    leader = machine.lead()
    monkeypatch.delenv(VARIABLE, raising=False)
    agents = {name: follow(machine, name, point if name == who else "") for name in ("donor", "worker")}
    here = machine.wait_thread("donor")
    there = machine.wait_thread("worker")
    machine.say("give worker it", here)
    dying = leader if who == "leader" else agents[who].process
    assert dying.wait(PATIENCE) == -signal.SIGKILL
    if who != "leader":
        agents[who] = follow(machine, who)
    machine.wait_answer("worker did: give worker it", there)
    agents["worker"].wait_said("done give worker it")
    machine.wait_answer("Handed over to worker", here)
    machine.say("and you?", here)
    agents["donor"].wait_said("done and you?")
    assert times(machine, "worker did") == 1
    assert times(machine, "Handed over") == 1
    assert "donor did: give" not in "".join(agents["donor"].said())
    assert not any(line.startswith("done give") for line in agents["donor"].said())
