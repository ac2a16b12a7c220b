"""A message that nobody owns waits for a person's choice, whoever leads by then."""

from __future__ import annotations

from tests.e2e.rig import PATIENCE, Machine, until


def test_a_choice_made_after_the_leader_was_killed_has_its_effect_once(machine: Machine) -> None:
    sandbox = machine.sandbox
    state = sandbox.state()
    forum, owner = int(state["forum_id"]), int(state["owner_id"])
    machine.lead("--chat", str(forum), "--allow", str(owner))
    machine.wait_status()
    agent = machine.follow("nora")
    agent.wait_said("serving")
    thread = sandbox.wait_for_topic("nora", chat_id=forum, within=PATIENCE)
    orphan = sandbox.create_topic("orphan", chat_id=forum, user_id=owner)
    sandbox.say("lost", thread_id=orphan, chat_id=forum, user_id=owner)
    sandbox.wait_for_message("No agent has this thread", thread_id=orphan, within=PATIENCE, chat_id=forum)
    machine.kill_leader()
    machine.wait_status(lambda status: status["followers"])

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
