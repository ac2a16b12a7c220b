"""What people do in the sandbox: write, press, edit, react, make and change topics. Pure and synchronous."""

from __future__ import annotations

from telegram_bus.sandbox.entities import found_entities, trimmed, utf16_length
from telegram_bus.sandbox.methods.finding import reply_thread
from telegram_bus.sandbox.methods.presence import CALLBACK_LIFE, REACTIONS
from telegram_bus.sandbox.methods.topics import clean_name
from telegram_bus.sandbox.model import ICON_COLORS, World
from telegram_bus.sandbox.model_types import Callback, Chat, Json, Message, Topic, User
from telegram_bus.sandbox.model_views import chat_view, message_view, topic_view, user_view

__all__ = [
    "MAX_CAPTION",
    "UnknownError",
    "block",
    "change_settings",
    "close_topic",
    "create_topic",
    "delete_message",
    "delete_topic",
    "edit",
    "enter",
    "find_message",
    "press",
    "prune_topic",
    "react",
    "rename_topic",
    "say",
]

# Bounds the memory of a long run: nobody answers a query when thousands came after it.
KEPT_CALLBACKS = 10_000
MAX_TEXT = 4096  # UTF-16 code units, as the apps count
MAX_CAPTION = 1024
IMPLICIT_NAME = "New Thread"


class UnknownError(Exception):
    """A person wants something that is not there or not possible; the message says what."""


def say(world: World, chat: Chat, user: User, text: str, now: float, *, thread_id: int = 0, reply_to: int = 0) -> Json:
    """A person writes a text; in a private chat this starts or unblocks the bot. Returns the message."""
    text, _ = trimmed(text, [])
    if not text:
        raise UnknownError("there is nothing to say: the text is empty")
    if utf16_length(text) > MAX_TEXT:
        raise UnknownError(f"the text is longer than {MAX_TEXT} characters; the apps would split it")
    thread = enter(world, chat, user, now, thread_id=thread_id, reply_to=reply_to)
    message = world.post(chat, user, now, text=text, entities=found_entities(text), thread_id=thread, reply_to=reply_to)
    return message_view(world, message)


def enter(world: World, chat: Chat, user: User, now: float, *, thread_id: int, reply_to: int) -> int:
    """A person is about to write; in a private chat this starts or unblocks the bot. Returns the thread it goes to."""
    _belongs(world, chat, user)
    if chat.migrated_to:
        raise UnknownError(f"this group became the supergroup {chat.migrated_to}")
    if user.deactivated:
        raise UnknownError(f"{user.first_name} deleted their account")
    if user is not world.owner and not _may_write(chat, user):
        raise UnknownError(f"{user.first_name} may not write here")
    if thread_id and _topic(chat, thread_id).closed and user is not world.owner:
        raise UnknownError("the topic is closed")
    if not thread_id and chat.is_forum and chat.general.closed and user is not world.owner:
        raise UnknownError("the topic General is closed")
    if reply_to and reply_to not in chat.messages:
        raise UnknownError(f"there is no message {reply_to} to answer")
    _start(world, chat, user, now)
    return thread_id or reply_thread(chat, chat.messages.get(reply_to))


def edit(world: World, chat: Chat, user: User, message_id: int, text: str, now: float) -> Json:
    """A person edits their message, or its caption, which may be empty. Returns it."""
    message = _own(chat, user, message_id)
    text, _ = trimmed(text, [])
    if not text and not message.content:
        raise UnknownError("an edited message needs a text")
    if utf16_length(text) > (limit := MAX_CAPTION if message.content else MAX_TEXT):
        raise UnknownError(f"the {'caption' if message.content else 'text'} is longer than {limit} characters")
    if text != message.text:
        message.text, message.entities, message.edit_date = text, found_entities(text), int(now)
        world.changed(message)
        world.emit("edited_message", world.view(message), now)
    return message_view(world, message)


def delete_message(world: World, chat: Chat, user: User, message_id: int) -> None:
    """A person deletes a message; the bot learns nothing of it. In a private chat anything can be deleted."""
    message = find_message(chat, message_id)
    if message.service and "forum_topic_created" in message.service:
        raise UnknownError("the message that created a topic goes only with the topic")
    if chat.type != "private" and message.sender is not user and user is not world.owner:
        raise UnknownError("somebody else's message")
    world.remove(chat, [message_id])


def press(
    world: World, chat: Chat, user: User, message_id: int, data: str, now: float, *, accessible: bool = True
) -> str:
    """A person presses the button that has `data`. Returns the id of the callback query.

    The update shows of a message that is not `accessible` to the server any more only where it was (M13).
    """
    message = find_message(chat, message_id)
    rows = (message.reply_markup or {}).get("inline_keyboard", [])
    if not any(button.get("callback_data") == data for row in rows for button in row):
        raise UnknownError(f"message {message_id} has no button with the data {data!r}")
    query = Callback(
        id=str(world.rng.randrange(10**17, 10**18)), chat_id=chat.id, message_id=message_id, user_id=user.id, made=now
    )
    _forget_old(world)
    world.callbacks[query.id] = query
    world.changes.add(
        "callback", id=query.id, chat_id=chat.id, message_id=message_id, user_id=user.id, data=data,
        until=now + CALLBACK_LIFE,
    )  # fmt: skip
    update: Json = {
        "id": query.id,
        "from": user_view(user),
        "message": world.view(message) if accessible else _inaccessible(world, message),
        "chat_instance": str(chat.id * 7919),
        "data": data,
    }
    world.emit("callback_query", update, now)
    return query.id


def react(world: World, chat: Chat, user: User, message_id: int, emoji: str, now: float) -> None:
    """A person reacts to a message; an empty `emoji` takes the reaction back. Bots see it only as administrators."""
    message = find_message(chat, message_id)
    emoji = emoji.replace("\ufe0f", "")
    if emoji and emoji not in REACTIONS:
        raise UnknownError(f"{emoji} is no reaction")
    old = message.reactions.pop(user.id, "")
    if emoji:
        message.reactions[user.id] = emoji
    world.changed(message)
    if chat.type != "private" and chat.bot_is_admin and old != emoji:
        update: Json = {
            "chat": chat_view(world, chat),
            "message_id": message_id,
            "user": user_view(user),
            "date": int(now),
            "old_reaction": _reaction(old),
            "new_reaction": _reaction(emoji),
        }
        world.emit("message_reaction", update, now)


def create_topic(world: World, chat: Chat, user: User, name: str, now: float) -> Json:
    """A person makes a topic; without a name it gets one that the bot is expected to change (T15). Returns it."""
    if not world.topics_on(chat):
        raise UnknownError("this chat has no topics (Threaded Mode is off)" if chat.type == "private" else "no forum")
    if chat.type == "private" and not world.settings.users_create_topics:
        raise UnknownError("the bot does not let people create topics")
    _belongs(world, chat, user)
    _start(world, chat, user, now)
    name = clean_name(name)
    color = world.rng.choice(ICON_COLORS)
    topic = Topic(thread_id=0, name=name or IMPLICIT_NAME, icon_color=color, name_implicit=not name)
    return topic_view(world.open_topic(chat, user, topic, now))


def rename_topic(world: World, chat: Chat, user: User, thread_id: int, name: str, now: float) -> Json:
    """A person renames a topic. Returns it."""
    topic, name = _topic(chat, thread_id), clean_name(name)
    if not name:
        raise UnknownError("a topic needs a name")
    if name != topic.name:
        world.rename_topic(chat, user, topic, {"name": name}, now)
    return topic_view(topic)


def close_topic(world: World, chat: Chat, user: User, thread_id: int, now: float, *, closed: bool) -> Json:
    """A person closes or reopens a topic of a forum. Returns it."""
    if not chat.is_forum:
        raise UnknownError("only topics of a forum can be closed")
    topic = _topic(chat, thread_id)
    if topic.closed is not closed:
        world.close_topic(chat, user, topic, now, closed=closed)
    return topic_view(topic)


def prune_topic(world: World, chat: Chat, thread_id: int) -> Json:
    """A topic grew so old that the bot cannot send there any more, while people can (T19). Returns it."""
    topic = _topic(chat, thread_id)
    world.prune_topic(chat, topic)
    return topic_view(topic)


def delete_topic(world: World, chat: Chat, thread_id: int, now: float) -> None:
    """A person deletes a topic with all its messages; the bot learns nothing of it (T13)."""
    world.drop_topic(chat, _topic(chat, thread_id), now)


def block(world: World, user: User, now: float, *, blocked: bool) -> None:
    """A person blocks or unblocks the bot."""
    if user.blocked is blocked:
        return
    was, user.blocked = user.blocked, blocked
    update: Json = {
        "chat": chat_view(world, world.chats[user.id]),
        "from": user_view(user),
        "date": int(now),
        "old_chat_member": _bot_in_private(world, blocked=was),
        "new_chat_member": _bot_in_private(world, blocked=blocked),
    }
    world.emit("my_chat_member", update, now)
    world.changes.add("user", user_id=user.id, blocked=blocked)


def change_settings(world: World, **chosen: bool) -> None:
    """Switch settings by name."""
    for name, value in chosen.items():
        setattr(world.settings, name, value)
    world.changes.add("settings", **chosen)


def _bot_in_private(world: World, *, blocked: bool) -> Json:
    user = user_view(world.bot)
    return {"user": user, "status": "kicked", "until_date": 0} if blocked else {"user": user, "status": "member"}


def _start(world: World, chat: Chat, user: User, now: float) -> None:
    if chat.type == "private":
        user.started = True
        block(world, user, now, blocked=False)


def _may_write(chat: Chat, user: User) -> bool:
    if user.id in chat.admins:
        return True
    return (chat.permissions | chat.restricted.get(user.id, {})).get("can_send_messages") is not False


def _belongs(world: World, chat: Chat, user: User) -> None:
    if not world.member_of(chat, user.id):
        raise UnknownError(f"{user.first_name} is not in this chat")


def find_message(chat: Chat, message_id: int) -> Message:
    """A message of the chat; raises `UnknownError`."""
    if message_id not in chat.messages:
        raise UnknownError(f"there is no message {message_id}")
    return chat.messages[message_id]


def _own(chat: Chat, user: User, message_id: int) -> Message:
    message = find_message(chat, message_id)
    if message.sender is not user or message.service:
        raise UnknownError("only one's own messages can be edited")
    return message


def _topic(chat: Chat, thread_id: int) -> Topic:
    if thread_id not in chat.topics:
        raise UnknownError(f"there is no topic {thread_id}")
    return chat.topics[thread_id]


def _inaccessible(world: World, message: Message) -> Json:
    return {"chat": chat_view(world, world.chats[message.chat_id]), "message_id": message.message_id, "date": 0}


def _reaction(emoji: str) -> list[Json]:
    return [{"type": "emoji", "emoji": emoji}] if emoji else []


def _forget_old(world: World) -> None:
    while len(world.callbacks) > KEPT_CALLBACKS:
        world.callbacks.pop(next(iter(world.callbacks)))
