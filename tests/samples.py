"""Contents that tests send, and how they are compared."""

from __future__ import annotations

import struct
import zlib

__all__ = ["png", "squeezed"]


def png(width: int, height: int) -> bytes:
    """A picture of that size, no two points of a small one alike."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(
        b"\0" + b"".join(bytes((x * 4 % 256, y * 6 % 256, 160)) for x in range(width)) for y in range(height)
    )
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def squeezed(text: str) -> str:
    """The text without white space: where a text is cut into messages, that is what may be lost."""
    return "".join(text.split())
