"""The one table of settings: names, options, variables, keys in config.toml, and what a valid value is."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from attrs import frozen

from telegram_bus.core.errors import SettingsError
from telegram_bus.core.meters import DEFAULT_LIMITS, Limits, parse_limits
from telegram_bus.core.sharing import hours_of
from telegram_bus.core.threads import DEFAULT_TEMPLATE, check_template
from telegram_bus.home import DEFAULT_PROFILE, HOME_VARIABLE, PROFILE_VARIABLE

__all__ = ["DEFAULT_EXPIRE", "DEFAULT_LINGER", "OPTIONS", "Option", "Token", "option"]

DEFAULT_API_ROOT: Final = "https://api.telegram.org"
DEFAULT_LINGER: Final = 900.0
"""Seconds that a detached leader waits for followers to come back, once nothing is left to do."""

DEFAULT_EXPIRE: Final = 604_800.0
"""Seconds that what people write waits for an agent that is away: over a week-end and a holiday, not for ever."""

PROXY_SCHEMES: Final = ("http", "https", "socks5", "socks5h")  # what httpx takes


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


_BYTES: Final = {"b": 1, "kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000}


@frozen(kw_only=True)
class Option:
    """One setting: where it may be given, and how its text becomes a value.

    `flag`, `variable` and `key` are None where it cannot be given there. `parse` takes what the option, the
    variable or the file holds and raises ValueError(what is wrong and what would be right).
    """

    name: str
    help: str
    parse: Callable[[object], object]
    flag: str | None = None
    variable: str | None = None
    key: str | None = None
    default: object = None
    default_text: str = ""
    metavar: str | None = None
    several: bool = False

    @property
    def is_switch(self) -> bool:
        """Whether the option takes no value."""
        return self.flag is not None and self.metavar is None

    def ways(self) -> str:
        """The ways to give it, for error texts: "--chat, $TELEGRAM_BUS_CHAT or chat in config.toml"."""
        ways = [self.flag, f"${self.variable}" if self.variable else None]
        named = [way for way in (*ways, f"{self.key} in config.toml" if self.key else None) if way]
        return " or ".join(filter(None, [", ".join(named[:-1]), named[-1]]))


def _text(value: object) -> str:
    if isinstance(value, str) and value.strip() and value.isprintable():
        return value.strip()
    raise ValueError("is no text")


def _integer(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,19}", value.strip()):
        return int(value)
    raise ValueError("is no number")


def _chat(value: object) -> int:
    try:
        chat = _integer(value)
    except ValueError:
        chat = 0
    if chat == 0:
        raise ValueError(
            "must be a number other than 0: your user id (@userinfobot tells you), or a group's id, which is negative"
        )
    return chat


def _users(value: object) -> tuple[int, ...]:
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


def _size(value: object) -> int:
    found = re.fullmatch(r"([0-9]{1,12})\s*(b|kb|mb|gb)?", str(value).strip(), re.IGNORECASE)
    if found is None or isinstance(value, bool) or not (size := int(found[1]) * _BYTES[(found[2] or "b").lower()]):
        raise ValueError("must be a size such as 5 MB or 1 GB")
    return size


def _path(value: object) -> Path:
    if isinstance(value, Path):
        return value.expanduser().absolute()
    return Path(_text(value)).expanduser().absolute()  # a successor works in "/"


def _api_root(value: object) -> str:
    root = _text(value).rstrip("/")
    if not _is_address(root, ("http", "https")):
        raise ValueError(f"must be an address such as {DEFAULT_API_ROOT} or http://127.0.0.1:8081")
    parts = urlsplit(root)
    user, at, server = parts.netloc.rpartition("@")
    return parts._replace(netloc=user + at + server.lower()).geturl()  # one server, one lock


def _proxy(value: object) -> str | None:
    proxy = _text(value)
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


def _linger(value: object) -> float | None:
    if isinstance(value, str) and value.strip() == "never":
        return None
    seconds = -1.0
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        with suppress(ValueError):
            seconds = float(value)
    if not 0 <= seconds <= 10**9:  # so NaN is refused, and 30 years are enough
        raise ValueError('must be a number of seconds, or "never"')
    return seconds


def _hours(value: object) -> tuple[int, int] | None:
    """Minutes of the day; None for "never"."""
    text = _text(value)
    if text == "never":
        return None
    hours = hours_of(text)
    if hours is None:
        raise ValueError('must be hours such as 22:00-07:00, or "never"')
    return hours


_UNITS: Final = {"s": 1, "min": 60, "h": 3_600, "d": 86_400}


def _duration(shortest: float) -> Callable[[object], float | None]:
    def parse(value: object) -> float | None:
        """Seconds; None for "never"."""
        text = str(value).strip().lower() if not isinstance(value, bool) else ""
        if text == "never":
            return None
        found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)\s*(s|min|h|d)?", text)
        seconds = float(found[1]) * _UNITS[found[2] or "s"] if found else -1.0
        if not shortest <= seconds <= 10**9:
            raise ValueError(f'must be a time of {shortest:g} s or more, such as 90 s, 12 h or 7 d, or "never"')
        return seconds

    return parse


def _limits(value: object) -> Limits:
    return parse_limits(str(value))


def _switch(value: object) -> bool:
    word = str(value).strip().lower()
    if word in {"1", "true", "yes", "on"}:
        return True
    if word in {"0", "false", "no", "off"}:
        return False
    raise ValueError("must be yes or no")


def _template(value: object) -> str:
    return check_template(_text(value))


def _clean_up(value: object) -> str:
    word = str(value).strip().lower()
    if word in {"keep", "close", "delete"}:
        return word
    raise ValueError("must be keep, close or delete")


OPTIONS: Final[tuple[Option, ...]] = (
    Option(
        name="token",
        variable="TELEGRAM_BOT_TOKEN",
        key="token",
        help="the bot's token, as @BotFather gave it (never an option: others can read a command line)",
        parse=Token.parse,
    ),
    Option(
        name="token_file",
        flag="--token-file",
        variable="TELEGRAM_BUS_TOKEN_FILE",
        key="token_file",
        metavar="FILE",
        help="read the bot's token from this file",
        parse=_path,
    ),
    Option(
        name="token_command",
        flag="--token-command",
        variable="TELEGRAM_BUS_TOKEN_COMMAND",
        key="token_command",
        metavar="COMMAND",
        help='run this command, which prints the bot\'s token ("pass show my-bot")',
        parse=_text,
    ),
    Option(
        name="store_token",
        flag="--no-store-token",
        variable="TELEGRAM_BUS_STORE_TOKEN",
        default=True,
        default_text="stored",
        help="keep the token out of config.toml; no follower can start a successor then",
        parse=_switch,
    ),
    Option(
        name="spare",
        flag="--no-spare",
        variable="TELEGRAM_BUS_SPARE",
        key="spare",
        default=True,
        default_text="kept",
        help="keep no second process ready that takes over within a tenth of a second when the leader dies",
        parse=_switch,
    ),
    Option(
        name="other_bot",
        flag="--other-bot",
        default=False,
        default_text="refused",
        help="let the profile serve another bot than before",
        parse=_switch,
    ),
    Option(
        name="api_root",
        flag="--api-root",
        variable="TELEGRAM_BUS_API_ROOT",
        key="api_root",
        default=DEFAULT_API_ROOT,
        default_text=DEFAULT_API_ROOT,
        metavar="URL",
        help="the Bot API server: Telegram's, one of your own, or the sandbox",
        parse=_api_root,
    ),
    Option(
        name="chat",
        flag="--chat",
        variable="TELEGRAM_BUS_CHAT",
        key="chat",
        metavar="ID",
        help="where the threads are: your user id (a private chat in Threaded Mode) or a forum group's; needed once",
        parse=_chat,
    ),
    Option(
        name="allow",
        flag="--allow",
        variable="TELEGRAM_BUS_ALLOW",
        key="allow",
        default_text="the person whose chat it is; required for a group",
        metavar="USER_ID",
        help="who may talk to the agents, several ids or several times; the first one is the owner",
        parse=_users,
        several=True,
    ),
    Option(
        name="profile",
        flag="--profile",
        variable=PROFILE_VARIABLE,
        default=DEFAULT_PROFILE,
        default_text=DEFAULT_PROFILE,
        metavar="NAME",
        help="which bot of this user; each profile has a bot, a leader and followers of its own",
        parse=_text,
    ),
    Option(
        name="home",
        variable=HOME_VARIABLE,
        default_text="the user's state directory",
        help="the directory of all profiles",
        parse=_path,
    ),
    Option(
        name="socket",
        flag="--socket",
        variable="TELEGRAM_BUS_SOCKET",
        key="socket",
        default_text="run/leader.sock in the profile",
        metavar="PATH",
        help="where the leader listens; its directory must be private (mode 0700)",
        parse=_path,
    ),
    Option(
        name="secret_file",
        flag="--secret-file",
        variable="TELEGRAM_BUS_SECRET_FILE",
        key="secret_file",
        default_text="follower.secret in the profile, made by the first leader",
        metavar="FILE",
        help="the secret that followers have to know (mode 0600)",
        parse=_path,
    ),
    Option(
        name="proxy",
        flag="--proxy",
        variable="TELEGRAM_BUS_PROXY",
        key="proxy",
        default_text="that of $https_proxy or $all_proxy, but for $no_proxy",
        metavar="URL",
        help='the proxy for the way to Telegram: http, https, socks5 or socks5h; or "none"',
        parse=_proxy,
    ),
    Option(
        name="linger",
        flag="--linger",
        variable="TELEGRAM_BUS_LINGER",
        key="linger",
        default=DEFAULT_LINGER,
        default_text="900",
        metavar="SECONDS",
        help='how long a detached leader waits for followers once the last one left, or "never" to end',
        parse=_linger,
    ),
    Option(
        name="expire",
        flag="--expire",
        variable="TELEGRAM_BUS_EXPIRE",
        key="expire",
        default=DEFAULT_EXPIRE,
        default_text="7 d",
        metavar="TIME",
        help='for how long what people write waits for an agent that is away (90 s, 12 h, 7 d), or "never" to end',
        parse=_duration(1.0),
    ),
    Option(
        name="quiet_hours",
        flag="--quiet-hours",
        variable="TELEGRAM_BUS_QUIET_HOURS",
        key="quiet_hours",
        default_text="never",
        metavar="HOURS",
        help='hours in which no message makes a sound, such as 22:00-07:00 in this machine\'s time, or "never"',
        parse=_hours,
    ),
    Option(
        name="show_state",
        flag="--show-state",
        variable="TELEGRAM_BUS_SHOW_STATE",
        key="show_state",
        default=False,
        default_text="no",
        metavar="YES",
        help="whether the icon of an agent's thread shows what it is: idle, busy, away, waiting for you",
        parse=_switch,
    ),
    Option(
        name="thread_names",
        flag="--thread-names",
        variable="TELEGRAM_BUS_THREAD_NAMES",
        key="thread_names",
        default=DEFAULT_TEMPLATE,
        default_text=DEFAULT_TEMPLATE,
        metavar="TEMPLATE",
        help="what a new thread is called: a text with {name}, {project} and {branch} in it",
        parse=_template,
    ),
    Option(
        name="clean_up",
        flag="--clean-up",
        variable="TELEGRAM_BUS_CLEAN_UP",
        key="clean_up",
        default="keep",
        default_text="keep",
        metavar="HOW",
        help="what becomes of the thread of an agent that leaves: keep, close (groups only) or delete",
        parse=_clean_up,
    ),
    Option(
        name="clean_up_dead",
        flag="--clean-up-dead",
        variable="TELEGRAM_BUS_CLEAN_UP_DEAD",
        key="clean_up_dead",
        default=False,
        default_text="no",
        metavar="YES",
        help="whether that also happens to the thread of an agent whose process is proven to be dead",
        parse=_switch,
    ),
    Option(
        name="file_limit",
        flag="--file-limit",
        variable="TELEGRAM_BUS_FILE_LIMIT",
        key="file_limit",
        default_text="what the Bot API server gives",
        metavar="SIZE",
        help="how large a file may be that an agent fetches from the chat (5 MB, 1 GB)",
        parse=_size,
    ),
    Option(
        name="folder_limit",
        flag="--folder-limit",
        variable="TELEGRAM_BUS_FOLDER_LIMIT",
        key="folder_limit",
        default=1_000_000_000,
        default_text="1 GB",
        metavar="SIZE",
        help="how much an agent's folder of fetched files may hold",
        parse=_size,
    ),
    Option(
        name="keep_updates",
        variable="TELEGRAM_BUS_KEEP_UPDATES",
        key="keep_updates",
        default=86_400.0,
        default_text="1 d",
        help="for how long an update that was dealt with is kept",
        parse=_duration(0.0),
    ),
    Option(
        name="keep_ids",
        variable="TELEGRAM_BUS_KEEP_IDS",
        key="keep_ids",
        default=172_800.0,
        default_text="2 d",
        help="for how long ids of updates and calls are known, so that none is taken twice; Telegram repeats for 24 h",
        parse=_duration(86_400.0),
    ),
    Option(
        name="keep_owners",
        variable="TELEGRAM_BUS_KEEP_OWNERS",
        key="keep_owners",
        default=7_776_000.0,
        default_text="90 d",
        help="for how long it is known which agent sent a message: buttons and reactions of older ones reach nobody",
        parse=_duration(86_400.0),
    ),
    Option(
        name="limits",
        flag="--limits",
        variable="TELEGRAM_BUS_LIMITS",
        key="limits",
        default=DEFAULT_LIMITS,
        default_text=str(DEFAULT_LIMITS),
        metavar="LIMITS",
        help="how much is sent at most, as count/seconds (what is not named is as usual), where other limits hold",
        parse=_limits,
    ),
    Option(
        name="interpreter",
        flag="--interpreter",
        variable="TELEGRAM_BUS_INTERPRETER",
        key="interpreter",
        default=Path(sys.executable),
        default_text="the one that runs the leader",
        metavar="PYTHON",
        help="the Python that starts a successor of this leader",
        parse=_path,
    ),
)

_BY_NAME: Final = {one.name: one for one in OPTIONS}


def option(name: str) -> Option:
    """The row of that name; raises SettingsError for a name that is none."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise SettingsError(f"there is no setting named {name!r}") from None
