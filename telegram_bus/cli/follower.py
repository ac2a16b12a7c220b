"""`telegram-bus follower`: gives any program a thread of its own."""

from __future__ import annotations

import logging
import os
import signal
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from telegram_bus import log
from telegram_bus.cli import faults
from telegram_bus.cli.asking import profile_of
from telegram_bus.cli.environment import PARENT_VARIABLE, child_environment, profile_secrets
from telegram_bus.cli.faults import say
from telegram_bus.core.errors import SettingsError
from telegram_bus.core.text import ending

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator

    from telegram_bus.agent import Bus
    from telegram_bus.cli.program import Program
    from telegram_bus.home import Profile

__all__ = ["add_parser"]

_EPILOG: Final = """\
A message in the thread becomes a line on the program's stdin (several lines stay several), and what the program prints
becomes messages: after 0.3 s of silence, or 3,500 characters. Control sequences are removed. The program's end is told
in the thread, with its exit status. A message that comes while the program is down waits for its next start under the
same name.

With --jsonl both ways are JSON lines instead, with every feature of the Python API: updates and answers on stdin,
requests on stdout; docs/jsonl.md describes them. The program then says itself what it has to say.

stderr goes to program.log in the follower's directory, or to the terminal when there is one. Ctrl-C and SIGTERM end
the program and all of its process group; asked a second time, at once. The program gets this environment without the
bot's token and the secrets of the bus, and with TELEGRAM_BUS_PARENT=KEY.

exit codes:
  0  the program succeeded or was stopped by you
  1  it failed
  2  it cannot be started

examples:
  telegram-bus follower --name shell -- sh -c \\
      'while read -r line; do echo "you said: $line"; done'
  telegram-bus follower --name calculator --pty -- bc -q
  telegram-bus follower --name poll --jsonl -- python poll.py
"""

_LOG_LIMIT: Final = 4 << 20
"""Bytes after which the log of stderr is set aside at the next start, so that it cannot grow for ever."""

_LAST_WORDS: Final = 3.0
"""Seconds for what the program still says when it was asked to end: whoever stops it does not want to wait."""


def add_parser(subparsers: Any) -> None:
    """Adds the command and its options."""
    parser = subparsers.add_parser(
        "follower",
        usage="telegram-bus follower --name NAME [--pty | --jsonl] -- COMMAND …",
        description=__doc__,
        epilog=_EPILOG,
    )
    parser.add_argument("--name", required=True, help="the thread's name; also the key under which it is found again")
    parser.add_argument("--pty", action="store_true", help="a pseudo-terminal, for programs that hold back output else")
    parser.add_argument("--jsonl", action="store_true", help="speak JSON lines with the program, for all there is")
    parser.add_argument("--no-start", action="store_true", help="wait for a leader, but start none")
    parser.add_argument("command", nargs="...", metavar="COMMAND", help="the program and its arguments, after --")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Runs the program as a follower until it ends."""
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        raise SettingsError("no program to run: telegram-bus follower --name NAME -- COMMAND …")
    if not arguments.name.strip():
        raise SettingsError("--name is empty: give the thread a name")
    if arguments.jsonl and arguments.pty:
        raise SettingsError("--jsonl and --pty do not go together: JSON lines travel through pipes")
    parent = os.environ.get(PARENT_VARIABLE)
    if parent:
        raise SettingsError(
            f"this runs inside the follower {parent!r} (${PARENT_VARIABLE}), which has a thread already\n"
            f"for one more, unset the variable: env -u {PARENT_VARIABLE} telegram-bus follower …"
        )
    # the rest of the program is only worth loading now
    import trio  # noqa: PLC0415

    from telegram_bus.cli.program import find_program  # noqa: PLC0415

    find_program(command, os.environ)  # a mistyped name shall not make a thread
    return trio.run(_follow, profile_of(arguments), arguments, command)


async def _follow(profile: Profile, arguments: argparse.Namespace, command: list[str]) -> int:
    import trio  # noqa: PLC0415

    from telegram_bus.agent import join  # noqa: PLC0415
    from telegram_bus.cli.program import open_program  # noqa: PLC0415
    from telegram_bus.cli.wrapping import serve_program  # noqa: PLC0415

    log.setup(logging.WARNING)
    logging.getLogger("telegram_bus.roles.member").setLevel(logging.ERROR)  # the states that we show say the same
    title = Path(command[0]).name
    code = faults.DONE
    with (
        trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals,
        trio.CancelScope() as everything,
        ExitStack() as files,
    ):
        async with join(
            arguments.name,
            profile=profile.name,
            home=profile.home.root,
            start_leader=not arguments.no_start,
        ) as bus:
            secrets = profile_secrets(profile, os.environ)
            log.hide(*secrets)
            environ = child_environment(os.environ, profile=profile, key=bus.key, secrets=secrets)
            errors = files.enter_context(_log_of_errors(profile, bus.key)) if not sys.stderr.isatty() else None
            async with (
                open_program(command, environ=environ, terminal=arguments.pty, errors=errors) as program,
                trio.open_nursery() as nursery,
            ):
                stopping = _Stopping(program, everything)
                nursery.start_soon(stopping.watch, signals)
                nursery.start_soon(_tell_states, bus)
                if arguments.jsonl:
                    from telegram_bus.cli.jsonl import serve_jsonl  # noqa: PLC0415

                    status = await serve_jsonl(bus, program)
                else:
                    status = await serve_program(bus, program, title)
                say(f"{title} {ending(status)}")
                code = faults.DONE if status == 0 or stopping.asked else faults.FAILED
                nursery.cancel_scope.cancel("the program ended")
    return code


class _Stopping:
    """What the signals do: the first one ends the program in order, a second one everything at once."""

    def __init__(self, program: Program, everything: Any) -> None:
        self.asked = False
        self._program = program
        self._everything = everything

    async def watch(self, signals: AsyncIterator[int]) -> None:
        """Waits for signals for ever."""
        import trio  # noqa: PLC0415

        async with trio.open_nursery() as nursery:
            async for _number in signals:
                if self.asked:
                    await self._program.end(grace=0)
                    self._everything.cancel("asked twice to stop")
                self.asked = True
                nursery.start_soon(self._end)

    async def _end(self) -> None:
        import trio  # noqa: PLC0415

        await self._program.end()
        self._everything.deadline = trio.current_time() + _LAST_WORDS


async def _tell_states(bus: Bus) -> None:
    async for state in bus.states():
        reason = f": {state.reason}" if state.reason else ""
        say(f"follower {bus.key}: {state.phase}{reason}")


def _log_of_errors(profile: Profile, key: str) -> IO[bytes]:
    path = profile.follower_dir(key) / "program.log"
    if path.exists() and path.stat().st_size > _LOG_LIMIT:
        path.replace(path.with_suffix(".log.1"))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    return os.fdopen(descriptor, "ab", buffering=0)
