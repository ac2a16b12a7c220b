"""What a leader notes of requests that it refuses, and what it does not."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from attrs import define, field

from telegram_bus.core.admission import Rules
from telegram_bus.core.envelopes import CallApi, Envelope
from telegram_bus.core.extensions import FileGet, OperatorStop, StatusGet
from telegram_bus.core.identity import EXTENSIONS, ours
from telegram_bus.roles.requests import Requests
from telegram_bus.wire.server import Peer
from tests.roles.test_requests import PEER, SECRET, Leader, beat, call, register


@define(eq=False)
class Noting(Leader):
    """A leader whose audit log is a list."""

    notes: list[tuple[str | None, int, str, str | None, str]] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.gate.set()
        rules = Rules(identity=ours("1"), secret=SECRET, operator_secret="o")
        self.requests = Requests(self, rules, note=lambda *what: self.notes.append(what))


@pytest.fixture
async def noting() -> Noting:
    """A leader with the member "a", one of our own."""
    leader = Noting()
    assert (await leader.ask(register("a", "r", EXTENSIONS))).ok
    return leader


def asking(method: str, **params: Any) -> CallApi:
    """A call of the member."""
    return attrs.evolve(call(), args=(method, params))


PLACE = {"chat_id": 1, "message_thread_id": 2}


@pytest.mark.parametrize(
    ("envelope", "noted"),
    [
        (asking("sendMessage", chat_id=1, message_thread_id=3), ("sendMessage", "message_thread_id", "must be 2")),
        (asking("sendMessage", **PLACE, text=["x"]), ("sendMessage", "text", "must be text")),
        (asking("sendMessage", **PLACE, text="x", wrong=1),
         ("sendMessage", "wrong", "is no field of sendMessage (Bot API 10.3)")),
        (asking("deleteWebhook"),
         ("deleteWebhook", None, "is not for followers: the leader keeps the connection to Telegram")),
        (asking("rm -rf"), ("(odd name)", None, "is not for followers")),
        (asking("getFile", file_id="f"),
         ("getFile", None, "is not for followers: download fetches a file (x.file.get, downloadFile)")),
        (asking("setMyName"), ("setMyName", None, "is not for followers")),
        (asking("sendMesage"), ("sendMesage", None, "is not for followers; sendMessage is")),
        (asking("SENDMESSAGE"), ("SENDMESSAGE", None, "is not for followers; sendMessage is")),
        (attrs.evolve(call(), method="eval", args=()),
         ("eval", None, "method must be call, callMultipart or downloadFile")),
        (FileGet(request_id="f", instance_id="a", registration_generation="r", sent_at_ms=0, file_id="secret"),
         ("getFile", "file_id", "must be that of a file of this follower's")),
    ],
)  # fmt: skip
async def test_what_a_follower_may_not_is_noted_once_by_its_rule(
    noting: Noting, envelope: Envelope, noted: tuple[str, str | None, str]
) -> None:
    for _ in range(2):
        ack = await noting.ask(envelope)
        assert not ack.ok
        assert ack.message is not None
        assert ack.message.startswith(f"{noted[0]}: ")
    first = noting.notes[0]
    assert first == ("a", 7, *noted)
    assert len(noting.notes) == (2 if isinstance(envelope, FileGet) else 1)  # a repeated call is not judged again


async def test_who_may_not_ask_at_all_is_noted_by_its_process(noting: Noting) -> None:
    await noting.ask(attrs.evolve(call(), auth="wrong"))
    await noting.ask(beat("x"), Peer(pid=66, uid=0))
    await noting.ask(OperatorStop(request_id="s"))
    assert [(who, pid, method, where) for who, pid, method, where, _ in noting.notes] == [
        (None, 7, "follower.callApi", "auth"),
        (None, 66, "follower.heartbeat", "instanceId"),
        (None, 7, "x.operator.stop", "auth"),
    ]


async def test_what_is_allowed_unknown_or_only_a_probe_is_not_noted(noting: Noting) -> None:
    assert (await noting.ask(call("fine"))).ok
    assert not (await noting.ask(attrs.evolve(call("old"), registration_generation="old"))).ok
    answer = noting.requests.respond(StatusGet(request_id="probe"), PEER)
    assert not getattr(answer, "ok", True)
    assert noting.notes == []
