"""Files of followers: which uploads are taken, whose file ids are whose, and how a file comes down."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import stat
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, Self
from urllib.parse import urlsplit

import trio
from attrs import define, field, frozen

from telegram_bus.botapi.polling import backoff
from telegram_bus.botapi.uploads import Upload
from telegram_bus.core.errors import AnswerLost, ApiError, NotSent, RequestRefused, SettingsError, StateError
from telegram_bus.core.extensions import FilePart
from telegram_bus.core.files import safe_name
from telegram_bus.core.permissions import Allowed
from telegram_bus.core.registry import Member
from telegram_bus.core.scopes import local_file
from telegram_bus.core.threads import slug
from telegram_bus.home import Profile
from telegram_bus.roles.folder import begin_file, finish_file
from telegram_bus.roles.opening import open_below
from telegram_bus.wire.descriptors import Descriptors

__all__ = ["Enclosed", "FileLimits", "Files"]

log = logging.getLogger(__name__)

MB: Final = 1_000_000
REMEMBERED: Final = 16_384  # pairs of a file id and a follower: a photo has four ids, an album forty
AT_ONCE: Final = 4  # downloads
TRIES: Final = 3
SAVE_AGAIN: Final = 5.0
FOLDER: Final = 1_000 * MB  # what a peer that cannot take a file itself may have lying in its folder
OWN_SERVER: Final = "a Bot API server of your own (--api-root) takes and gives files of up to 2000 MB"

Call = Callable[[str, Mapping[str, Any]], Awaitable[Any]]


class Owners(Protocol):
    """`Store` as far as it is needed here."""

    async def record_files(self, pairs: Sequence[tuple[str, str]], now_ms: int) -> None:
        """Note that followers have files, each (file id, key)."""

    async def own_files(self, key: str, file_ids: Sequence[str]) -> list[str]:
        """Those of the files that are the follower's."""


class Downloads(Protocol):
    """`BotApi` as far as it is needed here."""

    async def download(self, path: str, write: Callable[[bytes], Awaitable[None]], most: int) -> int:
        """Give the file to `write`, piece by piece."""


@frozen(kw_only=True)
class FileLimits:
    """Bytes that the Bot API server takes and gives; what it refuses otherwise costs the time of the upload."""

    server: str = "api.telegram.org"
    upload: int = 50 * MB
    download: int = 20 * MB

    @property
    def way_out(self) -> str:
        """What to do about them, for people."""
        return f" ({OWN_SERVER})" if self == FileLimits() else ""

    @classmethod
    def of(cls, api_root: str) -> FileLimits:
        """Those of Telegram's own server, or of any other."""
        host = urlsplit(api_root).hostname or api_root
        return cls() if host == cls().server else cls(server=host, upload=2_000 * MB, download=2_000 * MB)


@define(eq=False)
class Enclosed:
    """The open files of one request and what they are for; whoever takes them closes them."""

    parts: tuple[FilePart, ...] = ()
    descriptors: Descriptors = field(factory=Descriptors)

    def check(self, limits: FileLimits) -> None:
        """Raises RequestRefused where a file is missing, empty or larger than the server takes."""
        if self.descriptors.refused:
            raise RequestRefused("only regular files can be sent: no pipe, socket, device or directory")
        if len(self.descriptors) != len(self.parts):
            raise RequestRefused(
                f"the request names {len(self.parts)} files, and {len(self.descriptors)} open files came beside it"
            )
        for part, number in zip(self.parts, self.descriptors.numbers(), strict=True):
            if not stat.S_ISREG(os.fstat(number).st_mode) or fcntl.fcntl(number, fcntl.F_GETFL) & os.O_WRONLY:
                raise RequestRefused(f"{part.name} is not a regular file that is open for reading")
            size = os.fstat(number).st_size
            if not size:
                raise RequestRefused(f"{part.name} is empty: Telegram takes no empty files")
            if size > limits.upload:
                raise RequestRefused(
                    f"{part.name} has {_mb(size)} MB; {limits.server} takes {_mb(limits.upload)} MB at most: "
                    f"send it in parts or compressed{limits.way_out}"
                )

    def facts(self) -> list[Any]:
        """What tells one request with files from another; a file may grow before it is asked for again."""
        return [[part.field, part.name] for part in self.parts]

    def take(self) -> tuple[Upload, ...]:
        """The files for the sender; the caller closes their descriptors."""
        return tuple(
            Upload(field=part.field, name=part.name, descriptor=number, size=os.fstat(number).st_size)
            for part, number in zip(self.parts, self.descriptors.take(), strict=True)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.descriptors.close()


@define(kw_only=True, eq=False)
class Files:
    """The files of one term. `call` makes a Bot API call; `api` fetches; `owners` remember whose files are whose.

    Who has a file is in memory at once and in the store a moment later; what a crash leaves out there the next
    leader finds in the updates and answers that are stored themselves (`Term.load`).
    """

    profile: Profile
    call: Call = field(repr=False)
    api: Downloads = field(repr=False)
    owners: Owners = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    limits: FileLimits = field(factory=FileLimits)
    _theirs: OrderedDict[tuple[str, str], None] = field(factory=OrderedDict)
    _unsaved: dict[tuple[str, str], None] = field(factory=dict)
    _noted: trio.Event = field(factory=trio.Event)
    _turns: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(AT_ONCE))

    def note(self, key: str, file_ids: Iterable[str]) -> None:
        """These files were given to the follower, which may fetch them from now on."""
        pairs = [(file_id, key) for file_id in file_ids]
        if pairs:
            self._remember(pairs)
            self._unsaved |= dict.fromkeys(pairs)
            self._noted.set()

    def belongs(self, file_id: str, key: str) -> bool:
        """Whether the follower was given this file."""
        return (file_id, key) in self._theirs

    def recall(self, key: str, file_ids: Iterable[str]) -> Callable[[], Awaitable[None]] | None:
        """What looks up in the store which of these files are the follower's; None: memory knows them all."""
        unknown = [file_id for file_id in file_ids if not self.belongs(file_id, key)]
        if not unknown:
            return None

        async def recall() -> None:
            self._remember((file_id, key) for file_id in await self.owners.own_files(key, unknown))

        return recall

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the store informed of who has which files, until cancelled."""
        task_status.started()
        while True:
            await self._noted.wait()
            self._noted = trio.Event()
            saving, self._unsaved = self._unsaved, {}
            try:
                await self.owners.record_files(list(saving), self.now_ms())
            except StateError as error:  # a full disk
                log.warning("whose files are whose is not stored: %s", error)
                self._unsaved = dict(list({**saving, **self._unsaved}.items())[-REMEMBERED:])
                await trio.sleep(SAVE_AGAIN)
                self._noted.set()

    def _remember(self, pairs: Iterable[tuple[str, str]]) -> None:
        for pair in pairs:
            self._theirs[pair] = None
            self._theirs.move_to_end(pair)
        while len(self._theirs) > REMEMBERED:
            self._theirs.popitem(last=False)

    def enclose(self, member: Member, call: Allowed) -> Enclosed:
        """The file that `callMultipart` names by its path, opened. Raises RequestRefused.

        It has to lie in the follower's working directory or in its own folder of files, and nothing of the bus is
        open to it but that folder.
        """
        if (field := local_file(call.body)) is not None:
            raise RequestRefused(
                f"{call.api_method}: {field} must be a file id, an address or an attachment, not a path"
            )
        args = [*call.args, None, None, None][1:5]
        _params, name, path, shown = args
        if type(name) is not str or type(path) is not str:
            raise RequestRefused(f"callMultipart {call.api_method}: the field and the path of the file must be text")
        own = self.profile.files(_folder(member.key))
        cwd = member.registration.cwd
        roots = [Path(cwd), own] if cwd and cwd.startswith("/") else [own]
        descriptor = open_below(path, roots, self.profile.home.root)
        part = FilePart(field=name, name=safe_name(shown if type(shown) is str and shown else Path(path).name))
        return Enclosed((part,), Descriptors([descriptor]))

    async def fetch(self, file_id: str, beside: Descriptors | None) -> dict[str, Any]:
        """Write a file into the one descriptor beside the request: {"size", "name"?}.

        Raises RequestRefused, ApiError, and StateError where it cannot be written.
        """
        numbers = beside.numbers() if beside is not None else ()
        if len(numbers) != 1:
            raise RequestRefused("beside x.file.get one regular file has to come, open for writing")
        flags = fcntl.fcntl(numbers[0], fcntl.F_GETFL)
        if not flags & (os.O_WRONLY | os.O_RDWR) or flags & os.O_APPEND:
            raise RequestRefused("the file beside x.file.get has to be open for writing, and not for appending")
        return await self._fetch(file_id, numbers[0])

    async def fetch_by_path(self, member: Member, file_id: Any, name: Any) -> dict[str, Any]:
        """Put a file into the folder of a follower that takes none by descriptor: {"path"}; raises as `fetch`."""
        if type(file_id) is not str:
            raise RequestRefused("downloadFile: the file id must be text")
        folder = _folder(member.key)
        await trio.to_thread.run_sync(self.profile.ensure_follower, folder)
        directory = self.profile.files(folder)
        used = await trio.to_thread.run_sync(_size_of, directory)
        if used > FOLDER:
            raise RequestRefused(f"{directory} holds {_mb(used)} MB of files: delete what is not needed any more")
        descriptor, temporary = begin_file(directory)
        try:
            facts = await self._fetch(file_id, descriptor)
            wanted = name if type(name) is str and name else facts.get("name", "file")
            return {"path": str(finish_file(temporary, wanted))}
        finally:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)

    async def _fetch(self, file_id: str, descriptor: int) -> dict[str, Any]:
        async with self._turns:
            path, size = await self._locate(file_id)
            if size > self.limits.download:
                raise self._too_large()
            got = await self._copy(path, descriptor) if path.startswith("/") else await self._load(path, descriptor)
            await _in_thread(os.ftruncate, descriptor, got)
            return {"size": got, "name": path.rpartition("/")[2]}

    async def _locate(self, file_id: str) -> tuple[str, int]:
        try:
            found = await self.call("getFile", {"file_id": file_id})
        except ApiError as error:
            if "too big" in error.description.lower() and self.limits == FileLimits():
                raise self._too_large() from error
            raise
        path = found.get("file_path") if isinstance(found, dict) else None
        if not isinstance(path, str) or not path:
            raise RequestRefused("Telegram does not say where this file lies; ask again later")
        size = found.get("file_size")
        return path, size if type(size) is int else 0

    async def _load(self, path: str, descriptor: int) -> int:
        for attempt in range(TRIES):
            at = 0

            async def write(piece: bytes) -> None:
                nonlocal at
                await _in_thread(_write_all, descriptor, piece, at)
                at += len(piece)

            try:
                return await self.api.download(path, write, self.limits.download)
            except (NotSent, AnswerLost):
                if attempt == TRIES - 1:
                    raise
            await trio.sleep(backoff(attempt, 1.0))
        raise AssertionError("each attempt ends or is the last")

    async def _copy(self, path: str, descriptor: int) -> int:
        """From a Bot API server that runs with --local, and so on this machine."""
        if self.limits == FileLimits():
            raise RequestRefused("Telegram named a path that is none of its own; this file is not fetched")
        got: int = await _in_thread(_copy_local, path, descriptor, self.limits.download)
        return got

    def _too_large(self) -> RequestRefused:
        most = _mb(self.limits.download)
        return RequestRefused(
            f"the file is too large: {self.limits.server} gives bots {most} MB at most ({OWN_SERVER})"
        )


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
                raise RequestRefused(f"{path} has more than {_mb(most)} MB")
        return at
    finally:
        os.close(source)


def _folder(key: str) -> str:
    """The name of the follower's directory: its key, or what a key of a foreign kind becomes."""
    cleaned = slug(key)
    return key if cleaned == key else f"{cleaned[:48]}-{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _size_of(directory: Path) -> int:
    try:
        return sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(directory))
    except OSError as error:
        raise SettingsError(f"cannot look into {directory}: {error.strerror}") from error


def _mb(size: int) -> str:
    return f"{size / MB:.0f}" if size >= 10 * MB else f"{size / MB:.1f}"
