"""What people and the bot alike can do in a chat: pin, change its title, open and close General, end a poll."""

from __future__ import annotations

from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_types import Chat, Json, Message, User
from telegram_bus.sandbox.model_views import chat_view, message_view

__all__ = ["change_general", "close_due_polls", "close_poll", "pin", "show_chat", "unpin"]


def pin(world: World, chat: Chat, actor: User, message: Message, now: float) -> None:
    """Pin a message and say so where it is; doing it again says it again."""
    if message.message_id not in chat.pinned:
        chat.pinned.append(message.message_id)
    world.changes.add("pins", chat_id=chat.id, message_ids=list(chat.pinned))
    shown = message_view(world, message, nested=True)
    world.post(chat, actor, now, thread_id=message.thread_id, service={"pinned_message": shown})


def unpin(world: World, chat: Chat, message_ids: list[int]) -> None:
    """Unpin messages; nobody is told."""
    chat.pinned = [item for item in chat.pinned if item not in message_ids]
    world.changes.add("pins", chat_id=chat.id, message_ids=list(chat.pinned))


def change_general(world: World, chat: Chat, actor: User, now: float, service: Json, **changes: str | bool) -> None:
    """Change name, closed or hidden of the topic General and say so in it."""
    for name, value in changes.items():
        setattr(chat.general, name, value)
    show_chat(world, chat)
    world.post(chat, actor, now, service=service)


def show_chat(world: World, chat: Chat) -> None:
    """Tell the followers of the world that a chat itself is not what it was."""
    world.changes.add(
        "chat", chat_id=chat.id, chat=chat_view(world, chat), bot_status=chat.bot_status, rights=sorted(chat.rights),
        members=list(chat.members), general={"name": chat.general.name, "closed": chat.general.closed,
        "hidden": chat.general.hidden}, migrated_to=chat.migrated_to,
    )  # fmt: skip


def close_poll(world: World, message: Message, now: float) -> None:
    """End a poll; the bot, which sent it, gets an update."""
    poll = message.content["poll"] = message.content["poll"] | {"is_closed": True}
    world.closing.pop(poll["id"], None)
    world.changed(message)
    world.emit("poll", poll, now)


def close_due_polls(world: World, now: float) -> None:
    """End the polls whose time is over."""
    for due, message in list(world.closing.values()):
        if due <= now:
            close_poll(world, message, now)
