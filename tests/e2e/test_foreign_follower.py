"""A follower written with nothing but sockets and JSON, after docs/protocol.md, lives on the bus."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from telegram_bus.cli.demo_bus import BUS, DemoBus
from tests.e2e.rig import PATIENCE

DURABLE = "durable-follower-admission-v1"


@pytest.fixture(scope="module")
def bus(demo: DemoBus) -> DemoBus:
    """With one more follower, of our own."""
    demo.start("cat", [*BUS, "follower", "--name", "cat", "--", "cat"])
    demo.thread_of("cat")
    return demo


class Foreign:
    """A follower in steps 1 to 7 of the document; blocking, one request at a time."""

    def __init__(self, bus: DemoBus, key: str, directory: Path, *, extended: bool) -> None:
        profile = bus.directory / "home" / "profiles" / "default"
        self.secret = (profile / "follower.secret").read_text().strip()
        self.key, self.instance, self.serial = key, f"{key}:{os.getpid()}:{secrets.token_hex(4)}", 0
        self.capabilities = sorted([DURABLE, *(["telegram-bus-ext-v1"] if extended else [])])
        self.path = directory / f"{key}.sock"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen()
        self.listener.settimeout(PATIENCE)
        self.deliveries: Any = None
        self.leader = socket.socket(socket.AF_UNIX)
        self.leader.settimeout(PATIENCE)
        self.leader.connect(json.loads((profile / "leader.json").read_text())["endpoint"])
        self.answers = self.leader.makefile("rb")

    def close(self) -> None:
        for one in (self.answers, self.leader, self.listener, *(self.deliveries or ())):
            one.close()

    def ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        self.serial += 1
        request_id = f"{self.instance}:{self.serial}"
        ack = self.line(json.dumps({"kind": kind, "requestId": request_id, "auth": self.secret, **fields}))
        assert ack["requestId"] == request_id
        return ack

    def line(self, line: str) -> dict[str, Any]:
        self.leader.sendall(f"{line}\n".encode())
        ack: dict[str, Any] = json.loads(self.answers.readline())
        assert ack["kind"] == "bus.ack"
        return ack

    def register(self, capabilities: list[str] | None = None) -> dict[str, Any]:
        identity = {
            "protocolVersion": 1,
            "runtimeBuild": "foreign/1",
            "capabilities": self.capabilities if capabilities is None else capabilities,
        }
        registration = {
            "instanceId": self.instance,
            "connectedAtMs": 1,
            "registrationGeneration": "g1",
            "protocol": identity,
            "profileKey": self.key,
            "threadName": self.key,
            "busSocketPath": str(self.path),
            "cwd": str(self.path.parent),
        }
        return self.ask("follower.register", registration=registration)

    def say(self, kind: str, **fields: Any) -> dict[str, Any]:
        return self.ask(kind, instanceId=self.instance, registrationGeneration="g1", sentAtMs=1, **fields)

    def call(self, method: str, **body: Any) -> dict[str, Any]:
        return self.say("follower.callApi", method="call", args=[method, body])

    def receive(self, *, acknowledge: bool) -> dict[str, Any]:
        """The next delivery; with or without a receipt."""
        if self.deliveries is None:
            connection, _ = self.listener.accept()
            connection.settimeout(PATIENCE)
            self.deliveries = (connection, connection.makefile("rb"))
        connection, lines = self.deliveries
        request: dict[str, Any] = json.loads(lines.readline())
        delivery = request["delivery"]
        ack: dict[str, Any] = {"kind": "bus.ack", "requestId": request["requestId"], "ok": acknowledge}
        if acknowledge:
            ack["result"] = {name: delivery[name] for name in ("deliveryId", "sourceUpdateId")}
        connection.sendall(json.dumps(ack).encode() + b"\n")
        return request


@pytest.fixture
def foreign(bus: DemoBus, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Foreign]:
    follower = Foreign(bus, f"foreign{request.param:d}", tmp_path, extended=request.param)
    yield follower
    follower.close()


each = pytest.mark.parametrize("foreign", [False, True], indirect=True, ids=["compatible", "extended"])


@each
def test_it_registers_gets_updates_and_answers(bus: DemoBus, foreign: Foreign) -> None:
    refused = foreign.register(capabilities=[])
    assert (refused["ok"], refused["error"]["code"]) == (False, "incompatible-protocol")
    ack = foreign.register()
    assert ack["ok"]
    assert DURABLE in ack["protocol"]["capabilities"]
    assert {"chatId", "threadId", "threadName"} <= set(ack["result"]) <= {"chatId", "threadId", "threadName", "slot"}
    place = {"chat_id": ack["result"]["chatId"], "message_thread_id": ack["result"]["threadId"]}
    beat = foreign.say("follower.heartbeat")
    assert ack["result"]["slot"] in beat["result"]["eligibleElectionSlots"]

    seen = bus.person.say("hello", place["message_thread_id"])
    first = foreign.receive(acknowledge=False)
    again = foreign.receive(acknowledge=True)
    assert first["kind"] == again["kind"] == "leader.forwardMessage"
    assert first["delivery"] == again["delivery"]
    assert again["auth"] == foreign.secret
    source = again["message"]["pi_telegram_source_update_id"]
    facts = f'{{"version":1,"kind":"{again["kind"]}","recipientBindingKey":"{foreign.key}","sourceUpdateId":{source}}}'
    assert again["delivery"]["deliveryId"] == f"telegram-follower-v1-{hashlib.sha256(facts.encode()).hexdigest()}"

    sent = foreign.call("sendMessage", **place, text=f"you said {again['message']['text']}")
    assert sent["ok"]
    assert bus.person.reply(place["message_thread_id"], seen, PATIENCE)["text"] == "you said hello"
    message = sent["result"]["message_id"]
    assert foreign.call("editMessageText", chat_id=place["chat_id"], message_id=message, text="changed")["ok"]
    assert foreign.say("follower.disconnect")["ok"]
    assert not foreign.say("follower.heartbeat")["ok"]


@each
def test_it_may_do_what_its_policy_says_and_nothing_else(foreign: Foreign) -> None:
    extended = "telegram-bus-ext-v1" in foreign.capabilities
    place = foreign.register()["result"]
    chat = place["chatId"]
    assert not foreign.call("getUpdates")["ok"]
    assert not foreign.call("sendMessage", chat_id=chat, text="into the main chat")["ok"]
    assert foreign.call("setMyCommands", commands=[{"command": "go", "description": "Goes"}])["ok"]  # an offer
    assert not foreign.call("setChatTitle", chat_id=chat, title="mine")["ok"]
    in_general = foreign.call("sendMessage", chat_id=chat, text="to all", __piTelegramAggregateDelivery=True)
    assert in_general["ok"] is not extended
    too_long = foreign.call("sendMessage", chat_id=chat, message_thread_id=place["threadId"], text="x" * 5_000)
    assert not too_long["ok"]
    assert "message is too long" in too_long["message"]
    assert ("result" in too_long) is extended
    if extended:
        assert too_long["result"]["apiError"]["code"] == 400
    upload = foreign.say("follower.callApi", method="callMultipart", args=["sendDocument", {"chat_id": chat}])
    assert not upload["ok"]
    assert not foreign.say("follower.callApi", method="downloadFile", args=["file"])["ok"]

    found = foreign.say("follower.resolveAgentTarget", selector={"threadName": "CAT"})
    assert set(found["result"]) == {"chatId", "threadId"}
    members = foreign.ask("x.members.list")["result"]
    assert foreign.key in [member["key"] for member in members["members"]]
    assert foreign.ask("x.status.get")["result"]["state"] == "serving"
    assert not foreign.ask("x.operator.stop")["ok"]
    unknown = foreign.line('{"kind": "x.nothing.here", "requestId": "1"}')
    assert (unknown["requestId"], unknown["ok"]) == ("invalid", False)


@each
def test_files_travel_by_their_paths_only_without_the_extensions(foreign: Foreign, tmp_path: Path) -> None:
    place = foreign.register()["result"]
    body = {"chat_id": place["chatId"], "message_thread_id": place["threadId"]}
    (tmp_path / "a.txt").write_bytes(b"content")
    (tmp_path / "link").symlink_to("/etc/passwd")

    def upload(path: str) -> dict[str, Any]:
        args = ["sendDocument", body, "document", path, "shown.txt"]
        return foreign.say("follower.callApi", method="callMultipart", args=args)

    sent = upload(f"{tmp_path}/a.txt")
    if "telegram-bus-ext-v1" in foreign.capabilities:
        assert "as open descriptors" in sent["message"]
        return
    assert sent["result"]["document"]["file_name"] == "shown.txt"
    assert "symbolic links" in upload(f"{tmp_path}/link")["message"]
    assert "must lie in" in upload("/etc/passwd")["message"]
    file_id = sent["result"]["document"]["file_id"]
    fetched = foreign.say("follower.callApi", method="downloadFile", args=[file_id, "../b.txt"])["result"]
    assert Path(fetched["path"]).read_bytes() == b"content"
    assert Path(fetched["path"]).parts[-4:] == ("followers", foreign.key, "files", "b.txt")
