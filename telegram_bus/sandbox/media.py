"""From what a call or a person gives to a file of the sandbox, and what a message shows of it."""

from __future__ import annotations

import mimetypes
import re

from telegram_bus.sandbox.args import Args, Upload
from telegram_bus.sandbox.images import image_size
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_files import FILE_KINDS, StoredFile
from telegram_bus.sandbox.model_types import Json
from telegram_bus.sandbox.refusal import bad_request

__all__ = ["content_of", "new_file", "take_file"]

MAX_PHOTO = 10 << 20  # bytes, of TDLib
MAX_THUMBNAIL = 204_799  # bytes, of TDLib: greater ones are left out
MAX_SIDES = 10_000  # width and height together
MAX_RATIO = 20
MAX_DURATION = 86_400
_ATTACHED = "attach://"
# Of a type that its name does not tell; the sets are those that TDLib keeps, too.
_KEPT_TYPES = {"voice": {"audio/ogg", "audio/mpeg", "audio/mp4"}, "photo": {"image/png", "image/gif", "image/webp"}}
_ODD_EXTENSION = re.compile(r"[^A-Za-z0-9]")


def take_file(world: World, kind: str, fields: Args, name: str, parts: Args) -> StoredFile:
    """The file that the argument `name` of `fields` means: one that came along in `parts`, or one known by its id.

    Raises `Refusal`, also for a URL: nothing is fetched, which Telegram words as a URL that gave nothing.
    """
    reference = fields.text(name).strip()
    upload = fields.upload(name)
    if upload is None and reference.startswith(_ATTACHED):
        upload = parts.upload(reference.removeprefix(_ATTACHED))
        reference = ""
    if upload is not None:
        return new_file(world, kind, upload, fields, parts)
    if not reference:
        raise bad_request(f"there is no {kind.replace('_', ' ')} in the request")
    return _known(world, kind, reference)


def new_file(world: World, kind: str, upload: Upload, fields: Args, parts: Args) -> StoredFile:
    """Keep an upload as a file of that kind; raises `Refusal`."""
    size = len(upload.content)
    if not size:
        raise bad_request("file must be non-empty")
    look: Json = _photo_look(upload.content) if kind == "photo" else _look(kind, upload, fields)
    if kind != "photo" and (thumbnail := _thumbnail(world, fields, parts)) is not None:
        look["thumbnail"] = thumbnail
    return world.files.add(
        kind, upload.content, mime=_mime(kind, upload), extension=_extension(kind, upload), look=look
    )


def content_of(file: StoredFile) -> Json:
    """What a message with that file shows."""
    match file.kind:
        case "photo":
            return {"photo": [file.view]}
        case "animation":
            # For those who know no animations.
            plain = {key: value for key, value in file.view.items() if key not in {"width", "height", "duration"}}
            return {"animation": file.view, "document": plain}
        case _:
            return {file.kind: file.view}


def _known(world: World, kind: str, reference: str) -> StoredFile:
    file = world.files.find(reference)
    if file is not None:
        if file.kind != kind:
            raise bad_request(f"can't use file of type {FILE_KINDS[file.kind].tdlib} as {FILE_KINDS[kind].tdlib}")
        return file
    if "." in reference:
        raise bad_request("failed to get HTTP URL content")
    raise bad_request("wrong file identifier/HTTP URL specified")


def _photo_look(content: bytes) -> Json:
    if len(content) > MAX_PHOTO:
        raise bad_request(
            f"file of size {len(content)} bytes is too big for a photo; the maximum size is {MAX_PHOTO} bytes"
        )
    size = image_size(content)
    if size is None:
        raise bad_request("IMAGE_PROCESS_FAILED")
    width, height = size
    if min(size) < 1 or width + height > MAX_SIDES or max(size) > MAX_RATIO * min(size):
        raise bad_request("PHOTO_INVALID_DIMENSIONS")
    return {"width": width, "height": height}


def _look(kind: str, upload: Upload, fields: Args) -> Json:
    look: Json = {}
    duration = fields.clamped("duration", 0, 0, MAX_DURATION)
    width, height = fields.clamped("width", 0, 0, MAX_SIDES), fields.clamped("height", 0, 0, MAX_SIDES)
    match kind:
        case "video" | "animation":
            look |= {"width": width, "height": height, "duration": duration}
        case "video_note":
            return {"length": fields.clamped("length", 240, 1, 640), "duration": duration}
        case "voice":
            return {"duration": duration, "mime_type": _mime(kind, upload)}
        case "audio":
            texts = {name: fields.text(name).strip() for name in ("performer", "title")}
            look |= {"duration": duration} | {name: text for name, text in texts.items() if text}
        case "sticker":
            return _sticker_look(upload, fields)
    if upload.file_name:
        look["file_name"] = upload.file_name
    return look | {"mime_type": _mime(kind, upload)}


def _sticker_look(upload: Upload, fields: Args) -> Json:
    width, height = image_size(upload.content) or (512, 512)
    animated = upload.file_name.endswith(".tgs")
    look: Json = {"type": "regular", "width": width, "height": height, "is_animated": animated}
    look["is_video"] = upload.file_name.endswith(".webm")
    return look | ({"emoji": fields.text("emoji")} if fields.has("emoji") else {})


def _thumbnail(world: World, fields: Args, parts: Args) -> Json | None:
    # Only an upload can be one, and an unusable one is left out silently.
    reference = fields.text("thumbnail").removeprefix(_ATTACHED)
    upload = fields.upload("thumbnail") or parts.upload(reference)
    if upload is None or not upload.content or len(upload.content) > MAX_THUMBNAIL:
        return None
    size = image_size(upload.content)
    if size is None:
        return None
    look = {"width": size[0], "height": size[1]}
    return world.files.add("thumbnail", upload.content, mime="image/jpeg", extension="jpg", look=look).view


def _mime(kind: str, upload: Upload) -> str:
    facts = FILE_KINDS[kind]
    guessed = mimetypes.guess_type(upload.file_name)[0]
    if guessed is None or kind == "document":
        return guessed or facts.mime
    allowed = _KEPT_TYPES.get(kind)
    fits = guessed in allowed if allowed is not None else guessed.split("/")[0] == facts.mime.split("/")[0]
    return guessed if fits or (kind == "animation" and guessed == "image/gif") else facts.mime


def _extension(kind: str, upload: Upload) -> str:
    given = upload.file_name.rpartition(".")[2] if "." in upload.file_name else ""
    if _ODD_EXTENSION.search(given) or len(given) > 10:
        given = ""
    return given or FILE_KINDS[kind].extension
