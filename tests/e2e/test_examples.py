"""Every example runs as its README says, against a sandbox and a real leader."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from telegram_bus.cli.demo_bus import BUS, DemoBus, open_demo_bus

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE = 30.0


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoBus]:
    """A bus for all examples: each has threads of its own, and starting one takes a second."""
    with open_demo_bus(tmp_path_factory.mktemp("bus")) as running:
        yield running


def start(bus: DemoBus, name: str, *command: str) -> int:
    """Starts a follower and returns its thread."""
    bus.start(name, command)
    return bus.thread_of(name)


def conversation(bus: DemoBus, thread: int, text: str, expected: str) -> None:
    seen = bus.person.say(text, thread)
    assert bus.person.reply(thread, seen, PATIENCE)["text"] == expected


def test_the_echo_agent_answers_in_its_thread(bus: DemoBus) -> None:
    thread = start(bus, "echo", sys.executable, str(EXAMPLES / "echo_agent.py"))
    conversation(bus, thread, "hello", "You said: hello")
    conversation(bus, thread, "two\nlines", "You said: two\nlines")


def test_one_agent_asks_another_in_its_thread(bus: DemoBus) -> None:
    script = str(EXAMPLES / "ask_another.py")
    expert = start(bus, "expert", sys.executable, script, "expert")
    asker = start(bus, "asker", sys.executable, script, "asker")
    seen = bus.person.say("how many words are these", asker)
    answer = "'how many words are these' has 5 words."
    assert bus.person.reply(asker, seen, PATIENCE)["text"] == f"from expert: {answer}"
    assert bus.person.reply(asker, seen, PATIENCE, containing="So says")["text"] == "So says expert."
    assert bus.person.reply(expert, seen, PATIENCE)["text"] == "from asker: how many words are these"
    assert bus.person.reply(expert, seen, PATIENCE, containing="has 5 words")["text"] == answer
    conversation(bus, expert, "and directly", "'and directly' has 2 words.")


def test_a_shell_script_is_an_agent(bus: DemoBus) -> None:
    thread = start(bus, "shell", *BUS, "follower", "--name", "shell", "--", "sh", str(EXAMPLES / "shell_agent.sh"))
    assert bus.person.reply(thread, 0, PATIENCE)["text"] == "Here I am. Say: date, free, or bye"
    conversation(bus, thread, "well well", "You said: well well")
    seen = bus.person.say("bye", thread)
    assert bus.person.reply(thread, seen, PATIENCE)["text"] == "Until next time."
    assert bus.person.reply(thread, seen, PATIENCE, containing="ended")["text"] == "sh ended with exit status 0."
    assert bus.processes.pop("shell").wait(PATIENCE) == 0


def test_the_watcher_tells_who_comes_and_goes(bus: DemoBus) -> None:
    thread = start(bus, "watcher", sys.executable, str(EXAMPLES / "watch_members.py"))
    guest = start(bus, "guest", *BUS, "follower", "--name", "guest", "--", "cat")
    assert bus.person.reply(thread, 0, PATIENCE, containing="guest came")
    conversation(bus, guest, "hello", "hello")
    guest_process = bus.processes.pop("guest")
    guest_process.terminate()
    assert guest_process.wait(PATIENCE) == 0
    assert bus.person.reply(thread, 0, PATIENCE, containing="guest left")
    assert "guest left" in bus.log("watcher").read_text()


def test_the_careful_agent_asks_before_it_acts(bus: DemoBus) -> None:
    """And forgets nothing when it is killed in between."""
    command = (sys.executable, str(EXAMPLES / "approve.py"))
    thread = start(bus, "careful", *command)

    def decide(order: str, choice: str) -> int:
        """Gives an order and presses a button; returns from where on the answer comes."""
        seen = bus.person.say(order, thread)
        question = bus.person.reply(thread, seen, PATIENCE, containing="Shall I")
        assert question["text"] == f"Shall I really do this: {order}?"
        if choice == "No":
            process = bus.processes.pop("careful")
            process.kill()
            process.wait()
        keys = {key["text"]: key["callback_data"] for row in question["reply_markup"]["inline_keyboard"] for key in row}
        bus.person.press(question["message_id"], keys[choice])
        return seen

    seen = decide("delete everything", "No")
    bus.start("careful", command)
    assert bus.person.reply(thread, seen, PATIENCE, containing="Then not, ")
    seen = decide("something useful", "Yes")
    assert bus.person.reply(thread, seen, PATIENCE, containing="Done, as ")


def test_an_answer_grows_while_it_is_written(bus: DemoBus) -> None:
    """In the end it is all there, formatted, and is one message."""
    thread = start(bus, "thinker", sys.executable, str(EXAMPLES / "streaming_agent.py"))
    seen = bus.person.say("hello", thread)
    whole = bus.person.reply(thread, seen, PATIENCE, containing="return len(question)")
    assert whole["text"].startswith('About "hello"\n\nThat is 5 characters')
    assert "l      | 2" in whole["text"]
    assert {one["type"] for one in whole["entities"]} >= {"bold", "italic", "strikethrough", "pre"}
    assert not whole["text"].endswith("…")
