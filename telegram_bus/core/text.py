"""Text for people and chats: control sequences removed, output cut into messages, durations worded."""

from __future__ import annotations

import re
import signal
from typing import Final

__all__ = [
    "MESSAGE_UNITS",
    "ControlRemover",
    "OutputCutter",
    "counted",
    "duration",
    "ending",
    "plain",
    "units",
]

MESSAGE_UNITS: Final = 3_500
"""UTF-16 units in one message of a program's output: Telegram takes 4,096, the rest is spare."""

_STRING_LIMIT: Final = 1 << 20
"""A control string (a title, an inline image) that is not closed after so many characters is not one."""

_SPECIAL = re.compile("[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_STRING_END = re.compile("[\x07\x18\x1a\x1b\x9c]")
_STRING_START = frozenset("]PX^_\x90\x98\x9d\x9e\x9f")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


class ControlRemover:
    """Removes terminal control sequences (ECMA-48) from a stream of text, however it is cut.

    What is left are printable characters, newline, tab, carriage return and backspace; the last two mean
    something for a line of text, so `OutputCutter` carries them out.
    """

    def __init__(self) -> None:
        self._state = "text"
        self._string_length = 0

    def feed(self, text: str) -> str:
        """The printable part of the next piece."""
        kept: list[str] = []
        at = 0
        while at < len(text):
            if self._state == "text":
                at = self._text(text, at, kept)
            elif self._state == "string":
                at = self._string(text, at)
            else:
                at = self._sequence(text, at)
        return "".join(kept)

    def _text(self, text: str, at: int, kept: list[str]) -> int:
        special = _SPECIAL.search(text, at)
        if special is None:
            kept.append(text[at:])
            return len(text)
        kept.append(text[at : special.start()])
        self._introduce(special.group())
        return special.end()

    def _introduce(self, control: str) -> None:
        if control == "\x1b":
            self._state = "escape"
        elif control == "\x9b":
            self._state = "csi"
        elif control in _STRING_START:
            self._state, self._string_length = "string", 0

    def _sequence(self, text: str, at: int) -> int:
        """One character inside an escape sequence or a CSI; a foreign one ends it and is read as text."""
        character = text[at]
        if character == "\x1b":
            self._state = "escape"
        elif character in "\x18\x1a":
            self._state = "text"
        elif self._state == "escape" and character == "[":
            self._state = "csi"
        elif self._state == "escape" and character in _STRING_START:
            self._state, self._string_length = "string", 0
        elif self._state == "escape" and " " <= character <= "/":
            self._state = "escape-more"
        elif self._state == "csi" and " " <= character <= "?":
            pass
        elif "0" <= character <= "~" and not (self._state == "csi" and character < "@"):
            self._state = "text"
        elif self._state == "escape-more" and " " <= character <= "/":
            pass
        else:
            self._state = "text"
            return at
        return at + 1

    def _string(self, text: str, at: int) -> int:
        end = _STRING_END.search(text, at)
        stop = len(text) if end is None else end.start()
        self._string_length += stop - at
        if self._string_length > _STRING_LIMIT:
            self._state = "text"
            return stop
        if end is None:
            return stop
        # ESC either begins the terminator ESC \ or a new sequence: the same state reads both
        self._state = "escape" if end.group() == "\x1b" else "text"
        return end.end()


class OutputCutter:
    """Cuts a program's output into messages of at most `limit` UTF-16 units, at ends of lines where it can.

    A carriage return means that the line is written anew (progress bars leave only their last state), a
    backspace takes back a character of the unfinished line. It never holds more than one message and what
    `feed` was given.
    """

    def __init__(self, limit: int = MESSAGE_UNITS) -> None:
        self._limit = limit
        self._remover = ControlRemover()
        self._done = ""  # whole lines, each with its newline
        self._line = ""  # the line that is still written
        self._rewind = False  # a carriage return was the last character

    @property
    def pending(self) -> bool:
        """Whether something waits for `flush`."""
        return bool(self._done or self._line)

    def feed(self, text: str) -> list[str]:
        """Takes decoded output; returns the messages that are full."""
        pieces: list[str] = []
        lines = re.split("(\n)", self._remover.feed(text))
        for part in lines:
            if part == "\n":
                self._rewind = False
                self._done, self._line = f"{self._done}{self._line}\n", ""
            elif part:
                self._write(part)
            self._cut(pieces)
        return pieces

    def flush(self) -> list[str]:
        """What is pending as a message (none when it is blank); the output made a pause or ended."""
        text, self._done, self._line = self._done + self._line, "", ""
        return [text.rstrip()] if text.strip() else []

    def _write(self, part: str) -> None:
        versions = part.split("\r")
        for index, version in enumerate(versions):
            if index:
                self._rewind = True
            if version and self._rewind:
                self._line, self._rewind = "", False
            if "\b" in version:
                self._line = _backspaced(self._line, version)
            else:
                self._line += version

    def _cut(self, pieces: list[str]) -> None:
        while units(self._done) + units(self._line) > self._limit:
            if self._done:
                text, rest = _split(self._done, self._limit)
                self._done = rest
            else:
                text, self._line = _split(self._line, self._limit)
            if text.strip():
                pieces.append(text.rstrip())


def plain(text: str) -> str:
    """`text` without control sequences, every line as it ends up on a terminal."""
    cutter = OutputCutter(limit=2 * len(text) + 1)
    return "".join([*cutter.feed(text), *cutter.flush()])


def units(text: str) -> int:
    """The length of `text` in UTF-16 units, as Telegram's entities count."""
    return len(text) if text.isascii() else len(text) + len(_ASTRAL.findall(text))


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 follower`, `3 followers`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """A duration in its largest sensible unit: `0 s`, `59 s`, `12 min`, `3 h`, `5 d`; never negative."""
    for unit, size, below in (("s", 1, 120), ("min", 60, 120), ("h", 3_600, 48)):
        if seconds < size * below:
            return f"{max(0, int(seconds // size))} {unit}"
    return f"{int(seconds // 86_400)} d"


def ending(status: int) -> str:
    """How a program ended: `status` is its exit status, or minus the number of the signal that ended it."""
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        return f"was ended by signal {-status}"
    return f"was ended by {name} (signal {-status})"


def _backspaced(line: str, part: str) -> str:
    characters = list(line)
    for character in part:
        if character != "\b":
            characters.append(character)
        elif characters:
            characters.pop()
    return "".join(characters)


def _split(text: str, limit: int) -> tuple[str, str]:
    """Cuts off at most `limit` units: behind a newline, else behind a blank, else hard."""
    end = _index_of_unit(text, limit)
    for mark in ("\n", " "):
        at = text.rfind(mark, 0, end)
        # a cut in the first half would make many small messages of one that has no good place
        if at >= end // 2:
            return text[: at + 1], text[at + 1 :]
    return text[:end], text[end:]


def _index_of_unit(text: str, limit: int) -> int:
    """How many characters of `text` fit into `limit` units (at least one, so that cutting always goes on)."""
    if units(text[:limit]) <= limit:
        return limit
    low, high = 1, limit
    while low < high:
        middle = (low + high + 1) // 2
        if units(text[:middle]) <= limit:
            low = middle
        else:
            high = middle - 1
    return low
