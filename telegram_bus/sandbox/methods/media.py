"""Sending files, alone and as albums, and editing captions and files."""

from __future__ import annotations

from typing import Any

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.entities import read_caption
from telegram_bus.sandbox.media import content_of, take_file
from telegram_bus.sandbox.methods.finding import read_keyboard
from telegram_bus.sandbox.methods.messages import NOT_MODIFIED, edited, find_editable
from telegram_bus.sandbox.methods.posting import find_place, options_of, put
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_types import Json, Message
from telegram_bus.sandbox.refusal import Refusal, bad_request

__all__ = [
    "ALONE", "METHODS", "editmessagecaption", "editmessagemedia", "read_media", "sendanimation", "sendaudio",
    "senddocument", "sendmediagroup", "sendphoto", "sendsticker", "sendvideo", "sendvideonote", "sendvoice",
]  # fmt: skip

MAX_ALBUM = 10
ALONE = frozenset({"document", "audio"})  # kinds of an album that mix with nothing else
_ALBUM = frozenset({"photo", "video", "document", "audio"})
_MEDIA = _ALBUM | {"animation"}
_CAPTIONED = _MEDIA | {"voice"}
_RIGHT = {
    "animation": "can_send_other_messages", "audio": "can_send_audios", "document": "can_send_documents",
    "photo": "can_send_photos", "sticker": "can_send_other_messages", "video": "can_send_videos",
    "video_note": "can_send_video_notes", "voice": "can_send_voice_notes",
}  # fmt: skip
# Refusals of Telegram's servers themselves: an album names the file that they are about.
_BY_SERVERS = ("IMAGE_PROCESS_FAILED", "PHOTO_INVALID_DIMENSIONS", "failed to get HTTP URL content")


def sendphoto(world: World, args: Args, now: float) -> Json:
    """sendPhoto."""
    return _send(world, "photo", args, now)


def senddocument(world: World, args: Args, now: float) -> Json:
    """sendDocument."""
    return _send(world, "document", args, now)


def sendaudio(world: World, args: Args, now: float) -> Json:
    """sendAudio."""
    return _send(world, "audio", args, now)


def sendvideo(world: World, args: Args, now: float) -> Json:
    """sendVideo."""
    return _send(world, "video", args, now)


def sendanimation(world: World, args: Args, now: float) -> Json:
    """sendAnimation."""
    return _send(world, "animation", args, now)


def sendvoice(world: World, args: Args, now: float) -> Json:
    """sendVoice."""
    return _send(world, "voice", args, now)


def sendvideonote(world: World, args: Args, now: float) -> Json:
    """sendVideoNote."""
    return _send(world, "video_note", args, now)


def sendsticker(world: World, args: Args, now: float) -> Json:
    """sendSticker: any file passes for one."""
    return _send(world, "sticker", args, now)


def sendmediagroup(world: World, args: Args, now: float) -> list[Json]:
    """sendMediaGroup: one file is sent, too, but is no album."""
    if not args.has("media"):
        raise bad_request('parameter "media" is required')
    items = args.parsed("media", "can't parse media JSON object")
    if not isinstance(items, list):
        raise bad_request("can't parse media: expected an Array of InputMedia")
    if not items:
        raise bad_request("there are no messages to send")
    if len(items) > MAX_ALBUM:
        raise bad_request("too many messages to send as an album")
    contents = [_album_item(world, item, args, position) for position, item in enumerate(items, 1)]
    kinds = [_kind(fields["content"]) for fields in contents]
    for kind in kinds:
        if kind in ALONE and set(kinds) != {kind}:
            raise bad_request(f"{kind} can't be mixed with other media types")
    if len({"show_caption_above_media" in fields["extras"] for fields in contents}) > 1:
        raise bad_request("parameter show_caption_above_media must be the same for all messages")
    place = find_place(world, args, _RIGHT[kinds[0]])
    album = str(world.rng.randrange(10**16, 10**17)) if len(contents) > 1 else ""
    return [world.view(put(world, place, now, album=album, **fields)) for fields in contents]


def editmessagecaption(world: World, args: Args, now: float) -> Json:
    """editMessageCaption: without a caption, the caption goes."""
    text, entities = read_caption(args)
    keyboard = read_keyboard(args)
    message = find_editable(world, args)
    kind = _kind(message.content)
    if kind not in _CAPTIONED:
        raise bad_request("there is no caption in the message to edit")
    extras = {name: value for name, value in message.extras.items() if name != "show_caption_above_media"}
    if kind != "voice" and args.flag("show_caption_above_media"):
        extras["show_caption_above_media"] = True
    return _changed(world, message, now, text=text, entities=entities, reply_markup=keyboard, extras=extras)


def editmessagemedia(world: World, args: Args, now: float) -> Json:
    """editMessageMedia: another file, caption and all; a text may become a file, too."""
    keyboard = read_keyboard(args)
    fields = read_media(world, args.parsed("media", "can't parse InputMedia JSON object"), args)
    message = find_editable(world, args)
    was, becomes = _kind(message.content), _kind(fields["content"])
    if message.content and was not in _MEDIA:
        raise bad_request("message media can't be edited")
    if message.album and was != becomes and {was, becomes} != {"photo", "video"}:
        raise bad_request("can't change media type in the album")
    kept = {
        name: value for name, value in message.extras.items() if name in {"has_protected_content", "quote", "effect_id"}
    }
    return _changed(world, message, now, **fields | {"extras": kept | fields["extras"]}, reply_markup=keyboard)


def read_media(world: World, item: Any, parts: Args) -> Json:
    """What an InputMedia object makes of a message; raises `Refusal`."""
    prefix = "can't parse InputMedia: "
    if not isinstance(item, dict):
        raise bad_request(prefix + "expected an Object")
    kind = item.get("type")
    if not isinstance(kind, str) or kind not in _MEDIA:
        raise bad_request(prefix + f'type "{kind}" is unsupported')
    fields = Args(item)
    text, entities = read_caption(fields)
    if not fields.has("media"):
        raise bad_request(prefix + "media not found")
    reference = fields.text("media")
    if reference.startswith("attach://") and parts.upload(reference.removeprefix("attach://")) is None:
        raise bad_request(prefix + "media not found")
    file = take_file(world, kind, fields, "media", parts)
    return {"text": text, "entities": entities, "content": content_of(file), "extras": options_of(fields, kind)}


METHODS = (
    sendphoto, senddocument, sendaudio, sendvideo, sendanimation, sendvoice, sendvideonote, sendsticker, sendmediagroup,
    editmessagecaption, editmessagemedia,
)  # fmt: skip


def _send(world: World, kind: str, args: Args, now: float) -> Json:
    captioned = kind in _CAPTIONED
    text, entities = read_caption(args) if captioned else ("", [])
    file = take_file(world, kind, args, kind, args)
    place = find_place(world, args, _RIGHT[kind])
    message = put(
        world, place, now, text=text, entities=entities, content=content_of(file), extras=options_of(args, kind)
    )
    return world.view(message)


def _album_item(world: World, item: Any, parts: Args, position: int) -> Json:
    if isinstance(item, dict) and item.get("type") == "animation":
        raise bad_request("can't parse InputMedia: type \"animation\" can't be used in sendMediaGroup")
    try:
        return read_media(world, item, parts)
    except Refusal as refusal:
        reason = refusal.description.removeprefix("Bad Request: ")
        if reason not in _BY_SERVERS:
            raise
        said = reason[:1].upper() + reason[1:]
        raise bad_request(f'failed to send message #{position} with the error message "{said}"') from refusal


def _kind(content: Json) -> str:
    # An animation is shown as a document, too.
    return "animation" if "animation" in content else next(iter(content), "")


def _changed(world: World, message: Message, now: float, **fields: Any) -> Json:
    if all(getattr(message, name) == value for name, value in fields.items()):
        raise bad_request(NOT_MODIFIED)
    for name, value in fields.items():
        setattr(message, name, value)
    return edited(world, message, now)
