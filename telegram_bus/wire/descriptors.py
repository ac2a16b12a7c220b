"""Open files that travel beside a line: how they are packed, what is accepted, and who closes them."""

from __future__ import annotations

import array
import fcntl
import os
import socket
import stat
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from attrs import define, field

from telegram_bus.core.errors import BusError

__all__ = ["CONTROL_SIZE", "MAX_DESCRIPTORS", "RECEIVE_FLAGS", "Descriptors", "TooManyDescriptors", "pack", "unpack"]

MAX_DESCRIPTORS: Final = 10
"""Beside one line: an album has ten files."""

CONTROL_SIZE: Final = socket.CMSG_SPACE(MAX_DESCRIPTORS * array.array("i").itemsize)
RECEIVE_FLAGS: Final = getattr(socket, "MSG_CMSG_CLOEXEC", 0)  # macOS has none: there it is set afterwards


class TooManyDescriptors(BusError):
    """A peer sent more open files than a line may bring; all of them are closed."""


@define(eq=False)
class Descriptors:
    """Descriptors of regular files, closed at the end of `close` unless somebody took them; used in order."""

    _numbers: list[int] = field(factory=list)
    refused: bool = False
    """Whether one of them was no regular file; then it holds none."""

    def __len__(self) -> int:
        return len(self._numbers)

    def take(self) -> list[int]:
        """Hand them over to a caller who closes them from now on."""
        taken, self._numbers = self._numbers, []
        return taken

    def numbers(self) -> tuple[int, ...]:
        """The descriptors, which stay here."""
        return tuple(self._numbers)

    def close(self) -> None:
        """Close what nobody took. Harmless when repeated."""
        for number in self.take():
            with suppress(OSError):
                os.close(number)

    @classmethod
    def duplicates(cls, numbers: Sequence[int]) -> Descriptors:
        """Duplicates, so that their owner may close the originals at any time; raises OSError."""
        made = cls()
        try:
            for number in numbers:
                made._numbers.append(fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 0))
        except BaseException:
            made.close()
            raise
        return made


def pack(descriptors: Descriptors) -> list[tuple[int, int, array.array[int]]]:
    """The ancillary data of a sendmsg."""
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors.numbers()))]


def unpack(ancillary: Sequence[tuple[int, int, bytes]], flags: int) -> Descriptors:
    """What a recvmsg brought, not to be inherited by children.

    Of what is no regular file (a socket, a pipe, a terminal) nothing is kept. Raises TooManyDescriptors.
    """
    numbers = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            numbers.frombytes(data[: len(data) - len(data) % numbers.itemsize])
    found = Descriptors(list(numbers))
    if flags & socket.MSG_CTRUNC or len(found) > MAX_DESCRIPTORS:
        found.close()
        raise TooManyDescriptors(f"more than {MAX_DESCRIPTORS} open files came beside one line")
    for number in found.numbers():
        os.set_inheritable(number, False)
    if not all(stat.S_ISREG(os.fstat(number).st_mode) for number in found.numbers()):
        found.close()
        found.refused = True
    return found
