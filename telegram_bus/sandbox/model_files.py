"""The files of a sandbox: their bytes, bounded, and what the Bot API tells of each."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator

import attrs

from telegram_bus.sandbox.model_types import Json

__all__ = ["FILE_KINDS", "FileKind", "FileStore", "StoredFile"]

# Bounds the memory of a long run: the bytes of the oldest files go first, and `getFile` says so.
KEPT_BYTES = 256 << 20
# What is known of a file without its bytes is small, but not nothing.
KEPT_FILES = 20_000


@attrs.frozen
class FileKind:
    """A kind of file: how TDLib calls it, its folder, the begin of its ids, its type when nothing tells it."""

    tdlib: str
    folder: str
    prefix: str
    mime: str
    extension: str


FILE_KINDS = {
    "animation": FileKind("Animation", "animations", "CgACAgI", "video/mp4", "mp4"),
    "audio": FileKind("Audio", "music", "CQACAgI", "audio/mpeg", "mp3"),
    "document": FileKind("Document", "documents", "BQACAgI", "application/octet-stream", ""),
    "photo": FileKind("Photo", "photos", "AgACAgI", "image/jpeg", "jpg"),
    "sticker": FileKind("Sticker", "stickers", "CAACAgI", "image/webp", "webp"),
    "thumbnail": FileKind("Thumbnail", "thumbnails", "AAMCAgI", "image/jpeg", "jpg"),
    "video": FileKind("Video", "videos", "BAACAgI", "video/mp4", "mp4"),
    "video_note": FileKind("VideoNote", "video_notes", "DQACAgI", "video/mp4", "mp4"),
    "voice": FileKind("VoiceNote", "voice", "AwACAgI", "audio/ogg", "oga"),
}


@attrs.define(kw_only=True)
class StoredFile:
    """A file. `view` is its object of the Bot API (PhotoSize, Document, …); `content` is None once it was forgotten."""

    kind: str
    path: str
    mime: str
    view: Json
    content: bytes | None

    @property
    def file_id(self) -> str:
        """What calls name it by."""
        return str(self.view["file_id"])

    @property
    def size(self) -> int:
        """In bytes."""
        return int(self.view["file_size"])


class FileStore:
    """Files by id and by path, the newest of them with their bytes."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._files: dict[str, StoredFile] = {}
        self._paths: dict[str, str] = {}
        self._numbers = 0
        self.bytes = 0

    def __iter__(self) -> Iterator[StoredFile]:
        return iter(self._files.values())

    def add(self, kind: str, content: bytes, *, mime: str, extension: str, look: Json) -> StoredFile:
        """Keep a file; `look` is what its object shows beside ids and size."""
        facts = FILE_KINDS[kind]
        path = f"{facts.folder}/file_{self._numbers}" + (f".{extension}" if extension else "")
        self._numbers += 1
        ids = {"file_id": facts.prefix + self._token(36), "file_unique_id": self._unique(kind)}
        file = StoredFile(
            kind=kind, path=path, mime=mime, view=ids | {"file_size": len(content)} | look, content=content
        )
        self._files[file.file_id] = file
        self._paths[path] = file.file_id
        self.bytes += len(content)
        self._forget(file)
        return file

    def find(self, file_id: str) -> StoredFile | None:
        """The file of an id."""
        return self._files.get(file_id)

    def at(self, path: str) -> StoredFile | None:
        """The file of a path that getFile gave."""
        return self._files.get(self._paths.get(path, ""))

    def _unique(self, kind: str) -> str:
        # As long as the real ones, which tell pictures from everything else.
        return "AQAD" + self._token(9) if kind in {"photo", "thumbnail"} else "AgAD" + self._token(8)

    def _token(self, length: int) -> str:
        return base64.urlsafe_b64encode(self._rng.randbytes(length)).decode().rstrip("=")

    def _forget(self, newest: StoredFile) -> None:
        if self.bytes > KEPT_BYTES:
            for file in self._files.values():
                if self.bytes <= KEPT_BYTES:
                    break
                if file is not newest and file.content is not None:
                    self.bytes -= len(file.content)
                    file.content = None
        while len(self._files) > KEPT_FILES:
            oldest = self._files.pop(next(iter(self._files)))
            del self._paths[oldest.path]
            self.bytes -= len(oldest.content or b"")
