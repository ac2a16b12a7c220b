"""What a terminal is shown: aligned columns, and colours where a person asked for none to be left out."""

from __future__ import annotations

import os
import re
import unicodedata
from typing import TYPE_CHECKING, Final, Literal, TextIO

from telegram_bus.core.text import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Colour", "clean", "cleaned", "columns", "paint", "put", "wants_colours", "width_of"]

Colour = Literal["red", "green", "yellow", "dim", "bold"]

_NARROWEST: Final = 8  # what a column is never cut below, so that heads stay whole

_CODES: Final[dict[Colour, str]] = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}

_STEERING: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSEEN: Final = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
"""Joiners (U+200C, U+200D) are not among them: scripts and emoji need them."""


def wants_colours(stream: TextIO) -> bool:
    """Whether `stream` is a terminal that shows colours and nobody set NO_COLOR (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width_of(stream: TextIO) -> int | None:
    """How many columns a terminal has ($COLUMNS, else its own word); None where `stream` is none."""
    import shutil  # noqa: PLC0415 - for terminals only

    return shutil.get_terminal_size().columns if stream.isatty() else None


def paint(text: str, colour: Colour | None, *, on: bool) -> str:
    """`text` in that colour, or as it is."""
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if on and colour else text


def put(line: str) -> None:
    r"""A line of an answer, on stdout; everything else that we say goes to stderr (`faults.say`).

    What would steer a terminal, or what no stream takes, is said as JSON may say it (`\udddd`).
    """
    print(_STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", line))  # noqa: T201


def clean(text: object) -> str:
    """Anything that somebody else named, in one line and without control sequences."""
    return " ".join(cleaned(str(text)).split())


def cleaned(text: str) -> str:
    """Text without control sequences, and without what is not seen: it would turn lines around, or shift columns.

    Nothing takes back what stands before it: that may be ours.
    """
    return _UNSEEN.sub("", plain(text.replace("\r", " ").replace("\b", "")))


def columns(rows: Iterable[Sequence[str]], gap: int = 2, width: int | None = None) -> list[list[str]]:
    """The rows with every cell but the last padded to its column; wide characters count twice.

    Where a row would be wider than `width`, the widest columns are cut (with "…"), as far as that helps.
    """
    rows = [list(row) for row in rows]
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    while width is not None and sum(widths) + gap * (len(widths) - 1) > width and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    rows = [[_cut(cell, room) for cell, room in zip(row, widths, strict=True)] for row in rows]
    return [
        [cell + " " * (room - _width(cell) + gap) for cell, room in zip(row[:-1], widths, strict=False)] + [row[-1]]
        for row in rows
    ]


def _cut(text: str, room: int) -> str:
    if _width(text) <= room:
        return text
    while text and _width(text) > room - 1:
        text = text[:-1]
    return f"{text.rstrip()}…"


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    unseen = {"Mn", "Me", "Cf"}
    return sum(
        0 if unicodedata.category(character) in unseen else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )
