"""Files on their way to and from Telegram: open descriptors as parts of a form, in pieces, never whole in memory."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import Final

import httpx
import trio
from attrs import define, frozen

from telegram_bus.core.errors import RequestRefused

__all__ = ["PIECE", "FileBody", "Upload", "as_form_files", "seconds_for"]

PIECE: Final = 256 * 1024
"""Bytes read or written at once, in a worker thread: a disk may be slow."""

SLOWEST: Final = 64 * 1024
"""Bytes a second of an upload or download that is still worth waiting for."""


@frozen(kw_only=True)
class Upload:
    """An open regular file as a field of a form. Its first `size` bytes are sent.

    Its position says how many were: whoever passed the descriptor shares it, and sees how far the file is.
    """

    field: str
    name: str
    descriptor: int
    size: int


def seconds_for(size: int) -> float:
    """How much longer a call may take that carries so many bytes."""
    return size / SLOWEST


@define(eq=False)
class _Reader:
    """A file object for HTTPX, which asks it for its size by seeking. `pread` depends on nobody's position."""

    _upload: Upload
    _at: int = 0

    def read(self, size: int = -1) -> bytes:
        left = self._upload.size - self._at
        wanted = left if size < 0 else min(size, left)
        try:
            data = os.pread(self._upload.descriptor, wanted, self._at) if wanted else b""
        except OSError as error:  # a disk that fails: what is under way is cut off, and nobody can have taken it whole
            raise RequestRefused(f"{self._upload.name} cannot be read: {error.strerror}") from error
        if len(data) < wanted and not data:
            raise RequestRefused(f"{self._upload.name} became shorter while it was being sent")
        self._at += len(data)
        os.lseek(self._upload.descriptor, self._at, os.SEEK_SET)
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at}.get(whence, self._upload.size)
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at


def as_form_files(uploads: tuple[Upload, ...]) -> dict[str, tuple[str, _Reader]]:
    """The files in the way in which HTTPX takes them; each attempt needs them anew."""
    return {one.field: (one.name, _Reader(one)) for one in uploads}


class FileBody(httpx.AsyncByteStream):
    """A form with files, made in a worker thread piece by piece while it is sent."""

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts

    def __aiter__(self) -> FileBody:
        return self

    async def __anext__(self) -> bytes:
        piece = await trio.to_thread.run_sync(self._next)
        if not piece:
            raise StopAsyncIteration
        return piece

    def _next(self) -> bytes:
        collected = io.BytesIO()
        while collected.tell() < PIECE and (part := next(self._parts, None)) is not None:
            collected.write(part)
        return collected.getvalue()
