"""Messages that meet trouble on their way, with the real processes: parts that wait, answers that get lost, blocks."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing

import pytest

from telegram_bus.crash import VARIABLE
from telegram_bus.testing import Sandbox
from tests.e2e.rig import PATIENCE, Machine, until

ANSWERER = """
import sys, trio, telegram_bus

async def main():
    async with telegram_bus.join(name="nora") as bus:
        async for update in bus:
            print("got", update.text, flush=True)
            text = "".join(f"{sys.argv[1]} line {number:04d} of a long answer\\n" for number in range(500))
            sent = await update.reply(text, once="answer")
            print("sent", len(sent.parts), flush=True)
            await update.done()

trio.run(main)
"""


ECHO = """
import sys, trio, telegram_bus

async def main():
    async with telegram_bus.join(name="nora") as bus:
        async for update in bus:
            try:
                sent = await update.reply(f"nora says {update.text}", once="answer")
                print("sent", sent.message_id, flush=True)
            except telegram_bus.BusError as error:
                print(type(error).__name__, error, flush=True)
                if "again" not in sys.argv:
                    continue
            await update.done()

trio.run(main)
"""


def waits(machine: Machine) -> bool:
    """Whether a call is accepted, and not claimed at this moment."""
    with closing(sqlite3.connect(f"file:{machine.profile.database}?mode=ro", uri=True)) as db:
        return [state for (state,) in db.execute("SELECT state FROM calls WHERE state != 'settled'")] == ["accepted"]


def sent(sandbox: Sandbox, thread: int) -> list[str]:
    """What stands in the thread, in order."""
    calls = sandbox.record(kind="call", method="sendMessage", ok=True)
    mine = [call for call in calls if int(call["params"].get("message_thread_id", 0)) == thread]
    return [call["params"]["text"] for call in sorted(mine, key=lambda call: float(call["began"]))]


def test_scenario_32_a_long_answer_goes_on_at_the_part_that_failed(machine: Machine) -> None:
    """Part 3 has to wait, leader and program are killed, and the next program has other words by then."""
    machine.lead()
    first = machine.start(ANSWERER, "first")
    thread = machine.wait_thread("nora")
    machine.sandbox.order_fault(
        "refuse", method="sendMessage", thread_id=thread, skip=2, code=429, parameters={"retry_after": 4}
    )
    machine.say("tell me all", thread)
    until(lambda: machine.sandbox.record(kind="call", method="sendMessage", code=429) and waits(machine))
    first.kill()
    machine.kill_leader()
    assert len(sent(machine.sandbox, thread)) == 2

    second = machine.start(ANSWERER, "second")
    second.wait_said("sent ")
    parts = sent(machine.sandbox, thread)
    whole = "".join(f"first line {number:04d} of a long answer\n" for number in range(500))
    assert "".join("".join(parts).split()) == "".join(whole.split())
    assert len(parts) == 5
    assert first.said() == ["got tell me all"]


def test_scenario_31_what_perhaps_went_out_is_told_once_and_sent_again_by_a_press(machine: Machine) -> None:
    """Telegram has the message, and its answer got lost; the leader dies, too, before anybody presses."""
    machine.lead()
    agent = machine.start(ECHO)
    thread = machine.wait_thread("nora")
    machine.sandbox.order_fault("drop", method="sendMessage", thread_id=thread)
    machine.say("hello", thread)
    agent.wait_said("CommitUnknown")
    notice = machine.wait_answer("Perhaps sent", thread)
    status = machine.wait_status()
    assert (status["sends"]["unknown"], status["followers"][0]["unknown"]) == (1, 1)
    assert "1 message perhaps sent, the newest of nora" in machine.run("status").stdout
    machine.kill_leader()
    machine.wait_status(lambda status: status["sends"]["unknown"] == 1)

    machine.sandbox.press(notice, "Send again")
    until(lambda: len([text for text in sent(machine.sandbox, thread) if text == "nora says hello"]) == 2)
    until(lambda: any(m.get("text", "").endswith("Sent again.") for m in machine.sandbox.messages(thread_id=thread)))
    agent.kill()
    again = machine.start(ECHO)  # its handler runs anew, and gets what was sent by the press
    again.wait_said("sent ")
    assert [text for text in sent(machine.sandbox, thread) if "hello" in text].count("nora says hello") == 2


def test_what_was_accepted_goes_out_though_its_program_is_dead_by_then(machine: Machine) -> None:
    """Telegram wants a pause; program and leader are killed in it, and nobody asks the next leader for anything."""
    machine.lead("--no-spare")
    agent = machine.start(ECHO)
    thread = machine.wait_thread("nora")
    machine.sandbox.order_fault(
        "refuse", method="sendMessage", thread_id=thread, code=429, parameters={"retry_after": 3}
    )
    machine.say("hello", thread)
    until(lambda: machine.sandbox.record(kind="call", method="sendMessage", code=429) and waits(machine))
    agent.kill()
    machine.kill_leader()
    machine.leaders[0].wait()
    machine.lead("--no-spare")
    machine.wait_answer("nora says hello", thread)
    assert sent(machine.sandbox, thread) == ["nora says hello"]


def test_scenario_76_a_person_who_blocked_the_bot_gets_nothing_until_they_write_again(machine: Machine) -> None:
    """The follower hears at once that the chat is closed; the message is sent when it is open again, and asked for."""
    machine.lead()
    agent = machine.start(ECHO, "again")
    thread = machine.wait_thread("nora")
    machine.say("first", thread)
    agent.wait_said("sent ")
    machine.sandbox.order_fault("refuse", method="sendMessage", thread_id=thread, code=403)
    machine.say("second", thread)
    agent.wait_said("ApiError")
    status = machine.wait_status()
    assert status["sends"]["parked"] == [{"chat_id": machine.sandbox.chat_id, "why": "the person has blocked the bot"}]
    machine.say("third", thread)
    machine.wait_answer("nora says third", thread)
    assert sent(machine.sandbox, thread) == ["nora says first", "nora says third"]


@pytest.mark.parametrize(
    ("point", "there", "told"),
    [
        ("after-accept", 1, 0),
        ("after-release", 1, 0),
        ("after-claim", 0, 1),
        ("after-send", 1, 1),
        ("after-settle-call", 1, 0),
        ("after-doubt", 1, 1),
        ("after-tell", 1, 1),
        ("after-again", 2, 1),
    ],
)
def test_a_leader_that_dies_at_any_step_sends_once_or_says_that_it_does_not_know(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, point: str, there: int, told: int
) -> None:
    """Its successor sends what was surely not sent, tells people of what it cannot know, and does neither twice."""
    monkeypatch.setenv(VARIABLE, point)
    leader = machine.lead()
    monkeypatch.delenv(VARIABLE)
    agent = machine.start(ECHO, "again")
    thread = machine.wait_thread("nora")
    if point == "after-release":
        machine.sandbox.order_fault(
            "refuse", method="sendMessage", thread_id=thread, code=429, parameters={"retry_after": 1}
        )
    elif point in ("after-doubt", "after-tell", "after-again"):
        machine.sandbox.order_fault("drop", method="sendMessage", thread_id=thread)
    machine.say("hello", thread)
    if point == "after-again":
        machine.sandbox.press(machine.wait_answer("Perhaps sent", thread), "Send again")
    assert leader.wait(PATIENCE) == -signal.SIGKILL

    machine.say("last", thread)
    machine.wait_answer("nora says last", thread)
    agent.wait_said("CommitUnknown" if told else "sent ")

    def seen() -> tuple[int, int]:
        texts = sent(machine.sandbox, thread)
        return texts.count("nora says hello"), sum(text.startswith("Perhaps sent") for text in texts)

    until(lambda: seen() == (there, told))
    machine.wait_status(lambda status: not status["sends"]["waiting"])
    assert seen() == (there, told)
