"""The one table of settings: names, options, variables, keys in config.toml, and what a valid value is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from attrs import frozen

from telegram_bus.core.errors import SettingsError
from telegram_bus.core.meters import DEFAULT_LIMITS
from telegram_bus.core.threads import DEFAULT_TEMPLATE
from telegram_bus.home import DEFAULT_PROFILE, HOME_VARIABLE, PROFILE_VARIABLE
from telegram_bus.roles.option_values import (
    DEFAULT_API_ROOT,
    Token,
    to_api_root,
    to_chat,
    to_clean_up,
    to_duration,
    to_hours,
    to_limits,
    to_path,
    to_proxy,
    to_size,
    to_switch,
    to_template,
    to_text,
    to_users,
)

__all__ = ["DEFAULT_EXPIRE", "DEFAULT_FOLDER_LIMIT", "DEFAULT_LINGER", "OPTIONS", "Option", "option"]

DEFAULT_LINGER: Final = 900.0
"""Seconds that a detached leader waits for followers to come back, once nothing is left to do."""

DEFAULT_EXPIRE: Final = 604_800.0
"""Seconds that what people write waits for an agent that is away: over a week-end and a holiday, not for ever."""

DEFAULT_FOLDER_LIMIT: Final = 1_000_000_000
"""Bytes that an agent's folder of fetched files may hold."""

DAY: Final = 86_400.0

_USUAL: Final = ""


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


def _row(  # noqa: PLR0913 - the columns of the table
    name: str,
    parse: Callable[[object], object],
    metavar: str | None,
    meaning: str,
    *,
    default: object = None,
    default_text: str = "",
    flag: str | None = _USUAL,
    variable: str | None = _USUAL,
    stored: bool = True,
    several: bool = False,
) -> Option:
    """A setting `some_thing` is usually --some-thing, $TELEGRAM_BUS_SOME_THING, and some_thing in config.toml."""
    return Option(
        name=name,
        help=meaning,
        parse=parse,
        flag=f"--{name.replace('_', '-')}" if flag == _USUAL else flag,
        variable=f"TELEGRAM_BUS_{name.upper()}" if variable == _USUAL else variable,
        key=name if stored else None,
        default=default,
        default_text=default_text,
        metavar=metavar,
        several=several,
    )


OPTIONS: Final[tuple[Option, ...]] = (
    _row(
        "token",
        Token.parse,
        None,
        "the bot's token, as @BotFather gave it (never an option: others can read a command line)",
        flag=None,
        variable="TELEGRAM_BOT_TOKEN",
    ),
    _row("token_file", to_path, "FILE", "read the bot's token from this file"),
    _row("token_command", to_text, "COMMAND", 'run this command, which prints the bot\'s token ("pass show my-bot")'),
    _row(
        "store_token",
        to_switch,
        None,
        "keep the token out of config.toml; no follower can start a successor then",
        default=True,
        default_text="stored",
        flag="--no-store-token",
        stored=False,
    ),
    _row(
        "spare",
        to_switch,
        None,
        "keep no second process ready that takes over within a tenth of a second when the leader dies",
        default=True,
        default_text="kept",
        flag="--no-spare",
    ),
    _row(
        "other_bot",
        to_switch,
        None,
        "let the profile serve another bot than before",
        default=False,
        default_text="refused",
        variable=None,
        stored=False,
    ),
    _row(
        "api_root",
        to_api_root,
        "URL",
        "the Bot API server: Telegram's, one of your own, or the sandbox",
        default=DEFAULT_API_ROOT,
        default_text=DEFAULT_API_ROOT,
    ),
    _row(
        "chat",
        to_chat,
        "ID",
        "where the threads are: your user id (a private chat in Threaded Mode) or a forum group's; needed once",
    ),
    _row(
        "allow",
        to_users,
        "USER_ID",
        "who may talk to the agents, several ids or several times; the first one is the owner",
        default_text="the person whose chat it is; required for a group",
        several=True,
    ),
    _row(
        "profile",
        to_text,
        "NAME",
        "which bot of this user; each profile has a bot, a leader and followers of its own",
        default=DEFAULT_PROFILE,
        default_text=DEFAULT_PROFILE,
        variable=PROFILE_VARIABLE,
        stored=False,
    ),
    _row(
        "home",
        to_path,
        None,
        "the directory of all profiles",
        default_text="the user's state directory",
        flag=None,
        variable=HOME_VARIABLE,
        stored=False,
    ),
    _row(
        "socket",
        to_path,
        "PATH",
        "where the leader listens; its directory must be private (mode 0700)",
        default_text="run/leader.sock in the profile",
    ),
    _row(
        "secret_file",
        to_path,
        "FILE",
        "the secret that followers have to know (mode 0600)",
        default_text="follower.secret in the profile, made by the first leader",
    ),
    _row(
        "proxy",
        to_proxy,
        "URL",
        'the proxy for the way to Telegram: http, https, socks5 or socks5h; or "none"',
        default_text="that of $https_proxy or $all_proxy, but for $no_proxy",
    ),
    _row(
        "linger",
        to_duration(0.0),
        "TIME",
        'how long a detached leader waits for followers once the last one left (90 s, 1 h), or "never" to end',
        default=DEFAULT_LINGER,
        default_text="15 min",
    ),
    _row(
        "expire",
        to_duration(1.0),
        "TIME",
        'for how long what people write waits for an agent that is away (90 s, 12 h, 7 d), or "never" to end',
        default=DEFAULT_EXPIRE,
        default_text="7 d",
    ),
    _row(
        "quiet_hours",
        to_hours,
        "HOURS",
        'hours in which no message makes a sound, such as 22:00-07:00 in this machine\'s time, or "never"',
        default_text="never",
    ),
    _row(
        "show_state",
        to_switch,
        "YES",
        "whether the icon of an agent's thread shows what it is: idle, busy, away, waiting for you",
        default=False,
        default_text="no",
    ),
    _row(
        "thread_names",
        to_template,
        "TEMPLATE",
        "what a new thread is called: a text with {name}, {project} and {branch} in it",
        default=DEFAULT_TEMPLATE,
        default_text=DEFAULT_TEMPLATE,
    ),
    _row(
        "clean_up",
        to_clean_up,
        "HOW",
        "what becomes of the thread of an agent that leaves: keep, close (groups only) or delete",
        default="keep",
        default_text="keep",
    ),
    _row(
        "clean_up_dead",
        to_switch,
        "YES",
        "whether that also happens to the thread of an agent whose process is proven to be dead",
        default=False,
        default_text="no",
    ),
    _row(
        "file_limit",
        to_size,
        "SIZE",
        "how large a file may be that an agent fetches from the chat (5 MB, 1 GB)",
        default_text="what the Bot API server gives",
    ),
    _row(
        "folder_limit",
        to_size,
        "SIZE",
        "how much an agent's folder of fetched files may hold",
        default=DEFAULT_FOLDER_LIMIT,
        default_text="1 GB",
    ),
    _row(
        "keep_updates",
        to_duration(0.0),
        None,
        "for how long an update that was dealt with is kept",
        default=DAY,
        default_text="1 d",
        flag=None,
    ),
    _row(
        "keep_ids",
        to_duration(DAY),
        None,
        "for how long ids are known, so that nothing is taken twice; of updates 2 d at most, since they begin anew",
        default=2 * DAY,
        default_text="2 d",
        flag=None,
    ),
    _row(
        "keep_owners",
        to_duration(DAY),
        None,
        "for how long it is known which agent sent a message: buttons and reactions of older ones reach nobody",
        default=90 * DAY,
        default_text="90 d",
        flag=None,
    ),
    _row(
        "limits",
        to_limits,
        "LIMITS",
        "how much is sent at most, as count/seconds (what is not named is as usual), where other limits hold",
        default=DEFAULT_LIMITS,
        default_text=str(DEFAULT_LIMITS),
    ),
    _row(
        "interpreter",
        to_path,
        "PYTHON",
        "the Python that starts a successor of this leader",
        default=Path(sys.executable),
        default_text="the one that runs the leader",
    ),
)

_BY_NAME: Final = {one.name: one for one in OPTIONS}


def option(name: str) -> Option:
    """The row of that name; raises SettingsError for a name that is none."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise SettingsError(f"there is no setting named {name!r}") from None
