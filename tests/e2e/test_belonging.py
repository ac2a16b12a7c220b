"""Albums, split texts and comments with forwards, from a person's client to a program, also when their leader dies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from telegram_bus import crash
from tests.e2e.rig import PATIENCE, Agent, Machine, until

AGENT = """
import json, trio, telegram_bus

async def main():
    async with telegram_bus.join(name="nora") as bus:
        async for update in bus:
            files = [file.name for file in update.files]
            print(json.dumps([update.text, len(update.parts), files, update.follows]), flush=True)
            await update.done()

trio.run(main)
"""


def follow(machine: Machine, **variables: str) -> tuple[Agent, int]:
    """The program above, and its thread."""
    return machine.start(AGENT, **variables), machine.wait_thread("nora")


def wait_got(agent: Agent, count: int) -> list[Any]:
    until(lambda: len(agent.said()) >= count)
    return [json.loads(line) for line in agent.said()]


def album(machine: Machine, thread: int, names: str, captioned: str) -> None:
    files = [{"content": b"x", "name": name, "caption": "look" if name == captioned else ""} for name in names]
    machine.sandbox.send_album(files, thread_id=thread)


def test_scenario_77_an_album_is_one_item_with_its_files_in_order_and_its_caption(machine: Machine) -> None:
    machine.lead()
    agent, thread = follow(machine)
    album(machine, thread, "abcdefghij", captioned="g")
    machine.say("next", thread)
    assert wait_got(agent, 2) == [["look", 10, list("abcdefghij"), None], ["next", 1, [], None]]


def test_scenario_80_a_text_that_the_client_split_is_one_item_as_it_was(machine: Machine) -> None:
    machine.lead()
    agent, thread = follow(machine)
    whole = "".join(chr(97 + number % 26) for number in range(4096 + 4096 + 500))
    for start in (0, 4096, 8192):
        machine.say(whole[start : start + 4096], thread)
    shared = machine.sandbox.say("something else")
    machine.sandbox.forward([shared, shared], "what of this?", thread_id=thread)
    assert wait_got(agent, 2) == [
        [whole, 3, [], None],
        ["what of this?\n\nsomething else\n\nsomething else", 3, [], None],
    ]


def test_scenario_79_an_album_survives_the_death_of_its_leader_at_part_two_of_four(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(crash.VARIABLE, "after-settle:2")
    leader = machine.lead()
    monkeypatch.delenv(crash.VARIABLE)
    agent, thread = follow(machine)
    album(machine, thread, "abcd", captioned="c")
    assert leader.wait(PATIENCE) < 0
    assert wait_got(agent, 1) == [["look", 4, list("abcd"), None]]
    machine.say("next", thread)
    assert wait_got(agent, 2)[1:] == [["next", 1, [], None]]


@pytest.mark.parametrize("point", ["after-append:3", "before-done:1"])
def test_an_album_survives_the_death_of_its_program(machine: Machine, point: str) -> None:
    """With three of four parts in its inbox, or handed out and not done: then it is handed out once more, whole."""
    machine.lead()
    first, thread = follow(machine, **{crash.VARIABLE: point})
    album(machine, thread, "abcd", captioned="c")
    first.process.wait(PATIENCE)
    second, _ = follow(machine)
    machine.say("next", thread)
    assert wait_got(second, 2) == [["look", 4, list("abcd"), None], ["next", 1, [], None]]
    assert len(first.said()) == (1 if point == "before-done:1" else 0)
