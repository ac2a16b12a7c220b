"""Exclusive locks on files that free themselves at the instant of death, and notice when their file was replaced."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, Self
from weakref import WeakSet

from telegram_bus import host
from telegram_bus.core.errors import StateError

__all__ = ["FileLock"]

NETWORK_FILE_SYSTEMS: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ncpfs", "fuse.sshfs"})
"""Where a lock binds one machine only, or outlives its holder until the server notices."""

NO_LOCKS: Final = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL})


class FileLock:
    """A held `flock`; `close` frees it. A child forked without exec drops it, so it dies with the process.

    The file stays when the lock is freed: removing it would let two processes hold "the" lock.
    """

    __slots__ = ("__weakref__", "descriptor", "path")

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor
        _held.add(self)

    @classmethod
    def try_lock(cls, path: Path) -> FileLock | None:
        """Lock the file at `path` (made where it is missing) without waiting; None where somebody holds it.

        Raises StateError where the file cannot be opened or its file system has no (local) locks.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StateError(f"cannot open the lock file {path}: {error.strerror}") from error
        lock = cls(path, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # removed between open and lock: what we hold proves nothing
            usable = lock.is_intact() and _is_local(path, descriptor)
        except BlockingIOError:
            usable = False
        except OSError as error:
            lock.close()
            if error.errno in NO_LOCKS:
                raise StateError(f"the file system of {path} has no locks ({error.strerror}): {_CURE}") from error
            raise StateError(f"cannot lock {path}: {error.strerror}") from error
        except BaseException:
            lock.close()
            raise
        if usable:
            return lock
        lock.close()
        return None

    @classmethod
    def is_held(cls, path: Path) -> bool:
        """Whether somebody (this process too) holds the lock at this moment. Raises StateError as `try_lock` does."""
        lock = cls.try_lock(path)
        if lock is None:
            return True
        lock.close()
        return False

    def is_intact(self) -> bool:
        """Whether the locked file is still the one at its path; where it is not, a second holder may be there.

        Raises OSError where that cannot be found out.
        """
        try:
            there = self.path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        ours = os.fstat(self.descriptor)
        return (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino)

    def touch(self) -> None:
        """Renew the lease: set the file's times to now. Needs no space on the disk."""
        os.utime(self.descriptor)

    def write_note(self, note: str) -> None:
        """Leave a text in the file for whoever finds it locked."""
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, note.encode(errors="surrogateescape"), 0)

    def close(self) -> None:
        """Free the lock; does nothing the second time."""
        _held.discard(self)
        if self.descriptor >= 0:
            descriptor, self.descriptor = self.descriptor, -1
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_CURE: Final = "put TELEGRAM_BUS_HOME (and the user's state directory) on a local disk"
_held: WeakSet[FileLock] = WeakSet()


def _is_local(path: Path, descriptor: int) -> bool:
    kind = host.file_system(descriptor)
    if kind in NETWORK_FILE_SYSTEMS:
        raise StateError(f"{path} lies on {kind}, whose locks do not end with their holder: {_CURE}")
    return True


def _drop_in_child() -> None:
    for lock in tuple(_held):
        with suppress(OSError):
            lock.close()  # closing a copy leaves the parent's lock alone, unlike unlocking


os.register_at_fork(after_in_child=_drop_in_child)
