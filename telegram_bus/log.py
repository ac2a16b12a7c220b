"""Logging: JSON lines for a detached leader, readable ones for a terminal, and no secret in either."""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final

__all__ = ["JsonFormatter", "ReadableFormatter", "harmless", "hide", "redacted", "set_aside", "setup"]

HIDDEN: Final = "***"
FILE_MAX: Final = 10_000_000
"""Bytes of a log file at which it is set aside, with .1 behind its name: of the last one only."""

SHORTEST_SECRET: Final = 8
"""Anything shorter would blot out innocent text."""

_STANDARD: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_NOISY: Final = ("httpx", "httpcore", "hpack", "hypercorn", "telegram")
"""Libraries that log each request at INFO, partly with the token in its address."""

_CONTROLS: Final = {code: "?" for code in (*range(32), 127, *range(0x80, 0xA0)) if chr(code) not in "\n\t"}
_STEERING: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a chat may say must not steer the terminal that shows the log, nor turn its lines around."""

_APPENDING: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
"""Without waiting for whoever might read a fifo in the file's place."""

_secrets: set[str] = set()


def hide(*secrets: str) -> None:
    """Make these texts (a token, the bus's secrets) unreadable in every line from now on, also within other text."""
    for secret in secrets:
        if len(secret) >= SHORTEST_SECRET:
            _secrets.add(secret)
            # a token in an address is often percent-encoded, and JSON or repr may escape what is odd
            _secrets.add(secret.replace(":", "%3A"))


def setup(
    level: int | str = logging.INFO, *, as_json: bool = False, stream: IO[str] | None = None, file: Path | None = None
) -> None:
    """Let everything that is logged go to `stream` (stderr), once, however often this is called.

    `file` is where stdout and stderr lead to, if they do: it is kept small, and written anew when it was set aside.
    """
    followed = file if stream is None and file is not None and _is_open(file) else None
    handler = _FileHandler(followed) if followed is not None else logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else ReadableFormatter())
    root = logging.getLogger()
    for old in [one for one in root.handlers if isinstance(one.formatter, (JsonFormatter, ReadableFormatter))]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    for name in _NOISY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def set_aside(file: Path) -> None:
    """Give a log file that has grown too large another name."""
    with suppress(OSError):
        if file.stat().st_size > FILE_MAX:
            file.replace(file.with_name(f"{file.name}.1"))


def _is_open(file: Path) -> bool:
    """Whether stderr is this file."""
    with suppress(OSError):
        there, here = file.stat(), os.fstat(2)
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)
    return False


class _FileHandler(logging.StreamHandler[Any]):
    """Writes to stderr, and has that and stdout lead to the file of this name when another has taken its place."""

    def __init__(self, file: Path) -> None:
        super().__init__(sys.stderr)
        self._file = file

    def emit(self, record: logging.LogRecord) -> None:
        set_aside(self._file)
        if not _is_open(self._file):
            with suppress(OSError):  # the directory is gone, say
                descriptor = os.open(self._file, _APPENDING, 0o600)
                if stat.S_ISREG(os.fstat(descriptor).st_mode):
                    os.dup2(descriptor, 1)
                    os.dup2(descriptor, 2)
                os.close(descriptor)
        super().emit(record)


def harmless(line: str) -> str:
    r"""A line of JSON whose texts steer no terminal, and which every stream takes: such characters as `\udddd`."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def redacted(text: str) -> str:
    """The text without what `hide` was told."""
    for secret in _secrets:
        text = text.replace(secret, HIDDEN)
    return text


class JsonFormatter(logging.Formatter):
    """One object a line: time (ISO 8601, UTC), level, logger, message, what `extra` gave, error (a traceback)."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": _time(record).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {name: value for name, value in _extra(record) if name not in entry}
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        # hidden before it is encoded, since escapes could tear a secret apart
        line = json.dumps(_redact_all(entry), ensure_ascii=False, default=lambda value: redacted(repr(value)))
        return harmless(line)


class ReadableFormatter(logging.Formatter):
    """`12:34:56 warning telegram_bus.x: message name=value`; further lines, and the traceback, are indented.

    So nobody can make up an entry: only entries begin at the margin.
    """

    def format(self, record: logging.LogRecord) -> str:
        extra = "".join(f" {name}={value}" for name, value in _extra(record))
        at = _time(record).astimezone().strftime("%H:%M:%S")
        text = f"{at} {record.levelname.lower()} {record.name}: {record.getMessage()}{extra}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return harmless(redacted(text).translate(_CONTROLS)).replace("\n", "\n    ")


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


def _extra(record: logging.LogRecord) -> Iterable[tuple[str, Any]]:
    return ((name, value) for name, value in record.__dict__.items() if name not in _STANDARD)


def _redact_all(value: Any) -> Any:
    match value:
        case str():
            return redacted(value)
        case dict():
            return {redacted(str(name)): _redact_all(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_redact_all(inner) for inner in value]
    return value
