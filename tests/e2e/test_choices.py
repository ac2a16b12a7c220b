"""A message that nobody owns waits for a person's choice, whoever leads by then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from telegram_bus.testing import Sandbox
from tests.e2e.test_faults import Machine, until


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with Sandbox() as sandbox:
        machine = Machine(sandbox, tmp_path)
        try:
            yield machine
        finally:
            machine.end()


def test_a_choice_made_after_the_leader_was_killed_has_its_effect_once(machine: Machine) -> None:
    sandbox = machine.sandbox
    state = sandbox.state()
    forum, owner = int(state["forum_id"]), int(state["owner_id"])
    machine.lead("--chat", str(forum), "--allow", str(owner))
    until(machine.status)
    agent = machine.follow("nora")
    agent.wait_said("serving")
    thread = sandbox.wait_for_topic("nora", chat_id=forum, within=60)
    orphan = sandbox.create_topic("orphan", chat_id=forum, user_id=owner)
    sandbox.say("lost", thread_id=orphan, chat_id=forum, user_id=owner)
    sandbox.wait_for_message("No agent has this thread", thread_id=orphan, within=60, chat_id=forum)
    machine.kill_leader()
    until(lambda: (machine.status() or {}).get("followers"))

    pressed: set[tuple[int, str]] = set()

    def choose() -> bool:
        """One press more on the newest question: the next leader asks anew if the first one was just going out."""
        questions = [one for one in sandbox.messages(thread_id=orphan, chat_id=forum) if one.get("reply_markup")]
        if questions and not agent.got():
            labels = [button["text"] for row in questions[-1]["reply_markup"]["inline_keyboard"] for button in row]
            press = questions[-1]["message_id"], next(one for one in ("nora", "↻ Look again") if one in labels)
            if press not in pressed:
                pressed.add(press)
                sandbox.press(questions[-1], press[1], user_id=owner)
        return bool(agent.got())

    until(choose)
    sandbox.say("and you?", thread_id=thread, chat_id=forum, user_id=owner)
    agent.wait_said("got and you?")
    assert agent.got() == ["lost", "and you?"]
