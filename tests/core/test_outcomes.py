"""What is remembered of calls, where messages came out, and what people are told of those that nobody knows of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_bus.core.errors import ApiError, RequestRefused
from telegram_bus.core.outcomes import (
    FILES,
    again_of,
    doubt_notice,
    moved,
    recall,
    remembered,
    strays,
    thread_trouble,
    wrong_place,
)
from telegram_bus.core.permissions import Allowed


def send(**body: Any) -> Allowed:
    return Allowed(method="call", args=("sendMessage", {"chat_id": 5, **body}))


def message(number: int, **more: Any) -> dict[str, Any]:
    return {"message_id": number, "chat": {"id": 5}, **more}


def test_an_outcome_is_remembered_as_it_was() -> None:
    assert recall("sendMessage", remembered({"message_id": 1, "x": ["ü", None]})) == {"message_id": 1, "x": ["ü", None]}
    with pytest.raises(ApiError) as told:
        recall("sendMessage", remembered(ApiError("sendMessage", 400, "no", retry_after=1.5, migrate_to_chat_id=-7)))
    assert (told.value.code, told.value.description, told.value.retry_after) == (400, "no", 1.5)
    assert told.value.migrate_to_chat_id == -7
    with pytest.raises(RequestRefused, match="not there"):
        recall("sendMessage", remembered(RequestRefused("not there")))


@pytest.mark.parametrize(
    ("call", "result", "found"),
    [
        (send(message_thread_id=11), message(1, message_thread_id=11), []),
        (send(message_thread_id="11"), message(1, message_thread_id=11), []),
        (send(message_thread_id=11), message(1), [(5, 1, None)]),
        (send(message_thread_id=11), message(1, message_thread_id=12), [(5, 1, 12)]),
        (send(message_thread_id=11), [message(1, message_thread_id=11), message(2)], [(5, 2, None)]),
        (send(), message(1, message_thread_id=12), []),  # nobody asked for a thread
        (send(message_thread_id=11), {"message_id": 1}, []),  # a MessageId says nothing of its place
        (send(message_thread_id=11), True, []),
    ],
)
def test_a_message_that_came_out_elsewhere_is_noticed(call: Allowed, result: Any, found: list[Any]) -> None:
    assert strays(call, result) == found
    if found:
        where = "the main chat" if found[0][2] is None else "thread 12"
        assert where in str(wrong_place(call, found))


@pytest.mark.parametrize(
    ("code", "text", "trouble"),
    [
        (400, "Bad Request: message thread not found", "not found"),
        (400, "Bad Request: TOPIC_ID_INVALID", "not found"),
        (400, "Bad Request: TOPIC_CLOSED", "closed"),
        (400, "Bad Request: message text is empty", None),
        (403, "Forbidden: message thread not found", None),
    ],
)
def test_what_a_refusal_says_of_a_thread(code: int, text: str, trouble: str | None) -> None:
    assert thread_trouble(ApiError("sendMessage", code, text)) == trouble


def test_a_call_in_a_chat_that_has_moved_is_the_same_call() -> None:
    call = moved(send(message_thread_id=11, text="x"), -100)
    assert call.args == ("sendMessage", {"chat_id": -100, "message_thread_id": 11, "text": "x"})


@given(
    st.text(),
    st.one_of(st.none(), st.integers(2, 2**31)),
    st.integers(1, 2**63 - 1),
    st.integers(0, 10**6),
)
def test_a_notice_fits_into_telegram_and_its_button_means_its_call(
    said: str, thread: int | None, seq: int, tries: int
) -> None:
    body = {"chat_id": 5, "text": said} | ({} if thread is None else {"message_thread_id": thread})
    notice = doubt_notice("sendMessage", body, seq, tries)
    assert notice is not None
    assert len(notice["text"].encode("utf-16-le", "surrogatepass")) // 2 < 4096
    assert (notice["chat_id"], notice.get("message_thread_id")) == (5, thread)
    [[button]] = notice["reply_markup"]["inline_keyboard"]
    assert len(button["callback_data"].encode()) <= 64
    assert again_of(button["callback_data"].removeprefix("tb:again:")) == (seq, tries)


def test_what_cannot_be_sent_again_has_no_button_and_what_has_no_place_no_notice() -> None:
    photo = doubt_notice("sendPhoto", {"chat_id": 5, FILES: 1}, 1, 0)
    assert photo is not None
    assert photo["text"].endswith("a photo")
    assert "reply_markup" not in photo
    assert doubt_notice("sendMessage", {"chat_id": "@channel"}, 1, 0) is None
    assert doubt_notice("sendMessage", None, 1, 0) is None
