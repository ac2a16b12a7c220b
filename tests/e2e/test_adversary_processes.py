"""A program with the bus's secret that means harm, against real processes: nobody else notices anything of it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from telegram_bus.cli.demo_bus import BUS, DemoBus, open_demo_bus
from tests.e2e.test_foreign_follower import Foreign

PATIENCE = 30.0
STEERING = "\x1b[2J\x9b31m\u202e\n\r"


@pytest.fixture(scope="module")
def bus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoBus]:
    with open_demo_bus(tmp_path_factory.mktemp("bus")) as running:
        running.start("cat", [*BUS, "follower", "--name", "cat", "--", "cat"])
        running.thread_of("cat")
        yield running


@pytest.fixture
def intruder(bus: DemoBus, tmp_path: Path) -> Iterator[Foreign]:
    follower = Foreign(bus, "intruder", tmp_path, extended=True)
    yield follower
    follower.close()


def leader(bus: DemoBus) -> int:
    return int(json.loads(bus.profile.leader_json.read_text())["pid"])


def answers(bus: DemoBus, text: str) -> dict[str, Any]:
    """The victim is served as ever: what it answers."""
    thread = bus.thread_of("cat")
    return bus.person.reply(thread, bus.person.say(text, thread), PATIENCE)


def shows(bus: DemoBus, *command: str) -> str:
    done = subprocess.run([*BUS, *command], env=bus.environ, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def test_no_registration_ends_the_leader_or_steers_a_terminal(bus: DemoBus, intruder: Foreign) -> None:
    """Each of the first three ended it, and with each start the next one."""
    before = leader(bus)
    for odd in (
        {"instanceId": "\ud800"},
        {"profileKey": "\ud800"},
        {"target": {"chatId": bus.person.address["chat_id"], "threadId": 2**64 - 1}},
        {"profileKey": ""},
        {"profileKey": "x\0"},
        {"threadName": f"\ud800{STEERING}", "cwd": "\0", "pid": 1e300, "slot": STEERING, "processBirthId": "\udfff"},
    ):
        identity = {"protocolVersion": 1, "runtimeBuild": "x", "capabilities": intruder.capabilities}
        facts = {"instanceId": "i", "connectedAtMs": 1, "registrationGeneration": "g1", "protocol": identity}
        ack = intruder.ask("follower.register", registration=facts | {"profileKey": "odd"} | odd)
        assert isinstance(ack["ok"], bool)
    assert intruder.register()["ok"]
    assert intruder.say("x.activity.set", text=f"\ud800{STEERING}")["ok"]
    assert answers(bus, "still here")["text"] == "still here"
    assert leader(bus) == before
    for command in (("status",), ("status", "--json"), ("threads", "list"), ("threads", "list", "--json")):
        shown = shows(bus, *command)
        assert "intruder" in shown
        assert not set(shown) & set("\x1b\x9b\u202e\r"), command


def test_what_is_the_victim_s_stays_its_own(bus: DemoBus, intruder: Foreign) -> None:
    assert intruder.register()["ok"]
    said = answers(bus, "private")
    chat = {"id": bus.person.address["chat_id"], "type": "private"}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("x.buttons.keep", {"keyboardId": "k", "content": {"buttons": [["a", 1]], "question": {"text": "?"}}}),
        ("x.update.hand", {"to": "cat", "token": 1, "parts": [{"kind": "message", "body": said | {"chat": chat}}]}),
    ]
    for kind, fields in asked:
        ack = intruder.say(kind, messageId=said["message_id"], **fields)
        assert (ack["ok"], "intruder" in ack["message"]) == (False, True), ack
    markup = {"inline_keyboard": [[{"text": "ok", "callback_data": "tb:own:0:i:"}]]}
    ack = intruder.call(
        "sendMessage", chat_id=chat["id"], message_thread_id=intruder_thread(bus), text="x", reply_markup=markup
    )
    assert "such buttons are the bus's own" in ack["message"]


def intruder_thread(bus: DemoBus) -> int:
    return bus.thread_of("intruder")


def test_the_token_leaves_this_machine_neither_as_a_file_nor_as_text(bus: DemoBus, intruder: Foreign) -> None:
    token = bus.person.address["token"].partition(":")[2]
    assert intruder.register()["ok"]
    place = {"chat_id": bus.person.address["chat_id"], "message_thread_id": intruder_thread(bus)}
    assert intruder.ask("x.file.expect")["ok"]
    config = os.open(bus.profile.config_toml, os.O_RDONLY)
    try:
        request = {
            "kind": "x.file.send",
            "requestId": "f",
            "auth": intruder.secret,
            "instanceId": intruder.instance,
            "registrationGeneration": "g1",
            "sentAtMs": 1,
            "method": "sendDocument",
            "params": place,
            "files": [{"field": "document", "name": "a.txt"}],
        }
        socket.send_fds(intruder.leader, [json.dumps(request).encode() + b"\n"], [config])
    finally:
        os.close(config)
    assert "holds secrets of the bus" in json.loads(intruder.answers.readline())["message"]
    sent = intruder.call("sendMessage", **place, text=f"token = {token}")
    assert sent["ok"], sent
    assert token not in json.dumps(sent)
    for path in bus.profile.logs_dir.iterdir():
        assert token not in path.read_text()
