"""Forwarding and copying messages, alone and many."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.entities import read_caption
from telegram_bus.sandbox.methods.finding import find_open_chat
from telegram_bus.sandbox.methods.posting import Place, find_place, put
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_types import Chat, Json, Message
from telegram_bus.sandbox.model_views import user_view
from telegram_bus.sandbox.refusal import bad_request

__all__ = ["METHODS", "copymessage", "copymessages", "forwardmessage", "forwardmessages", "told_on"]

MAX_MESSAGES = 100
# Fields that belong to the place of the original, not to what it says.
_LEFT = frozenset({"has_protected_content", "quote", "effect_id", "forward_origin"})


def forwardmessage(world: World, args: Args, now: float) -> Json:
    """forwardMessage."""
    source = _source(world, args)
    place = find_place(world, args)
    message = source.messages.get(args.integer("message_id"))
    if message is None:
        raise bad_request("message to forward not found")
    _need_free(message, "forwarded")
    return world.view(_forward(world, place, message, now, ""))


def forwardmessages(world: World, args: Args, now: float) -> list[Json]:
    """forwardMessages: those that cannot be found or forwarded are skipped."""
    place, found = _many(world, args, "forward")
    albums: dict[str, str] = {}
    sent = [_forward(world, place, message, now, _album(world, albums, message)) for message in found]
    return [{"message_id": message.message_id} for message in sent]


def copymessage(world: World, args: Args, now: float) -> Json:
    """copyMessage: with the keyboard and, if given, the caption of the call."""
    source = _source(world, args)
    caption = read_caption(args) if args.has("caption") else None
    place = find_place(world, args)
    message = source.messages.get(args.integer("message_id"))
    if message is None:
        raise bad_request("message to copy not found")
    _need_free(message, "copied")
    fields = _copied(world, message)
    if caption is not None and message.content:
        fields |= {"text": caption[0], "entities": caption[1]}
        fields["extras"].pop("show_caption_above_media", None)
        if args.flag("show_caption_above_media"):
            fields["extras"]["show_caption_above_media"] = True
    return {"message_id": put(world, place, now, **fields).message_id}


def copymessages(world: World, args: Args, now: float) -> list[Json]:
    """copyMessages: those that cannot be found or copied are skipped."""
    place, found = _many(world, args, "copy")
    albums: dict[str, str] = {}
    bare = args.flag("remove_caption")
    sent = []
    for message in found:
        fields = _copied(world, message) | {"album": _album(world, albums, message)}
        if bare and message.content:
            fields |= {"text": "", "entities": []}
        sent.append(put(world, place, now, **fields))
    return [{"message_id": message.message_id} for message in sent]


METHODS = (forwardmessage, forwardmessages, copymessage, copymessages)


def _source(world: World, args: Args) -> Chat:
    return find_open_chat(world, Args({"chat_id": args.text("from_chat_id")}))


def _many(world: World, args: Args, doing: str) -> tuple[Place, list[Message]]:
    source = _source(world, args)
    wanted = args.parsed("message_ids", "can't parse message identifiers JSON object")
    if not isinstance(wanted, list) or not wanted:
        raise bad_request("message identifiers are not specified")
    if len(wanted) > MAX_MESSAGES:
        raise bad_request("too many message identifiers specified")
    ids = [item for item in wanted if type(item) is int]
    if len(ids) != len(wanted) or ids != sorted(set(ids)):
        raise bad_request("message identifiers must be in a strictly increasing order")
    place = find_place(world, args)
    found = [source.messages[item] for item in ids if item in source.messages]
    free = [message for message in found if not (message.service or message.is_protected)]
    if not free:
        raise bad_request(f"there are no messages to {doing}")
    return place, free


def _need_free(message: Message, doing: str) -> None:
    if message.is_protected:
        raise bad_request(f"message has protected content and can't be {doing}")
    if message.service:
        raise bad_request(f"the message can't be {doing}")


def told_on(message: Message) -> Json:
    """What a forward of this message holds: its fields, with its origin among the extras."""
    origin = message.extras.get("forward_origin") or {
        "type": "user", "date": message.date, "sender_user": user_view(message.sender),
    }  # fmt: skip
    fields = _said(message)
    fields["extras"] = fields["extras"] | {"forward_origin": origin}
    return fields


def _forward(world: World, place: Place, message: Message, now: float, album: str) -> Message:
    return put(world, place, now, album=album, **told_on(message))


def _said(message: Message) -> Json:
    extras = {name: value for name, value in message.extras.items() if name not in _LEFT}
    return {"text": message.text, "entities": message.entities, "content": message.content, "extras": extras}


def _copied(world: World, message: Message) -> dict[str, Any]:
    fields = _said(message)
    if "poll" in message.content:
        if message.content["poll"]["type"] == "quiz" and "correct_option_ids" not in message.content["poll"]:
            raise bad_request("the message can't be copied")
        # A new poll that nobody voted in.
        poll = deepcopy(message.content["poll"])
        poll |= {"id": str(world.rng.randrange(10**17, 10**18)), "total_voter_count": 0}
        for option in poll["options"]:
            option["voter_count"] = 0
        fields["content"] = {"poll": poll}
    return fields


def _album(world: World, albums: dict[str, str], message: Message) -> str:
    if not message.album:
        return ""
    return albums.setdefault(message.album, str(world.rng.randrange(10**16, 10**17)))
