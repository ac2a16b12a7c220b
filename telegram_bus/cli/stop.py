"""`telegram-bus stop`: ends the leader in order, and keeps followers from starting another."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from telegram_bus import host
from telegram_bus.cli import faults
from telegram_bus.cli.asking import ask, leader_record, profile_of
from telegram_bus.cli.terminal import put
from telegram_bus.core.errors import NoLeader
from telegram_bus.home import atomic_write

if TYPE_CHECKING:
    import argparse

    from telegram_bus.home import Profile

__all__ = ["add_parser", "stop_leader"]

_EPILOG: Final = """\
The leader finishes what it is sending and ends. Followers keep running and wait, until somebody runs
`telegram-bus start` or `telegram-bus leader`.

exit codes:
  0  no leader runs (any more)
  1  a file cannot be written
  2  usage
  3  there is no such profile
  4  the leader refused (a wrong secret)
  5  it did not end within 20 s

examples:
  telegram-bus stop
  telegram-bus --profile work stop
"""

_PATIENCE: Final = 20.0
"""Seconds for the end of the leader: it may drain for 10 s, and a long poll or a slow disk comes on top."""

_LOOK: Final = 0.02


def add_parser(subparsers: Any) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "stop", usage="telegram-bus stop [--profile NAME]", description=__doc__, epilog=_EPILOG
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Stops the leader and says so."""
    profile = profile_of(arguments)
    pid = stop_leader(profile, _PATIENCE)
    ended = f"the leader (pid {pid}) ended" if pid else "no leader was running"
    put(faults.as_called(f"{ended}; profile {profile.name!r} stays stopped until: telegram-bus start"))
    return faults.DONE


def stop_leader(profile: Profile, seconds: float) -> int | None:
    """Writes the mark `stopped` and waits until the leader is gone; returns its pid, or None if none ran.

    Raises NoLeader where the profile does not exist, TimeoutError where the leader goes on, RequestRefused.
    """
    if not profile.directory.is_dir():
        raise NoLeader(f"there is no profile {profile.name!r} in {profile.home.root}; nothing to stop")
    deadline = time.monotonic() + seconds
    # before the question: a follower that sees its leader go looks for this mark first
    atomic_write(profile.stopped, b"")
    record = leader_record(profile)
    try:
        ask(profile, "x.operator.stop", profile.operator_secret, min(seconds, 5.0))
    except NoLeader:
        if record is None or not _lives(record):
            return None
    except TimeoutError:
        pass  # whether it heard is seen below
    while record is not None and _lives(record):
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"the leader (pid {record.get('pid')}) has not ended within {seconds:.0f} s\n"
                f"look into its log: telegram-bus logs\n"
                f"end it by force, which loses nothing that was accepted: kill -KILL {record.get('pid')}"
            )
        time.sleep(_LOOK)
    return None if record is None else record.get("pid")


def _lives(record: dict[str, Any]) -> bool:
    """Whether that process still runs; where it cannot be seen (another namespace), whether it listens."""
    pid, birth = record.get("pid"), record.get("birth")
    if isinstance(pid, int) and record.get("pidNamespace") in {None, host.pid_namespace()}:
        state = host.process_state(pid, birth if isinstance(birth, str) else None)
        if state != "unverifiable":
            return state == "alive"
    return _listens(str(record["endpoint"]))


def _listens(endpoint: str) -> bool:
    import socket  # noqa: PLC0415 - hardly ever needed

    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(endpoint)
        except OSError:
            return False
    return True
