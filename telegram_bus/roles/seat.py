"""The place that one follower process holds: a key, a lock that proves it, and the files below it."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from attrs import frozen

from telegram_bus import home, host
from telegram_bus.core import threads
from telegram_bus.core.errors import StateError
from telegram_bus.locks import FileLock

__all__ = ["HeldSeat", "hold_seat"]

MAX_SAME_NAME: Final = 1_000
"""So many live processes may share one name; more is a program that starts itself again and again."""


@frozen(kw_only=True)
class HeldSeat:
    """One live process under one key; `instance_id` is new for each process and each joining."""

    key: str
    instance_id: str
    pid: int
    birth_id: str | None


@contextmanager
def hold_seat(profile: home.Profile, name: str) -> Iterator[HeldSeat]:
    """Hold the first free key for `name` (`builder`, `builder-2`, …) until the block ends.

    The lock is on `inbox.lock`: whoever can take it knows that the last owner is dead. Raises StateError where no
    lock can be had at all.
    """
    key, lock = _first_free(profile, threads.slug(name))
    pid = os.getpid()
    with lock:
        yield HeldSeat(
            key=key,
            instance_id=f"{key}:{pid}:{time.time_ns() // 1_000_000}:{secrets.token_hex(4)}",
            pid=pid,
            birth_id=host.process_birth_id(pid),
        )


def _first_free(profile: home.Profile, base: str) -> tuple[str, FileLock]:
    for number in range(1, MAX_SAME_NAME + 1):
        key = threads.free_key(base, number)
        profile.ensure_follower(key)
        lock = FileLock.try_lock(profile.inbox_lock(key))
        if lock is not None:
            return key, lock
    raise StateError(f"{MAX_SAME_NAME} live processes are called {base!r} already; give this one another name")
