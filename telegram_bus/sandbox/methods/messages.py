"""Sending, editing and deleting messages."""

from __future__ import annotations

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.entities import read_text
from telegram_bus.sandbox.methods.finding import find_chat, need_message, read_keyboard
from telegram_bus.sandbox.methods.posting import find_place, link_preview, put
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_types import Chat, Json, Message
from telegram_bus.sandbox.refusal import bad_request

__all__ = [
    "METHODS", "NOT_MODIFIED", "deletemessage", "deletemessages", "edited", "editmessagereplymarkup", "editmessagetext",
    "find_editable", "sendmessage",
]  # fmt: skip

DELETABLE_FOR = 48 * 3600  # seconds, M7
NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same as a "
    "current content and reply markup of the message"
)


def sendmessage(world: World, args: Args, now: float) -> Json:
    """sendMessage."""
    text, entities = read_text(args)
    preview = link_preview(args, text, entities)
    place = find_place(world, args)
    return world.view(put(world, place, now, text=text, entities=entities, extras=preview))


def editmessagetext(world: World, args: Args, now: float) -> Json:
    """editMessageText: without `reply_markup` the keyboard goes (M6)."""
    text, entities = read_text(args)
    preview = link_preview(args, text, entities)
    keyboard = read_keyboard(args)
    message = find_editable(world, args)
    if message.content:
        raise bad_request("there is no text in the message to edit")
    old = message.text, message.entities, message.reply_markup, message.extras
    extras = {name: value for name, value in message.extras.items() if name != "link_preview_options"} | preview
    if (text, entities, keyboard, extras) == old:
        raise bad_request(NOT_MODIFIED)
    message.text, message.entities, message.reply_markup, message.extras = text, entities, keyboard, extras
    return edited(world, message, now)


def editmessagereplymarkup(world: World, args: Args, now: float) -> Json:
    """editMessageReplyMarkup."""
    keyboard = read_keyboard(args)
    message = find_editable(world, args)
    if keyboard == message.reply_markup:
        raise bad_request(NOT_MODIFIED)
    message.reply_markup = keyboard
    return edited(world, message, now)


def deletemessage(world: World, args: Args, now: float) -> bool:
    """deleteMessage."""
    chat = find_chat(world, args)
    message = need_message(chat, args, "message to delete not found")
    if not _may_delete(world, chat, message, now):
        raise bad_request("message can't be deleted")
    world.remove(chat, [message.message_id])
    return True


def deletemessages(world: World, args: Args, now: float) -> bool:
    """deleteMessages: those that cannot be found are skipped."""
    chat = find_chat(world, args)
    wanted = args.parsed("message_ids", "can't parse message identifiers JSON object")
    if not isinstance(wanted, list) or not wanted:
        raise bad_request("message identifiers are not specified")
    ids = dict.fromkeys(item for item in wanted if isinstance(item, int))
    found = [chat.messages[item] for item in ids if item in chat.messages]
    if not all(_may_delete(world, chat, message, now) for message in found):
        raise bad_request("message can't be deleted")
    world.remove(chat, [message.message_id for message in found])
    return True


METHODS = (sendmessage, editmessagetext, editmessagereplymarkup, deletemessage, deletemessages)


def find_editable(world: World, args: Args) -> Message:
    """The message that a call edits: one of the bot's own (M6)."""
    chat = find_chat(world, args)
    if not args.has("message_id"):
        raise bad_request("message identifier is not specified")
    message = need_message(chat, args, "message to edit not found")
    if message.sender is not world.bot or message.service:
        raise bad_request("message can't be edited")
    return message


def edited(world: World, message: Message, now: float) -> Json:
    """Note that a message was edited; returns it as the call's result."""
    message.edit_date = int(now)
    world.changed(message)
    return world.view(message)


def _may_delete(world: World, chat: Chat, message: Message, now: float) -> bool:
    if "forum_topic_created" in message.service:
        return False
    if chat.type != "private" and chat.bot_is_admin and "can_delete_messages" in chat.rights:
        return True
    if now - message.date > DELETABLE_FOR:
        return False
    return chat.type == "private" or message.sender is world.bot
