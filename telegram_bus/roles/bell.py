"""A bell for followers without a leader: whoever stands by hangs it up, and rings when it can be found.

It is a socket that nobody serves: connections to it wait in the kernel, and end with the listening socket. So ringing
is one close, which a death does too, and waiting costs nothing: many followers leave the CPU to who takes over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio
from attrs import define

from telegram_bus.home import Profile
from telegram_bus.wire.endpoint import Endpoint, effective_public_path

__all__ = ["Bell", "listen", "open_bell"]


@define(eq=False)
class Bell:
    """The side of who stands by; `hang` may be called again."""

    profile: Profile
    _endpoint: Endpoint | None = None

    def hang(self) -> None:
        """From now on followers find the bell; only for who holds the lock of those that stand by.

        Raises StateError where it cannot be put there; followers then look for a leader by themselves.
        """
        if self._endpoint is None:
            self._endpoint = Endpoint(effective_public_path(self.profile.standby_socket))
        self._endpoint.ensure_published()

    def ring(self) -> None:
        """Wake who waits, once."""
        if self._endpoint is not None:
            self._endpoint.withdraw()
            self._endpoint.close()
            self._endpoint = None


@contextmanager
def open_bell(profile: Profile) -> Iterator[Bell]:
    """A bell that hangs nowhere yet; it rings at the end at the latest."""
    bell = Bell(profile)
    try:
        yield bell
    finally:
        bell.ring()


async def listen(profile: Profile) -> trio.SocketStream | None:
    """A stream that ends when the bell rings; None where none hangs. To be closed by the caller."""
    try:
        return await trio.open_unix_socket(str(effective_public_path(profile.standby_socket)))
    except (OSError, ValueError):
        return None
