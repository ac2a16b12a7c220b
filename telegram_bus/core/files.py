"""Files of messages: what a message holds, which ids belong to it, and names that are safe on a disk."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import field, frozen

__all__ = ["ALBUM_KINDS", "EDITABLE", "SENDABLE", "FileInfo", "file_ids", "files_of", "numbered", "safe_name"]

SENDABLE: Final[Mapping[str, str]] = {
    "document": "sendDocument",
    "photo": "sendPhoto",
    "audio": "sendAudio",
    "voice": "sendVoice",
    "video": "sendVideo",
    "animation": "sendAnimation",
}
"""Kinds of files that a follower sends, each with its Bot API method; the file's field is called like the kind."""

ALBUM_KINDS: Final = ("photo", "video", "document", "audio")
"""Kinds that an album takes (Bot API, sendMediaGroup)."""

EDITABLE: Final = (*ALBUM_KINDS, "animation")
"""Kinds that a message may become (Bot API, editMessageMedia)."""

MAX_NAME: Final = 200
"""Bytes of a file's name: file systems take 255, and a number or the name of a temporary file comes on top."""

_KINDS: Final = ("photo", "animation", "video", "video_note", "voice", "audio", "document", "sticker")
_UNSAFE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, what turns the direction of writing (`gpj.exe`), and halves of characters."""


@frozen(kw_only=True)
class FileInfo:
    """A file of a message; `name`, `size` (bytes) and `mime` are None where Telegram does not tell them."""

    file_id: str = field(repr=False)
    kind: str
    name: str | None = None
    size: int | None = None
    mime: str | None = None


def files_of(message: Mapping[str, Any]) -> tuple[FileInfo, ...]:
    """The file that a message holds, if any; of a photo the largest size."""
    for kind in _KINDS:
        held = message.get(kind)
        if kind == "photo" and isinstance(held, list):
            sizes = [one for one in held if isinstance(one, dict)]
            held = max(sizes, key=_pixels, default=None)
        if isinstance(held, dict) and isinstance(held.get("file_id"), str):
            return (_info(kind, held),)
    return ()


def file_ids(value: Any) -> Iterator[str]:
    """Every file id in a Bot API object, at any depth (without recursion: an object may be deep)."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            found = one.get("file_id")
            if isinstance(found, str):
                yield found
            waiting.extend(inner for inner in one.values() if isinstance(inner, dict | list))
        elif isinstance(one, list):
            waiting.extend(inner for inner in one if isinstance(inner, dict | list))


def safe_name(name: str) -> str:
    """A name that is one harmless path component, as like `name` as can be; `file` where nothing is left.

    Directories, control characters, leading dots and dashes, and trailing dots go; 200 bytes stay, with the suffix.
    """
    last = re.split(r"[/\\]", name)[-1]
    kept = _UNSAFE.sub("", last).strip().lstrip(".-").rstrip(". ")
    if len(kept.encode()) > MAX_NAME:
        stem, suffix = _split(kept)
        suffix = _cut(suffix, 32)
        kept = _cut(stem, MAX_NAME - len(suffix.encode())) + suffix
    return kept or "file"


def numbered(name: str, number: int) -> str:
    """The `number`-th name for files that are all called `name`: `a.txt`, `a-2.txt`, `a-3.txt`."""
    stem, suffix = _split(name)
    return name if number == 1 else f"{stem}-{number}{suffix}"


def _split(name: str) -> tuple[str, str]:
    stem, dot, suffix = name.rpartition(".")
    return (stem, dot + suffix) if stem else (name, "")


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode("utf-8", "ignore")


def _pixels(size: Mapping[str, Any]) -> int:
    width, height = size.get("width"), size.get("height")
    return width * height if isinstance(width, int) and isinstance(height, int) else 0


def _info(kind: str, held: Mapping[str, Any]) -> FileInfo:
    name, size, mime = held.get("file_name"), held.get("file_size"), held.get("mime_type")
    return FileInfo(
        file_id=held["file_id"],
        kind=kind,
        name=name if isinstance(name, str) else None,
        size=size if type(size) is int else None,
        mime=mime if isinstance(mime, str) else None,
    )
