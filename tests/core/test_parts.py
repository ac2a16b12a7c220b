"""Long texts as messages: no part is too long, none loses its formatting, and together they are the text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_bus.core.markup_html import parse_html
from telegram_bus.core.parts import ENTITIES, MESSAGE_LENGTH, Entity, Part, beginning, split
from telegram_bus.core.text import units
from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.entities import read_text

LETTERS = [
    *"ab \n\n\t",
    "é",
    "\u05d0",
    "\u200f",
    "🎉",
    "👩\u200d👩\u200d👧",
    "🇫🇷",
    "👍🏽",
    "e\u0301",
    "漢",
    "\r\n",
    "\ufeff",
]
TEXTS = st.lists(st.sampled_from(LETTERS), max_size=300).map("".join)
KINDS = st.sampled_from(["bold", "italic", "code", "pre", "text_link", "blockquote"])


@st.composite
def formatted(draw: st.DrawFn) -> tuple[str, list[Entity]]:
    """A text and entities whose ends do not tear a character."""
    text = draw(TEXTS)
    entities = []
    for _ in range(draw(st.integers(0, 6))):
        begin, end = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        at = units(text[:begin])
        entities.append({"type": draw(KINDS), "offset": at, "length": units(text[:end]) - at, "url": "https://a.b/"})
    return text, entities


def marks(text: str, entities: Any) -> list[tuple[str, frozenset[str]]]:
    """Each character that is no white space with the kinds of its entities."""
    found, at = [], 0
    for character in text:
        kinds = frozenset(one["type"] for one in entities if one["offset"] <= at < one["offset"] + one["length"])
        at += units(character)
        if not character.isspace():
            found.append((character, kinds))
    return found


def accepted(part: Part) -> tuple[str, list[Entity]]:
    """What Telegram makes of a part."""
    return read_text(Args({"text": part.text, "entities": list(part.entities)}))


@given(formatted(), st.integers(8, 60))
def test_scenario_85_parts_fit_and_join_to_the_text_with_its_formatting(
    content: tuple[str, list[Entity]], limit: int
) -> None:
    text, entities = content
    parts = split(text, entities, limit)
    for part in parts:
        assert units(part.text) <= limit
        assert part.text.strip()
        assert all(one["offset"] >= 0 and one["length"] > 0 for one in part.entities)
        assert all(one["offset"] + one["length"] <= units(part.text) for one in part.entities)
        accepted(part)
    at = 0
    for part in parts:  # in order, with nothing but white space between them
        begin = text.index(part.text, at)
        assert not text[at:begin].strip()
        at = begin + len(part.text)
    assert not text[at:].strip()
    assert [mark for part in parts for mark in marks(*part)] == marks(text, entities)


@given(TEXTS)
def test_a_text_without_long_stretches_of_white_space_is_what_its_parts_are_exactly(text: str) -> None:
    solid = f"x{text}".replace("\n\n\n", "\n").replace("   ", " ").replace("\t", " ")
    assert "".join(part.text for part in split(solid, limit=400)) == solid


@given(TEXTS, st.integers(16, 40))
def test_what_people_see_as_one_character_is_not_torn(text: str, limit: int) -> None:
    for part in split(text, limit=limit)[1:]:
        assert part.text[0] not in "\u200d\u0301🏽"


@pytest.mark.parametrize(
    ("text", "limit", "parts"),
    [
        ("one two\n\ntwo\nthree", 14, ["one two\n\n", "two\nthree"]),
        ("one two\nthree four", 12, ["one two\n", "three four"]),
        ("one two three", 9, ["one two ", "three"]),
        ("onetwothree", 6, ["onetwo", "three"]),
        ("a\n\nlong-word-that-fills", 20, ["a\n\nlong-word-that-fi", "lls"]),
        ("🎉🎉🎉", 4, ["🎉🎉", "🎉"]),
        ("x" * 8 + " " * 30 + "y", 8, ["x" * 8, "      y"]),
        (" \n ", 8, []),
        ("", 8, []),
    ],
)
def test_parts_end_at_a_paragraph_a_line_or_a_word(text: str, limit: int, parts: list[str]) -> None:
    """The first that is in the second half of what would fit; what is blank is no message."""
    assert [part.text for part in split(text, limit=limit)] == parts


def test_code_is_cut_at_a_line_rather_than_at_its_blank_one() -> None:
    text = "def f():\n    a\n\n    b\n    c\n"
    code = [{"type": "pre", "offset": 0, "length": len(text), "language": "python"}]
    first, second = split(text, code, 24)
    assert (first.text, second.text) == ("def f():\n    a\n\n    b\n", "    c\n")
    assert first.entities == ({"type": "pre", "offset": 0, "length": 22, "language": "python"},)
    assert second.entities == ({"type": "pre", "offset": 0, "length": 6, "language": "python"},)


def test_a_part_has_no_more_entities_than_telegram_keeps() -> None:
    text = "ab " * 500
    entities = [{"type": "bold", "offset": 3 * number, "length": 2} for number in range(500)]
    parts = split(text, entities)
    assert [len(part.entities) for part in parts] == [ENTITIES] * 5
    assert "".join(part.text for part in parts) == text


def test_scenario_86_markup_that_is_longer_than_telegram_reads_is_read_before_it_is_cut() -> None:
    """100 KiB of &lt; are 25,600 characters, each part of which is far below the 32 KiB of raw text."""
    text, entities = parse_html("&lt;" * 25_600)
    parts = split(text, entities)
    assert [len(part.text) for part in parts] == [MESSAGE_LENGTH] * 6 + [1_024]
    for part in parts:
        text, entities = accepted(part)
        assert (text, entities) == (part.text, [])


def test_the_beginning_of_a_text_is_its_first_part_without_white_space() -> None:
    bold = [{"type": "bold", "offset": 0, "length": 9}]
    assert beginning("one \n\ntwo", bold, 7) == Part("one", ({"type": "bold", "offset": 0, "length": 3},))
    assert beginning(" \n", [], 7) == Part("")
