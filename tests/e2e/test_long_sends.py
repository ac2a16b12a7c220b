"""A long answer goes on at the part that is missing, whoever died: its program, or the leader."""

from __future__ import annotations

import subprocess

import pytest

from telegram_bus import crash
from tests.e2e.rig import PATIENCE, Machine
from tests.samples import squeezed

LONG = "".join(f"{number}. line of some words 🎉\n" for number in range(400))  # three messages
SEND = ("send", "--name", "nora", "--once", "report", "--wait", str(PATIENCE))


def send(machine: Machine, text: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return machine.run(*SEND, text=text, **variables)


def arrived(machine: Machine) -> list[str]:
    thread = machine.wait_thread("nora")
    return [one["text"] for one in machine.sandbox.messages(thread_id=thread) if "text" in one]


def test_a_program_that_died_between_two_parts_goes_on_with_the_third(machine: Machine) -> None:
    """With the text that it had begun, though it says something else by now."""
    machine.lead()
    died = send(machine, LONG, **{crash.VARIABLE: "after-answer:2"})
    assert died.returncode == -9
    assert len(arrived(machine)) == 2
    again = send(machine, "reworded")
    assert again.returncode == 0, again.stderr
    assert len(again.stdout.split()) == 3
    assert squeezed("".join(arrived(machine))) == squeezed(LONG)
    assert send(machine, "reworded once more").stdout == again.stdout


@pytest.mark.parametrize("point", ["after-accept:2", "after-settle-call:2"])
def test_a_leader_that_died_at_the_second_part_is_succeeded_and_nothing_stands_twice(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setenv(crash.VARIABLE, point)
    leader = machine.lead("--no-spare")
    monkeypatch.delenv(crash.VARIABLE)
    sent = send(machine, LONG)
    assert sent.returncode == 0, sent.stderr
    assert leader.wait(PATIENCE) == -9
    assert len(sent.stdout.split()) == 3
    assert squeezed("".join(arrived(machine))) == squeezed(LONG)
