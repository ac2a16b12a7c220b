"""Requests of the line protocol: each is checked before anything is done, and a refusal names the field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_bus.core.errors import (
    AnswerLost,
    ApiError,
    CommitUnknown,
    NoLeader,
    NotSent,
    RequestRefused,
    StateError,
)
from telegram_bus.core.jsonl import BadRequest, Request, error_of, line, parse


def asked(**fields: Any) -> Request:
    return parse(json.dumps(fields).encode())


def refused(text: bytes) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        parse(text)
    return caught.value


def test_a_request_is_read_with_its_fields() -> None:
    assert asked(id=7, do="send", text="x", buttons=[[["A", "a"]]], silent=None) == Request(
        id=7, do="send", fields={"text": "x", "buttons": [[("A", "a")]]}
    )
    assert asked(do="typing") == Request(do="typing")
    assert asked(do="send_file", base64="aGk=", kind="voice").fields == {"base64": b"hi", "kind": "voice"}
    assert asked(do="tell", agent=5, text="x").fields["agent"] == 5
    edited = asked(do="edit_file", message_id=7, path="a", kind="photo")
    assert edited.fields == {"message_id": 7, "path": "a", "kind": "photo"}
    assert asked(do="send_album", files=[{"path": "a"}, {"base64": "", "caption": "b"}]).fields["files"] == (
        {"path": "a"},
        {"base64": b"", "caption": "b"},
    )
    assert asked(do="state", wait=1).fields == {"wait": 1.0}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, "do"),
        ({"do": "fly"}, "do"),
        ({"do": 5}, "do"),
        ({"do": "send"}, "text"),
        ({"do": "send", "text": " "}, "text"),
        ({"do": "send", "text": 5}, "text"),
        ({"do": "send", "text": "x", "colour": "red"}, "colour"),
        ({"do": "send", "text": "x", "silent": "yes"}, "silent"),
        ({"do": "send", "text": "x", "reply_to": 0}, "reply_to"),
        ({"do": "send", "text": "x", "parse_mode": "Markdown"}, "parse_mode"),
        ({"do": "send", "text": "x", "buttons": [[[1, "a"]]]}, "buttons.0.0"),
        ({"do": "send", "text": "x", "buttons": {"rows": [[["A", "a"]]], "one_time": 1}}, "buttons.one_time"),
        ({"do": "send", "text": "x", "buttons": {"one_time": True}}, "buttons.rows"),
        ({"do": "ask"}, "question"),
        ({"do": "ask", "question": "x", "choices": [["a"]]}, "choices.0"),
        ({"do": "typing", "seconds": -1}, "seconds"),
        ({"do": "send", "text": "x", "buttons": [["A"]]}, "buttons.0.0"),
        ({"do": "send_file", "caption": "x"}, "path"),
        ({"do": "send_file", "path": "a", "base64": "aGk="}, "path"),
        ({"do": "send_file", "base64": "%"}, "base64"),
        ({"do": "send_file", "path": "a", "kind": "sticker"}, "kind"),
        ({"do": "edit_file", "message_id": 7, "path": "a", "kind": "voice"}, "kind"),
        ({"do": "edit_file", "message_id": 7}, "path"),
        ({"do": "send_album", "files": [{"path": "a"}]}, "files"),
        ({"do": "send_album", "files": [{"path": "a"}, {"kind": "photo"}]}, "files.1.path"),
        ({"do": "download"}, "update"),
        ({"do": "call", "method": "getMe", "params": []}, "params"),
        ({"do": "state", "wait": -1}, "wait"),
        ({"do": "typing", "x": 1}, "x"),
    ],
)
def test_a_wrong_request_is_refused_by_the_name_of_its_field(fields: dict[str, Any], named: str) -> None:
    fault = refused(json.dumps({"id": "i", **fields}).encode())
    assert fault.field == named
    assert fault.id == "i"
    assert named.split(".", maxsplit=1)[0] in str(fault)


def test_what_is_no_request_is_refused() -> None:
    assert refused(b"hello").field is None
    assert refused(b"[]").id is None
    assert refused(b'{"id":[],"do":"typing"}').field == "id"


@given(st.binary())
def test_no_bytes_do_more_than_be_refused(text: bytes) -> None:
    try:
        parse(text)
    except BadRequest as fault:
        json.loads(line({"error": error_of(fault)}))


@pytest.mark.parametrize(
    ("fault", "facts"),
    [
        (BadRequest("m", field="text"), {"code": "bad-request", "field": "text"}),
        (ApiError("sendMessage", 429, "slow", retry_after=3), {"code": "api", "api_code": 429, "retry_after": 3}),
        (CommitUnknown("m"), {"code": "commit-unknown"}),
        (AnswerLost("m"), {"code": "answer-lost"}),
        (NoLeader("m"), {"code": "left"}),
        (RequestRefused("m"), {"code": "refused"}),
        (RequestRefused("m", code="ledger-overloaded"), {"code": "ledger-overloaded"}),
        (NotSent("m"), {"code": "state"}),
        (StateError("m"), {"code": "state"}),
        (FileNotFoundError(2, "gone", "a"), {"code": "file"}),
        (ValueError("m"), {"code": "bad-request"}),
    ],
)
def test_each_fault_has_a_code_and_a_message(fault: BaseException, facts: dict[str, Any]) -> None:
    told = error_of(fault)
    assert facts.items() <= told.items()
    assert told["message"]
