"""What a leader works with: options before environment before config.toml; stored for its successor."""

from __future__ import annotations

import ipaddress
import json
import logging
import os
import shlex
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import attrs
from attrs import field, frozen

from telegram_bus.core.errors import SettingsError, StateError
from telegram_bus.core.meters import DEFAULT_LIMITS, Limits
from telegram_bus.core.threads import DEFAULT_TEMPLATE
from telegram_bus.home import Profile, atomic_write, read_private
from telegram_bus.roles.option_values import Token
from telegram_bus.roles.options import DEFAULT_EXPIRE, DEFAULT_FOLDER_LIMIT, OPTIONS, Option, option
from telegram_bus.store import Retention

__all__ = ["Settings", "Token", "load_settings", "read_config", "store_settings", "stored_interpreter", "to_toml"]

log = logging.getLogger(__name__)

HOW_TO_GET_A_BOT: Final = (
    "no bot token: get one from @BotFather in Telegram (/newbot), then set TELEGRAM_BOT_TOKEN or give --token-file\n"
    "or try it without one: telegram-bus demo"
)
CONFIG_MAX: Final = 1 << 20
TOKEN_FILE_MAX: Final = 4096
TOKEN_COMMAND_SECONDS: Final = 60.0
"""Enough to type a passphrase; a detached leader has nobody to ask and must not hang."""

BOT_KEY: Final = "bot"  # the id of the bot that the profile serves, kept without the token too
_AS_THEY_ARE: Final = "show_state spare thread_names clean_up clean_up_dead file_limit folder_limit".split()
"""Settings whose values are written as they are; the others have a text of their own in config.toml."""

_KEEP: Final = {"keep_updates": "bodies", "keep_ids": "ids", "keep_owners": "owners"}
_EVER_MS: Final = 10**12  # 30 years
TOKEN_NAMES: Final = ("token", "token_file", "token_command")


@frozen(kw_only=True)
class Settings:
    """All that a leader needs to know; `linger` in seconds or None (never), `allow` with the owner first.

    `token_file` or `token_command` is where the token came from, or None; `quiet_hours` are minutes of the day.
    """

    token: Token
    chat: int
    allow: tuple[int, ...]
    api_root: str
    interpreter: Path
    token_file: Path | None = None
    token_command: str | None = None
    store_token: bool = True
    spare: bool = True
    socket: Path | None = None
    secret_file: Path | None = None
    proxy: str | None = None
    linger: float | None = None
    expire: float | None = DEFAULT_EXPIRE
    quiet_hours: tuple[int, int] | None = None
    show_state: bool = False
    thread_names: str = DEFAULT_TEMPLATE
    clean_up: Literal["keep", "close", "delete"] = "keep"
    clean_up_dead: bool = False
    file_limit: int | None = None
    folder_limit: int = DEFAULT_FOLDER_LIMIT
    limits: Limits = DEFAULT_LIMITS
    keep: Retention = field(factory=Retention)

    @property
    def owner(self) -> int:
        """The user id of the first one who is allowed."""
        return self.allow[0]

    @property
    def bot_id(self) -> int:
        return self.token.bot_id


def load_settings(
    profile: Profile,
    options: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """The settings of the leader of `profile`.

    `options` are those of the command line by name (None or missing: not given). May run the token command, so
    call it outside of an event loop. Raises SettingsError that names the option, variable or key.
    """
    environment = os.environ if environment is None else environment
    config = read_config(profile)
    sources = (_from_options(options or {}), _from_environment(environment), _from_config(profile, config))
    values: dict[str, Any] = {one.name: one.default for one in OPTIONS}
    # the interpreter that runs now succeeds the stored one, which may be gone after an upgrade
    for source in (sources[2] | {"interpreter": option("interpreter").default}, sources[1], sources[0]):
        values |= source
    if "proxy" not in sources[0] | sources[1]:
        values["proxy"] = _proxy_of(environment, values["api_root"]) or values["proxy"]
    token, origin = _find_token(sources)
    stored_bot = config.get(BOT_KEY)
    if stored_bot is not None and stored_bot != token.bot_id and not values["other_bot"]:
        raise SettingsError(
            f"profile {profile.name} serves bot {stored_bot}, and this token is one of bot {token.bot_id}: "
            "choose another --profile for it, or give --other-bot to change this one"
        )
    return Settings(
        token=token,
        token_file=origin if isinstance(origin, Path) else None,
        token_command=origin if isinstance(origin, str) else None,
        chat=_chat(values),
        allow=_allow(values),
        **{name: values[name] for name in _as_given()},
        keep=Retention(**{what: _ms(values[name]) for name, what in _KEEP.items()}),
    )


def store_settings(profile: Profile, settings: Settings) -> None:
    """Write config.toml (0600, atomically) so that a successor works with the same settings.

    Without `store_token` there is neither the token in it nor a way to it. Raises StateError, then the old file stands.
    """
    content: dict[str, Any] = {
        BOT_KEY: settings.bot_id,
        "chat": settings.chat,
        "interpreter": str(settings.interpreter),
        "linger": "never" if settings.linger is None else _short(settings.linger),
        "api_root": settings.api_root,
    }
    if settings.allow != (settings.chat,):  # what follows from the chat must follow it when it changes
        content["allow"] = list(settings.allow)
    content |= {
        name: str(value)
        for name in ("socket", "secret_file", "proxy")
        if (value := getattr(settings, name)) is not None
    }
    for name, value in _times(settings).items():
        if value != option(name).default:
            content[name] = "never" if value is None else _short(value)
    if settings.limits != DEFAULT_LIMITS:
        content["limits"] = str(settings.limits)
    if settings.quiet_hours is not None:
        content["quiet_hours"] = "-".join(f"{minute // 60:02}:{minute % 60:02}" for minute in settings.quiet_hours)
    content |= {
        name: getattr(settings, name) for name in _AS_THEY_ARE if getattr(settings, name) != option(name).default
    }
    if settings.store_token:
        if settings.token_file is not None:
            content["token_file"] = str(settings.token_file)
        elif settings.token_command is not None:
            content["token_command"] = settings.token_command
        else:
            content["token"] = settings.token.reveal()
    try:
        if read_config(profile) == content:
            return  # so that a person's comments and order stay as long as they can
    except SettingsError as damaged:
        log.warning("writing the settings anew: %s", damaged)
    try:
        atomic_write(profile.config_toml, to_toml(content).encode())
    except OSError as error:
        raise StateError(f"cannot write {profile.config_toml}: {error.strerror}; see to the disk") from error


def read_config(profile: Profile) -> dict[str, Any]:
    """What config.toml holds, empty where there is none.

    Raises SettingsError where it is damaged (naming the line), not private, or has a key that is none of ours.
    """
    path = profile.config_toml
    if not os.path.lexists(path):
        return {}
    try:
        content = tomllib.loads(read_private(path, CONFIG_MAX).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is damaged: {error}; mend that line, or remove the file") from error
    known = {one.key for one in OPTIONS if one.key} | {BOT_KEY}
    unknown = sorted(content.keys() - known)
    if unknown:
        raise SettingsError(f"{path} has the unknown key {unknown[0]!r}; known are {', '.join(sorted(known))}")
    bot = content.get(BOT_KEY)
    if bot is not None and (not isinstance(bot, int) or isinstance(bot, bool)):
        raise SettingsError(f"{BOT_KEY} in {path} must be the bot's id, a number; or remove that line")
    return content


def stored_interpreter(profile: Profile) -> str | None:
    """The Python that starts a successor; None where the profile has no settings a successor could work with.

    Raises SettingsError as `read_config` does.
    """
    config = read_config(profile)
    if not any(name in config for name in TOKEN_NAMES):
        return None
    return str(_from_config(profile, config).get("interpreter", option("interpreter").default))


def to_toml(content: Mapping[str, str | int | float | bool | Sequence[int]]) -> str:
    """TOML of one flat table: texts, numbers, booleans and lists of numbers."""
    return "".join(f"{key} = {_toml_value(value)}\n" for key, value in content.items())


def _as_given() -> set[str]:
    """Settings whose values are those of their options."""
    fields = {one.name for one in attrs.fields(Settings)} - {"token", "token_file", "token_command", "chat", "allow"}
    return fields & {one.name for one in OPTIONS}


def _ms(seconds: float | None) -> int:
    return _EVER_MS if seconds is None else round(seconds * 1000)


def _times(settings: Settings) -> dict[str, float | None]:
    """Settings that are times (s), by name; None: for ever."""
    kept = {name: getattr(settings.keep, what) for name, what in _KEEP.items()}
    return {"expire": settings.expire} | {name: None if ms == _EVER_MS else ms / 1000 for name, ms in kept.items()}


def _short(seconds: float) -> float:
    return int(seconds) if seconds.is_integer() else seconds


def _toml_value(value: str | float | bool | Sequence[int]) -> str:
    if isinstance(value, str):
        # JSON's escapes are TOML's, except that TOML wants DEL escaped too
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)  # numbers, true and false, lists of numbers: the same in both


def _from_options(options: Mapping[str, object]) -> dict[str, Any]:
    given = {name: value for name, value in options.items() if value is not None}
    return {name: _parse(option(name), value, option(name).flag or name) for name, value in given.items()}


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    return {
        one.name: _parse(one, environment[one.variable], f"${one.variable}")
        for one in OPTIONS
        if one.variable and environment.get(one.variable)
    }


def _from_config(profile: Profile, config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        one.name: _parse(one, config[one.key], f"{one.key} in {profile.config_toml}")
        for one in OPTIONS
        if one.key and one.key in config
    }


def _parse(one: Option, value: object, way: str) -> object:
    try:
        return one.parse(value)
    except ValueError as error:
        shown = " ".join(map(str, value)) if isinstance(value, list) else value
        shown = "" if one.name == "token" else f" {shown!r}"
        raise SettingsError(f"{way}{shown} {error}") from None  # the cause would show a token in a traceback


def _proxy_of(environment: Mapping[str, str], api_root: str) -> str | None:
    """The proxy that the usual variables (https_proxy, all_proxy, no_proxy) name: a successor has to know it too."""
    parts = urlsplit(api_root)
    for name in (f"{parts.scheme}_proxy", "all_proxy"):
        proxy = environment.get(name) or environment.get(name.upper())
        if proxy:
            exceptions = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
            direct = _is_direct(parts.hostname or "", exceptions)
            return None if direct else str(_parse(option("proxy"), proxy, f"${name}"))
    return None


def _is_direct(name: str, exceptions: str) -> bool:
    """Whether no_proxy names this server (or a domain it is in); this machine is always reached directly."""
    with suppress(ValueError):
        if ipaddress.ip_address(name).is_loopback:
            return True
    listed = [entry.strip().lstrip(".").lower() for entry in exceptions.split(",") if entry.strip()]
    return name == "localhost" or any(entry == "*" or f".{name}".endswith(f".{entry}") for entry in listed)


def _find_token(sources: Sequence[Mapping[str, Any]]) -> tuple[Token, Path | str | None]:
    """The token, and the file or the command it came from."""
    for source in sources:
        given = [name for name in TOKEN_NAMES if name in source]
        if len(given) > 1:
            ways = " and ".join(option(name).ways() for name in given)
            raise SettingsError(f"the token is given in two ways ({ways}): give one of them")
        match given:
            case ["token"]:
                return source["token"], None
            case ["token_file"]:
                return _token_from_file(source["token_file"]), source["token_file"]
            case ["token_command"]:
                return _token_from_command(source["token_command"]), source["token_command"]
    raise SettingsError(HOW_TO_GET_A_BOT)


def _token_from_file(path: Path) -> Token:
    way = option("token_file").ways()
    try:
        with path.open("rb") as file:
            text = file.read(TOKEN_FILE_MAX).decode()
            mode = os.fstat(file.fileno()).st_mode
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"cannot read the token from {path} ({way}): {why}") from error
    if mode & 0o022:
        raise SettingsError(f"others may change the token in {path} ({way}): chmod 600 {path}")
    if mode & 0o044:  # as containers hand out their secrets, so it is no fault
        log.warning("others may read the token in %s; chmod 600 it if it is yours", path)
    try:
        return Token.parse(text)
    except ValueError as error:
        raise SettingsError(f"what stands in {path} ({way}) {error}") from None


def _token_from_command(command: str) -> Token:
    way = option("token_command").ways()
    try:
        done = subprocess.run(  # noqa: S603 - the user's own command
            shlex.split(command), stdout=subprocess.PIPE, text=True, check=True, timeout=TOKEN_COMMAND_SECONDS
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"cannot run the token command {command!r} ({way}): {why}") from error
    except subprocess.CalledProcessError as error:
        raise SettingsError(
            f"the token command {command!r} ({way}) failed with exit status {error.returncode}: run it by hand"
        ) from None
    except subprocess.TimeoutExpired:
        raise SettingsError(
            f"the token command {command!r} ({way}) did not end within {TOKEN_COMMAND_SECONDS:.0f} s"
        ) from None
    try:
        return Token.parse(done.stdout)
    except ValueError as error:
        raise SettingsError(f"what the token command {command!r} ({way}) printed {error}") from None


def _chat(values: Mapping[str, Any]) -> int:
    if values["chat"] is None:
        raise SettingsError(
            f"no chat ({option('chat').ways()}): give your own user id (@userinfobot in Telegram tells you), "
            "or the id of a forum group"
        )
    return int(values["chat"])


def _allow(values: Mapping[str, Any]) -> tuple[int, ...]:
    chat = _chat(values)
    allow: tuple[int, ...] | None = values["allow"]
    way = option("allow").ways()
    if allow is None:
        if chat < 0:
            raise SettingsError(f"chat {chat} is a group: say who may talk to the agents ({way}), the owner first")
        return (chat,)
    if chat > 0 and chat not in allow:
        raise SettingsError(f"the private chat {chat} is that of a person who is not allowed ({way}): add {chat}")
    return allow
