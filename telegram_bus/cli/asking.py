"""One question to the leader over its socket, without Trio: for commands that answer at once and end."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from telegram_bus.core.errors import AnswerLost, NoLeader, NotSent, RequestRefused, SettingsError
from telegram_bus.home import Home, Profile, read_regular, read_secret

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

__all__ = ["ask", "leader_record", "no_leader", "profile_of"]

_PATIENCE: Final = 3.0
"""Seconds for an answer: a healthy leader takes milliseconds; one that is silent for 2 s counts as frozen."""

_RECORD_MAX: Final = 1 << 16  # bytes of leader.json


def profile_of(arguments: argparse.Namespace) -> Profile:
    """The profile that the global options, the environment or the default name; nothing is created.

    Raises StateError where it is somebody else's.
    """
    profile = Home(arguments.home).profile(arguments.profile)
    profile.check()
    return profile


def leader_record(profile: Profile) -> dict[str, Any] | None:
    """What `leader.json` says, or None where there is none that makes sense."""
    try:
        record = json.loads(read_regular(profile.leader_json, _RECORD_MAX))
    except (OSError, ValueError, RecursionError):
        return None
    endpoint = record.get("endpoint") if isinstance(record, dict) else None
    return record if isinstance(endpoint, str) and endpoint.startswith("/") and "\0" not in endpoint else None


def no_leader(profile: Profile) -> NoLeader:
    """The fault with the next step for this profile."""
    name = profile.name
    if profile.stopped.exists():
        return NoLeader(f"the leader of profile {name!r} was stopped\nstart it again: telegram-bus start")
    if profile.leader_json.exists() and leader_record(profile) is None:
        return NoLeader(
            f"{profile.leader_json} does not say who leads, so nobody can be asked\n"
            f"a leader of profile {name!r} that runs writes it anew within seconds\n"
            "where none runs start one, which replaces the file: telegram-bus start"
        )
    if profile.config_toml.exists():
        return NoLeader(f"no leader runs for profile {name!r}\nstart it: telegram-bus start")
    return NoLeader(
        f"no leader runs for profile {name!r}, and none ever did in {profile.home.root}\n"
        "start one with your bot's token: telegram-bus leader --help\n"
        "or try it without a bot: telegram-bus demo"
    )


def ask(profile: Profile, kind: str, secret: Path, seconds: float = _PATIENCE, **fields: Any) -> Any:
    """Sends the request `kind` with its own `fields`, and returns the `result` of its ack.

    Raises NoLeader, TimeoutError when the leader does not answer, and RequestRefused.
    """
    from telegram_bus.wire.plain import request_plain  # noqa: PLC0415 - only who asks needs a socket

    record = leader_record(profile)
    if record is None:
        raise no_leader(profile)
    try:
        auth = read_secret(secret)
    except SettingsError:
        if not secret.exists():
            raise no_leader(profile) from None
        raise
    request = {"kind": kind, "requestId": f"cli:{os.getpid()}:{os.urandom(4).hex()}", "auth": auth, **fields}
    try:
        ack = request_plain(record["endpoint"], request, seconds)
    except NotSent:
        raise no_leader(profile) from None
    except (AnswerLost, TimeoutError) as error:
        raise TimeoutError(
            f"the leader of profile {profile.name!r} (pid {record.get('pid')}) did not answer: {error}\n"
            "look into its log: telegram-bus logs"
        ) from error
    if ack.get("ok") is not True:
        raise RequestRefused(str(ack.get("message") or "the leader refused and gave no reason"))
    return ack.get("result")
