"""Title, description and photo of a chat."""

from __future__ import annotations

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.media import new_file
from telegram_bus.sandbox.methods.finding import find_open_chat, need_right
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_acts import show_chat
from telegram_bus.sandbox.model_types import Chat
from telegram_bus.sandbox.refusal import bad_request

__all__ = ["METHODS", "deletechatphoto", "setchatdescription", "setchatphoto", "setchattitle"]

MAX_TITLE = 128
MAX_DESCRIPTION = 255


def setchattitle(world: World, args: Args, now: float) -> bool:
    """setChatTitle: the same title again changes nothing and is no error."""
    title = " ".join(args.text("title").split())[:MAX_TITLE]
    chat = _chat(world, args, "title")
    if not title:
        raise bad_request("title must be non-empty")
    if title != chat.title:
        chat.title = title
        show_chat(world, chat)
        world.post(chat, world.bot, now, service={"new_chat_title": title})
    return True


def setchatdescription(world: World, args: Args, now: float) -> bool:  # noqa: ARG001 - one shape for all methods
    """setChatDescription."""
    description = args.text("description").strip()
    chat = _chat(world, args, "description")
    if len(description) > MAX_DESCRIPTION:
        raise bad_request("chat description is too long")
    if description == chat.description:
        raise bad_request("chat description is not modified")
    chat.description = description
    return True


def setchatphoto(world: World, args: Args, now: float) -> bool:
    """setChatPhoto: only an upload will do."""
    chat = _chat(world, args, "photo")
    upload = args.upload("photo") or args.upload(args.text("photo").removeprefix("attach://"))
    if upload is None:
        raise bad_request("photo should be uploaded as an InputFile")
    photo = new_file(world, "photo", upload, args, args).view
    sizes = {"small_": photo, "big_": photo}
    chat.photo = {prefix + name: file[name] for prefix, file in sizes.items() for name in ("file_id", "file_unique_id")}
    world.post(chat, world.bot, now, service={"new_chat_photo": [photo]})
    return True


def deletechatphoto(world: World, args: Args, now: float) -> bool:
    """deleteChatPhoto."""
    chat = _chat(world, args, "photo")
    if not chat.photo:
        raise bad_request("CHAT_NOT_MODIFIED")
    chat.photo = {}
    world.post(chat, world.bot, now, service={"delete_chat_photo": True})
    return True


METHODS = (setchattitle, setchatdescription, setchatphoto, deletechatphoto)


def _chat(world: World, args: Args, what: str) -> Chat:
    chat = find_open_chat(world, args)
    if chat.type == "private":
        raise bad_request(f"can't change private chat {what}")
    need_right(chat, "can_change_info", f"change chat {what}")
    return chat
