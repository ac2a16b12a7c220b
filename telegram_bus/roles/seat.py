"""The place that one follower process holds: a key, a lock that proves it, and the files below it."""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from weakref import WeakSet

from attrs import field, frozen

from telegram_bus import home, host
from telegram_bus.core import threads
from telegram_bus.core.errors import StateError

__all__ = ["HeldSeat", "hold_seat", "seat_is_held"]

MAX_SAME_NAME: Final = 1_000
"""So many live processes may share one name; more is a program that starts itself again and again."""


@frozen(kw_only=True, eq=False)
class HeldSeat:
    """One live process under one key; `instance_id` is new for each process and each joining."""

    key: str
    instance_id: str
    pid: int
    birth_id: str | None
    _lock: _LockFile = field(repr=False)


class _LockFile:
    """An open, locked file; a child forked without exec drops it, or the parent would seem to live on."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        _held.add(self)

    def close(self) -> None:
        _held.discard(self)
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


_held: WeakSet[_LockFile] = WeakSet()


def _drop_in_child() -> None:
    for lock in list(_held):
        lock.close()


os.register_at_fork(after_in_child=_drop_in_child)


def _try_lock(path: os.PathLike[str]) -> int | None:
    """Lock the file at `path` without waiting; None where another process holds it.

    Raises StateError where the file system has no locks.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        ours, there = os.fstat(descriptor), os.stat(path)
    except (BlockingIOError, FileNotFoundError):
        os.close(descriptor)
        return None
    except OSError as error:
        os.close(descriptor)
        raise StateError(
            f"{os.fspath(path)} cannot be locked ({error.strerror}); put TELEGRAM_BUS_HOME on a local file system"
        ) from error
    if (ours.st_dev, ours.st_ino) != (there.st_dev, there.st_ino):
        os.close(descriptor)  # somebody removed the file between: what we hold proves nothing
        return None
    return descriptor


def seat_is_held(profile: home.Profile, key: str) -> bool:
    """Whether a live process holds this seat; False is the proof that its last owner is dead."""
    path = profile.inbox_lock(key)
    if not path.exists():
        return False
    descriptor = _try_lock(path)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


@contextmanager
def hold_seat(profile: home.Profile, name: str) -> Iterator[HeldSeat]:
    """Hold the first free key for `name` (`builder`, `builder-2`, …) until the block ends.

    Raises StateError where no lock can be had at all.
    """
    base = threads.slug(name)
    for number in range(1, MAX_SAME_NAME + 1):
        key = threads.free_key(base, number)
        profile.ensure_follower(key)
        descriptor = _try_lock(profile.inbox_lock(key))
        if descriptor is not None:
            break
    else:
        raise StateError(f"{MAX_SAME_NAME} live processes are called {name!r} already; give this one another name")
    lock = _LockFile(descriptor)
    pid = os.getpid()
    try:
        yield HeldSeat(
            key=key,
            instance_id=f"{key}:{pid}:{time.time_ns() // 1_000_000}:{secrets.token_hex(4)}",
            pid=pid,
            birth_id=host.process_birth_id(pid),
            lock=lock,
        )
    finally:
        with suppress(OSError):
            lock.close()
