"""The old Markdown parse mode: no nesting, no escapes inside entities, the server's own complaint."""

from __future__ import annotations

from telegram_bus.core.markup_html import link_entity
from telegram_bus.sandbox.model_types import Json

__all__ = ["parse_legacy"]

_KINDS = {"_": "italic", "*": "bold", "`": "code", "```": "pre", "[": "text_link"}


def parse_legacy(source: str) -> tuple[str, list[Json]]:
    """Text and entities of `source`; raises ValueError with the server's words."""
    made: list[str] = []
    entities: list[Json] = []
    at = length = 0
    while at < len(source):
        letter = source[at]
        if letter == "\\" and source[at + 1 : at + 2] in {"_", "*", "`", "["}:
            at += 1
            letter = source[at]
        elif letter in _KINDS:
            text, more, at = _entity(source, at)
            made.append(text)
            size = len(text.encode("utf-16-le", "surrogatepass")) // 2
            if more and size:
                entities.append({"offset": length, "length": size} | more)
            length += size
            continue
        made.append(letter)
        length += 1 + (ord(letter) > 0xFFFF)
        at += 1
    return "".join(made), entities


def _entity(source: str, begin: int) -> tuple[str, Json, int]:
    mark = "```" if source.startswith("```", begin) else source[begin]
    start = begin + len(mark)
    end = source.find("]" if mark == "[" else mark, start)
    if end < 0:
        offset = len(source[:begin].encode("utf-8", "surrogatepass"))
        raise ValueError(f"Can't find end of the entity starting at byte offset {offset}")
    text, after = source[start:end], end + len(mark)
    if mark == "[":
        close = source.find(")", after) if source[after : after + 1] == "(" else -1
        url, after = (source[after + 1 : close], close + 1) if close > 0 else (text, after)
        return text, link_entity(url), after
    if mark != "```":
        return text, {"type": _KINDS[mark]}, after
    language, newline, rest = text.partition("\n")
    if newline and language and not any(letter.isspace() for letter in language):
        return rest, {"type": "pre", "language": language}, after
    return text.removeprefix("\n"), {"type": "pre"}, after
