"""A text that is longer than a message, as messages: cut at paragraphs, lines and words, its formatting reopened."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from telegram_bus.core.text import units

__all__ = ["CAPTION_LENGTH", "ENTITIES", "MESSAGE_LENGTH", "MOST_PARTS", "Entity", "Part", "beginning", "split"]

Entity = dict[str, Any]
"""Telegram's MessageEntity: `type`, `offset` and `length` in UTF-16 units, and what belongs to its type."""

MESSAGE_LENGTH: Final = 4_096
"""Characters of a message (Bot API, sendMessage). Telegram counts Unicode scalars; to count UTF-16 units, of which
some characters have two, is always safe."""

CAPTION_LENGTH: Final = 1_024
"""Characters of a caption (Bot API, sendPhoto)."""

ENTITIES: Final = 100
"""Entities of a message (Bot API, MessageEntity): those after them are dropped without a word."""

MOST_PARTS: Final = 8
"""Messages that one text may become before it becomes a file: 32 KiB of text, and in a group, where a bot has 20
messages a minute, most of half a minute."""

_ASTRAL: Final = re.compile("[\U00010000-\U0010ffff]")
_PARAGRAPH: Final = re.compile(r"\n[ \t]*\n")
_JOINED: Final = 64
"""Characters that one visible character may be made of before it is cut all the same."""


class Part(NamedTuple):
    """A text that fits into a message, and its formatting."""

    text: str
    entities: tuple[Entity, ...] = ()


def split(text: str, entities: Sequence[Entity] = (), limit: int = MESSAGE_LENGTH) -> list[Part]:
    """`text` in parts of at most `limit` UTF-16 units and 100 entities each.

    Parts end behind a paragraph, else behind a line, else behind a word, else between two characters that people see.
    An entity that is cut goes on in the next part. Joined, the parts are the text; only a stretch of white space that
    would be a message alone, which Telegram refuses, is left out. A blank text has no parts.
    """
    return list(_Splitter(text, entities, limit).parts())


def beginning(text: str, entities: Sequence[Entity], limit: int) -> Part:
    """The first part of at most `limit` units, without white space at its end."""
    first = next(_Splitter(text, entities, limit).parts(), Part(""))
    kept = first.text.rstrip()
    room = units(kept)
    return Part(kept, tuple(_clipped(one, 0, room) for one in first.entities if one["offset"] < room))


class _Splitter:
    """Positions are indices of characters; `_unit` turns them into UTF-16 units."""

    def __init__(self, text: str, entities: Sequence[Entity], limit: int) -> None:
        self._text = text
        self._limit = limit
        self._astral = [] if text.isascii() else [found.start() for found in _ASTRAL.finditer(text)]
        self._entities = sorted(
            (one for one in entities if one["length"] > 0), key=lambda one: (one["offset"], -one["length"])
        )
        self._begins = [one["offset"] for one in self._entities]
        blocks = [one for one in self._entities if one["type"] == "pre"]
        self._blocks = [one["offset"] for one in blocks]
        self._ends = [one["offset"] + one["length"] for one in blocks]

    def parts(self) -> Any:
        start = 0
        while start < len(self._text):
            end = self._cut(start)
            piece = self._text[start:end]
            if piece.strip():
                yield Part(piece, tuple(self._within(self._unit(start), self._unit(end))))
            start = end

    def _unit(self, index: int) -> int:
        return index + bisect_left(self._astral, index)

    def _index(self, unit: int) -> int:
        """The last index whose unit is at most `unit`."""
        low, high = unit - len(self._astral), min(unit, len(self._text))
        low = max(low, 0)
        while low < high:
            middle = (low + high + 1) // 2
            if self._unit(middle) <= unit:
                low = middle
            else:
                high = middle - 1
        return low

    def _cut(self, start: int) -> int:
        """Where the part that begins at `start` ends; always further on."""
        first = self._unit(start)
        end = self._index(first + self._limit)
        most = self._room_for_entities(first)
        if end >= len(self._text) and most is None:
            return len(self._text)
        end = max(min(end, self._index(most)) if most is not None else end, start + 1)
        half = start + (end - start) // 2  # a cut in the first half would make many small messages
        if (at := self._paragraph(half, end)) is not None:
            return at
        if (at := self._text.rfind("\n", half, end)) >= half:
            return at + 1
        for at in range(end, half, -1):
            if self._text[at - 1].isspace():
                return at
        return self._between_characters(start, end)

    def _room_for_entities(self, first: int) -> int | None:
        """The unit before which the part that begins at `first` has to end for its entities; None: they all fit."""
        at = bisect_left(self._begins, first)
        open_ones = sum(one["offset"] + one["length"] > first for one in self._entities[:at])
        at += ENTITIES - open_ones
        if at >= len(self._entities):
            return None
        begin = self._begins[at]
        return begin if begin < first + self._limit else None

    def _paragraph(self, half: int, end: int) -> int | None:
        """Behind the last blank line, but for those in code, which is better cut between any two lines than torn."""
        found = None
        for match in _PARAGRAPH.finditer(self._text, half, end):
            at = self._unit(match.end())
            block = bisect_left(self._blocks, at) - 1  # they do not overlap: Telegram allows nothing in code
            if block < 0 or at >= self._ends[block]:
                found = match.end()
        return found

    def _between_characters(self, start: int, end: int) -> int:
        at = end
        while at > start + 1 and end - at < _JOINED and self._joined(at):
            at -= 1
        return at if not self._joined(at) else end

    def _joined(self, at: int) -> bool:
        """Whether a cut before the character at `at` would tear one that people see as one."""
        if not 0 < at < len(self._text):
            return False
        before, after = self._text[at - 1], self._text[at]
        if "\u200d" in (before, after) or "\U0001f3fb" <= after <= "\U0001f3ff":  # joiner, skin tones
            return True
        if unicodedata.category(after)[0] == "M" or (before == "\r" and after == "\n"):
            return True
        return _is_flag_half(before) and _is_flag_half(after) and self._flags_before(at) % 2 == 1

    def _flags_before(self, at: int) -> int:
        count = 0
        while count < at and _is_flag_half(self._text[at - 1 - count]):
            count += 1
        return count

    def _within(self, begin: int, end: int) -> Any:
        for one in self._entities[: bisect_right(self._begins, end - 1)]:
            if one["offset"] + one["length"] > begin:
                yield _clipped(one, begin, end)


def _clipped(entity: Entity, begin: int, end: int) -> Entity:
    """The part of an entity that lies between two units, counted from the first of them."""
    first, last = max(begin, entity["offset"]), min(end, entity["offset"] + entity["length"])
    return entity | {"offset": first - begin, "length": last - first}


def _is_flag_half(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
