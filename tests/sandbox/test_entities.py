"""Parse modes: what comes out of common markup, and what the server says to broken markup (M5)."""

from __future__ import annotations

from typing import Any

import pytest

from telegram_bus.sandbox.entities import found_entities
from tests.sandbox.talk import Talk

HTML = {
    "<b>a</b><strong>b</strong>": ("ab", [("bold", 0, 1), ("bold", 1, 1)]),
    "<i>x <u>y</u></i>": ("x y", [("italic", 0, 3), ("underline", 2, 1)]),
    "<s>a</s><del>b</del><tg-spoiler>c</tg-spoiler>": (
        "abc", [("strikethrough", 0, 1), ("strikethrough", 1, 1), ("spoiler", 2, 1)],
    ),
    '<span class="tg-spoiler">x</span>': ("x", [("spoiler", 0, 1)]),
    "&lt;b&gt; &amp;amp; &#128512; &copy;": ("<b> &amp; 😀 &copy;", []),
    "😀<code>x</code>": ("😀x", [("code", 2, 1)]),
    "<B>x</>": ("x", [("bold", 0, 1)]),
    "<blockquote>q</blockquote><blockquote expandable>r</blockquote>": (
        "qr", [("blockquote", 0, 1), ("expandable_blockquote", 1, 1)],
    ),
    "<b></b>x": ("x", []),
    "<a href='no address'>x</a>": ("x", []),
}  # fmt: skip
HTML_FAULTS = {
    "<b>x": 'Can\'t find end tag corresponding to start tag "b"',
    "é<x>": 'Unsupported start tag "x" at byte offset 2',
    "a < b": 'Unsupported start tag "" at byte offset 2',
    "x</b>": "Unexpected end tag at byte offset 1",
    "<b>x</i>": 'Unmatched end tag at byte offset 4, expected "</b>", found "</i>"',
    "<b": "Unclosed start tag at byte offset 0",
    '<a href="x': 'Unclosed start tag "a" at byte offset 0',
    "<b>x</b": "Unclosed end tag at byte offset 4",
    "<span>x</span>": 'Tag "span" must have class "tg-spoiler" at byte offset 0',
    '<a href="x" ="y">z</a>': 'Empty attribute name in the tag "a" at byte offset 0',
}
MARKDOWN = {
    "*a* _b_ __c__ ~d~ ||e|| `f`": (
        "a b c d e f",
        [("bold", 0, 1), ("italic", 2, 1), ("underline", 4, 1), ("strikethrough", 6, 1), ("spoiler", 8, 1),
         ("code", 10, 1)],
    ),
    "*a _b_*": ("a b", [("bold", 0, 3), ("italic", 2, 1)]),
    r"1\. \*x\*": ("1. *x*", []),
    "```\nraw *text*\n```": ("raw *text*", [("pre", 0, 10)]),
    ">quoted\n>more\nafter": ("quoted\nmore\nafter", [("blockquote", 0, 11)]),
    ">quoted||": ("quoted", [("expandable_blockquote", 0, 6)]),
    "😀 *x*": ("😀 x", [("bold", 3, 1)]),
}  # fmt: skip
MARKDOWN_FAULTS = {
    "a.": "Character '.' is reserved and must be escaped with the preceding '\\'",
    "a > b": "Character '>' is reserved and must be escaped with the preceding '\\'",
    "é *x": "Can't find end of Bold entity at byte offset 3",
    "```py\nx": "Can't find end of PreCode entity at byte offset 0",
    "[x](y": "Can't find end of a URL at byte offset 4",
    "a | b": "Character '|' is reserved and must be escaped with the preceding '\\'",
}
LEGACY = {
    "*a* _b_ `c`": ("a b c", [("bold", 0, 1), ("italic", 2, 1), ("code", 4, 1)]),
    r"snake\_case": ("snake_case", []),
}


def shape(sent: dict[str, Any]) -> tuple[str, list[tuple[str, int, int]]]:
    entities = sent.get("entities", [])
    return sent["text"], [(entity["type"], entity["offset"], entity["length"]) for entity in entities]


@pytest.mark.parametrize("source", HTML)
def test_html(source: str) -> None:
    assert shape(Talk().send(source, parse_mode="HTML")) == HTML[source]


@pytest.mark.parametrize("source", MARKDOWN)
def test_markdown(source: str) -> None:
    assert shape(Talk().send(source, parse_mode="MarkdownV2")) == MARKDOWN[source]


@pytest.mark.parametrize("source", LEGACY)
def test_legacy_markdown(source: str) -> None:
    assert shape(Talk().send(source, parse_mode="Markdown")) == LEGACY[source]


@pytest.mark.parametrize("source", HTML_FAULTS)
def test_broken_html(source: str) -> None:
    talk = Talk()
    said = talk.refused("sendMessage", chat_id=talk.private.id, text=source, parse_mode="html")
    assert said == f"can't parse entities: {HTML_FAULTS[source]}"


@pytest.mark.parametrize("source", MARKDOWN_FAULTS)
def test_broken_markdown(source: str) -> None:
    talk = Talk()
    said = talk.refused("sendMessage", chat_id=talk.private.id, text=source, parse_mode="MarkdownV2")
    assert said == f"can't parse entities: {MARKDOWN_FAULTS[source]}"


def test_links_and_languages_carry_their_value() -> None:
    talk = Talk()
    source = (
        '<a href="https://example.org/?a=1&amp;b=2">x</a> <pre><code class="language-py">y</code></pre> '
        '<a href="tg://user?id=42">z</a>'
    )
    link, block, person = talk.send(source, parse_mode="HTML")["entities"]
    assert link["url"] == "https://example.org/?a=1&b=2"
    assert (block["type"], block["language"]) == ("pre", "py")
    assert (person["type"], person["user"]["id"]) == ("text_mention", 42)
    link, block = talk.send("[x](https://example.org/\\)) ```py\ny```", parse_mode="MarkdownV2")["entities"]
    assert link["url"] == "https://example.org/)"
    assert block["language"] == "py"


def test_unknown_mode_and_broken_entities_are_refused() -> None:
    talk = Talk()
    there = {"chat_id": talk.private.id, "text": "x"}
    assert talk.refused("sendMessage", parse_mode="bbcode", **there) == "unsupported parse_mode"
    assert talk.refused("sendMessage", entities="{}", **there).startswith("can't parse entities: ")
    assert talk.refused("sendMessage", entities="[1]", **there).startswith("can't parse entities: ")
    assert talk.refused("sendMessage", entities='[{"type": "bold"}]', **there).startswith("can't parse entities: ")


def test_what_telegram_finds_by_itself() -> None:
    text = (
        "/start@some_bot see https://example.org/a?b=c. ask @someone or me@example.org "
        "#tag +12125550123 1+1 a/b <b>x</b>"
    )
    found = [(item["type"], text[item["offset"] : item["offset"] + item["length"]]) for item in found_entities(text)]
    assert found == [
        ("bot_command", "/start@some_bot"),
        ("url", "https://example.org/a?b=c"),
        ("mention", "@someone"),
        ("email", "me@example.org"),
        ("hashtag", "#tag"),
        ("phone_number", "+12125550123"),
    ]
