"""The environment of a wrapped program: everything of ours, except what would let it speak for the bot."""

from __future__ import annotations

import re
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from telegram_bus.core.errors import SettingsError
from telegram_bus.home import HOME_VARIABLE, PROFILE_VARIABLE, Profile, read_secret

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

__all__ = ["PARENT_VARIABLE", "TOKEN_VARIABLE", "child_environment", "profile_secrets"]

PARENT_VARIABLE: Final = "TELEGRAM_BUS_PARENT"
TOKEN_VARIABLE: Final = "TELEGRAM_BOT_TOKEN"  # noqa: S105 - the name of a variable

_SHORTEST: Final = 6
"""A shorter value is no secret of ours, and would match half of the environment."""

_TOKEN: Final = re.compile(r"(?<![0-9])[0-9]{6,16}:[A-Za-z0-9_-]{30,}")
"""What @BotFather hands out: a bot's token under another name is a token too."""


def child_environment(
    environ: Mapping[str, str], *, profile: Profile, key: str, secrets: Collection[str]
) -> dict[str, str]:
    """`environ` without the token and anything that contains it or one of `secrets`, and with the parent's key.

    Home and profile are named, so that a `telegram-bus status` of the program looks where its follower does.
    """
    hidden = [secret for secret in secrets if len(secret) >= _SHORTEST]
    kept = {
        name: value
        for name, value in environ.items()
        if name != TOKEN_VARIABLE and not _TOKEN.search(value) and not any(secret in value for secret in hidden)
    }
    places = {HOME_VARIABLE: str(profile.home.root), PROFILE_VARIABLE: profile.name, PARENT_VARIABLE: key}
    return kept | places


def profile_secrets(profile: Profile, environ: Mapping[str, str]) -> frozenset[str]:
    """All that this profile keeps to itself, as far as it can be read: what cannot be read cannot leak from here."""
    return frozenset(_secrets(profile, environ))


def _secrets(profile: Profile, environ: Mapping[str, str]) -> Iterator[str]:
    for path in (profile.follower_secret, profile.operator_secret):
        with suppress(SettingsError):
            yield read_secret(path)
    if environ.get(TOKEN_VARIABLE):
        yield environ[TOKEN_VARIABLE]
    for name, value in _stored(profile).items():
        if not isinstance(value, str) or "token" not in name:
            continue
        if name == "token":
            yield value
        elif name == "token_file":
            with suppress(SettingsError):
                yield read_secret(Path(value))


def _stored(profile: Profile) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        return tomllib.loads(profile.config_toml.read_text("utf-8"))
    return {}
