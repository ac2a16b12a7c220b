"""`telegram-bus logs`: the leader's log or the audit log, readable, and on request as it grows."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import IO, TYPE_CHECKING, Any, Final

from telegram_bus.cli import faults
from telegram_bus.cli.asking import leader_record, no_leader, profile_of
from telegram_bus.cli.terminal import Colour, clean, cleaned, paint, put, wants_colours
from telegram_bus.core.errors import BusError

if TYPE_CHECKING:
    from pathlib import Path

    from telegram_bus.home import Profile

__all__ = ["add_parser", "last_lines", "new_lines", "readable"]

_EPILOG: Final = """\
A leader in the foreground logs to its terminal; one that a follower, or `telegram-bus start`, has started logs into
the file that is shown here.

exit codes:
  0  shown
  1  the last leader ran in the foreground, or the file cannot be read
  2  usage
  3  no leader has a log

examples:
  telegram-bus logs            the last 50 lines
  telegram-bus logs -n 5 -f    the last 5, and what comes, until Ctrl-C
  telegram-bus logs -n 0 -f | grep WARNING
  telegram-bus logs --audit    what followers asked for and were refused
"""

_BLOCK: Final = 1 << 16
_LOOK: Final = 0.2
"""Seconds between two looks at a file that is followed: at once for a person, nothing for the machine."""

_TIME: Final = ("time", "ts", "timestamp", "at")
_LEVEL: Final = ("level", "severity")
_LOGGER: Final = ("logger", "name")
_MESSAGE: Final = ("message", "msg", "event")
_ERROR: Final = ("error", "exception", "exc_info")
_COLOURS: Final[dict[str, Colour]] = {
    "CRITICAL": "red",
    "ERROR": "red",
    "WARNING": "yellow",
    "DEBUG": "dim",
}


def add_parser(subparsers: Any) -> None:
    """Adds the command and its options."""
    parser = subparsers.add_parser(
        "logs", usage="telegram-bus logs [-n N] [-f] [--audit]", description=__doc__, epilog=_EPILOG
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what is written, until Ctrl-C")
    parser.add_argument("-n", "--lines", metavar="N", type=_count, default=50, help="how many of the last lines (50)")
    parser.add_argument("--audit", action="store_true", help="the audit log: who was refused what, and by which rule")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the end of the log, then its growth where that was asked for."""
    profile = profile_of(arguments)
    path, colours = profile.audit_log if arguments.audit else profile.leader_log, wants_colours(sys.stdout)
    if not path.exists() and not arguments.follow:
        if arguments.audit and leader_record(profile) is not None:
            faults.say(f"nothing was refused so far (there is no {path})")
            return faults.DONE
        raise _no_log(profile)
    lines, position = last_lines(path, arguments.lines)
    for line in lines:
        _print(line, colours)
    try:
        while arguments.follow:
            sys.stdout.flush()
            lines, position = new_lines(path, position)
            for line in lines:
                _print(line, colours)
            if not lines:
                time.sleep(_LOOK)
    except KeyboardInterrupt:
        pass  # the way to end it
    return faults.DONE


def _no_log(profile: Profile) -> BusError:
    record = leader_record(profile)
    if record is None:
        return no_leader(profile)
    return BusError(
        f"there is no {profile.leader_log}\n"
        f"the last leader (pid {record.get('pid')}) ran in the foreground: its log is on its terminal, or its service's"
    )


Position = tuple[int, int]
"""Which file (its inode, 0: none yet) and how far into it, in bytes."""


def last_lines(path: Path, number: int) -> tuple[list[bytes], Position]:
    """The last whole lines of the file and the position behind them; reads no more of it than it must."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return [], (0, 0)
    with file:
        found, start, data = os.fstat(file.fileno()), file.seek(0, os.SEEK_END), b""
        while start and data.count(b"\n") <= number:
            step = min(_BLOCK, start)
            start = file.seek(start - step)
            data = file.read(step) + data
    whole = data[: data.rfind(b"\n") + 1]
    lines = whole.splitlines()
    return lines[max(0, len(lines) - number) :] if number else [], (found.st_ino, start + len(whole))


def new_lines(path: Path, position: Position) -> tuple[list[bytes], Position]:
    """The next whole lines after `position`, also when the file was replaced (rotated) or cut meanwhile."""
    inode, offset = position
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return [], position
    with file:
        found = os.fstat(file.fileno())
        if found.st_ino != inode or found.st_size < offset:
            old = _rest_of_rotated(path, inode, offset)
            inode, offset = found.st_ino, 0
        else:
            old = []
        lines, offset = _whole_lines(file, offset)
    return [*old, *lines], (inode, offset)


def _whole_lines(file: IO[bytes], offset: int) -> tuple[list[bytes], int]:
    file.seek(offset)
    data = file.read(_BLOCK)
    while b"\n" not in data and (more := file.read(_BLOCK)):
        data += more
    end = data.rfind(b"\n") + 1
    return data[:end].splitlines(), offset + end


def _rest_of_rotated(path: Path, inode: int, offset: int) -> list[bytes]:
    """What was written to the old file before it was renamed to `leader.log.1` or the like."""
    for old in sorted(path.parent.glob(f"{path.name}.*")):
        if inode and old.stat().st_ino == inode:
            with old.open("rb") as file:
                file.seek(offset)
                return file.read().splitlines()
    return []


def readable(line: bytes) -> tuple[str, Colour | None]:
    """A log line for a person and its colour: `time LEVEL logger: message key=value …`; no JSON stays as it is.

    A traceback follows in lines of its own.
    """
    text = line.decode("utf-8", "replace")
    try:
        record = json.loads(text)
    except ValueError:
        return clean(text), None
    if not isinstance(record, dict):
        return clean(text), None
    moment, level, logger, message, error = (
        _taken(record, names) for names in (_TIME, _LEVEL, _LOGGER, _MESSAGE, _ERROR)
    )
    level_name = clean(level or "").upper()
    rest = (f"{clean(key)}={clean(value)}" for key, value in record.items() if value is not None)
    source = f"{clean(logger)}:" if logger else ""
    words = [_moment(moment), f"{level_name:<7}", source, clean(message or ""), *rest]
    below = "".join(f"\n    {cleaned(one)}" for one in str(error or "").splitlines())
    return " ".join(word for word in words if word.strip()) + below, _COLOURS.get(level_name)


def _taken(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((record.pop(name) for name in names if name in record), None)


def _moment(value: Any) -> str:
    """Seconds or milliseconds since 1970 in local time; a text as it is."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return clean(value or "")
    seconds = value / 1_000 if value > 1e11 else value
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))


def _print(line: bytes, colours: bool) -> None:
    text, colour = readable(line)
    put(paint(text, colour, on=colours))


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of lines: 0 or more")
    return int(text)
