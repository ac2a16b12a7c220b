"""What a setting is given as, as its value: one function for each kind of value, and the bot's token.

Each takes what an option, a variable or config.toml holds and raises ValueError(what is wrong, what would be right).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from attrs import frozen

from telegram_bus.core.meters import Limits, parse_limits
from telegram_bus.core.sharing import hours_of
from telegram_bus.core.threads import check_template

__all__ = [
    "DEFAULT_API_ROOT",
    "Token",
    "to_api_root",
    "to_chat",
    "to_clean_up",
    "to_duration",
    "to_hours",
    "to_limits",
    "to_path",
    "to_proxy",
    "to_size",
    "to_switch",
    "to_template",
    "to_text",
    "to_users",
]

DEFAULT_API_ROOT: Final = "https://api.telegram.org"

PROXY_SCHEMES: Final = ("http", "https", "socks5", "socks5h")  # what httpx takes

_BYTES: Final = {"b": 1, "kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000}
_UNITS: Final = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}


@frozen(repr=False)
class Token:
    """A bot's token, whose text shows nowhere by accident: ask for it with `reveal`."""

    _value: str

    @classmethod
    def parse(cls, text: object) -> Token:
        """Raises ValueError (without the text) where `text` does not look like a token."""
        if isinstance(text, str) and re.fullmatch(r"[0-9]{1,19}:[A-Za-z0-9_-]+", text.strip()):
            return cls(text.strip())
        if isinstance(text, str) and text.strip()[:1] in {"'", '"'}:
            raise ValueError("begins with a quotation mark: give the token without quotes")
        raise ValueError("is no bot token: a token looks like 123456789:AAE… (digits, a colon, letters)")

    @property
    def bot_id(self) -> int:
        """The bot's user id, which is the part before the colon."""
        return int(self._value.partition(":")[0])

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return f"<token of bot {self.bot_id}>"


def to_text(value: object) -> str:
    """A text in one line."""
    if isinstance(value, str) and value.strip() and value.isprintable():
        return value.strip()
    raise ValueError("is no text")


def _integer(value: object) -> int:
    """A whole number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,19}", value.strip()):
        return int(value)
    raise ValueError("is no number")


def to_chat(value: object) -> int:
    """A chat's id."""
    try:
        chat = _integer(value)
    except ValueError:
        chat = 0
    if chat == 0:
        raise ValueError(
            "must be a number other than 0: your user id (@userinfobot tells you), or a group's id, which is negative"
        )
    return chat


def to_users(value: object) -> tuple[int, ...]:
    """Users' ids, each once, in the order in which they are given."""
    parts = list(value) if isinstance(value, (list, tuple)) else [value]
    words: list[object] = []
    for part in parts:
        words.extend(part.replace(",", " ").split() if isinstance(part, str) else [part])
    try:
        users = tuple(dict.fromkeys(_integer(word) for word in words))
    except ValueError:
        users = ()
    if not users or min(users) <= 0:
        raise ValueError("must be user ids: positive numbers, several of them separated by blanks or commas")
    return users


def to_size(value: object) -> int:
    """Bytes."""
    found = re.fullmatch(r"([0-9]{1,12})\s*(b|kb|mb|gb)?", str(value).strip(), re.IGNORECASE)
    if found is None or isinstance(value, bool) or not (size := int(found[1]) * _BYTES[(found[2] or "b").lower()]):
        raise ValueError("must be a size such as 5 MB or 1 GB")
    return size


def to_path(value: object) -> Path:
    """A path that is the same in every working directory."""
    if isinstance(value, Path):
        return value.expanduser().absolute()
    return Path(to_text(value)).expanduser().absolute()  # a successor works in "/"


def to_api_root(value: object) -> str:
    """The address of a Bot API server."""
    root = to_text(value).rstrip("/")
    if not _is_address(root, ("http", "https")):
        raise ValueError(f"must be an address such as {DEFAULT_API_ROOT} or http://127.0.0.1:8081")
    parts = urlsplit(root)
    user, at, server = parts.netloc.rpartition("@")
    return parts._replace(netloc=user + at + server.lower()).geturl()  # one server, one lock


def to_proxy(value: object) -> str | None:
    """The address of a proxy; None for "none"."""
    proxy = to_text(value)
    if proxy == "none":  # against a stored one, or the environment's
        return None
    if not _is_address(proxy, PROXY_SCHEMES):
        raise ValueError("must be an address such as http://127.0.0.1:3128 or socks5://127.0.0.1:1080")
    return proxy


def _is_address(text: str, schemes: tuple[str, ...]) -> bool:
    try:
        parts = urlsplit(text)
        port_is_valid = parts.port is None or parts.port > 0  # raises ValueError for what is no port
    except ValueError:
        return False
    named = parts.scheme in schemes and bool(parts.hostname)
    return named and port_is_valid and not parts.query and not parts.fragment


def to_hours(value: object) -> tuple[int, int] | None:
    """Minutes of the day; None for "never"."""
    text = to_text(value)
    if text == "never":
        return None
    hours = hours_of(text)
    if hours is None:
        raise ValueError('must be hours such as 22:00-07:00, or "never"')
    return hours


def to_duration(shortest: float) -> Callable[[object], float | None]:
    """Seconds, not below `shortest`; None for "never"."""

    def parse(value: object) -> float | None:
        text = str(value).strip().lower() if not isinstance(value, bool) else ""
        if text == "never":
            return None
        found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)\s*(s|min|h|d)?", text)
        seconds = float(found[1]) * _UNITS[found[2] or "s"] if found else -1.0
        if not shortest <= seconds <= 10**9:  # 30 years are enough
            raise ValueError(f'must be a time of {shortest:g} s or more, such as 90 s, 12 h or 7 d, or "never"')
        return seconds

    return parse


def to_limits(value: object) -> Limits:
    """Limits of sending."""
    return parse_limits(str(value))


def to_switch(value: object) -> bool:
    """Yes or no."""
    word = str(value).strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    if word in {"0", "false", "no", "off"}:
        return False
    raise ValueError("must be yes or no")


def to_template(value: object) -> str:
    """What threads are called."""
    return check_template(to_text(value))


def to_clean_up(value: object) -> str:
    """What becomes of the thread of an agent that leaves."""
    word = str(value).strip().lower()
    if word in {"keep", "close", "delete"}:
        return word
    raise ValueError("must be keep, close or delete")
