"""Questions and buttons with real processes: leaders are killed, followers start anew, and people press later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from telegram_bus.testing import Sandbox
from tests.e2e.test_succession import PATIENCE, Bus

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
        await trio.sleep(1)
        print("here", flush=True)
        await trio.sleep_forever()

trio.run(main)
"""


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    with Sandbox() as sandbox:
        bus = Bus(sandbox, tmp_path)
        try:
            yield bus
        finally:
            bus.end()


def start(bus: Bus, code: str) -> subprocess.Popen[bytes]:
    """A follower, once it has said that it is there."""
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=bus.environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    bus.processes.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == b"here\n"
    return process


def kill_leader(bus: Bus) -> None:
    status = bus.wait_status(lambda status: status["state"] == "serving")
    os.kill(int(str(status["pid"])), signal.SIGKILL)


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def toasts(bus: Bus) -> list[str]:
    """What people were told when they pressed."""
    return [entry["params"].get("text", "") for entry in bus.sandbox.record(method="answerCallbackQuery")]


def press(bus: Bus, message: dict[str, Any], label: str) -> None:
    """A person presses, and is answered."""
    query = bus.sandbox.press(message, label)
    bus.sandbox.wait_for_record(method="answerCallbackQuery", callback_query_id=query, within=PATIENCE)


def test_scenario_38_an_answer_lands_though_leader_and_asker_were_killed(bus: Bus) -> None:
    """Asked once; the press comes while nobody is there, and the asker that is started anew gets it."""
    bus.lead()
    asker = start(bus, ASKER)
    thread = bus.sandbox.wait_for_topic("asker", within=PATIENCE)
    question = bus.sandbox.wait_for_message("Deploy?", thread_id=thread, within=PATIENCE)
    assert all(len(key["callback_data"].encode()) <= 64 for [key] in _rows(question))
    kill(asker)
    kill_leader(bus)
    bus.sandbox.press(question, "Yes")
    asker = start(bus, ASKER)
    bus.sandbox.wait_for_message('Yes {"version": [7, null]} ', thread_id=thread, within=PATIENCE)
    closed = bus.sandbox.wait_for_message("Deploy?\n\n✔ Yes — ", thread_id=thread, within=PATIENCE)
    assert closed["message_id"] == question["message_id"]
    assert "reply_markup" not in closed
    assert len([one for one in bus.sandbox.messages(thread_id=thread) if "Deploy?" in one.get("text", "")]) == 1
    kill(asker)


def test_buttons_outlive_restart_and_succession_with_one_effect_a_press(bus: Bus) -> None:
    """Whatever their data; a second press of what is for one is told so."""
    bus.lead()
    offerer = start(bus, OFFERER)
    thread = bus.sandbox.wait_for_topic("offerer", within=PATIENCE)
    once = bus.sandbox.wait_for_message("one time", thread_id=thread, within=PATIENCE)
    many = bus.sandbox.wait_for_message("many times", thread_id=thread, within=PATIENCE)
    kill(offerer)
    kill_leader(bus)
    offerer = start(bus, OFFERER)
    press(bus, once, "Once")
    press(bus, once, "Never")
    press(bus, many, "More")
    press(bus, many, "More")
    bus.sandbox.wait_for_record(3, method="sendMessage", text="pressed True", within=PATIENCE)
    assert sum(text.startswith("Already chosen: Once") for text in toasts(bus)) == 1
    kill(offerer)


def test_scenario_94_typing_ends_when_its_owner_is_killed(bus: Bus) -> None:
    bus.lead()
    typist = start(bus, TYPIST)
    shown = bus.sandbox.wait_for_record(2, method="sendChatAction", within=PATIENCE)
    assert shown[0]["params"]["action"] == "typing"
    kill(typist)
    bus.wait_status(lambda status: not status["followers"])
    before = len(bus.sandbox.record(method="sendChatAction"))
    with pytest.raises(TimeoutError):
        bus.sandbox.wait_for_record(before + 1, method="sendChatAction", within=7)


def _rows(message: dict[str, Any]) -> list[list[dict[str, Any]]]:
    rows: list[list[dict[str, Any]]] = message["reply_markup"]["inline_keyboard"]
    return [[key] for row in rows for key in row]
