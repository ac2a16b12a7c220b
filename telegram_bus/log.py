"""Logging: JSON lines for a detached leader, readable ones for a terminal, and no secret in either."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import IO, Any, Final

__all__ = ["JsonFormatter", "ReadableFormatter", "hide", "redacted", "setup"]

HIDDEN: Final = "***"
SHORTEST_SECRET: Final = 8
"""Anything shorter would blot out innocent text."""

_STANDARD: Final = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
_NOISY: Final = ("httpx", "httpcore", "hpack", "hypercorn", "telegram")
"""Libraries that log each request at INFO, partly with the token in its address."""

_CONTROLS: Final = {code: "?" for code in (*range(32), 127, *range(0x80, 0xA0)) if chr(code) not in "\n\t"}
"""What a chat may say must not steer the terminal that shows the log."""

_secrets: set[str] = set()


def hide(*secrets: str) -> None:
    """Make these texts (a token, the bus's secrets) unreadable in every line from now on, also within other text."""
    for secret in secrets:
        if len(secret) >= SHORTEST_SECRET:
            _secrets.add(secret)
            # a token in an address is often percent-encoded, and JSON or repr may escape what is odd
            _secrets.add(secret.replace(":", "%3A"))


def setup(level: int | str = logging.INFO, *, as_json: bool = False, stream: IO[str] | None = None) -> None:
    """Let everything that is logged go to `stream` (stderr), once, however often this is called."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else ReadableFormatter())
    root = logging.getLogger()
    for old in [one for one in root.handlers if isinstance(one.formatter, (JsonFormatter, ReadableFormatter))]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    for name in _NOISY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


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
        return _writable(line)


class ReadableFormatter(logging.Formatter):
    """`12:34:56 warning telegram_bus.x: message name=value`, and the traceback below it."""

    def format(self, record: logging.LogRecord) -> str:
        extra = "".join(f" {name}={value}" for name, value in _extra(record))
        at = _time(record).astimezone().strftime("%H:%M:%S")
        text = f"{at} {record.levelname.lower()} {record.name}: {record.getMessage()}{extra}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return _writable(redacted(text)).translate(_CONTROLS)


def _writable(text: str) -> str:
    """Lone surrogates (an odd file name, an odd message) as escapes: no stream takes them as they are."""
    return text.encode(errors="backslashreplace").decode()


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
