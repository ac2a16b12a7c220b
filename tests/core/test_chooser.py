"""The chooser's buttons and the words in one chat: short, unambiguous, and true to what was written."""

from __future__ import annotations

import re
from html import unescape
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_bus.core import chooser, sharing
from telegram_bus.core.chooser import (
    MAIN,
    NOUN,
    Choice,
    ask,
    closed,
    data_of,
    keyboard,
    mark_of,
    named,
    press_of,
)
from telegram_bus.core.text import units

names = st.text(min_size=1, max_size=128)
agents = st.lists(
    st.builds(Choice, st.text(min_size=1, max_size=60), names), max_size=40, unique_by=lambda one: one.key
)
places = st.one_of(st.just(MAIN), st.integers(2, 2**40))


@given(places, agents, st.integers(0, 9), st.booleans())
def test_every_button_fits_telegram_and_says_what_it_does(
    place: int, choices: list[Choice], page: int, binding: bool
) -> None:
    rows = keyboard(place, choices, page=page, binding=binding)
    assert rows
    for row in rows:
        assert 1 <= len(row) <= 2
        for button in row:
            assert len(button["callback_data"].encode()) <= 64
            assert 0 < units(button["text"]) <= 40
            _, noun, rest = button["callback_data"].split(":", 2)
            press = press_of(rest)
            assert noun == NOUN
            assert press is not None
            assert press.place == place
            assert data_of(press) == button["callback_data"]


@given(places, agents)
def test_every_agent_can_be_reached_by_turning_pages(place: int, choices: list[Choice]) -> None:
    seen: set[str] = set()
    page, turned = 0, 0
    while turned <= len(choices):
        turned += 1
        following = None
        for button in chain(*keyboard(place, choices, page=page)):
            press = press_of(button["callback_data"].split(":", 2)[2])
            assert press is not None
            if press.verb == "give":
                seen.add(press.arg)
            elif press.verb == "show" and "More" in button["text"]:
                following = chooser.shown(press.arg)[1]
        if following in (None, 0):
            break
        page = following
    assert seen == {mark_of(one.key) for one in choices}
    for one in choices:
        found = named(mark_of(one.key), choices)
        assert found in (one, None)  # two with one mark are nobody


@given(st.one_of(st.text(max_size=40), st.from_regex(r"[0-9a-z]{0,20}:[a-z]?:?[a-z0-9]{0,8}", fullmatch=True)))
def test_only_what_a_chooser_writes_is_a_press(data: str) -> None:
    ours = re.fullmatch(r"[0-9]{1,16}:[gblis](:.*)?", data, re.ASCII | re.DOTALL)
    assert (press_of(data) is not None) == (ours is not None)


@given(places, st.integers(0, 10**6), agents, names)
def test_question_and_answer_fit_a_message(place: int, count: int, choices: list[Choice], name: str) -> None:
    for yes in (False, True):
        assert 0 < units(ask(place, count, choices, binding=yes)) < 1_000
        assert 0 < units(ask(place, count, choices, shared=yes)) < 1_000
        for verb in ("give", "bind", "later", "ignore"):
            assert 0 < units(closed(verb, count, name, chosen=yes)) < 1_000


def test_two_keys_with_one_mark_cannot_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rather nobody than the wrong one."""
    monkeypatch.setattr(chooser, "mark_of", lambda _key: "same")
    assert named("same", [Choice("a", "A"), Choice("b", "B")]) is None


entities = st.lists(
    st.fixed_dictionaries({"type": st.just("bold"), "offset": st.integers(0, 50), "length": st.just(1)})
)


@given(names, st.text(min_size=1, max_size=200), entities)
def test_a_signed_text_is_the_name_and_the_text_with_its_formatting(
    name: str, text: str, given: list[dict[str, int]]
) -> None:
    body = {"chat_id": 1, "text": text, "entities": given}
    changed = sharing.signed("sendMessage", body, name)
    assert changed["text"] == f"{name}: {text}"
    by = units(f"{name}: ")
    assert [one["offset"] - by for one in changed["entities"]] == [one["offset"] for one in given]
    assert body["text"] == text  # what was given is not changed


@given(names, st.sampled_from(["HTML", "MarkdownV2", "Markdown"]))
def test_a_name_cannot_break_the_markup_of_what_it_stands_before(name: str, mode: str) -> None:
    signed = sharing.signed("sendMessage", {"text": "x", "parse_mode": mode}, name)["text"].removesuffix(": x")
    if mode == "HTML":
        assert "<" not in signed
        assert unescape(signed) == unescape(name) or "&" in name
    else:
        assert signed.replace("\\", "") == name.replace("\\", "")


@pytest.mark.parametrize("text", [">quoted\nplain", "**>first\n>last||"])
def test_a_quotation_in_markdown_stays_at_the_beginning_of_a_line(text: str) -> None:
    """Anywhere else Telegram refuses its sign."""
    body = {"text": text, "parse_mode": "MarkdownV2"}
    assert sharing.signed("sendMessage", body, "nora")["text"] == f"nora:\n{text}"
    assert sharing.signed("sendMessage", {"text": text}, "nora")["text"] == f"nora: {text}"


def test_a_file_in_the_place_of_another_is_signed_too() -> None:
    media = {"type": "photo", "media": "a", "caption": "one"}
    assert sharing.signed("editMessageMedia", {"media": media}, "nora")["media"]["caption"] == "nora: one"


def test_what_would_be_too_long_goes_as_it_is() -> None:
    body = {"text": "x" * 4_095}
    assert sharing.signed("sendMessage", body, "nora") == body
    assert sharing.signed("sendPhoto", {"photo": "id", "caption": "x"}, "nora")["caption"] == "nora: x"
    assert sharing.signed("sendLocation", {"latitude": 1}, "nora") == {"latitude": 1}


def test_an_album_is_signed_once() -> None:
    media = [{"type": "photo", "media": "a", "caption": "one"}, {"type": "photo", "media": "b", "caption": "two"}]
    signed = sharing.signed("sendMediaGroup", {"media": media}, "nora")["media"]
    assert [one["caption"] for one in signed] == ["nora: one", "two"]
    bare = sharing.signed("sendMediaGroup", {"media": [{"type": "photo", "media": "a"}]}, "nora")["media"]
    assert bare[0]["caption"] == "nora"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ("", None)),
        ("2h", ("", 7_200)),
        ("nora", ("nora", None)),
        ("my shell 45m", ("my shell", 2_700)),
        ("90", ("", 5_400)),
        ("nora 0", ("nora 0", None)),
        ("nora 99999w", ("nora", 365 * 86_400)),
    ],
)
def test_the_words_after_mute(text: str, expected: tuple[str, int | None]) -> None:
    assert sharing.mute_of(text) == expected


@pytest.mark.parametrize(
    ("text", "minute", "quiet"),
    [
        ("22:00-07:00", 22 * 60, True),
        ("22:00-07:00", 6 * 60 + 59, True),
        ("22:00-07:00", 7 * 60, False),
        ("13:00-14:00", 13 * 60 + 30, True),
        ("13:00-14:00", 14 * 60, False),
    ],
)
def test_quiet_hours_may_pass_midnight(text: str, minute: int, *, quiet: bool) -> None:
    hours = sharing.hours_of(text)
    assert hours is not None
    assert sharing.within(minute, hours) is quiet


@pytest.mark.parametrize("text", ["22-7", "24:00-07:00", "07:00-07:00", "", "22:00 07:00"])
def test_what_is_no_hours_is_none(text: str) -> None:
    assert sharing.hours_of(text) is None


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("NORA", ["nora"]), ("no", ["nora", "Norbert"]), ("norb", ["Norbert"]), ("@otto", ["otto"]), ("", [])],
)
def test_an_agent_is_found_by_its_name_or_how_that_begins(wanted: str, found: list[str]) -> None:
    known = [Choice("nora", "nora"), Choice("n2", "Norbert"), Choice("otto", "otto")]
    assert [one.name for one in sharing.find(wanted, known)] == found
