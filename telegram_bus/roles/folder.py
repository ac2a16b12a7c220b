"""A follower's folder of files: how one gets in whole, under a harmless name that no other has."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Final

from telegram_bus.core.errors import StateError
from telegram_bus.core.files import numbered, safe_name

__all__ = ["begin_file", "finish_file", "sweep"]

MOST_NAMES: Final = 1_000
"""So many files may share one name."""


def begin_file(directory: Path) -> tuple[int, Path]:
    """A new empty file in the directory, open for writing, under a temporary name. Raises StateError."""
    path = directory / f".{secrets.token_hex(8)}.part"
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), path
    except OSError as error:
        raise StateError(f"cannot make a file in {directory}: {error.strerror}") from error


def finish_file(temporary: Path, name: str) -> Path:
    """Give the file its name, or that with a number where it is taken; returns the path. Raises StateError."""
    wanted = safe_name(name)
    for number in range(1, MOST_NAMES + 1):
        path = temporary.with_name(numbered(wanted, number))
        try:
            _name(temporary, path)
        except FileExistsError:
            continue
        except OSError as error:
            raise StateError(f"cannot make {path}: {error.strerror}") from error
        return path
    raise StateError(f"{MOST_NAMES} files in {temporary.parent} are called {wanted!r}: delete some")


def sweep(directory: Path) -> None:
    """Delete what an earlier process had begun to fetch; only for who holds the follower's lock."""
    for left in directory.glob(".*.part"):
        left.unlink(missing_ok=True)


def _name(temporary: Path, path: Path) -> None:
    """Move the file to `path`; raises FileExistsError where there is one, as a rename does not."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        temporary.replace(path)
    else:
        temporary.unlink()
