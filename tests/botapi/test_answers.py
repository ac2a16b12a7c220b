"""Answers of the Bot API, as bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from telegram_bus.botapi.answers import form, read_answer
from telegram_bus.core.errors import AnswerLost, ApiError, NotSent, RequestRefused


def refusal(status: int, body: object, header: str | None = None) -> ApiError:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(ApiError) as caught:
        read_answer("sendMessage", status, content, header)
    return caught.value


def test_a_result_is_returned_as_it_is() -> None:
    assert read_answer("m", 200, b'{"ok":true,"result":null}') is None
    assert read_answer("m", 200, b'{"ok":true,"result":[{"update_id":5,"x":1.50}]}') == [{"update_id": 5, "x": 1.5}]
    assert read_answer("m", 200, b'{"ok":true,"result":"\\ud83d"}') == "\ud83d"


def test_a_refusal_has_telegrams_own_words() -> None:
    text = "Bad Request: message is not modified: specified new Content"
    fault = refusal(400, {"ok": False, "error_code": 400, "description": text})
    assert (fault.method, fault.code, fault.description) == ("sendMessage", 400, text)
    assert (fault.retry_after, fault.migrate_to_chat_id) == (None, None)


def test_parameters_of_a_refusal_are_passed_on() -> None:
    body = {"ok": False, "error_code": 400, "description": "d", "parameters": {"migrate_to_chat_id": -100123}}
    assert refusal(400, body).migrate_to_chat_id == -100123
    body = {"ok": False, "error_code": 429, "description": "d", "parameters": {"retry_after": 7}}
    assert refusal(429, body, "9").retry_after == 7


def test_the_header_counts_where_the_body_names_no_time() -> None:
    assert refusal(429, {"ok": False, "error_code": 429, "description": "d"}, "9").retry_after == 9
    assert refusal(429, b"<html>slow down</html>", "3").retry_after == 3
    assert refusal(429, b"<html>slow down</html>", "soon").retry_after is None


def test_html_of_a_server_in_between_is_a_refusal_only_where_the_call_cannot_have_been_made() -> None:
    assert refusal(413, b"<html>413</html>").description == "Request Entity Too Large"
    assert refusal(404, b"").description == "Not Found"
    with pytest.raises(NotSent, match="proxy asks"):
        read_answer("m", 407, b"<html>")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (502, b"<html>Bad Gateway</html>"),
        (500, b'{"ok":false,"error_code":500,"description":"Internal Server Error: restart"}'),
        (200, b'{"ok":true,"resul'),
        (200, b""),
        (200, b"[" * 100_000),
        (200, b"[]"),
        (200, b"{}"),
        (200, b"\xff\xfe"),
        (302, b"<html>sign in to this network</html>"),
    ],
)
def test_what_is_no_answer_leaves_the_outcome_open(status: int, body: bytes) -> None:
    with pytest.raises(AnswerLost):
        read_answer("m", status, body)


def test_a_parameter_that_is_no_json_is_refused_by_name() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (deep, object(), {"a": b"bytes"}):
        with pytest.raises(RequestRefused, match="'markup'"):
            form({"markup": value})


def test_parameters_become_flat_strings() -> None:
    params = {
        "chat_id": -100,
        "text": "5 < 6 ä\ud83d",
        "silent": True,
        "none": None,
        "markup": {"a": ["ä", None]},
        "big": {"n": 2**70, "half": "\ud83d"},
    }
    assert form(params) == {
        "chat_id": "-100",
        "text": "5 < 6 ä\ufffd",
        "silent": "true",
        "markup": '{"a":["ä",null]}',
        "big": '{"n":1180591620717411303424,"half":"\\ud83d"}',
    }
