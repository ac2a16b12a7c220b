"""Width and height of a picture, read from its header."""

from __future__ import annotations

import struct

__all__ = ["image_size"]

_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def image_size(content: bytes) -> tuple[int, int] | None:
    """Of a PNG, JPEG, GIF, WebP or BMP; None for anything else, a broken header too."""
    try:
        return _size(content)
    except (struct.error, IndexError):
        return None


def _size(content: bytes) -> tuple[int, int] | None:
    size: tuple[int, int] | None = None
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        size = struct.unpack(">II", content[16:24])
    elif content.startswith((b"GIF87a", b"GIF89a")):
        size = struct.unpack("<HH", content[6:10])
    elif content.startswith(b"\xff\xd8"):
        size = _jpeg(content)
    elif content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        size = _webp(content)
    elif content.startswith(b"BM"):
        width, height = struct.unpack("<ii", content[18:26])
        size = width, abs(height)
    return size


def _jpeg(content: bytes) -> tuple[int, int] | None:
    at = 2
    while content[at] == 0xFF:
        marker = content[at + 1]
        if marker == 0xFF:  # padding
            at += 1
        elif marker in _JPEG_FRAMES:
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return width, height
        else:
            at += 2 + struct.unpack(">H", content[at + 2 : at + 4])[0]
    return None


def _webp(content: bytes) -> tuple[int, int] | None:
    match content[12:16]:
        case b"VP8X":
            width, height = (int.from_bytes(content[at : at + 3], "little") + 1 for at in (24, 27))
        case b"VP8L":
            bits = int.from_bytes(content[21:25], "little")
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
            width, height = (value & 0x3FFF for value in struct.unpack("<HH", content[26:30]))
        case _:
            return None
    return width, height
