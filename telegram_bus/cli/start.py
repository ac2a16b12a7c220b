"""`telegram-bus start`: starts the leader in the background, with the settings of its last run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from telegram_bus.cli import faults
from telegram_bus.cli.asking import profile_of
from telegram_bus.cli.environment import PARENT_VARIABLE
from telegram_bus.cli.faults import say
from telegram_bus.cli.terminal import put
from telegram_bus.core.errors import NoLeader, SettingsError

if TYPE_CHECKING:
    import argparse

    from telegram_bus.home import Profile
    from telegram_bus.roles.record import LeaderRecord

__all__ = ["add_parser"]

_EPILOG: Final = """\
The settings are those of the last `telegram-bus leader`, which also says what can be set. Followers start a leader by
themselves when they find none, unless `telegram-bus stop` said that there shall be none.

exit codes:
  0  a leader runs
  1  a file or directory cannot be used
  2  there are no settings, or they are wrong
  3  it did not start (see telegram-bus logs)
  5  it took more than 60 s

examples:
  telegram-bus start
  telegram-bus --profile work start
"""

_PATIENCE: Final = 60.0
"""Seconds in all: finding out that a holder of the lock is frozen takes a dozen, and a slow start ten more."""


def add_parser(subparsers: Any) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "start", usage="telegram-bus start [--profile NAME]", description=__doc__, epilog=_EPILOG
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Starts a leader, unless one runs, and waits until it answers."""
    profile = profile_of(arguments)
    parent = os.environ.get(PARENT_VARIABLE)
    if parent:
        raise SettingsError(
            f"this runs inside the follower {parent!r} (${PARENT_VARIABLE}), where nothing starts a leader"
        )
    if not profile.config_toml.exists():
        raise SettingsError(
            f"profile {profile.name!r} has no settings in {profile.directory}\n"
            "start its leader once with your bot's token: telegram-bus leader --help"
        )
    import trio  # noqa: PLC0415 - only now there is something to wait for

    try:
        record = trio.run(_start, profile)
    except NoLeader:
        _check_settings(profile)
        raise
    put(faults.as_called(f"the leader runs (pid {record.pid}); look at it: telegram-bus status"))
    return faults.DONE


def _check_settings(profile: Profile) -> None:
    """Raises SettingsError where no leader could start with what is stored."""
    from telegram_bus.roles.settings import stored_interpreter  # noqa: PLC0415 - only after a failure

    if stored_interpreter(profile) is None:
        raise SettingsError(
            f"profile {profile.name!r} keeps no token, so its leader has to be started by hand: telegram-bus leader"
        )


async def _start(profile: Profile) -> LeaderRecord:
    import trio  # noqa: PLC0415

    from telegram_bus.roles.starter import start_leader  # noqa: PLC0415

    with trio.fail_after(_PATIENCE):
        return await start_leader(profile, report=say)
