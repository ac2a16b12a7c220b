"""Questions and buttons with real processes: leaders are killed, followers start anew, and people press later."""

from __future__ import annotations

from typing import Any

from tests.e2e.rig import PATIENCE, Agent, Machine

ASKER = """
import json, sys, trio, telegram_bus

async def main():
    async with telegram_bus.join(name="asker") as bus:
        print("here", flush=True)
        answer = await bus.ask_person("Deploy?", [("Yes", {"version": [7, None]}), "No"], once="deploy")
        await bus.send(f"{answer} {json.dumps(answer.value)} {answer.sender['first_name']}", once="result")
        print("answered", flush=True)
        await trio.sleep_forever()

trio.run(main)
"""

OFFERER = """
import json, sys, trio, telegram_bus

async def main():
    async with telegram_bus.join(name="offerer") as bus:
        data = {"job": "x" * 200}
        rows = [[("Once", data)], [("Never", "n")]]
        await bus.send("one time", buttons=telegram_bus.Keyboard(rows, one_time=True), once="one")
        await bus.send("many times", buttons=[[("More", data)]], once="many")
        print("here", flush=True)
        async for update in bus:
            if update.kind == "callback":
                await bus.send(f"pressed {update.data == data}", once=update.id)
            await update.done()

trio.run(main)
"""

TYPIST = """
import trio, telegram_bus

async def main():
    async with telegram_bus.join(name="typist") as bus, bus.typing_for():
        print("here", flush=True)
        await trio.sleep_forever()

trio.run(main)
"""


def start(machine: Machine, code: str) -> Agent:
    """A follower, once it has said that it is there."""
    agent = machine.start(code)
    agent.wait_said("here")
    return agent


def toasts(machine: Machine) -> list[str]:
    """What people were told when they pressed."""
    return [entry["params"].get("text", "") for entry in machine.sandbox.record(method="answerCallbackQuery")]


def press(machine: Machine, message: dict[str, Any], label: str) -> None:
    """A person presses, and is answered."""
    query = machine.sandbox.press(message, label)
    machine.sandbox.wait_for_record(method="answerCallbackQuery", callback_query_id=query, within=PATIENCE)


def test_scenario_38_an_answer_lands_though_leader_and_asker_were_killed(machine: Machine) -> None:
    """Asked once; the press comes while nobody is there, and the asker that is started anew gets it."""
    machine.lead()
    machine.wait_status()
    asker = start(machine, ASKER)
    thread = machine.wait_thread("asker")
    question = machine.wait_answer("Deploy?", thread)
    assert all(len(key["callback_data"].encode()) <= 64 for [key] in _rows(question))
    machine.wait_status(lambda status: not status["sends"]["waiting"])  # else nobody could know that it was asked
    asker.kill()
    machine.kill_leader()
    machine.sandbox.press(question, "Yes")
    asker = start(machine, ASKER)
    machine.wait_answer('Yes {"version": [7, null]} ', thread)
    closed = machine.wait_answer("Deploy?\n\n✔ Yes — ", thread)
    assert closed["message_id"] == question["message_id"]
    assert "reply_markup" not in closed
    assert len([one for one in machine.sandbox.messages(thread_id=thread) if "Deploy?" in one.get("text", "")]) == 1
    asker.kill()


def test_buttons_outlive_restart_and_succession_with_one_effect_a_press(machine: Machine) -> None:
    """Whatever their data; a second press of what is for one is told so."""
    machine.lead()
    machine.wait_status()
    offerer = start(machine, OFFERER)
    thread = machine.wait_thread("offerer")
    once = machine.wait_answer("one time", thread)
    many = machine.wait_answer("many times", thread)
    offerer.kill()
    machine.kill_leader()
    offerer = start(machine, OFFERER)
    press(machine, once, "Once")
    press(machine, once, "Never")
    press(machine, many, "More")
    press(machine, many, "More")
    machine.sandbox.wait_for_record(3, method="sendMessage", text="pressed True", within=PATIENCE)
    assert sum(text.startswith("Already chosen: Once") for text in toasts(machine)) == 1
    offerer.kill()


def test_scenario_94_typing_ends_when_its_owner_is_killed(machine: Machine) -> None:
    machine.lead(hasty={"telegram_bus.roles.typing.EVERY": 0.3})
    machine.wait_status()
    typist = start(machine, TYPIST)
    shown = machine.sandbox.wait_for_record(2, method="sendChatAction", within=PATIENCE)
    assert shown[0]["params"]["action"] == "typing"
    typist.kill()
    machine.wait_status(lambda status: not status["followers"])

    def is_over() -> bool:
        before = len(machine.sandbox.record(method="sendChatAction"))
        try:
            machine.sandbox.wait_for_record(before + 1, method="sendChatAction", within=1.5)
        except TimeoutError:
            return True
        return False

    assert is_over() or is_over()  # one may have been on its way


def _rows(message: dict[str, Any]) -> list[list[dict[str, Any]]]:
    rows: list[list[dict[str, Any]]] = message["reply_markup"]["inline_keyboard"]
    return [[key] for row in rows for key in row]
