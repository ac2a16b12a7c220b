"""The arguments of a Bot API call: a flat map, read as leniently as Telegram's server reads it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import attrs

from telegram_bus.sandbox.refusal import bad_request

__all__ = ["Args", "Upload"]

# No number of Telegram is longer; longer ones cost time, and from 4,300 digits on Python refuses them.
_LEADING_NUMBER = re.compile(r"\s*([+-]?\d{1,20})")
# Texts are never decoded for the record, however much they look like JSON.
_TEXTS = frozenset({"text", "caption", "name", "title", "description", "url", "callback_query_id", "secret_token"})


@attrs.frozen
class Upload:
    """A file that came with a call: what `attach://<name of its part>` means, or the argument itself."""

    file_name: str
    content: bytes


class Args:
    """Arguments by name. A value is what the client sent: text, a file, or a JSON value of a JSON body."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = {name: value for name, value in values.items() if value is not None}

    def text(self, name: str) -> str:
        """The argument as text; empty when it is absent."""
        value = self._values.get(name, "")
        if isinstance(value, Upload):
            return ""
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def upload(self, name: str) -> Upload | None:
        """The file that came under that name."""
        value = self._values.get(name)
        return value if isinstance(value, Upload) else None

    def uploaded(self) -> int:
        """The bytes of all files that came along."""
        return sum(len(value.content) for value in self._values.values() if isinstance(value, Upload))

    def has(self, name: str) -> bool:
        """Whether the argument was given and is not empty."""
        return self.text(name) != ""

    def integer(self, name: str, default: int = 0) -> int:
        """The argument as a number: what is none counts as 0, as on the server."""
        if name not in self._values:
            return default
        found = _LEADING_NUMBER.match(self.text(name))
        return int(found[1]) if found else 0

    def number(self, name: str) -> float | None:
        """The argument as a finite decimal number; None when it is absent or none."""
        try:
            value = float(self.text(name))
        except ValueError:
            return None
        return value if math.isfinite(value) else None

    def clamped(self, name: str, default: int, low: int, high: int) -> int:
        """The argument as a number, forced into low..high."""
        return max(low, min(high, self.integer(name, default)))

    def flag(self, name: str) -> bool:
        """The argument as a truth value."""
        return self.text(name).strip().lower() in {"true", "yes", "1"}

    def parsed(self, name: str, failure: str) -> Any:
        """The argument as JSON, None when it is absent; raises `Refusal` with `failure` when it is no JSON."""
        value = self._values.get(name)
        if not isinstance(value, str):
            return None if isinstance(value, Upload) else value
        if not value.strip():
            return None
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as error:
            raise bad_request(failure) from error

    def shown(self) -> dict[str, Any]:
        """All arguments for the record: JSON text is decoded, so that a filter can look into it."""
        return {name: _decoded(name, value) for name, value in self._values.items()}


def _decoded(name: str, value: Any) -> Any:
    if isinstance(value, Upload):
        return {"file_name": value.file_name, "size": len(value.content)}
    if not isinstance(value, str) or name in _TEXTS:
        return value
    try:
        decoded = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return value if isinstance(decoded, (str, float)) else decoded
