"""Every example runs as its README says, against a sandbox and a real leader."""

from __future__ import annotations

import sys
from pathlib import Path

from telegram_bus.cli.demo_bus import BUS, DemoBus
from tests.e2e.rig import PATIENCE

EXAMPLES = Path(__file__).parents[2] / "examples"


def start(demo: DemoBus, name: str, *command: str) -> int:
    """Starts a follower and returns its thread."""
    demo.start(name, command)
    return demo.thread_of(name)


def conversation(demo: DemoBus, thread: int, text: str, expected: str) -> None:
    seen = demo.person.say(text, thread)
    assert demo.person.reply(thread, seen, PATIENCE)["text"] == expected


def test_the_echo_agent_answers_in_its_thread(demo: DemoBus) -> None:
    thread = start(demo, "echo", sys.executable, str(EXAMPLES / "echo_agent.py"))
    conversation(demo, thread, "hello", "You said: hello")
    conversation(demo, thread, "two\nlines", "You said: two\nlines")


def test_one_agent_asks_another_in_its_thread(demo: DemoBus) -> None:
    script = str(EXAMPLES / "ask_another.py")
    expert = start(demo, "expert", sys.executable, script, "expert")
    asker = start(demo, "asker", sys.executable, script, "asker")
    seen = demo.person.say("how many words are these", asker)
    answer = "'how many words are these' has 5 words."
    assert demo.person.reply(asker, seen, PATIENCE)["text"] == f"from expert: {answer}"
    assert demo.person.reply(asker, seen, PATIENCE, containing="So says")["text"] == "So says expert."
    assert demo.person.reply(expert, seen, PATIENCE)["text"] == "from asker: how many words are these"
    assert demo.person.reply(expert, seen, PATIENCE, containing="has 5 words")["text"] == answer
    conversation(demo, expert, "and directly", "'and directly' has 2 words.")


def test_a_shell_script_is_an_agent(demo: DemoBus) -> None:
    thread = start(demo, "shell", *BUS, "follower", "--name", "shell", "--", "sh", str(EXAMPLES / "shell_agent.sh"))
    assert demo.person.reply(thread, 0, PATIENCE)["text"] == "Here I am. Say: date, free, or bye"
    conversation(demo, thread, "well well", "You said: well well")
    seen = demo.person.say("bye", thread)
    assert demo.person.reply(thread, seen, PATIENCE)["text"] == "Until next time."
    assert demo.person.reply(thread, seen, PATIENCE, containing="ended")["text"] == "sh ended with exit status 0."
    assert demo.processes.pop("shell").wait(PATIENCE) == 0


def test_the_watcher_tells_who_comes_and_goes(demo: DemoBus) -> None:
    thread = start(demo, "watcher", sys.executable, str(EXAMPLES / "watch_members.py"))
    guest = start(demo, "guest", *BUS, "follower", "--name", "guest", "--", "cat")
    assert demo.person.reply(thread, 0, PATIENCE, containing="guest came")
    conversation(demo, guest, "hello", "hello")
    guest_process = demo.processes.pop("guest")
    guest_process.terminate()
    assert guest_process.wait(PATIENCE) == 0
    assert demo.person.reply(thread, 0, PATIENCE, containing="guest left")
    assert "guest left" in demo.log("watcher").read_text()


def test_the_careful_agent_asks_before_it_acts(demo: DemoBus) -> None:
    """And forgets nothing when it is killed in between."""
    command = (sys.executable, str(EXAMPLES / "approve.py"))
    thread = start(demo, "careful", *command)

    def decide(order: str, choice: str) -> int:
        """Gives an order and presses a button; returns from where on the answer comes."""
        seen = demo.person.say(order, thread)
        question = demo.person.reply(thread, seen, PATIENCE, containing="Shall I")
        assert question["text"] == f"Shall I really do this: {order}?"
        if choice == "No":
            process = demo.processes.pop("careful")
            process.kill()
            process.wait()
        keys = {key["text"]: key["callback_data"] for row in question["reply_markup"]["inline_keyboard"] for key in row}
        demo.person.press(question["message_id"], keys[choice])
        return seen

    seen = decide("delete everything", "No")
    demo.start("careful", command)
    assert demo.person.reply(thread, seen, PATIENCE, containing="Then not, ")
    seen = decide("something useful", "Yes")
    assert demo.person.reply(thread, seen, PATIENCE, containing="Done, as ")


def test_an_answer_grows_while_it_is_written(demo: DemoBus) -> None:
    """In the end it is all there, formatted, and is one message."""
    thread = start(demo, "thinker", sys.executable, str(EXAMPLES / "streaming_agent.py"))
    seen = demo.person.say("hello", thread)
    whole = demo.person.reply(thread, seen, PATIENCE, containing="return len(question)")
    assert whole["text"].startswith('About "hello"\n\nThat is 5 characters')
    assert "l      | 2" in whole["text"]
    assert {one["type"] for one in whole["entities"]} >= {"bold", "italic", "strikethrough", "pre"}
    assert not whole["text"].endswith("…")
