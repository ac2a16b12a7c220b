"""Files on their way to followers: located, held to the limits, fetched, and gone on with where that broke off."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import trio
from attrs import define, field, frozen

from telegram_bus.botapi.polling import backoff
from telegram_bus.core.errors import AnswerLost, ApiError, NotSent, RequestRefused, SettingsError, StateError
from telegram_bus.roles.folder import begin_file, finish_file
from telegram_bus.wire.descriptors import Descriptors

__all__ = ["MB", "Call", "Downloads", "Fetching", "FileLimits", "mb"]

MB: Final = 1_000_000
AT_ONCE: Final = 4  # downloads
TRIES: Final = 4
FOLDER: Final = 1_000 * MB
TELEGRAMS: Final = "api.telegram.org"
OWN_SERVER: Final = "a Bot API server of your own (--api-root) takes and gives files of up to 2000 MB"

Call = Callable[[str, Mapping[str, Any]], Awaitable[Any]]
Write = Callable[[int, bytes], Awaitable[None]]


class Downloads(Protocol):
    """`BotApi` as far as it is needed here."""

    async def download(self, path: str, write: Write, most: int, start: int = 0) -> int:
        """Give the file to `write`, piece by piece, from `start` on where the server can; returns its whole size."""


@frozen(kw_only=True)
class FileLimits:
    """Bytes that the Bot API server takes and gives; what it refuses otherwise costs the time of the upload.

    `most` is what the owner of the bot allows a file to have that comes in (None: what the server gives), `folder` what
    all files in one follower's own folder may have.
    """

    server: str = TELEGRAMS
    upload: int = 50 * MB
    download: int = 20 * MB
    most: int | None = None
    folder: int = FOLDER

    @property
    def way_out(self) -> str:
        """What to do about them, for people."""
        return f" ({OWN_SERVER})" if self.telegrams else ""

    @property
    def telegrams(self) -> bool:
        """Whether the server is Telegram's own."""
        return self.server == TELEGRAMS

    @classmethod
    def of(cls, api_root: str, most: int | None = None, folder: int = FOLDER) -> FileLimits:
        """Those of Telegram's own server, or of any other."""
        host = urlsplit(api_root).hostname or api_root
        if host == TELEGRAMS:
            return cls(most=most, folder=folder)
        return cls(server=host, upload=2_000 * MB, download=2_000 * MB, most=most, folder=folder)

    def check(self, size: int) -> None:
        """Raises RequestRefused for a file that is larger than may come in."""
        if size > self.download:
            raise self.too_large()
        if self.most is not None and size > self.most:
            raise RequestRefused(
                f"the file has {mb(size)} MB; the settings of this bus let {mb(self.most)} MB in (--file-limit)"
            )

    def too_large(self) -> RequestRefused:
        """The refusal of a file that the server does not give."""
        return RequestRefused(
            f"the file is too large: {self.server} gives bots {mb(self.download)} MB at most ({OWN_SERVER})"
        )

    @property
    def room(self) -> int:
        """What a file of unknown size may come to."""
        return self.download if self.most is None else min(self.download, self.most)


@define(kw_only=True, eq=False)
class Fetching:
    """The downloads of one term. `call` makes a Bot API call; `api` fetches."""

    call: Call = field(repr=False)
    api: Downloads = field(repr=False)
    limits: FileLimits = field(factory=FileLimits)
    _turns: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(AT_ONCE))

    async def into_descriptor(
        self, file_id: str, beside: Descriptors | None, folder: Path, *, resume: bool = False
    ) -> dict[str, Any]:
        """Write a file into the one descriptor beside the request: {"size", "name"?}.

        `folder` is the follower's own: where the file lies in it there has to be room. With `resume` what is in the
        file is its beginning, which an earlier leader wrote. Raises RequestRefused, ApiError, and StateError where it
        cannot be written.
        """
        numbers = beside.numbers() if beside is not None else ()
        if len(numbers) != 1:
            raise RequestRefused("beside x.file.get one regular file has to come, open for writing")
        flags = fcntl.fcntl(numbers[0], fcntl.F_GETFL)
        if not flags & (os.O_WRONLY | os.O_RDWR) or flags & os.O_APPEND:
            raise RequestRefused("the file beside x.file.get has to be open for writing, and not for appending")
        return await self._fetch(file_id, numbers[0], folder, resume=resume)

    async def into_folder(self, file_id: str, name: str | None, folder: Path) -> dict[str, Any]:
        """Put a file into the folder: {"path"}; raises as `into_descriptor`."""
        descriptor, temporary = begin_file(folder)
        try:
            facts = await self._fetch(file_id, descriptor, folder)
            return {"path": str(finish_file(temporary, name or facts.get("name", "file")))}
        finally:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)

    async def _fetch(self, file_id: str, descriptor: int, folder: Path, *, resume: bool = False) -> dict[str, Any]:
        async with self._turns:
            path, size = await self._locate(file_id)
            self.limits.check(size or 0)
            room = await _in_thread(_room_in, folder, descriptor, self.limits.folder)
            if room is not None and (size or 1) > room:
                more = f", and this one has {mb(size)} MB" if size is not None else ""
                raise RequestRefused(
                    f"{folder} may hold {mb(self.limits.folder)} MB of files (--folder-limit) and has room for "
                    f"{mb(max(room, 0))}{more}: delete what is not needed any more"
                )
            if path.startswith("/"):
                got = await self._copy(path, descriptor)
            else:
                most = self.limits.room if room is None else min(self.limits.room, room)
                got = await self._load(path, descriptor, size, most, resume=resume)
            await _in_thread(os.ftruncate, descriptor, got)
            return {"size": got, "name": path.rpartition("/")[2]}

    async def _locate(self, file_id: str) -> tuple[str, int | None]:
        try:
            found = await self.call("getFile", {"file_id": file_id})
        except ApiError as error:
            if "too big" in error.description.lower() and self.limits.telegrams:
                raise self.limits.too_large() from error
            raise
        path = found.get("file_path") if isinstance(found, dict) else None
        if not isinstance(path, str) or not path:
            raise RequestRefused("Telegram does not say where this file lies; ask again later")
        size = found.get("file_size")
        return path, size if type(size) is int else None

    async def _load(self, path: str, descriptor: int, size: int | None, most: int, *, resume: bool) -> int:
        """The file's size once all of it is there: a file of one id never changes, so what is there stays right."""
        there = os.fstat(descriptor).st_size if resume else 0
        if size is not None and there == size:
            return size
        at = there if size is None or there < size else 0

        async def write(start: int, piece: bytes) -> None:
            nonlocal at
            await _in_thread(_write_all, descriptor, piece, start)
            at = start + len(piece)

        for attempt in range(TRIES):
            before = at
            try:
                got = await self.api.download(path, write, most, at)
            except (NotSent, AnswerLost):
                if attempt == TRIES - 1:
                    raise
            else:
                if size is None or got == size:
                    return got
                at = 0  # not what was said to be there: all of it anew
            if at <= before:  # a way on which something moves is tried again at once
                await trio.sleep(backoff(attempt, 1.0))
        raise AnswerLost("the file that came is not as long as Telegram said: ask for it again")

    async def _copy(self, path: str, descriptor: int) -> int:
        """From a Bot API server that runs with --local, and so on this machine."""
        if self.limits.telegrams:
            raise RequestRefused("Telegram named a path that is none of its own; this file is not fetched")
        got: int = await _in_thread(_copy_local, path, descriptor, self.limits.room)
        return got


def mb(size: int) -> str:
    """Bytes as megabytes, for people."""
    return f"{size / MB:.0f}" if size >= 10 * MB else f"{size / MB:.1f}"


async def _in_thread(work: Callable[..., Any], *args: Any) -> Any:
    try:
        return await trio.to_thread.run_sync(work, *args)
    except OSError as error:
        raise StateError(f"the file cannot be written: {error.strerror}") from error


def _write_all(descriptor: int, piece: bytes, at: int) -> None:
    view = memoryview(piece)
    while view:
        written = os.pwrite(descriptor, view, at)
        view, at = view[written:], at + written


def _copy_local(path: str, descriptor: int, most: int) -> int:
    try:
        source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise RequestRefused(
            f"the Bot API server keeps its files on its own disk (--local), where {path} cannot be read: "
            f"{error.strerror}"
        ) from error
    try:
        if not stat.S_ISREG(os.fstat(source).st_mode):
            raise RequestRefused(f"{path} of the Bot API server is no regular file")
        at = 0
        while piece := os.pread(source, 1 << 20, at):
            _write_all(descriptor, piece, at)
            at += len(piece)
            if at > most:
                raise RequestRefused(f"{path} has more than {mb(most)} MB")
        return at
    finally:
        os.close(source)


def _room_in(folder: Path, descriptor: int, limit: int) -> int | None:
    """Bytes that the open file may have for the folder to stay within its limit; None: it does not lie there."""
    file, used, inside = os.fstat(descriptor), 0, False
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                found = entry.stat(follow_symlinks=False)
                if (found.st_ino, found.st_dev) == (file.st_ino, file.st_dev):
                    inside = True
                else:
                    used += found.st_size
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"cannot look into {folder}: {error.strerror}") from error
    return limit - used if inside else None
