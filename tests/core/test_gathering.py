"""What of several messages is one thing: albums, split texts, a comment with its forwards, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_bus.core.gathering import (
    ALBUM,
    ALBUM_WAIT,
    FORWARD_WAIT,
    MOMENT,
    MOST_PARTS,
    TEXT_WAIT,
    Trace,
    belongs,
    comments_on,
    in_order,
    patience,
    text_of,
    trace,
)

NEWS = {"type": "channel", "chat": {"id": -5}, "message_id": 7, "date": 1}


def said(number: int = 1, text: str | None = "hello", *, by: Any = 3, **fields: Any) -> dict[str, Any]:
    plain = {"message_id": number, "chat": {"id": 9}, "from": {"id": by}, "date": 100}
    return plain | ({} if text is None else {"text": text}) | fields


def forwarded(number: int = 2, text: str | None = "news", **fields: Any) -> dict[str, Any]:
    return said(number, text, forward_origin=NEWS, **fields)


def photo(number: int, album: str = "a", **fields: Any) -> dict[str, Any]:
    return said(number, None, media_group_id=album, photo=[{"file_id": f"p{number}"}], **fields)


def traced(message: dict[str, Any]) -> Trace:
    found = trace(message)
    assert found is not None
    return found


def joined(*messages: dict[str, Any]) -> bool:
    first, *between, new = [traced(message) for message in messages]
    return belongs(first, between[-1] if between else first, new)


LONG = "x" * 4096

TOGETHER: list[tuple[str, list[dict[str, Any]]]] = [
    ("two of an album", [photo(1), photo(2)]),
    ("a part of an album that took a minute", [photo(1), photo(2, date=160)]),
    ("parts of an album in any order", [photo(2), photo(1)]),
    ("a text that goes on", [said(1, LONG), said(2, "end")]),
    ("a third of it", [said(1, LONG), said(2, LONG), said(3, "end", date=101)]),
    ("one of emoji", [said(1, "\U0001f600" * 2048), said(2, "end")]),
    ("one cut at a paragraph", [said(1, "x" * 3600), said(2, "end")]),
    ("a reply that goes on", [said(1, LONG, reply_to_message={"message_id": 5}), said(2, "end")]),
    ("a split text that was forwarded", [forwarded(1, LONG), forwarded(2, "end")]),
    ("a comment and its forward", [said(1), forwarded(2)]),
    ("and one more", [said(1), forwarded(2), forwarded(3)]),
    ("a comment and a forwarded album", [said(1), photo(2, forward_origin=NEWS)]),
    ("the rest of that album", [said(1), photo(2, forward_origin=NEWS), photo(3, forward_origin=NEWS)]),
    ("a comment at the end of a second", [said(1), forwarded(2, date=100 + MOMENT)]),
]

APART: list[tuple[str, list[dict[str, Any]]]] = [
    ("two messages", [said(1), said(2)]),
    ("two albums", [photo(1), photo(2, album="b")]),
    ("an album of another chat", [photo(1), photo(2, chat={"id": 8})]),
    ("an album of another thread", [photo(1), photo(2, message_thread_id=4, is_topic_message=True)]),
    ("a photo alone after an album", [photo(1), said(2, None, photo=[])]),
    ("an album after a comment that is none of its", [said(1), photo(2)]),
    ("a text after one that is not near the limit", [said(1, "x" * 3000), said(2)]),
    ("a text after a long one, later", [said(1, LONG), said(2, date=101 + MOMENT)]),
    ("another person after a long one", [said(1, LONG), said(2, by=4)]),
    ("a reply after a long one", [said(1, LONG), said(2, reply_to_message={"message_id": 5})]),
    ("a file after a long one", [said(1, LONG), said(2, None, document={"file_id": "d"})]),
    ("a forward without a comment", [forwarded(1), forwarded(2)]),
    ("words after a forward", [said(1), forwarded(2), said(3)]),
    ("another person's forward", [said(1), forwarded(2, by=4)]),
    ("a forward some time later", [said(1), forwarded(2, date=101 + MOMENT)]),
    ("a forward in another thread", [said(1), forwarded(2, message_thread_id=4, is_topic_message=True)]),
    ("split texts of two authors", [forwarded(1, LONG), said(2, "x")]),
]


@pytest.mark.parametrize("messages", [row[1] for row in TOGETHER], ids=[row[0] for row in TOGETHER])
def test_these_are_one_thing(messages: list[dict[str, Any]]) -> None:
    assert joined(*messages)


@pytest.mark.parametrize("messages", [row[1] for row in APART], ids=[row[0] for row in APART])
def test_these_are_not(messages: list[dict[str, Any]]) -> None:
    assert not joined(*messages)


@pytest.mark.parametrize(
    "odd",
    [{}, {"chat": 5}, said(date="now"), said(chat={"id": True}), said(by=None)],
    ids=["empty", "a chat that is a number", "a date that is text", "a true for an id", "nobody"],
)
def test_what_does_not_say_where_when_and_by_whom_belongs_to_nothing(odd: dict[str, Any]) -> None:
    assert trace(odd) is None


FIELDS = ["chat", "from", "id", "date", "text", "forward_origin", "media_group_id", "reply_to_message"]


@given(
    message=st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.dictionaries(st.sampled_from(FIELDS), inner),
        max_leaves=12,
    )
)
def test_whatever_telegram_says_is_no_fault(message: Any) -> None:
    if isinstance(message, dict):
        trace(message)
        text_of([message, message])
        assert comments_on(message, message) is False


WAITS: list[tuple[str, list[dict[str, Any]], float]] = [
    ("a message", [said()], 0.0),
    ("a forward", [forwarded()], 0.0),
    ("a photo", [said(1, None, photo=[])], 0.0),
    ("an album", [photo(1)], ALBUM_WAIT),
    ("a whole album", [photo(number) for number in range(ALBUM)], 0.0),
    ("a long text", [said(1, LONG)], TEXT_WAIT),
    ("its end", [said(1, LONG), said(2)], 0.0),
    ("a comment whose forward has come", [said(1), forwarded(2)], FORWARD_WAIT),
    (
        "a comment with ten of an album",
        [said(0), *(photo(number, forward_origin=NEWS) for number in range(1, 11))],
        0.6,
    ),
    ("as many as there can be", [said(0), *(forwarded(number) for number in range(1, MOST_PARTS))], 0.0),
]


@pytest.mark.parametrize(("messages", "wait"), [row[1:] for row in WAITS], ids=[row[0] for row in WAITS])
def test_only_what_may_go_on_waits(messages: list[dict[str, Any]], wait: float) -> None:
    assert patience(traced(messages[0]), traced(messages[-1]), len(messages)) == wait


def test_a_comment_waits_where_its_forward_is_known_to_come() -> None:
    assert patience(traced(said()), traced(said()), 1, announced=True) == FORWARD_WAIT
    assert comments_on(said(1), forwarded(2))
    assert not comments_on(forwarded(1), forwarded(2))
    assert not comments_on(said(1), said(2))


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=300), sizes=st.lists(st.integers(3500, 4096)))
def test_a_split_text_is_what_it_was(text: str, sizes: list[int]) -> None:
    whole = "".join("ab c\n"[size % 5] * size for size in sizes) + text
    pieces, start = [], 0
    for size in sizes:
        pieces.append(whole[start : start + size])
        start += size
    pieces.append(whole[start:])
    assert text_of([said(number, piece) for number, piece in enumerate(pieces)]) == whole


def test_the_text_of_an_item_is_that_of_its_parts() -> None:
    assert text_of([photo(1), photo(2, caption="two"), photo(3)]) == "two"
    assert text_of([said(1, "what is this?"), forwarded(2, "news"), forwarded(3, "more")]) == (
        "what is this?\n\nnews\n\nmore"
    )
    assert text_of([photo(1)]) == ""


def test_parts_stand_in_the_order_in_which_they_were_sent() -> None:
    assert [part["message_id"] for part in in_order([photo(3), photo(1), photo(2)])] == [1, 2, 3]
    assert in_order([{"text": "no id"}, said(1)]) == [{"text": "no id"}, said(1)]
