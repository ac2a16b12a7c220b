"""Where the sockets of the bus lie: paths that fit into a socket address."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

__all__ = ["PRIVATE_PATH_MAX", "PUBLIC_PATH_MAX", "effective_public_path", "fallback_directory"]

PUBLIC_PATH_MAX: Final = 80  # bytes (protocol section 1): leaves room for the suffix of a private path
PRIVATE_PATH_MAX: Final = 103  # bytes: sun_path of macOS holds 104 with the end, that of Linux 108
DIGITS: Final = 16  # of the hash that stands for a long path


def fallback_directory() -> Path:
    """The directory of sockets whose paths are too long; never below $TMPDIR, which may differ or be long."""
    return Path(f"/tmp/telegram-bus-{os.geteuid()}")  # noqa: S108 - who opens an endpoint there checks its owner


def effective_public_path(path: str | os.PathLike[str], fallback: Path | None = None) -> Path:
    """Where the endpoint `path` really is: there, or in `fallback` (ours in /tmp) when it is too long."""
    absolute = os.path.abspath(path)  # noqa: PTH100 - Path.absolute() keeps "..", and then two names have two hashes
    encoded = os.fsencode(absolute)
    if len(encoded) <= PUBLIC_PATH_MAX:
        return Path(absolute)
    return (fallback or fallback_directory()) / f"{hashlib.sha256(encoded).hexdigest()[:DIGITS]}.sock"
