"""A place where a server can be found: a private socket of this process, published by a symlink."""

from __future__ import annotations

import os
import secrets
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import trio

from telegram_bus.core.errors import StateError
from telegram_bus.wire.paths import PRIVATE_PATH_MAX, effective_public_path

__all__ = ["BACKLOG", "Endpoint", "effective_public_path", "open_endpoint"]

BACKLOG: Final = 4096  # 511 made a quarter of 1,000 simultaneous registrations fail; the kernel caps it itself
DIRECTORY_MODE: Final = 0o700
SOCKET_MODE: Final = 0o600
OTHERS: Final = 0o077
TOKEN_BYTES: Final = 8  # of a private path's suffix: 17 characters with its dot, so it has 97 bytes at most
UNBORN: Final = "~"  # what is bound but does not listen yet ends in this


@contextmanager
def open_endpoint(public: str | os.PathLike[str], *, fallback: Path | None = None) -> Iterator[Endpoint]:
    """Listen on a private path beside `public`; who has the right to publishes it (`Endpoint.publish`).

    A path that is too long is replaced (`effective_public_path`). At the end only the private path is removed,
    so a successor's endpoint never is. Raises StateError where the directory is not ours alone.
    """
    endpoint = Endpoint(effective_public_path(public, fallback))
    try:
        yield endpoint
    finally:
        endpoint.close()


class Endpoint:
    """A listening socket (`listener`), its own path (`private`) and the one that others know (`public`)."""

    def __init__(self, public: Path) -> None:
        self.public = public
        _ensure_directory(public.parent)
        _remove_orphans(public)
        self.listener, self.private = _listen(public)
        self._identity = _identity_of(self.private)

    def publish(self) -> None:
        """Put a symlink to the private path in the place of whatever is at the public one, atomically.

        To be called only by who has the right to (the lease, the follower's lock). Raises StateError.
        """
        link = self.public.with_name(f".{self.public.name}.{secrets.token_hex(TOKEN_BYTES)}")
        try:
            link.symlink_to(self.private.name)  # relative: the directory may be seen under another path
            try:
                link.replace(self.public)
            except BaseException:
                link.unlink()
                raise
        except OSError as error:
            raise StateError(f"cannot publish the endpoint {self.public}: {error.strerror}") from error

    def ensure_published(self) -> bool:
        """Publish again, under the same condition, if something removed or replaced a path; True when it had to.

        A private path that is gone too (a cleaner of temporary files) is replaced by a new one under the same
        descriptor; connections that waited to be accepted are lost. Call it inside trio. Raises StateError.
        """
        if not self._owns_private():
            _ensure_directory(self.public.parent)
            self._renew()
        elif _link_of(self.public) == self.private.name:
            return False
        self.publish()
        return True

    def withdraw(self) -> None:
        """Remove the public path if it leads here, so that nothing is left behind.

        Only for who holds a lock that keeps others from publishing meanwhile (the lease, the follower's lock).
        """
        if _link_of(self.public) == self.private.name:
            with suppress(OSError):  # on a disk that can only be read it stays: a link to nowhere counts as missing
                self.public.unlink(missing_ok=True)

    def close(self) -> None:
        """Stop listening and remove the private path, if it is still ours."""
        owned = self._owns_private()
        self.listener.close()
        if owned:
            with suppress(OSError):  # the next one removes what refuses connections
                self.private.unlink(missing_ok=True)

    def _owns_private(self) -> bool:
        return _identity_of(self.private) == self._identity

    def _renew(self) -> None:
        fresh, self.private = _listen(self.public)
        self._identity = _identity_of(self.private)
        with fresh:
            trio.lowlevel.notify_closing(self.listener)  # who waits on the old socket begins to wait on the new
            os.dup2(fresh.fileno(), self.listener.fileno(), inheritable=False)


def _listen(public: Path) -> tuple[socket.socket, Path]:
    private = public.with_name(f"{public.name}.{secrets.token_hex(TOKEN_BYTES)}")
    if len(os.fsencode(private)) + len(UNBORN) > PRIVATE_PATH_MAX:
        raise StateError(f"the socket path {private} has more than {PRIVATE_PATH_MAX} bytes: choose a shorter one")
    unborn = private.with_name(private.name + UNBORN)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.setblocking(False)
        listener.bind(os.fsencode(unborn))
        unborn.chmod(SOCKET_MODE)
        listener.listen(BACKLOG)
        unborn.rename(private)  # only now: whatever has a private name and refuses connections is an orphan
    except OSError as error:
        listener.close()
        unborn.unlink(missing_ok=True)
        raise StateError(f"cannot listen on {private}: {error.strerror or error}") from error
    return listener, private


def _ensure_directory(directory: Path) -> None:
    """Make the directory, or find it ours alone; one that is open to others is not mended but refused.

    It may be anything that someone named: to change the mode of /tmp, or to trust what somebody else put there,
    would be worse than to stop.
    """
    try:
        directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        found = directory.lstat()
    except OSError as error:
        raise StateError(f"cannot make the directory {directory} for sockets: {error.strerror}") from error
    _check_directory(directory, found, os.geteuid())


def _check_directory(directory: Path, found: os.stat_result, uid: int) -> None:
    if not stat.S_ISDIR(found.st_mode):
        raise StateError(f"{directory}, a directory for sockets, is a symbolic link: remove it")
    if found.st_uid != uid:
        raise StateError(
            f"{directory}, a directory for sockets, belongs to user {found.st_uid}, not to us: "
            "have it removed, or choose another place for the socket"
        )
    if found.st_mode & OTHERS:
        raise StateError(
            f"others may enter {directory}, a directory for sockets: chmod 700 it if it is for nothing else, "
            "or choose another place for the socket"
        )


def _remove_orphans(public: Path) -> None:
    """Remove the private sockets that earlier processes left here when they were killed."""
    prefix = f"{public.name}."
    for path in public.parent.iterdir():
        if path.name.startswith(prefix) and len(path.name) == len(prefix) + 2 * TOKEN_BYTES and _refuses(path):
            path.unlink(missing_ok=True)


def _refuses(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # a full backlog is no refusal
        try:
            probe.connect(os.fsencode(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def _identity_of(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _link_of(path: Path) -> str | None:
    try:
        return str(path.readlink())
    except OSError:  # missing, or no link
        return None
