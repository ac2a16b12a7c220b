"""Markdown as people and language models write it (CommonMark, tables, strike-through), as text with entities.

`markdown-it-py` reads it; it is imported by the first conversion (50 ms), so that who sends no Markdown does not pay.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from telegram_bus.core.parts import Entity
from telegram_bus.core.text import units

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = ["convert"]

DEEPEST: Final = 100
"""Levels of nesting; the library leaves out what is deeper, so such a text is not converted at all."""

RULE: Final = "———"
BULLET: Final = "• "

_STYLES: Final = {"strong": "bold", "em": "italic", "s": "strikethrough"}
_ADDRESS: Final = re.compile(r"(?:https?|tg|tonsite|ton)://\S", re.IGNORECASE)
_TASK: Final = re.compile(r"\[([ xX])\] ")


def convert(source: str) -> tuple[str, list[Entity]]:
    """The text that people see, and its formatting as Telegram's entities.

    Whatever is no Markdown stays as it is, HTML too. Headings become bold, lists get bullets and numbers, tables stand
    in columns as code; a link that Telegram cannot follow shows its target behind it, an image is a link.
    """
    try:
        tokens = _reader().parse(source)
    except RecursionError:
        return source, []
    if any(token.level >= DEEPEST - 1 for token in tokens):
        return source, []
    writer = _Writer()
    _Blocks(writer).write(tokens)
    text = "".join(writer.pieces)
    return (text, sorted(writer.entities, key=_place)) if text.strip() else (source, [])


@functools.cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - only who sends Markdown pays for it

    return MarkdownIt("commonmark", {"html": False, "maxNesting": DEEPEST}).enable(["table", "strikethrough"])


def _place(entity: Entity) -> tuple[int, int, bool]:
    """Outer ones first: a quotation may hold anything."""
    return entity["offset"], -entity["length"], entity["type"] != "blockquote"


class _Style:
    """An entity that is being written; `begin` is None before its first character, `facts` None: it shows nothing."""

    __slots__ = ("begin", "facts")

    def __init__(self, facts: Entity | None) -> None:
        self.facts = facts
        self.begin: int | None = None


class _Writer:
    """A text that grows, with the entities that are open at its end."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.entities: list[Entity] = []
        self.indent = ""
        self._length = 0
        self._gap = 0
        self._open: list[_Style] = []

    def gap(self, newlines: int) -> None:
        """What is written next stands at least so many newlines below."""
        if self.pieces:
            self._gap = max(self._gap, newlines)

    def text(self, text: str, *, verbatim: bool = False) -> None:
        """Adds text; its further lines, and what begins a line, are indented unless it is verbatim."""
        if not text:
            return
        if self._gap:
            self._add("\n" * self._gap + ("" if verbatim else self.indent))
            self._gap = 0
        for style in self._open:
            if style.begin is None:
                style.begin = self._length
        self._add(text if verbatim or not self.indent else text.replace("\n", f"\n{self.indent}"))

    def open(self, facts: Entity | None) -> None:
        """What follows is formatted so, up to `close`; inside of its like, and without facts, nothing changes."""
        if facts is not None and any(one.facts and one.facts["type"] == facts["type"] for one in self._open):
            facts = None
        self._open.append(_Style(facts))

    def close(self) -> None:
        """Ends what was opened last."""
        self._finish(self._open.pop())

    def code(self, text: str, facts: Entity) -> None:
        """Adds code, in which Telegram allows no other formatting: what is open around it pauses."""
        if any(one.facts and one.facts["type"] == "text_link" for one in self._open):
            self.text(text)
            return
        paused = [one for one in self._open if one.facts and one.facts["type"] != "blockquote"]
        for one in paused:
            self._finish(one)
            one.begin = None
        held, self._open = self._open, [one for one in self._open if one not in paused]
        self._open.append(_Style(facts))
        self.text(text, verbatim=True)
        self.close()
        self._open = held

    def _finish(self, style: _Style) -> None:
        if style.facts is not None and style.begin is not None and self._length > style.begin:
            self.entities.append(style.facts | {"offset": style.begin, "length": self._length - style.begin})

    def _add(self, text: str) -> None:
        self.pieces.append(text)
        self._length += units(text)


class _Blocks:
    """Writes the tokens of the library: blocks here, what stands in a line in `_inline`."""

    def __init__(self, writer: _Writer) -> None:
        self._writer = writer
        self._numbers: list[int | None] = []  # of the lists around: the next number, None for bullets
        self._item = False  # nothing but its bullet was written of an item
        self._links: list[tuple[str, int]] = []  # target, and where its text begins

    def write(self, tokens: Sequence[Token]) -> None:
        at = 0
        while at < len(tokens):
            if tokens[at].type == "table_open":
                end = next(index for index in range(at, len(tokens)) if tokens[index].type == "table_close")
                self._table(tokens[at:end])
                at = end
            else:
                self._block(tokens[at])
            at += 1

    def _block(self, token: Token) -> None:
        writer = self._writer
        match token.type:
            case "paragraph_open":
                self._gap(1 if token.hidden else 2)
            case "heading_open" | "blockquote_open":
                self._gap(2)
                writer.open({"type": "bold" if token.type[0] == "h" else "blockquote"})
            case "heading_close" | "blockquote_close":
                writer.close()
                writer.gap(2)
            case "bullet_list_open" | "ordered_list_open":
                writer.gap(1 if self._numbers else 2)
                start = token.attrGet("start")
                self._numbers.append(None if token.type[0] == "b" else int(1 if start is None else start))
            case "bullet_list_close" | "ordered_list_close":
                self._numbers.pop()
                writer.gap(1 if self._numbers else 2)
            case "list_item_open":
                self._begin_item()
            case "list_item_close":
                writer.indent = writer.indent[:-2]
                self._item = False
                writer.gap(1)
            case "fence" | "code_block":
                self._code(token)
            case "hr":
                self._gap(2)
                writer.text(RULE)
                writer.gap(2)
            case "inline":
                self._inline(token.children or [])
            case _:
                pass

    def _gap(self, newlines: int) -> None:
        """What begins an item stands beside its bullet; between the paragraphs of an item there is a blank line."""
        if self._item:
            self._item = False
        else:
            self._writer.gap(newlines)

    def _begin_item(self) -> None:
        writer = self._writer
        writer.gap(1)
        number = self._numbers[-1]
        writer.text(BULLET if number is None else f"{number}. ")
        if number is not None:
            self._numbers[-1] = number + 1
        writer.indent += "  "
        self._item = True

    def _code(self, token: Token) -> None:
        content = token.content.removesuffix("\n")
        language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
        self._item = False
        self._writer.gap(1 if self._numbers else 2)
        self._writer.code(content, {"type": "pre"} | ({"language": language} if language else {}))
        self._writer.gap(1 if self._numbers else 2)

    def _inline(self, tokens: Sequence[Token]) -> None:
        writer = self._writer
        for number, token in enumerate(tokens):
            kind, _, edge = token.type.rpartition("_")
            match token.type:
                case "text":
                    writer.text(_with_box(token.content) if number == 0 and self._numbers else token.content)
                case "softbreak" | "hardbreak":
                    writer.text("\n")
                case "code_inline":
                    writer.code(token.content, {"type": "code"})
                case "image":
                    self._link(token, "src")
                    writer.text(token.content or str(token.attrGet("src") or ""))
                    self._end_link()
                case "link_open":
                    self._link(token, "href")
                case "link_close":
                    self._end_link()
                case _ if kind in _STYLES and edge == "open":
                    writer.open({"type": _STYLES[kind]})
                case _ if kind in _STYLES:
                    writer.close()
                case _:
                    writer.text(token.content)

    def _link(self, token: Token, name: str) -> None:
        target = str(token.attrGet(name) or "")
        self._links.append((target, len(self._writer.pieces)))
        self._writer.open({"type": "text_link", "url": target} if _ADDRESS.match(target) else None)

    def _end_link(self) -> None:
        target, begin = self._links.pop()
        self._writer.close()
        shown = "".join(self._writer.pieces[begin:])
        if not (_ADDRESS.match(target) or target.removeprefix("mailto:") in shown or target.startswith("#")):
            self._writer.text(f" ({target})")

    def _table(self, tokens: Sequence[Token]) -> None:
        rows: list[list[str]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type == "inline":
                rows[-1].append(_plain(token.children or []))
        self._item = False
        self._writer.gap(2)
        self._writer.code("\n".join(_drawn(rows)), {"type": "pre"})
        self._writer.gap(2)


def _with_box(text: str) -> str:
    found = _TASK.match(text)
    return text if found is None else ("☐ " if found[1] == " " else "☑ ") + text[found.end() :]


def _plain(tokens: Sequence[Token]) -> str:
    return "".join(" " if token.type.endswith("break") else token.content for token in tokens)


def _drawn(rows: list[list[str]]) -> Iterator[str]:
    """The lines of a table, its columns as wide as their widest cell."""
    widths = [max(_columns(cell) for cell in column) for column in zip(*rows, strict=True)]
    for number, row in enumerate(rows):
        cells = (cell + " " * (width - _columns(cell)) for cell, width in zip(row, widths, strict=True))
        yield " | ".join(cells).rstrip()
        if number == 0:
            yield "-+-".join("-" * width for width in widths)


def _columns(text: str) -> int:
    """How many places a text takes in a fixed-width font."""
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
