"""Byte streams as lines: what has been read is copied once, never searched twice, and bounded."""

from __future__ import annotations

from telegram_bus.core.errors import LineTooLong

__all__ = ["LineSplitter"]


class LineSplitter:
    r"""Cuts a stream into the lines that end in "\n" (and at nothing else).

    `limit` is the most bytes a line may have without its end; it may be set anew at any time.
    """

    __slots__ = ("_half", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._half = bytearray()  # the begin of a line whose end has not come; it holds no "\n"

    @property
    def pending(self) -> int:
        """How many bytes of an unfinished line are kept."""
        return len(self._half)

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes of the stream; return the lines they complete, without their ends.

        Raises LineTooLong for a line over the limit, finished or not. The stream is then lost, and so are
        the lines of this call: close it.
        """
        half = self._half
        suspicious = len(half) + len(data) > self.limit  # else nothing in it can be too long
        if b"\n" not in data:
            if suspicious:
                raise LineTooLong(f"a line has more than {self.limit} bytes and still no end")
            half += data
            return []
        lines = data.split(b"\n")
        rest = lines.pop()
        if half:
            half += lines[0]
            lines[0] = bytes(half)
            half = self._half = bytearray()  # a new one: clearing would keep the memory of a long line
        if suspicious and max(len(rest), *map(len, lines)) > self.limit:
            raise LineTooLong(f"a line has more than {self.limit} bytes")
        half += rest
        return lines
