"""Pinning messages, in a chat and in topics."""

from __future__ import annotations

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.methods.finding import find_open_chat, need_message, need_right
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_acts import pin, unpin
from telegram_bus.sandbox.model_types import Chat
from telegram_bus.sandbox.refusal import bad_request

__all__ = [
    "METHODS", "pinchatmessage", "unpinallchatmessages", "unpinallforumtopicmessages",
    "unpinallgeneralforumtopicmessages", "unpinchatmessage",
]  # fmt: skip


def pinchatmessage(world: World, args: Args, now: float) -> bool:
    """pinChatMessage: the service message that says so comes back as an update."""
    chat = _chat(world, args)
    message = need_message(chat, args, "message to pin not found")
    if message.service:
        raise bad_request("message can't be pinned")
    pin(world, chat, world.bot, message, now)
    return True


def unpinchatmessage(world: World, args: Args, now: float) -> bool:  # noqa: ARG001 - one shape for all methods
    """unpinChatMessage: without an id, the newest pinned one."""
    chat = _chat(world, args)
    wanted = args.integer("message_id") if args.has("message_id") else max(chat.pinned, default=0)
    if wanted not in chat.pinned:
        raise bad_request("message to unpin not found")
    unpin(world, chat, [wanted])
    return True


def unpinallchatmessages(world: World, args: Args, now: float) -> bool:  # noqa: ARG001
    """unpinAllChatMessages."""
    chat = _chat(world, args)
    unpin(world, chat, list(chat.pinned))
    return True


def unpinallforumtopicmessages(world: World, args: Args, now: float) -> bool:  # noqa: ARG001
    """unpinAllForumTopicMessages."""
    chat = _chat(world, args)
    if not (chat.is_forum or chat.type == "private"):
        raise bad_request("the chat is not a forum")
    thread_id = args.integer("message_thread_id")
    if thread_id <= 0:
        raise bad_request("invalid forum topic identifier specified")
    if thread_id not in chat.topics:
        raise bad_request("TOPIC_ID_INVALID")
    return _unpin_thread(world, chat, thread_id)


def unpinallgeneralforumtopicmessages(world: World, args: Args, now: float) -> bool:  # noqa: ARG001
    """unpinAllGeneralForumTopicMessages."""
    chat = _chat(world, args)
    if not chat.is_forum:
        raise bad_request("the chat is not a supergroup forum")
    return _unpin_thread(world, chat, 0)


METHODS = (
    pinchatmessage, unpinchatmessage, unpinallchatmessages, unpinallforumtopicmessages,
    unpinallgeneralforumtopicmessages,
)  # fmt: skip


def _chat(world: World, args: Args) -> Chat:
    chat = find_open_chat(world, args)
    need_right(chat, "can_pin_messages", "manage pinned messages in the chat")
    return chat


def _unpin_thread(world: World, chat: Chat, thread_id: int) -> bool:
    pinned = [item for item in chat.pinned if chat.messages[item].thread_id == thread_id]
    if not pinned:
        raise bad_request("CHAT_NOT_MODIFIED")
    unpin(world, chat, pinned)
    return True
