"""What the recordings do not show of the codec: limits, lengths, JSON's edges, our own kinds, and round trips."""

from __future__ import annotations

import contextlib
import json
from typing import Any, Literal, get_args, get_origin

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from telegram_bus.core import codec, payloads, values
from telegram_bus.core.codec import decode, dumps, encode, kinds, loads
from telegram_bus.core.envelopes import ABSENT, Ack, AgentSelector, Envelope, ForwardMessage, Register
from telegram_bus.core.errors import InvalidEnvelope
from telegram_bus.core.extensions import AgentTell, FilePart, MembersList, OperatorStop, StatusGet

TOKEN = "t" * 32
RECEIPT = {"queueKind": "control", "receiptId": "r", "sourceUpdateIds": [1]}


def offer(**changes: Any) -> dict[str, Any]:
    """A handoff of a control, valid until something is changed."""
    raw: dict[str, Any] = {
        "kind": "follower.offerQueueHandoff",
        "requestId": "1",
        "instanceId": "a",
        "registrationGeneration": "a:1",
        "recipientInstanceId": "b",
        "recipientRegistrationGeneration": "b:1",
        "donorProcessId": 1,
        "donorProcessBirthId": "1:start:1",
        "donorSessionGeneration": 1,
        "donorAcquisitionId": "q",
        "donorAcquiredAtMs": 1,
        "handoffToken": TOKEN,
        "sentAtMs": 1,
        "payload": {
            "kind": "control",
            "controlType": "status",
            "queueLane": "control",
            "chatId": 1,
            "replyToMessageId": 1,
            "queueOrder": 1,
            "laneOrder": 1,
            "statusSummary": "",
            "admissionReceipts": [RECEIPT],
        },
    }
    for path, value in changes.items():
        where = raw
        *outer, last = path.split("__")
        for name in outer:
            where = where[name]
        where[last] = value
    return raw


def prompt(text: str) -> dict[str, Any]:
    """A handoff of a prompt with this text."""
    raw = offer(payload__kind="prompt", payload__queueLane="default")
    del raw["payload"]["controlType"]
    receipts = [RECEIPT | {"queueKind": "prompt"}]
    content = [{"type": "text", "text": text}]
    raw["payload"] |= {"admissionReceipts": receipts, "content": content, "historyText": ""}
    raw["payload"] |= {"sourceMessageIds": [], "queuedAttachments": []}
    return raw


def read(raw: Any) -> Envelope:
    """The envelope that a JSON value says."""
    return decode(json.dumps(raw).encode())


def refusal(raw: Any) -> str:
    """Why the JSON value is no envelope."""
    with pytest.raises(InvalidEnvelope) as caught:
        read(raw)
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"payload__admissionReceipts": []}, "payload.admissionReceipts"),
        ({"payload__admissionReceipts": [RECEIPT] * 257}, "payload.admissionReceipts"),
        ({"payload__admissionReceipts": [RECEIPT, RECEIPT | {"queueKind": "prompt"}]}, "admissionReceipts.1.queueKind"),
        (
            {"payload__admissionReceipts": [RECEIPT | {"sourceUpdateIds": [2, 2]}]},
            "admissionReceipts.0.sourceUpdateIds",
        ),
        ({"payload__queueLane": "default"}, "payload.queueLane"),
        ({"payload__target": {"threadId": 1}}, "payload.target.chatId"),
        ({"payload__guestQueryId": 5}, "payload.guestQueryId"),
        ({"donorAcquisitionId": "x" * 257}, "donorAcquisitionId"),
        ({"sentAtMs": True}, "sentAtMs"),
    ],
)
def test_a_refusal_names_the_field(changes: dict[str, Any], named: str) -> None:
    """Whoever wrote the envelope finds what is wrong with it."""
    assert named in refusal(offer(**changes))


def test_a_missing_field_is_named_with_its_path() -> None:
    """A field that is not there is named as one that is wrong."""
    assert refusal({"kind": "follower.register", "requestId": "1", "registration": {"instanceId": "i"}}) == (
        "follower.register: registration.connectedAtMs is missing"
    )


def test_256_receipts_are_allowed() -> None:
    """The largest number of receipts."""
    envelope = read(offer(payload__admissionReceipts=[RECEIPT] * 256))
    assert json.loads(encode(envelope)) == offer(payload__admissionReceipts=[RECEIPT] * 256)


def test_a_payload_holds_8_mib_as_json_without_white_space() -> None:
    """The limit counts the payload alone, in UTF-8, however it was written."""
    overhead = len(json.dumps(prompt("")["payload"], separators=(",", ":")))
    fits = prompt("é" * ((codec.MAX_PAYLOAD_BYTES - overhead) // 2))
    assert read(fits)  # json.dumps writes é as six bytes: the line is three times as long
    assert "payload holds" in refusal(prompt("x" * (codec.MAX_PAYLOAD_BYTES - overhead + 1)))


@pytest.mark.parametrize(
    ("token", "valid"), [("😀" * 15, False), ("😀" * 16, True), ("😀" * 128, True), ("😀" * 129, False)]
)
def test_lengths_count_utf16_units(token: str, valid: bool) -> None:
    """An emoji counts twice, as in JavaScript."""
    if valid:
        assert read(offer(handoffToken=token))
    else:
        assert "handoffToken" in refusal(offer(handoffToken=token))


def registration(**changes: Any) -> Any:
    """A decoded registration."""
    raw = {"instanceId": "i", "connectedAtMs": 1} | changes
    envelope = read({"kind": "follower.register", "requestId": "1", "registration": raw})
    assert isinstance(envelope, Register)
    return envelope.registration


@pytest.mark.parametrize(
    ("build", "kept"),
    [
        ("😀" * 64, True),
        ("😀" * 65, False),
        ("\ufeffx", False),
        ("x\u0085", True),
        ("x" * 128, True),
        ("x" * 129, False),
    ],
)
def test_the_build_counts_and_trims_as_javascript_does(build: str, kept: bool) -> None:
    """At most 128 UTF-16 units and no white space around, which for JavaScript is not what it is for Python."""
    identity = {"protocolVersion": 1, "runtimeBuild": build, "capabilities": []}
    assert (registration(protocol=identity).protocol is not None) is kept


@pytest.mark.parametrize(
    ("capabilities", "kept"),
    [
        ([f"c{n:02}" for n in range(32)], True),
        ([f"c{n:02}" for n in range(33)], False),
        (["a" * 128], True),
        (["a" * 129], False),
        (["b", "a"], False),
    ],
)
def test_capabilities_are_bounded_and_ascending(capabilities: list[str], kept: bool) -> None:
    """Anything else makes the identity absent."""
    identity = {"protocolVersion": 1, "runtimeBuild": "x", "capabilities": capabilities}
    assert (registration(protocol=identity).protocol is not None) is kept


def test_whole_numbers_become_integers() -> None:
    """5.0 is 5, and written as such."""
    told = registration(connectedAtMs=5.0, pid=7.0, target={"chatId": 1.0, "threadId": 2.5})
    assert (told.connected_at_ms, told.pid, told.target.thread_id) == (5, 7, 2.5)
    assert type(told.connected_at_ms) is int
    assert type(told.target.chat_id) is int


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"threadId": 4, "chatId": "x"}, AgentSelector(thread_id=4)),
        ({"threadId": 4, "chatId": -1009}, AgentSelector(thread_id=4, chat_id=-1009)),
        ({"threadName": "\ufeff Nora\u2003"}, AgentSelector(thread_name="Nora")),
        ({"threadId": 4, "threadName": "Nora"}, None),
        ({"threadName": "\ufeff"}, None),
        ({"threadId": 0}, None),
    ],
)
def test_a_selector_names_exactly_one(selector: Any, expected: AgentSelector | None) -> None:
    """A thread's id or its name (trimmed), not both; a chat that is no integer is dropped."""
    raw = {"kind": "follower.resolveAgentTarget", "requestId": "1", "instanceId": "i", "sentAtMs": 1}
    if expected is None:
        assert "selector" in refusal(raw | {"selector": selector})
    else:
        assert getattr(read(raw | {"selector": selector}), "selector") == expected  # noqa: B009


@pytest.mark.parametrize(
    "line",
    [
        b'{"kind":"bus.ack","requestId":"a","ok":true,"result":NaN}',
        b'{"kind":"bus.ack","requestId":"a","ok":true,"result":-Infinity}',
        b'\xef\xbb\xbf{"kind":"bus.ack","requestId":"a","ok":true}',
        b'{"kind":"bus.ack","requestId":"\xff","ok":true}',
        b'{"kind":"bus.ack","requestId":"\xed\xa0\x80","ok":true}',
        b'{"kind":"bus.ack","requestId":"a","ok":true,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"kind":["bus.ack"],"requestId":"a","ok":true}',
        b"",
    ],
    ids=["nan", "infinity", "bom", "invalid utf-8", "surrogate as utf-8", "deep", "kind a list", "empty"],
)
def test_what_is_no_envelope_is_refused(line: bytes) -> None:
    """Refused, never a crash."""
    with pytest.raises(InvalidEnvelope):
        decode(line)


def test_lone_surrogates_go_both_ways() -> None:
    """A lone surrogate stays one escape; its neighbours are not harmed, and infinity beside it is null."""
    line = b'{"kind":"bus.ack","requestId":"\\ud800","ok":true,"result":["\\udc00\xc3\xa9",1e999]}\n'
    ack = decode(line)
    assert ack == Ack(request_id="\ud800", ok=True, result=["\udc00é", float("inf")])
    assert encode(ack) == line.replace(b"1e999", b"null")


def test_the_last_of_repeated_fields_counts_on_both_paths() -> None:
    """Also when the standard library has to read the line."""
    assert decode(b'{"kind":"x","kind":"bus.ack","requestId":"a","requestId":"b","ok":true}').request_id == "b"
    line = b'{"kind":"x","kind":"bus.ack","requestId":"\\ud800","requestId":"b","ok":true,"message":"\\ud800"}'
    assert decode(line).request_id == "b"


def test_an_answer_too_deep_to_write_is_an_error_of_its_own() -> None:
    """Whoever encodes it learns why; nothing crashes."""
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidEnvelope, match="deeply"):
        encode(Ack(request_id="1", ok=True, result=deep))
    while deep:  # taken apart by hand: the interpreter would do it recursively
        deep = deep[0]


def test_a_carried_object_travels_unread() -> None:
    """Null, absence, markers and big numbers inside what is opaque are kept."""
    raw = {
        "kind": "leader.forwardMessage",
        "requestId": "1",
        "recipientInstanceId": "i",
        "recipientRegistrationGeneration": "g",
        "delivery": {
            "deliveryId": "telegram-follower-v1-" + "0" * 64,
            "sourceUpdateId": 0,
            "recipientBindingKey": "k",
        },
        "sentAtMs": 1,
    }
    absent = read(raw)
    assert isinstance(absent, ForwardMessage)
    assert absent.message is ABSENT
    for message in (None, {"a": [1.5, {"__piTelegramCrossTargetDelivery": True}]}, 2**60):
        assert json.loads(encode(read(raw | {"message": message}))) == raw | {"message": message}


def test_our_kinds_travel_without_an_instance() -> None:
    """Optional fields of a wrong type are dropped, as everywhere."""
    assert read({"kind": "x.members.list", "requestId": "1", "auth": "s", "afterRevision": 3.0, "waitMs": "9"}) == (
        MembersList(request_id="1", auth="s", after_revision=3)
    )
    assert decode(encode(StatusGet(request_id="2"))) == StatusGet(request_id="2")
    assert encode(OperatorStop(request_id="3", auth="o")) == b'{"kind":"x.operator.stop","requestId":"3","auth":"o"}\n'


def test_every_kind_is_registered_under_its_name() -> None:
    """The table that documentation is checked against."""
    assert all(kind == model.KIND for kind, model in kinds().items())
    assert {"bus.ack", "follower.register", "leader.forwardMessage", "x.members.list"} <= kinds().keys()


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
ids = st.integers(0, 2**53 - 1)
both_ids = st.builds(values.Target, chat_id=st.integers(-(2**53), 2**53), thread_id=ids)
filled = st.text(min_size=1).map(lambda text: "x" + text)

FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "slot": st.sampled_from("ABZ"),
    "session_generation": ids.map(lambda n: n or 1),
    "process_birth_id": filled,
    "runtime_build": st.just("b"),
    "protocol_version": st.integers(1, 9),
    "capabilities": st.lists(st.sampled_from(["a", "b-1", "c.d"]), unique=True).map(sorted).map(tuple),
    "delivery_id": st.just("telegram-follower-v1-" + "0a" * 32),
    "source_update_id": ids,
    "recipient_binding_key": filled,
    "message_id": ids.map(lambda n: n or 1),
    "call_id": st.none() | st.text(min_size=1, max_size=99),
    "selector": st.builds(AgentSelector, thread_id=ids.map(lambda n: n or 1), chat_id=st.none() | ids),
    "donor_process_id": ids.map(lambda n: n or 1),
    "donor_process_birth_id": st.text(min_size=1, max_size=99),
    "donor_session_generation": ids.map(lambda n: n or 1),
    "donor_acquisition_id": st.text(min_size=1, max_size=99),
    "donor_acquired_at_ms": ids,
    "handoff_token": st.text(min_size=32, max_size=99),
    "receipt_id": filled,
    "source_update_ids": st.sets(ids, min_size=1, max_size=3).map(sorted).map(tuple),
    "source_message_ids": st.lists(ids, max_size=3).map(tuple),
    "journal_binding_key": filled,
    "old_target": both_ids,
    "file_id": st.text(min_size=1, max_size=99),
    "params": st.dictionaries(st.text(), json_values, max_size=3),
    "files": st.lists(
        st.builds(FilePart, field=st.sampled_from(["document", "file0"]), name=st.text(min_size=1, max_size=99)),
        max_size=3,
    ).map(tuple),
}


def strategy(cls: Any, name: str = "") -> st.SearchStrategy[Any]:
    """Valid values of a type, by the name of the field where that says more."""
    if name in FIELDS:
        return FIELDS[name]
    args = [one for one in get_args(cls) if one is not type(None)]
    if get_origin(cls) is Literal:
        return st.sampled_from(args)
    if get_origin(cls) is tuple:
        return st.lists(strategy(args[0]), min_size=1, max_size=3).map(tuple)
    if args:
        return st.one_of(*(strategy(one) for one in args))
    if attrs.has(cls):
        return build(cls)
    scalars = {str: st.text(), bool: st.booleans(), int: ids, float: st.floats(allow_nan=False, allow_infinity=False)}
    return scalars.get(cls, json_values)


def build(cls: Any) -> st.SearchStrategy[Any]:
    """Valid instances of a model."""
    attrs.resolve_types(cls)
    made: dict[str, st.SearchStrategy[Any]] = {}
    for field in attrs.fields(cls):
        one = strategy(field.type, field.name)
        if field.name == "target" and cls in (values.AgentMessage, kinds()["leader.replaceFollowerTarget"]):
            one = both_ids
        if field.name == "text" and cls in (values.AgentMessage, AgentTell):
            one = filled
        if cls in (payloads.Prompt, payloads.Control) and field.name == "admission_receipts":
            kind = st.just("prompt" if cls is payloads.Prompt else "control")
            receipt = st.builds(
                payloads.AdmissionReceipt,
                queue_kind=kind,
                receipt_id=filled,
                source_update_ids=FIELDS["source_update_ids"],
                journal_binding_key=st.none() | filled,
            )
            one = st.lists(receipt, min_size=1, max_size=2).map(tuple)
        made[field.name] = (st.none() | one) if field.default is None else one
    return st.builds(cls, **made)


@pytest.mark.parametrize("kind", sorted(kinds()))
def test_what_was_written_is_read_the_same(kind: str) -> None:
    """decode(encode(x)) == x, for every kind."""

    @given(build(kinds()[kind]))
    def check(envelope: Envelope) -> None:
        line = encode(envelope)
        assert line.count(b"\n") == 1
        assert decode(line) == envelope

    check()


@given(st.binary())
@example(b'{"kind":"bus.ack","requestId":"a","ok":true,"result":' + b"9" * 9_999 + b"}")
def test_no_bytes_crash_the_reader(line: bytes) -> None:
    """Garbage is refused in one way only."""
    with contextlib.suppress(InvalidEnvelope):
        assert isinstance(decode(line), Envelope)


@given(
    st.sampled_from(sorted(kinds())),
    st.dictionaries(st.sampled_from(["requestId", "registration", "payload", "delivery", "args"]), json_values),
)
def test_no_json_crashes_the_reader(kind: str, fields: dict[str, Any]) -> None:
    """Nor does JSON with any value in any place."""
    with contextlib.suppress(InvalidEnvelope):
        assert isinstance(decode(dumps({"kind": kind, **fields})), Envelope)


@given(json_values)
def test_opaque_json_is_read_as_it_was_written(value: Any) -> None:
    """For what is stored or sent beside envelopes."""
    assert loads(dumps(value)) == value
