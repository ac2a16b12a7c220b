"""`telegram-bus purge`: deletes what the leader keeps and does not need any more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from telegram_bus.cli import faults
from telegram_bus.cli.asking import ask, profile_of
from telegram_bus.cli.terminal import put
from telegram_bus.core.text import counted

if TYPE_CHECKING:
    import argparse

__all__ = ["add_parser"]

_EPILOG: Final = """\
The leader does this by itself once an hour: with updates a day after they were dealt with, with ids after two days,
with the owners of messages after 90 days (settings keep_updates, keep_ids, keep_owners). What waits is never deleted.

exit codes:
  0  done
  2  usage
  3  there is no leader
  4  it refused
  5  it does not answer

examples:
  telegram-bus purge
  telegram-bus purge --settled    also what was dealt with a minute ago
"""

_PATIENCE: Final = 30.0
"""Seconds: a million rows take some."""


def add_parser(subparsers: Any) -> None:
    """Adds the command and its options."""
    parser = subparsers.add_parser(
        "purge", usage="telegram-bus purge [--settled] [--json]", description=__doc__, epilog=_EPILOG
    )
    parser.add_argument(
        "--settled", action="store_true", help="also every update that was dealt with, with its text, however new"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object, for programs")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Asks the leader to delete, and says how much went."""
    profile = profile_of(arguments)
    result = ask(profile, "x.operator.purge", profile.operator_secret, _PATIENCE, settled=arguments.settled)
    put(json.dumps(result) if arguments.json else f"{counted(int(result['rows']), 'row')} deleted")
    return faults.DONE
