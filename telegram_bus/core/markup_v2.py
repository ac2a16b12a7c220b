"""The MarkdownV2 parse mode, with the server's own complaints."""

from __future__ import annotations

import attrs

from telegram_bus.core.markup_html import Json, link_entity

__all__ = ["parse_markdown"]

_RESERVED = "_*[]()~`>#+-=|{}.!"
# Our kind, the server's name of it in complaints, the mark that ends it.
_KINDS = {
    "bold": ("Bold", "*"),
    "italic": ("Italic", "_"),
    "underline": ("Underline", "__"),
    "strikethrough": ("Strikethrough", "~"),
    "spoiler": ("Spoiler", "||"),
    "code": ("Code", "`"),
    "pre": ("Pre", "```"),
    "text_link": ("TextUrl", "]"),
    "custom_emoji": ("CustomEmoji", "]"),
}
_STARTS = {"*": "bold", "_": "italic", "__": "underline", "~": "strikethrough", "||": "spoiler", "`": "code",
           "```": "pre", "[": "text_link", "![": "custom_emoji"}  # fmt: skip


@attrs.define
class _Open:
    kind: str
    offset: int  # UTF-16
    position: int  # in the text made so far
    source: int  # where it begins in the source
    language: str = ""


def parse_markdown(source: str) -> tuple[str, list[Json]]:
    """Text and entities of `source`; raises ValueError with the server's words."""
    return _Parser(source).run()


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._made: list[str] = []
        self._length = 0
        self._open: list[_Open] = []
        self._entities: list[Json] = []
        self._quote: int | None = None  # offset of an open block quotation

    def run(self) -> tuple[str, list[Json]]:
        while self._at < len(self._source):
            self._step()
        if self._open:
            last = self._open[-1]
            name = "PreCode" if last.language else _KINDS[last.kind][0]
            raise ValueError(f"Can't find end of {name} entity at byte offset {self._bytes(last.source)}")
        self._end_quote(expandable=False)
        return "".join(self._made), self._entities

    def _step(self) -> None:
        letter = self._source[self._at]
        following = self._source[self._at + 1 : self._at + 2]
        if letter == "\\" and following and 0 < ord(following) <= 126:
            self._add(following)
            self._at += 2
            return
        kind = self._open[-1].kind if self._open else ""
        if kind in {"code", "pre"}:
            if self._source.startswith(_KINDS[kind][1], self._at):
                self._close()
            else:
                self._plain(letter)
        elif letter == "\n":
            self._line_end()
        elif letter not in _RESERVED:
            self._plain(letter)
        elif kind and self._ends(kind):
            self._close()
        elif letter == ">" and self._at_line_start():
            self._begin_quote()
        elif letter == "|" and self._ends_expandable():
            self._end_quote(expandable=True)
            self._at += 2
        else:
            self._begin(letter)

    def _plain(self, letter: str) -> None:
        self._add(letter)
        self._at += 1

    def _add(self, letter: str) -> None:
        self._made.append(letter)
        self._length += 1 + (ord(letter) > 0xFFFF)

    def _bytes(self, position: int) -> int:
        return len(self._source[:position].encode("utf-8", "surrogatepass"))

    def _mark(self) -> str:
        # "__" is always read as underline, from left to right, also where it ends an italic.
        for mark in ("```", "__", "||", "!["):
            if self._source.startswith(mark, self._at):
                return mark
        return self._source[self._at]

    def _ends(self, kind: str) -> bool:
        return self._mark() == _KINDS[kind][1]

    def _begin(self, letter: str) -> None:
        mark = self._mark()
        kind = _STARTS.get(mark)
        if kind is None:
            raise ValueError(f"Character '{letter}' is reserved and must be escaped with the preceding '\\'")
        opened = _Open(kind, self._length, len(self._made), self._at)
        self._at += len(mark)
        if kind == "pre":
            opened.language = self._language()
        self._open.append(opened)

    def _language(self) -> str:
        end = self._at
        while end < len(self._source) and not self._source[end].isspace() and self._source[end] != "`":
            end += 1
        language = ""
        if end < len(self._source) and self._source[end] != "`":
            language, self._at = self._source[self._at : end], end
        if self._source[self._at : self._at + 1] == "\n":
            self._at += 1
        return language

    def _close(self) -> None:
        opened = self._open.pop()
        self._at += len(_KINDS[opened.kind][1])
        entity: Json = {"offset": opened.offset, "length": self._length - opened.offset, "type": opened.kind}
        if opened.kind in {"text_link", "custom_emoji"}:
            entity |= self._target(opened)
        elif opened.language:
            entity["language"] = opened.language
        if entity["length"] and entity["type"]:
            self._entities.append(entity)

    def _target(self, opened: _Open) -> Json:
        has_url = self._source.startswith("(", self._at)
        url = self._url() if has_url else "".join(self._made[opened.position :])
        if opened.kind == "text_link":
            return link_entity(url) or {"type": ""}
        identifier = url.partition("?id=")[2]
        if not url.startswith("tg://emoji?id=") or not identifier.isdigit():
            raise ValueError("Custom emoji URL must have a valid custom emoji identifier")
        return {"custom_emoji_id": identifier}

    def _url(self) -> str:
        self._at += 1
        begin = self._at
        letters: list[str] = []
        while self._at < len(self._source) and self._source[self._at] != ")":
            if self._source[self._at] == "\\" and self._at + 1 < len(self._source):
                self._at += 1
            letters.append(self._source[self._at])
            self._at += 1
        if self._at >= len(self._source):
            raise ValueError(f"Can't find end of a URL at byte offset {self._bytes(begin)}")
        self._at += 1
        return "".join(letters)

    # -- block quotations: lines that begin with ">" ---------------------------------------------------

    def _at_line_start(self) -> bool:
        return self._at == 0 or self._source[self._at - 1] == "\n"

    def _begin_quote(self) -> None:
        if self._quote is None:
            self._quote = self._length
        self._at += 1

    def _line_end(self) -> None:
        if self._quote is not None and self._source[self._at + 1 : self._at + 2] != ">":
            self._end_quote(expandable=False)
        self._plain("\n")

    def _ends_expandable(self) -> bool:
        return (
            self._quote is not None
            and self._source.startswith("||", self._at)
            and self._source[self._at + 2 : self._at + 3] in {"", "\n"}
        )

    def _end_quote(self, *, expandable: bool) -> None:
        if self._quote is None:
            return
        begin, self._quote = self._quote, None
        if self._length > begin:
            kind = "expandable_blockquote" if expandable else "blockquote"
            self._entities.append({"type": kind, "offset": begin, "length": self._length - begin})
