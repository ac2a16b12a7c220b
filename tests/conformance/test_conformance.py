"""Every line of the recordings of the reference, through our codec, policy, identity and requests."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from telegram_bus.core.checks import protocol_identity
from telegram_bus.core.codec import decode, encode
from telegram_bus.core.errors import InvalidEnvelope
from telegram_bus.core.identity import Compatible, compatible, delivery_id
from telegram_bus.core.permissions import COMPATIBLE, Allowed, Caller, judge
from telegram_bus.core.values import Number, Target
from tests.conformance.recordings import Differences, lines
from tests.conformance.trace_leader import TraceLeader, open_recipients


def test_conformance_of_envelopes() -> None:
    """We accept exactly the lines that the reference accepts, and write what we read as it does."""
    differences = Differences()
    for number, recorded in lines("envelopes"):
        where = f"line {number} ({recorded['tag']}): {recorded['line'][:300]}"
        try:
            ours = json.loads(encode(decode(recorded["line"].encode("utf-8", "backslashreplace"))))
        except InvalidEnvelope as fault:
            differences.check(where, f"refused: {fault}" if recorded["accepted"] else False, recorded["accepted"])
        else:
            differences.check(where, ours, recorded["parsed"] if recorded["accepted"] else "refused")
    differences.report(least=3_800)


@frozen
class _Sent:
    messages: list[list[int]]

    def message(self, chat_id: Number, message_id: Number, /) -> bool:
        return [chat_id, message_id] in self.messages

    seen = message

    def callback(self, query_id: str, /) -> bool:
        return False

    file = callback


def test_conformance_of_api_policy() -> None:
    """The compatible policy allows exactly what the reference allows."""
    differences = Differences()
    for number, recorded in lines("api_policy"):
        told = recorded["target"]
        caller = Caller(
            target=None if told is None else Target(chat_id=told["chatId"], thread_id=told.get("threadId")),
            owned=_Sent(recorded["owned_messages"]),
            is_agent=lambda _target: False,
        )
        verdict = judge(COMPATIBLE, recorded["method"], tuple(recorded["args"]), caller)
        where = f"line {number}: {recorded['method']} {recorded['args']} of {told}, we said {verdict}"
        differences.check(where, isinstance(verdict, Allowed), recorded["allowed"])
    differences.report(least=5_400)


def test_conformance_of_delivery_ids() -> None:
    """A delivery has the id that the reference gives it, or none."""
    differences = Differences()
    for number, recorded in lines("delivery_ids"):
        asked = (recorded["kind"], recorded["recipientBindingKey"], recorded["sourceUpdateId"])
        try:
            ours: Any = delivery_id(*asked)
        except ValueError:
            ours = None
        differences.check(f"line {number}: {asked}", ours, recorded.get("deliveryId"))
    differences.report(least=90)


def test_conformance_of_compatibility() -> None:
    """Two identities are compatible, or not for the same reason, as with the reference."""
    differences = Differences()
    for number, recorded in lines("compatibility"):
        local, remote = recorded["local"], recorded["remote"]
        verdict = compatible(protocol_identity(local), None if remote is None else protocol_identity(remote))
        if isinstance(verdict, Compatible):
            ours: Any = {"compatible": True, "missingCapabilities": []}
        else:
            ours = {"compatible": False, "reason": verdict.reason, "missingCapabilities": list(verdict.missing)}
        differences.check(f"line {number}: {local} and {remote}", ours, recorded["result"])
    differences.report(least=14)


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path leaves room for a socket's name (pytest's own may be too long for one)."""
    folder = Path(tempfile.mkdtemp(prefix="tgbus-"))
    yield folder
    shutil.rmtree(folder)


async def test_conformance_of_leader_traces(short_folder: Path) -> None:
    """Whole sessions: every ack, every forwarded envelope, every Bot API call and the registry are as recorded."""
    differences = Differences()
    for number, recorded in lines("leader_traces"):
        trace = json.loads(json.dumps(recorded).replace("{dir}", str(short_folder)))
        leader = TraceLeader(trace["leader"]["identity"], trace["leader"]["auth"])
        async with open_recipients(short_folder, trace["recipients"]) as received:
            for index, step in enumerate(trace["steps"]):
                where = f"line {number}, step {index}: {json.dumps(step.get('envelope'))}"
                leader.now = step["nowMs"]
                if step["op"] == "prune":
                    gone = [member.instance_id for member in leader.requests.prune(step["staleAfterMs"])]
                    differences.check(f"{where}, removed", gone, step["removed"])
                else:
                    await _send(leader, step, received, differences, where)
    differences.report(least=13_000)


async def _send(
    leader: TraceLeader, step: Any, received: dict[str, list[Any]], differences: Differences, where: str
) -> None:
    leader.api_calls.clear()
    for envelopes in received.values():
        envelopes.clear()
    ack = await leader.handle(step["envelope"])
    expected = step["ack"]
    if expected.get("__threw"):  # the reference's server makes a refusal of it; our requests do so themselves
        expected = {"kind": "bus.ack", "requestId": step["envelope"]["requestId"], "ok": False, "has_message": True}
    if ack.pop("message", None) is not None:
        ack["has_message"] = True
    differences.check(f"{where}, ack", ack, expected)
    forwarded = {name: envelopes for name, envelopes in received.items() if envelopes}
    differences.check(f"{where}, forwarded", forwarded, step.get("forwarded", {}))
    differences.check(f"{where}, api calls", leader.api_calls, step.get("api_calls", []))
    if "registry" in step:
        differences.check(f"{where}, registry", leader.registry(), step["registry"])
