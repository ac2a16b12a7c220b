"""The one place that turns faults into exit codes and into words for a person."""

from __future__ import annotations

import os
import re
import sys
from typing import Final

from telegram_bus.core.errors import BusError, NoLeader, RequestRefused, SettingsError

__all__ = [
    "DONE",
    "FAILED",
    "INTERRUPTED",
    "NO_LEADER",
    "REFUSED",
    "TIME_OVER",
    "USAGE",
    "as_called",
    "called_with",
    "exit_code",
    "report",
    "say",
]

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
NO_LEADER: Final = 3
REFUSED: Final = 4
TIME_OVER: Final = 5
INTERRUPTED: Final = 130
"""128 + SIGINT, as shells have it."""

_CODES: Final = (
    (KeyboardInterrupt, INTERRUPTED),
    (SettingsError, USAGE),
    (NoLeader, NO_LEADER),
    (RequestRefused, REFUSED),
    (TimeoutError, TIME_OVER),
    ((BusError, OSError), FAILED),
)
"""The first match counts: a time that is over is an OSError too."""


def exit_code(error: BaseException) -> int | None:
    """The exit code of a fault that is expected; None for one that shows a mistake in the program."""
    trio = sys.modules.get("trio")  # only a command that uses Trio can have run into its time limit
    if trio is not None and isinstance(error, trio.TooSlowError):
        return TIME_OVER
    return next((code for kinds, code in _CODES if isinstance(error, kinds)), None)


def report(error: BaseException) -> int:
    """Says what happened and returns the exit code; raises `error` again when it is none of the expected."""
    causes = _leaves(error)
    codes = [exit_code(cause) for cause in causes]
    if any(code is None for code in codes):
        raise error
    if any(isinstance(cause, BrokenPipeError) for cause in causes):
        return _reader_left()
    if INTERRUPTED in codes:
        return INTERRUPTED
    for cause in causes:
        say(_words(cause))
    return next(code for code in codes if code is not None)


def say(message: str) -> None:
    """A message of ours (several lines allowed) on stderr, which is never an answer to a question.

    What others said may stand in it, so control sequences are taken out.
    """
    from telegram_bus.cli.terminal import cleaned  # noqa: PLC0415 - most commands have nothing to say

    print(f"telegram-bus: {as_called(cleaned(message))}", file=sys.stderr, flush=True)  # noqa: T201


_COMMAND: Final = re.compile(r"\btelegram-bus(?= [a-z])")
_options: list[str] = []


def called_with(home: str | None, profile: str | None) -> None:
    """Remember which home and profile this command was told: the next step that is named shall go there too."""
    given = (("--home", home), ("--profile", profile))
    _options[:] = [word for option, value in given if value is not None for word in (option, value)]


def as_called(text: str) -> str:
    """`text` with these options in each command of ours that it names, so that a person can copy it."""
    if not _options:
        return text
    import shlex  # noqa: PLC0415 - for those who name a home or a profile

    whole = f"telegram-bus {shlex.join(_options)}"
    return _COMMAND.sub(lambda _: whole, text)


def _words(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        place = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{place}"
    return str(error) or ("the time is over" if exit_code(error) == TIME_OVER else type(error).__name__)


def _leaves(error: BaseException) -> list[BaseException]:
    """What a group of a nursery holds, without the groups."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for inner in error.exceptions for leaf in _leaves(inner)]


def _reader_left() -> int:
    """`telegram-bus logs | head`: nobody reads any more, which is no fault of anyone."""
    # the interpreter flushes stdout at its end, and would complain then
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return DONE
