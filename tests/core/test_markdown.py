"""Markdown as people write it becomes text and entities that Telegram takes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from telegram_bus.core.markdown import convert
from telegram_bus.core.parts import Entity, split
from telegram_bus.core.text import units
from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.entities import read_text

PIECES = [
    *[
        "*",
        "**",
        "_",
        "`",
        "```",
        "~~",
        "[",
        "](https://a.b/)",
        "# ",
        "- ",
        "1. ",
        "> ",
        "|",
        "|-|",
        "\n",
        "\n\n",
        "    ",
    ],
    *["a", "b c", "🎉", "<b>", "&amp;", "\\", "!", "---", "- [ ] ", "\t"],
]
SOURCES = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


def shown(source: str) -> list[tuple[str, str]]:
    """What is formatted, each (kind, text)."""
    text, entities = convert(source)
    data = text.encode("utf-16-le")
    return [
        (one["type"], data[2 * one["offset"] : 2 * (one["offset"] + one["length"])].decode("utf-16-le"))
        for one in entities
    ]


@pytest.mark.parametrize(
    ("source", "text", "formatting"),
    [
        ("plain", "plain", []),
        ("**b** _i_ ~~s~~ `c`", "b i s c", [("bold", "b"), ("italic", "i"), ("strikethrough", "s"), ("code", "c")]),
        ("🎉 **a *b* c**", "🎉 a b c", [("bold", "a b c"), ("italic", "b")]),
        ("**x `y` z**", "x y z", [("bold", "x "), ("code", "y"), ("bold", " z")]),
        ("# One\ntwo", "One\n\ntwo", [("bold", "One")]),
        ("# **One**", "One", [("bold", "One")]),
        ("one\ntwo\n\nthree", "one\ntwo\n\nthree", []),
        ("- a\n- b\n  - c\n\nd", "• a\n• b\n  • c\n\nd", []),
        ("3. a\n4. b", "3. a\n4. b", []),
        ("- [ ] a\n- [x] b", "• ☐ a\n• ☑ b", []),
        ("- a\n\n  b\n- c", "• a\n\n  b\n• c", []),
        ("> q\n> > r\n\ns", "q\n\nr\n\ns", [("blockquote", "q\n\nr")]),
        ("```py x=1\nif a:\n  b\n```\nc", "if a:\n  b\n\nc", [("pre", "if a:\n  b")]),
        ("```\nopen", "open", [("pre", "open")]),
        ("a\n\n---\n\nb", "a\n\n———\n\nb", []),
        ("[t](https://a.b/c)", "t", [("text_link", "t")]),
        ("[`t`](https://a.b/c)", "t", [("text_link", "t")]),
        ("[t](docs/x.md) [u](#v) <me@a.bc>", "t (docs/x.md) u me@a.bc", []),
        ("![pic](https://a.b/c.png)", "pic", [("text_link", "pic")]),
        ("| a | b |\n|---|---|\n| 漢 | **x** |", "a  | b\n---+--\n漢 | x", [("pre", "a  | b\n---+--\n漢 | x")]),
        ("<b>x</b> &lt; 2 \\*", "<b>x</b> < 2 *", []),
        ("2 * 3 * 4 snake_case_name", "2 * 3 * 4 snake_case_name", []),
        ("[only]: https://a.b/", "[only]: https://a.b/", []),
    ],
)
def test_it_reads_as_people_mean_it(source: str, text: str, formatting: list[tuple[str, str]]) -> None:
    assert (convert(source)[0], shown(source)) == (text, formatting)


def test_a_link_and_the_language_of_code_are_kept() -> None:
    entities = convert("[t](https://a.b/c?d=e) \n```py x=1\nc\n```")[1]
    assert [{name: one[name] for name in one if name not in ("offset", "length")} for one in entities] == [
        {"type": "text_link", "url": "https://a.b/c?d=e"},
        {"type": "pre", "language": "py"},
    ]


@pytest.mark.parametrize("source", ["> " * 150 + "deep", "- " * 150 + "deep", ">" * 5_000, "[" * 5_000, "*a " * 5_000])
def test_what_is_nested_too_deeply_is_not_lost(source: str) -> None:
    text, _ = convert(source)
    assert ("deep" in text) == ("deep" in source)
    assert text.strip()


@example(">     *")
@given(SOURCES)
def test_whatever_it_is_telegram_takes_it(source: str) -> None:
    """Entities lie within the text and inside of each other; code holds nothing; no letter is lost."""
    text, entities = convert(source)
    if "`" not in source and "|" not in source:  # what follows ``` is no text, nor is a cell without a column
        assert text.count("🎉") == source.count("🎉")
    if text.strip():
        for part in split(text, entities, 40):
            read_text(Args({"text": part.text, "entities": list(part.entities)}))
    for one in entities:
        assert 0 <= one["offset"] < one["offset"] + one["length"] <= units(text)
    for outer, inner in ((a, b) for a in entities for b in entities if a is not b):
        assert not _crosses(outer, inner), (outer, inner)
        if outer["type"] in ("code", "pre") and inner["type"] != "blockquote":
            assert not _overlap(outer, inner)
        if outer["type"] == inner["type"] == "blockquote":
            assert not _overlap(outer, inner)


def _overlap(a: Entity, b: Entity) -> bool:
    return bool(a["offset"] < b["offset"] + b["length"] and b["offset"] < a["offset"] + a["length"])


def _crosses(a: Any, b: Any) -> bool:
    return bool(a["offset"] < b["offset"] < a["offset"] + a["length"] < b["offset"] + b["length"])
