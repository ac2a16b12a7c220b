"""A long answer goes on at the part that is missing, whoever died: its program, or the leader."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from telegram_bus import crash
from telegram_bus.testing import Sandbox
from tests.e2e.test_faults import PATIENCE, Machine

LONG = "".join(f"{number}. line of some words 🎉\n" for number in range(400))  # three messages
SEND = ("send", "--name", "nora", "--once", "report", "--wait", str(PATIENCE))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with Sandbox() as sandbox:
        machine = Machine(sandbox, tmp_path)
        try:
            yield machine
        finally:
            machine.end()


def send(machine: Machine, text: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "telegram_bus", *SEND]
    environ = machine.environ | variables
    return subprocess.run(
        command, env=environ, input=text, capture_output=True, text=True, timeout=2 * PATIENCE, check=False
    )


def arrived(machine: Machine) -> list[str]:
    thread = machine.sandbox.wait_for_topic("nora", within=PATIENCE)
    return [one["text"] for one in machine.sandbox.messages(thread_id=thread) if "text" in one]


def squeezed(text: str) -> str:
    return "".join(text.split())


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
