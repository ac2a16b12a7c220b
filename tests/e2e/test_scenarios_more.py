"""What the numbered scenarios ask for beyond their usual case: other numbers of processes, other ways to end."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from itertools import pairwise

import pytest

from tests.e2e.rig import PATIENCE, Machine, until

OVERLAP = 0.05  # seconds for the sandbox to notice that a connection has ended

BUTTONS = """
import trio, telegram_bus

async def main():
    async with telegram_bus.join(name="nora") as bus:
        await bus.send("which?", buttons=[[("left", "L"), ("right", "R")]])
        async for update in bus:
            print("got", update.kind, update.data, flush=True)
            await update.done()

trio.run(main)
"""


@pytest.mark.parametrize("count", [2, 20])
def test_scenario_1_two_and_twenty_that_start_at_once_have_one_poller(machine: Machine, count: int) -> None:
    machine.lead()
    until(machine.profile.config_toml.exists)  # Telegram knows the token, so that others can go on with it
    machine.kill_leader()
    machine.leaders[0].wait()
    agents = {f"agent-{number}": machine.follow(f"agent-{number}") for number in range(count)}
    status = machine.wait_status(lambda status: len(status["followers"]) == count)
    for name, agent in agents.items():
        machine.say("hello", machine.wait_thread(name))
        agent.wait_said("done hello")
    assert machine.wait_status()["epoch"] == status["epoch"] == 2
    polls = sorted(machine.sandbox.record(kind="poll"), key=lambda poll: float(poll["began"]))
    assert all(poll["code"] != 409 for poll in polls)
    for before, after in pairwise(polls):
        ends = [at for at in (before["ended"], before["disconnected"]) if at is not None]
        assert ends
        assert min(ends) <= after["began"] + OVERLAP


def test_scenario_22_a_leader_in_a_terminal_that_is_closed_ends_and_frees_the_bot(machine: Machine) -> None:
    """The terminal itself goes: the kernel sends SIGHUP to whom it belongs, and reading or writing there fails."""
    ours, theirs = pty.openpty()
    command = ["leader", "--api-root", machine.sandbox.api_root, "--chat", str(machine.sandbox.chat_id)]
    own_terminal = (
        "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
        "os.execv(sys.executable, [sys.executable, '-m', 'telegram_bus', *sys.argv[1:]])"
    )
    leader = subprocess.Popen(
        [sys.executable, "-c", own_terminal, *command],
        env=machine.environ | {"TELEGRAM_BOT_TOKEN": machine.sandbox.token},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    machine.leaders.append(leader)
    os.close(theirs)
    machine.wait_status()
    os.close(ours)
    assert leader.wait(PATIENCE) in (0, 1)  # 1: its last words could not be written
    machine.lead()
    assert machine.wait_status()["epoch"] == 2


def test_scenario_26_a_press_that_comes_again_is_handled_once(machine: Machine) -> None:
    machine.lead()
    agent = machine.start(BUTTONS)
    thread = machine.wait_thread("nora")
    message = machine.wait_answer("which?", thread)
    machine.sandbox.press(message, "left")
    agent.wait_said("got callback L")
    assert machine.sandbox.repeat_batch() == 1
    machine.sandbox.press(message, "right")
    agent.wait_said("got callback R")
    assert [line for line in agent.said() if line.startswith("got")] == ["got callback L", "got callback R"]


def test_scenario_28_thirty_messages_from_before_the_first_start_are_kept(machine: Machine) -> None:
    thread = machine.sandbox.create_topic("early")
    for number in range(30):
        machine.say(f"early {number}", thread)
    machine.lead()
    machine.follow("nora").wait_said("state serving")

    def kept() -> list[str]:
        listed = json.loads(machine.run("updates", "list", "--json").stdout or "{}")
        rows = listed if isinstance(listed, list) else listed.get("updates", [])
        return [str(row) for row in rows]

    until(lambda: len(kept()) == 30)
    assert machine.sandbox.wait_for_message("who shall get", thread_id=thread, within=PATIENCE)


def test_a_leader_that_a_person_starts_takes_the_mark_of_a_stop_away_once_it_leads(machine: Machine) -> None:
    machine.lead()
    machine.wait_status()
    assert machine.run("stop").returncode == 0
    machine.leaders[0].wait(PATIENCE)
    assert machine.profile.stopped.exists()
    machine.lead()
    assert machine.wait_status()["epoch"] == 2
    assert not machine.profile.stopped.exists()
