"""Where a message of the bot goes and what comes with every kind of it: thread, reply, keyboard, options."""

from __future__ import annotations

from typing import Any

import attrs

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.entities import utf16_length
from telegram_bus.sandbox.methods.finding import find_open_chat, find_replied, find_thread, read_keyboard
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_types import Chat, Json, Message
from telegram_bus.sandbox.refusal import bad_request

__all__ = ["Place", "find_place", "link_preview", "options_of", "put"]

# What a chat may forbid its members, and how the refusal calls it.
_RIGHTS = {
    "can_send_messages": "send text messages",
    "can_send_audios": "send audios",
    "can_send_documents": "send documents",
    "can_send_photos": "send photos",
    "can_send_videos": "send videos",
    "can_send_video_notes": "send video notes",
    "can_send_voice_notes": "send voice notes",
    "can_send_polls": "send polls",
    "can_send_other_messages": "send stickers and animations",
}
_PREVIEW_FLAGS = ("prefer_small_media", "prefer_large_media", "show_above_text")


@attrs.frozen
class Place:
    """Where a message goes; `extras` are the fields that come with it whatever it is."""

    chat: Chat
    thread_id: int
    reply_to: int
    keyboard: Json | None
    extras: Json


def find_place(world: World, args: Args, right: str = "can_send_messages") -> Place:
    """Read what all sending methods have in common; raises `Refusal`, also when the chat forbids `right`."""
    keyboard = read_keyboard(args)
    chat = find_open_chat(world, args)
    if chat.type != "private" and not chat.bot_is_admin and chat.permissions.get(right) is False:
        raise bad_request(f"not enough rights to {_RIGHTS[right]} to the chat")
    replied = find_replied(chat, args)
    thread_id = find_thread(world, chat, args, replied)
    extras: Json = {"has_protected_content": True} if args.flag("protect_content") else {}
    if chat.type == "private" and args.has("message_effect_id"):
        extras["effect_id"] = args.text("message_effect_id")
    if replied is not None and (quote := _quote(args, replied)) is not None:
        extras["quote"] = quote
    return Place(chat, thread_id, replied.message_id if replied else 0, keyboard, extras)


def put(world: World, place: Place, now: float, **fields: Any) -> Message:
    """Send a message there; `fields` are those of `Message`."""
    extras = place.extras | fields.pop("extras", {})
    return world.post(
        place.chat,
        world.bot,
        now,
        thread_id=place.thread_id,
        reply_to=place.reply_to,
        reply_markup=place.keyboard,
        extras=extras,
        **fields,
    )


def options_of(fields: Args, kind: str) -> Json:
    """How a picture or a film is shown."""
    options: Json = {}
    if kind in {"photo", "video", "animation"}:
        if fields.flag("has_spoiler"):
            options["has_media_spoiler"] = True
        if fields.flag("show_caption_above_media"):
            options["show_caption_above_media"] = True
    return options


def link_preview(args: Args, text: str, entities: list[Json]) -> Json:
    """`link_preview_options` as a message shows them: of the first link, unless the call says otherwise."""
    given = args.parsed("link_preview_options", "can't parse link preview options JSON object")
    if given is None:
        given = {"is_disabled": args.flag("disable_web_page_preview")}
    if not isinstance(given, dict):
        raise bad_request("can't parse link preview options JSON object: expected an Object")
    if given.get("is_disabled") is True:
        return {"link_preview_options": {"is_disabled": True}}
    url = given.get("url") if isinstance(given.get("url"), str) else None
    url = url or _first_link(text, entities)
    if not url:
        return {}
    flags = {name: True for name in _PREVIEW_FLAGS if given.get(name) is True}
    return {"link_preview_options": {"url": url, **flags}}


def _first_link(text: str, entities: list[Json]) -> str | None:
    units = text.encode("utf-16-le", "surrogatepass")
    for entity in entities:
        if entity["type"] == "text_link":
            return str(entity["url"])
        if entity["type"] == "url":
            begin, end = 2 * entity["offset"], 2 * (entity["offset"] + entity["length"])
            return units[begin:end].decode("utf-16-le", "surrogatepass")
    return None


def _quote(args: Args, replied: Message) -> Json | None:
    reply = args.parsed("reply_parameters", "can't parse reply parameters JSON object")
    quote = reply.get("quote") if isinstance(reply, dict) else None
    if not isinstance(quote, str) or not quote:
        return None
    at = replied.text.find(quote)
    if at < 0:
        raise bad_request("QUOTE_TEXT_INVALID")
    return {"text": quote, "position": utf16_length(replied.text[:at]), "is_manual": True}
