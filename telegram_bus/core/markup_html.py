"""The HTML parse mode, with the server's own complaints."""

from __future__ import annotations

import html
import re
from typing import Any, NoReturn

import attrs

__all__ = ["Json", "link_entity", "parse_html"]

Json = dict[str, Any]

_SIMPLE = {
    "b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline",
    "s": "strikethrough", "strike": "strikethrough", "del": "strikethrough", "tg-spoiler": "spoiler",
    "span": "spoiler", "code": "code",
}  # fmt: skip
_TAGS = frozenset(_SIMPLE) | {"a", "pre", "blockquote", "tg-emoji"}
_CHARACTER = re.compile(r"&(?:lt|gt|amp|quot|#\d{1,8}|#[xX][0-9a-fA-F]{1,8});")
_SPACE = " \t\r\n\0\v"
_USER_LINK = re.compile(r"tg://user/?\?id=(\d+)$", re.IGNORECASE)


@attrs.define
class _Open:
    tag: str
    value: str
    offset: int  # UTF-16
    position: int  # in the text made so far
    language: str = ""


def parse_html(source: str) -> tuple[str, list[Json]]:
    """Text and entities of `source`; raises ValueError with the server's words."""
    return _Parser(source).run()


class _Parser:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._made: list[str] = []
        self._length = 0  # of the text made so far, UTF-16
        self._open: list[_Open] = []
        self._entities: list[Json] = []

    def run(self) -> tuple[str, list[Json]]:
        while self._at < len(self._source):
            letter = self._source[self._at]
            if letter == "<":
                self._tag()
            elif letter == "&" and (found := _CHARACTER.match(self._source, self._at)):
                self._add(html.unescape(found[0]))
                self._at = found.end()
            else:
                self._add(letter)
                self._at += 1
        if self._open:
            raise ValueError(f'Can\'t find end tag corresponding to start tag "{self._open[-1].tag}"')
        return "".join(self._made), self._entities

    def _add(self, text: str) -> None:
        for letter in text:
            self._made.append(letter)
            self._length += 1 + (ord(letter) > 0xFFFF)

    def _tag(self) -> None:
        begin = self._at
        self._at += 1
        if self._peek() == "/":
            self._end_tag(begin)
        else:
            self._start_tag(begin)
        self._at += 1

    def _peek(self) -> str:
        return self._source[self._at] if self._at < len(self._source) else ""

    def _skip(self, stop: str) -> str:
        begin = self._at
        while (letter := self._peek()) and letter not in stop:
            self._at += 1
        return self._source[begin : self._at]

    def _skip_space(self) -> None:
        while (letter := self._peek()) and letter in _SPACE:
            self._at += 1

    def _bytes(self, position: int) -> int:
        return len(self._source[:position].encode("utf-8", "surrogatepass"))

    def _start_tag(self, begin: int) -> None:
        tag = self._skip(_SPACE + ">").lower()
        if not self._peek():
            self._unclosed("", begin)
        if tag not in _TAGS:
            raise ValueError(f'Unsupported start tag "{tag}" at byte offset {self._bytes(begin)}')
        value = ""
        while True:
            self._skip_space()
            if self._peek() == ">":
                break
            name, given = self._attribute(tag, begin)
            value = _meaning(tag, name, given) or value
        if tag == "span" and value != "spoiler":
            raise ValueError(f'Tag "span" must have class "tg-spoiler" at byte offset {self._bytes(begin)}')
        self._open.append(_Open(tag, value, self._length, len(self._made)))

    def _attribute(self, tag: str, begin: int) -> tuple[str, str]:
        name = self._skip(_SPACE + "=>/\"'").lower()
        if not name:
            if not self._peek():
                self._unclosed(tag, begin)
            raise ValueError(f'Empty attribute name in the tag "{tag}" at byte offset {self._bytes(begin)}')
        self._skip_space()
        if self._peek() != "=":
            if not self._peek():
                self._unclosed(tag, begin)
            return name, ""
        self._at += 1
        self._skip_space()
        value = self._value(tag, begin)
        if not self._peek():
            self._unclosed(tag, begin)
        return name, value

    def _value(self, tag: str, begin: int) -> str:
        quote = self._peek()
        if not quote:
            self._unclosed(tag, begin)
        if quote in "'\"":
            self._at += 1
            value = self._skip(quote)
            if self._peek():
                self._at += 1
            return _CHARACTER.sub(lambda found: html.unescape(found[0]), value)
        start = self._at
        while (letter := self._peek()) and letter.isascii() and (letter.isalnum() or letter in ".-"):
            self._at += 1
        if self._peek() and self._peek() not in _SPACE + ">":
            raise ValueError(f"Unexpected end of name token at byte offset {self._bytes(start)}")
        return self._source[start : self._at].lower()

    def _unclosed(self, tag: str, begin: int) -> NoReturn:
        named = f'start tag "{tag}"' if tag else "start tag"
        raise ValueError(f"Unclosed {named} at byte offset {self._bytes(begin)}")

    def _end_tag(self, begin: int) -> None:
        if not self._open:
            raise ValueError(f"Unexpected end tag at byte offset {self._bytes(begin)}")
        self._at += 1
        name = self._skip(_SPACE + ">").lower()
        self._skip_space()
        if self._peek() != ">":
            raise ValueError(f"Unclosed end tag at byte offset {self._bytes(begin)}")
        opened = self._open.pop()
        if name and name != opened.tag:
            raise ValueError(
                f'Unmatched end tag at byte offset {self._bytes(begin)}, expected "</{opened.tag}>", found "</{name}>"'
            )
        if self._length > opened.offset:
            self._finish(opened)

    def _finish(self, opened: _Open) -> None:
        entity: Json = {"offset": opened.offset, "length": self._length - opened.offset}
        parent = self._open[-1] if self._open else None
        match opened.tag:
            case "a":
                kind = link_entity(opened.value or "".join(self._made[opened.position :]))
            case "pre":
                kind = {"type": "pre"} | ({"language": opened.language} if opened.language else {})
            case "code" if parent is not None and parent.tag == "pre" and parent.offset == opened.offset:
                # <pre><code class="language-x">: one entity, the outer one.
                parent.language = opened.value
                return
            case "blockquote":
                kind = {"type": "expandable_blockquote" if opened.value else "blockquote"}
            case "tg-emoji":
                kind = _emoji(opened.value)
            case tag:
                kind = {"type": _SIMPLE[tag]}
        if kind:
            self._entities.append(entity | kind)


def _meaning(tag: str, name: str, value: str) -> str:
    match tag, name:
        case ("a", "href") | ("tg-emoji", "emoji-id"):
            return value
        case "code", "class":
            return value.removeprefix("language-") if value.startswith("language-") else ""
        case "span", "class":
            return value.removeprefix("tg-") if value.startswith("tg-") else ""
        case "blockquote", "expandable":
            return "1"
    return ""


def _emoji(value: str) -> Json:
    if not value.isdigit():
        raise ValueError("Invalid custom emoji identifier specified")
    return {"type": "custom_emoji", "custom_emoji_id": value}


def link_entity(url: str) -> Json:
    """What makes a link out of an address: a text_link, a text_mention for tg://user?id=…, nothing for no address."""
    if found := _USER_LINK.match(url):
        return {"type": "text_mention", "user": {"id": int(found[1]), "is_bot": False, "first_name": ""}}
    if "://" in url:
        return {"type": "text_link", "url": url if url.count("/") > 2 else url + "/"}
    # What is no address is no link, and no error either.
    return {"type": "text_link", "url": f"http://{url}/"} if "." in url.strip(".") and " " not in url else {}
