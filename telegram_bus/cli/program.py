"""A child process with its own process group, talked to through pipes or a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import shutil
import signal
import struct
import subprocess
import sys
import termios
from contextlib import asynccontextmanager, suppress
from typing import IO, TYPE_CHECKING, Final

import trio
from attrs import frozen

from telegram_bus.core.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

__all__ = ["GRACE", "Program", "find_program", "open_program"]

GRACE: Final = 3.0
"""Seconds between the polite signal and the other one."""

READ_SIZE: Final = 1 << 16
"""What a pipe holds on Linux."""

_LOOK: Final = 0.02
"""Seconds between two looks whether a process group is empty."""

_TERMINAL_SIZE: Final = (50, 200)
"""Rows and columns: wide, since a chat wraps lines itself and what the program wraps stays wrapped."""

_TAKE_TERMINAL: Final = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[2:])"
)
"""Only the new process itself can take its controlling terminal, and a `preexec_fn` is unsafe beside threads."""


@frozen(kw_only=True, eq=False)
class Program:
    """A running child and both ends of its text."""

    process: trio.Process
    _input: trio.lowlevel.FdStream
    _output: trio.lowlevel.FdStream
    _is_terminal: bool

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    async def write(self, text: str) -> bool:
        """Writes to its stdin; whether the program got it all: it lives, or read everything before its end.

        There is no checkpoint between the writing and the return.
        """
        try:
            await self._input.send_all(text.encode("utf-8", "replace"))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return False
        return self.alive or self._unread() == 0

    def _unread(self) -> int | None:
        """How many bytes wait in the pipe of its stdin; None for a terminal, which does not tell."""
        if self._is_terminal:
            return None
        answer = fcntl.ioctl(self._input.fileno(), termios.FIONREAD, struct.pack("i", 0))
        return int(struct.unpack("i", answer)[0])

    async def read(self) -> bytes:
        """The next output, waiting for it; empty when nobody can write any more."""
        try:
            return bytes(await self._output.receive_some(READ_SIZE))
        except trio.BrokenResourceError:
            return b""  # a pseudo-terminal without a program says EIO

    async def wait(self) -> int:
        """The exit status, or minus the number of the signal that ended it."""
        return await self.process.wait()

    async def end(self, grace: float = GRACE) -> None:
        """Ends the program and what is left of its process group: politely, and after `grace` seconds surely."""
        group = self.process.pid
        with trio.move_on_after(grace):
            # a stopped process takes no signal before it goes on
            if _signal(group, signal.SIGTERM) and _signal(group, signal.SIGCONT):
                await self.process.wait()
                while _signal(group, 0):  # noqa: ASYNC110 - nothing tells when a group is empty
                    await trio.sleep(_LOOK)
        _signal(group, signal.SIGKILL)
        with trio.CancelScope(shield=True):
            await self.process.wait()


def find_program(command: Sequence[str], environ: Mapping[str, str]) -> str:
    """The path of the program that `command` names; raises SettingsError where there is none."""
    name = command[0]
    found = shutil.which(name, path=environ.get("PATH", os.defpath))
    if found is None:
        why = "it is not executable" if os.sep in name and os.path.exists(name) else "there is no such program"  # noqa: PTH110
        raise SettingsError(f"cannot run {name!r}: {why}")
    return os.path.abspath(found)  # noqa: PTH100 - the child sees the path that was named, symlinks and all


@asynccontextmanager
async def open_program(
    command: Sequence[str], *, environ: Mapping[str, str], terminal: bool, errors: IO[bytes] | None
) -> AsyncIterator[Program]:
    """Runs `command` until the block ends; its process group ends with it.

    stderr goes to `errors`, or where ours goes. Raises SettingsError when it cannot be started.
    """
    path = find_program(command, environ)
    start = _start_on_terminal if terminal else _start_on_pipes
    try:
        program = await start(path, command, environ, errors)
    except OSError as error:
        raise SettingsError(f"cannot run {command[0]!r}: {error.strerror}") from error
    try:
        yield program
    finally:
        with trio.CancelScope(shield=True):
            await program.end()
            await trio.aclose_forcefully(program._input)  # noqa: SLF001 - made here
            await trio.aclose_forcefully(program._output)  # noqa: SLF001


async def _start_on_pipes(
    path: str, command: Sequence[str], environ: Mapping[str, str], errors: IO[bytes] | None
) -> Program:
    process = await trio.lowlevel.open_process(
        list(command),
        executable=path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=dict(environ),
        start_new_session=True,
    )
    assert isinstance(process.stdin, trio.lowlevel.FdStream)
    assert isinstance(process.stdout, trio.lowlevel.FdStream)
    return Program(process=process, input=process.stdin, output=process.stdout, is_terminal=False)


async def _start_on_terminal(
    path: str, command: Sequence[str], environ: Mapping[str, str], errors: IO[bytes] | None
) -> Program:
    ours, theirs = pty.openpty()
    try:
        _set_up(theirs)
        process = await trio.lowlevel.open_process(
            [sys.executable, "-ISc", _TAKE_TERMINAL, path, *command],
            stdin=theirs,
            stdout=theirs,
            stderr=errors,
            env=dict(environ) | {"TERM": "dumb"},
            start_new_session=True,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    stream = trio.lowlevel.FdStream(ours)
    return Program(process=process, input=stream, output=stream, is_terminal=True)


def _set_up(terminal: int) -> None:
    """No echo, which would come back as a message, and no line mode, which cuts lines after 4,095 bytes."""
    settings = termios.tcgetattr(terminal)
    settings[1] &= ~termios.OPOST
    settings[3] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON)
    termios.tcsetattr(terminal, termios.TCSANOW, settings)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *_TERMINAL_SIZE, 0, 0))


def _signal(group: int, number: int) -> bool:
    """Signals the group; whether anybody is in it."""
    with suppress(ProcessLookupError):
        # macOS says EPERM for a group of zombies
        with suppress(PermissionError):
            os.killpg(group, number)
        return True
    return False
