"""Buttons: short keys for any data, and what a press comes to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_bus.core import buttons
from telegram_bus.core.buttons import Kept
from telegram_bus.core.text import units
from telegram_bus.followers.keyboards import key_for, new_key

ANN = {"id": 7, "first_name": "Ann"}
BEN = {"id": 8, "username": "ben"}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def kept(**changes: Any) -> Kept:
    content = {"buttons": [["Yes", {"go": 1}], ["No", None]], "one_time": True}
    whole = {
        "id": "k",
        "key": "nora",
        "content": content | changes.pop("content", {}),
        "holder": None,
        "place": (1, 2),
        "answer": None,
        "shown": False,
        "taken": False,
    }
    return Kept(**{**whole, **changes})


def press(
    keyboard: Kept | None, number: int = 0, *, user: Any = ANN, owner: str | None = "nora", update: int = 5, **more: Any
) -> Any:
    return buttons.pressed(keyboard, number, user=user, owner=owner, update_id=update, away=more.get("away"))


@given(st.lists(st.text() | st.text(min_size=60) | JSON, min_size=1, max_size=buttons.MOST_BUTTONS), st.booleans())
def test_whatever_a_program_gives_a_button_telegram_gets_1_to_64_bytes(data: list[Any], random: bool) -> None:
    """Scenario 92: a short durable key in place of what is too long, or no text."""
    markup = {"inline_keyboard": [[{"text": "b", "callback_data": one}] for one in data]}
    ident = new_key() if random else key_for("nora", "scope", data)
    content = buttons.check_content(ident, {"buttons": [["b", one] for one in data]})
    for number, one in enumerate(data):
        sent = buttons.callback_data(ident, number) if buttons.needs_keeping(markup) else one
        assert type(sent) is str
        assert 1 <= len(sent.encode("utf-8", "surrogatepass")) <= 64
        if buttons.needs_keeping(markup):
            assert buttons.kept_place(sent) == (ident, number)
            assert content["buttons"][number][1] == one
        else:
            assert not sent.startswith(buttons.LEADERS)


@given(st.text())
def test_any_data_of_a_press_is_read(data: str) -> None:
    """It is whatever stands under the message."""
    place = buttons.kept_place(data)
    assert place is None or data.startswith(buttons.callback_data(place[0], 0)[:-1])


@pytest.mark.parametrize(
    ("ident", "content", "reason"),
    [
        ("", {"buttons": [["a", 1]]}, "id"),
        ("x" * 44, {"buttons": [["a", 1]]}, "id"),
        ("a:b", {"buttons": [["a", 1]]}, "id"),
        ("é", {"buttons": [["a", 1]]}, "id"),
        ("k", None, "list"),
        ("k", {}, "list"),
        ("k", {"buttons": [["a"]]}, "list"),
        ("k", {"buttons": [[1, 1]]}, "list"),
        ("k", {"buttons": [["a", 1]] * 101}, "list"),
        ("k", {"buttons": []}, "needs buttons"),
        ("k", {"buttons": [["a", 1]], "users": 5}, "users"),
        ("k", {"buttons": [["a", 1]], "users": ["5"]}, "users"),
        ("k", {"buttons": [], "question": {}}, "text"),
        ("k", {"buttons": [["a", "x" * 70_000]]}, "64|65536"),
        ("k", {"buttons": [["a", object()]]}, "JSON"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_reason(ident: str, content: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        buttons.check_content(ident, content)


def test_a_press_of_a_button_for_many_presses_is_its_owners() -> None:
    keyboard = kept(content={"one_time": False})
    assert press(keyboard) == buttons.Pressed(None, deliver=True, data={"go": 1})
    assert press(keyboard, owner=None) == press(keyboard)


def test_the_first_press_of_a_one_time_keyboard_ends_it() -> None:
    """Whichever of its buttons it is."""
    first = press(kept(), 1, update=5)
    assert (first.toast, first.deliver, first.data) == (None, True, None)
    assert first.answer == {"update_id": 5, "number": 1, "label": "No", "data": None, "by": ANN}
    ended = kept(answer=first.answer)
    assert press(ended, 0, user=BEN, update=6) == buttons.Pressed("Already chosen: No (Ann)")
    assert press(ended, 1, update=5) == buttons.Pressed(None)  # the very same press, once more


@pytest.mark.parametrize(
    ("keyboard", "number", "more", "toast"),
    [
        (None, 0, {}, "expired"),
        (kept(), 2, {}, "expired"),
        (kept(), 0, {"owner": "otto"}, "not valid"),
        (kept(content={"users": [8]}), 0, {}, "somebody else"),
        (kept(answer={"expired": "not needed any more"}), 0, {}, "expired: not needed"),
    ],
)
def test_a_press_in_vain_says_why_and_reaches_nobody(
    keyboard: Kept | None, number: int, more: dict[str, Any], toast: str
) -> None:
    outcome = press(keyboard, number, **more)
    assert toast in outcome.toast
    assert (outcome.deliver, outcome.answer) == (False, None)


QUESTION = {"question": {"text": "Deploy?", "allow_text": True}}


def test_a_press_that_answers_a_question_tells_the_person_so() -> None:
    assert press(kept(content=QUESTION)).toast == "✔ Yes"
    away = press(kept(content=QUESTION), away="nora")
    assert away.toast == "✔ Yes — nora is away; it is kept."
    assert away.answer["data"] == {"go": 1}
    assert not away.deliver


def test_a_text_answers_a_question_that_takes_one() -> None:
    found = buttons.replied(kept(content=QUESTION), "on Monday", user=ANN, update_id=9)
    assert found is not None
    assert found.answer == {"update_id": 9, "label": "on Monday", "by": ANN}
    for other, text in (
        (kept(content=QUESTION), "  "),
        (kept(), "x"),
        (kept(content={"question": {"text": "?", "allow_text": False}}), "x"),
        (kept(content=QUESTION, answer={"expired": "x"}), "x"),
        (kept(content=QUESTION | {"users": [8]}), "x"),
    ):
        assert buttons.replied(other, text, user=ANN, update_id=9) is None


@given(st.text(max_size=buttons.QUESTION_UNITS // 2), st.text(max_size=6_000), st.text(max_size=200))
def test_a_question_with_its_answer_is_one_message(text: str, label: str, name: str) -> None:
    answer = {"update_id": 1, "label": label, "by": {"id": 7, "first_name": name}}
    shown = buttons.closed_text(kept(content={"question": {"text": text, "allow_text": True}}, answer=answer))
    assert shown.startswith(text)
    assert units(shown) <= 4_096


@given(st.text())
def test_a_toast_is_short(text: str) -> None:
    assert len(buttons.toast(text)) <= buttons.ANSWER_UNITS
