"""Files of followers: which uploads are taken, whose file ids are whose, and how a file comes down."""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import re
import stat
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Container, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, Self

import trio
from attrs import Factory, define, field

from telegram_bus.botapi.uploads import Upload
from telegram_bus.core.errors import RequestRefused
from telegram_bus.core.extensions import FilePart
from telegram_bus.core.files import safe_name
from telegram_bus.core.permissions import Allowed
from telegram_bus.core.registry import Member
from telegram_bus.core.scopes import local_file
from telegram_bus.core.threads import slug
from telegram_bus.home import Profile
from telegram_bus.roles.fetching import Call, Downloads, Fetching, FileLimits, mb
from telegram_bus.roles.opening import open_below
from telegram_bus.roles.saving import Saving
from telegram_bus.wire.descriptors import Descriptors

__all__ = ["Enclosed", "FileLimits", "Files"]

log = logging.getLogger(__name__)

REMEMBERED: Final = 16_384  # pairs of a file id and a follower: a photo has four ids, an album forty

Identity = tuple[int, int]
"""Device and inode of a file: the same whatever names and links lead to it."""

_NOT_READABLE: Final = os.O_WRONLY | getattr(os, "O_PATH", 0)  # the latter is Linux's


class Owners(Protocol):
    """`Store` as far as it is needed here."""

    async def record_files(self, pairs: Sequence[tuple[str, str]], now_ms: int) -> None:
        """Note that followers have files, each (file id, key)."""

    async def own_files(self, key: str, file_ids: Sequence[str]) -> list[str]:
        """Those of the files that are the follower's."""


@define(eq=False)
class Enclosed:
    """The open files of one request and what they are for; whoever takes them closes them."""

    parts: tuple[FilePart, ...] = ()
    descriptors: Descriptors = field(factory=Descriptors)

    def check(self, limits: FileLimits, private: Callable[[], Container[Identity]] = frozenset) -> None:
        """Raises RequestRefused where a file is missing, empty, larger than the server takes, or one of `private`."""
        if self.descriptors.refused:
            raise RequestRefused("only regular files can be sent: no pipe, socket, device or directory")
        if len(self.descriptors) != len(self.parts):
            raise RequestRefused(
                f"the request names {len(self.parts)} files, and {len(self.descriptors)} open files came beside it"
            )
        for part, number in zip(self.parts, self.descriptors.numbers(), strict=True):
            found = os.fstat(number)
            if not stat.S_ISREG(found.st_mode) or fcntl.fcntl(number, fcntl.F_GETFL) & _NOT_READABLE:
                raise RequestRefused(f"{part.name} is not a regular file that is open for reading")
            if (found.st_dev, found.st_ino) in private():
                raise RequestRefused(f"{part.name} holds secrets of the bus, which are not for sending")
            size = found.st_size
            if not size:
                raise RequestRefused(f"{part.name} is empty: Telegram takes no empty files")
            if size > limits.upload:
                raise RequestRefused(
                    f"{part.name} has {mb(size)} MB; {limits.server} takes {mb(limits.upload)} MB at most: "
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
    leader finds in the updates and answers that are stored themselves (`Term.recall_given`).
    """

    profile: Profile
    call: Call = field(repr=False)
    api: Downloads = field(repr=False)
    owners: Owners = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    limits: FileLimits = field(factory=FileLimits)
    secrets: tuple[Path, ...] = ()
    """Files of the owner's, outside of the profile, that nobody may send: the token's, say."""
    refused: Callable[[str | None, int, str, str | None, str], None] | None = field(default=None, repr=False)
    """Told of refused uploads, as `roles.audit.Audit.note`."""
    _theirs: OrderedDict[tuple[str, str], None] = field(factory=OrderedDict)
    _saving: Saving[tuple[str, str], None] = field(factory=lambda: Saving("whose files are whose"), repr=False)
    _fetching: Fetching = field(
        init=False,
        repr=False,
        default=Factory(lambda files: Fetching(call=files.call, api=files.api, limits=files.limits), takes_self=True),
    )

    def note(self, key: str, file_ids: Iterable[str]) -> None:
        """These files were given to the follower, which may fetch them from now on."""
        pairs = [(file_id, key) for file_id in file_ids]
        if pairs:
            self._remember(pairs)
            self._saving.note(dict.fromkeys(pairs))

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
        await self._saving.run(lambda pairs: self.owners.record_files(list(pairs), self.now_ms()))

    def _remember(self, pairs: Iterable[tuple[str, str]]) -> None:
        for pair in pairs:
            self._theirs[pair] = None
            self._theirs.move_to_end(pair)
        while len(self._theirs) > REMEMBERED:
            self._theirs.popitem(last=False)

    def check(self, enclosed: Enclosed) -> None:
        """Raises RequestRefused where the files cannot be sent, or must not be."""
        enclosed.check(self.limits, self._private)

    def _private(self) -> set[Identity]:
        """What holds the bot's token, the secrets of the bus, or what others wrote, and is not for the chat."""
        profile = self.profile
        found = set()
        stored = (profile.database, Path(f"{profile.database}-wal"))
        for path in (profile.config_toml, profile.follower_secret, profile.operator_secret, *stored, *self.secrets):
            with suppress(OSError, ValueError):
                facts = path.stat()
                found.add((facts.st_dev, facts.st_ino))
        return found

    def enclose(self, member: Member, call: Allowed) -> Enclosed:
        """The file that `callMultipart` names by its path, opened. Raises RequestRefused.

        It has to lie in the follower's working directory or in its own folder of files, and nothing of the bus is
        open to it but that folder. For a worker thread of Trio.
        """
        if (field := local_file(call.body)) is not None:
            rule = "must be a file id, an address or an attachment, not a path"
            self._refused(member, call, field, rule)
            raise RequestRefused(f"{call.api_method}: {field} {rule}")
        args = [*call.args, None, None, None][1:5]
        _params, name, path, shown = args
        if type(name) is not str or type(path) is not str:
            raise RequestRefused(f"callMultipart {call.api_method}: the field and the path of the file must be text")
        if re.fullmatch("[A-Za-z0-9_]{1,64}", name) is None:
            raise RequestRefused(f"callMultipart {call.api_method}: the field of the file must be a name")
        own = self.profile.files(_folder(member.key))
        cwd = member.registration.cwd
        roots = [Path(cwd), own] if cwd and cwd.startswith("/") else [own]
        try:
            descriptor = open_below(path, roots, self.profile.home.root)
        except RequestRefused:
            rule = "must be that of a regular file in its working directory or its own folder, past no link"
            self._refused(member, call, "path", rule)
            raise
        part = FilePart(field=name, name=safe_name(shown if type(shown) is str and shown else Path(path).name))
        return Enclosed((part,), Descriptors([descriptor]))

    def _refused(self, member: Member, call: Allowed, where: str, rule: str) -> None:
        """In a worker thread."""
        if self.refused is not None:
            trio.from_thread.run_sync(self.refused, member.key, member.peer_pid or 0, call.api_method, where, rule)

    async def fetch(
        self, member: Member, file_id: str, beside: Descriptors | None, *, resume: bool = False
    ) -> dict[str, Any]:
        """Write a file into the one descriptor beside the request: {"size", "name"?}.

        With `resume` what is in it is the file's beginning, which an earlier leader wrote. Raises RequestRefused,
        ApiError, and StateError where it cannot be written.
        """
        folder = self.profile.files(_folder(member.key))
        return await self._fetching.into_descriptor(file_id, beside, folder, resume=resume)

    async def fetch_by_path(self, member: Member, file_id: Any, name: Any) -> dict[str, Any]:
        """Put a file into the folder of a follower that takes none by descriptor: {"path"}; raises as `fetch`."""
        if type(file_id) is not str:
            raise RequestRefused("downloadFile: the file id must be text")
        folder = _folder(member.key)
        await trio.to_thread.run_sync(self.profile.ensure_follower, folder)
        named = name if type(name) is str else None
        return await self._fetching.into_folder(file_id, named, self.profile.files(folder))


def _folder(key: str) -> str:
    """The name of the follower's directory: its key, or what a key of a foreign kind becomes."""
    cleaned = slug(key)
    return key if cleaned == key else f"{cleaned[:48]}-{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:8]}"
