"""Opening a file that a peer named by its path: a regular one, below an allowed directory, past no symbolic link."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from telegram_bus.core.errors import RequestRefused

__all__ = ["open_below"]

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a fifo must not hold us up


def open_below(path: str, roots: Sequence[Path], forbidden: Path) -> int:
    """A descriptor of the file; each directory on the way is opened from the one before, and none is a link.

    `roots` are what it has to lie below; only the last of them may lie in `forbidden`. Raises RequestRefused, which
    says no more of other places than that they are not allowed.
    """
    for number, root in enumerate(roots):
        real = Path(os.path.realpath(root))
        for base in {root, real}:
            below = _below(path, base)
            if below is not None:
                private = None if number == len(roots) - 1 else _identity(forbidden)
                return _walk([*real.parts[1:], *below], path, private)
    allowed = " or ".join(str(root) for root in roots)
    raise RequestRefused(f"the file to upload must lie in {allowed}; {path[:200]!r} does not")


def _below(path: str, root: Path) -> list[str] | None:
    """The components of `path` behind `root`, none of them `..`."""
    prefix = str(root).rstrip("/") + "/"
    if not path.startswith(prefix) or "\0" in path:
        return None
    parts = [part for part in path[len(prefix) :].split("/") if part not in ("", ".")]
    return parts if parts and ".." not in parts else None


def _identity(directory: Path) -> tuple[int, int] | None:
    try:
        found = directory.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _walk(parts: Iterable[str], path: str, private: tuple[int, int] | None) -> int:
    *directories, name = parts
    at = os.open("/", _DIRECTORY)
    try:
        for directory in directories:
            at, before = _open(directory, _DIRECTORY, at, path), at
            os.close(before)
            found = os.fstat(at)
            if (found.st_dev, found.st_ino) == private:
                raise RequestRefused(f"{path!r} lies among the files of the bus, which are not for uploading")
        file = _open(name, _FILE, at, path)
    finally:
        os.close(at)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise RequestRefused(f"{path!r} is no regular file")
    return file


def _open(name: str, flags: int, at: int, path: str) -> int:
    try:
        return os.open(name, flags, dir_fd=at)
    except OSError as error:
        raise RequestRefused(
            f"cannot open {path!r} at {name!r}: {error.strerror} (symbolic links are not followed)"
        ) from error
