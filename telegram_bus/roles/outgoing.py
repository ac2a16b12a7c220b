"""What a program wants to send, as an open regular file: a path, bytes, or a file object."""

from __future__ import annotations

import io
import os
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

import trio

__all__ = ["Source", "opened"]

Source = str | os.PathLike[str] | bytes | IO[bytes]
"""A path, the content itself, or a binary file, which is sent from its position on."""


@asynccontextmanager
async def opened(source: Source, folder: Path) -> AsyncIterator[tuple[int, str | None]]:
    """A descriptor to read the content from, and the name that the source has; its position is free to be moved.

    What is no regular file is copied into a nameless one in `folder`. Raises OSError for a path that cannot be
    opened, TypeError for what is no source.
    """
    if isinstance(source, str | os.PathLike):
        descriptor = await trio.to_thread.run_sync(_open, source)
        try:
            yield descriptor, Path(source).name
        finally:
            os.close(descriptor)
        return
    if not isinstance(source, bytes | bytearray | memoryview) and not callable(getattr(source, "read", None)):
        raise TypeError(f"a file to send is a path, bytes or a binary file, not {type(source).__name__}")
    name = getattr(source, "name", None)
    shown = Path(name).name if isinstance(name, str) else None
    own = _descriptor_of(source)
    if own is not None:
        again = _opened_again(own)
        try:
            yield own if again is None else again, shown
        finally:
            if again is None:
                os.lseek(own, 0, os.SEEK_SET)
            else:
                os.close(again)
        return
    with await trio.to_thread.run_sync(_copy, source, folder) as copy:
        yield copy.fileno(), shown


def _open(path: str | os.PathLike[str]) -> int:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a fifo must not hold us up
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{os.fspath(path)!r} is no regular file")
    return descriptor


def _descriptor_of(source: object) -> int | None:
    """The descriptor of a file object that may be read as it is: a regular file at its beginning."""
    if not isinstance(source, io.FileIO | io.BufferedReader | io.BufferedRandom):
        return None
    try:
        if source.tell() or not source.readable() or not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
            return None
        source.flush()
    except OSError:
        return None
    return source.fileno()


def _opened_again(descriptor: int) -> int | None:
    """The same file with a position of its own; None where that cannot be had."""
    try:
        return os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def _copy(source: bytes | IO[bytes], folder: Path) -> IO[bytes]:
    made = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - the caller closes it
    try:
        if isinstance(source, bytes | bytearray | memoryview):
            made.write(source)
        else:
            shutil.copyfileobj(source, made, 1 << 20)
        made.flush()
    except BaseException:
        made.close()
        raise
    return made
