"""Work that one follower gives to another: the updates that it becomes."""

from __future__ import annotations

from typing import Any

import pytest

from telegram_bus.core.errors import RequestRefused
from telegram_bus.core.extensions import HandedPart
from telegram_bus.core.handing import HANDED, PARTS, handed_updates, marks, unmarked
from telegram_bus.core.updates import SOURCE_MARKER

BODY = {"message_id": 7, "date": 1, "chat": {"id": 12}, "text": "do it"}
PART = HandedPart(kind="message", body=BODY)


def test_the_same_token_makes_the_same_updates_and_another_one_others() -> None:
    once, again = (handed_updates(5, [PART, PART], "builder", "soon") for _ in range(2))
    assert once == again
    other = handed_updates(6, [PART] * PARTS, "builder", None)
    ids = {update["update_id"] for update in once + other}
    assert len(ids) == 2 + PARTS
    assert all(2**51 <= update_id < 2**52 for update_id in ids)


def test_they_say_who_gave_them_away_last_and_carry_nothing_else_of_ours() -> None:
    [first] = handed_updates(1, [PART], "builder", "soon")
    body = first["message"]
    assert marks(body) == ("builder", "soon")
    assert unmarked(body | {SOURCE_MARKER: 3}) == BODY
    [second] = handed_updates(2, [HandedPart(kind="message", body=body)], "reviewer", None)
    assert marks(second["message"]) == ("reviewer", None)


def test_a_person_s_own_message_says_nothing() -> None:
    assert marks(BODY) == (None, None)
    assert marks(BODY | {HANDED: "x"}) == (None, None)
    assert marks(BODY | {HANDED: {"by": 7, "note": []}}) == (None, None)


@pytest.mark.parametrize(
    ("token", "parts", "said"),
    [
        (-1, [PART], "token must be"),
        (2**42, [PART], "token must be"),
        (1, [], "parts must be 1 to 128"),
        (1, [PART] * (PARTS + 1), "parts must be 1 to 128"),
        (1, [PART, HandedPart(kind="poll", body={})], r"parts\[1\] must have a kind \(message, "),
        (1, [HandedPart(kind="message", body="text")], r"parts\[0\] must have a kind"),
    ],
)
def test_what_cannot_be_is_refused_by_name(token: int, parts: list[Any], said: str) -> None:
    with pytest.raises(RequestRefused, match=said):
        handed_updates(token, parts, "builder", None)
