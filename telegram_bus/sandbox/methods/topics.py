"""Topics, in forum supergroups and in private chats."""

from __future__ import annotations

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.methods.finding import find_chat, find_open_chat, need_right
from telegram_bus.sandbox.model import ICON_COLORS, World
from telegram_bus.sandbox.model_types import Chat, Json, Topic
from telegram_bus.sandbox.refusal import bad_request

__all__ = [
    "ICONS", "METHODS", "clean_name", "closeforumtopic", "createforumtopic", "deleteforumtopic", "editforumtopic",
    "getforumtopiciconstickers", "reopenforumtopic",
]  # fmt: skip

MAX_NAME = 128  # code points, T7
# Emoji and made-up identifiers of the custom emoji that icons are drawn from; the real list begins with 📰 too.
ICONS = {
    str(5_434_144_690_511_290_000 + index): emoji
    for index, emoji in enumerate("📰💡⚡🔝🗣🆒❗📝📆📁🔎📣🔥❤❓📈📉💎💰💸💬☕✅")
}


def clean_name(name: str) -> str:
    """A topic's name as the server keeps it: runs of white space are one space, the rest is cut (T7)."""
    return " ".join(name.split())[:MAX_NAME].strip()


def createforumtopic(world: World, args: Args, now: float) -> Json:
    """createForumTopic (T6 to T9)."""
    chat = find_open_chat(world, args)
    if not world.topics_on(chat):
        raise bad_request("the chat is not a forum")
    if chat.is_forum:
        need_right(chat, "can_manage_topics", "create a topic")
    name = clean_name(args.text("name"))
    if not name:
        raise bad_request("name must be non-empty")
    color = args.integer("icon_color", ICON_COLORS[0])
    if not 0 <= color <= 0xFFFFFF or color not in ICON_COLORS:
        raise bad_request("invalid icon color specified")
    icon = _icon(args)
    topic = Topic(thread_id=0, name=name, icon_color=color, icon_custom_emoji_id=icon)
    world.open_topic(chat, world.bot, topic, now)
    made: Json = {"message_thread_id": topic.thread_id, "name": topic.name, "icon_color": topic.icon_color}
    if icon:
        made["icon_custom_emoji_id"] = icon
    return made


def editforumtopic(world: World, args: Args, now: float) -> bool:
    """editForumTopic (T10)."""
    chat = _topic_chat(world, args)
    topic = _topic(chat, args)
    need_right(chat, "can_manage_topics", "edit the topic")
    name = clean_name(args.text("name"))
    edited: Json = {"name": name} if name else {}
    if args.text("icon_custom_emoji_id"):
        edited["icon_custom_emoji_id"] = _icon(args)
    if not edited:
        return True
    current = {"name": topic.name, "icon_custom_emoji_id": topic.icon_custom_emoji_id}
    changed = {field: value for field, value in edited.items() if current[field] != value}
    if not changed:
        raise bad_request("TOPIC_NOT_MODIFIED")
    world.rename_topic(chat, world.bot, topic, changed, now)
    return True


def closeforumtopic(world: World, args: Args, now: float) -> bool:
    """closeForumTopic (T11)."""
    return _close(world, args, now, closed=True)


def reopenforumtopic(world: World, args: Args, now: float) -> bool:
    """reopenForumTopic (T11)."""
    return _close(world, args, now, closed=False)


def deleteforumtopic(world: World, args: Args, now: float) -> bool:
    """deleteForumTopic (T13)."""
    chat = _topic_chat(world, args)
    topic = _topic(chat, args)
    need_right(chat, "can_delete_messages", "delete the topic")
    world.drop_topic(chat, topic, now)
    return True


def getforumtopiciconstickers(world: World, args: Args, now: float) -> list[Json]:  # noqa: ARG001 - one shape for all
    """getForumTopicIconStickers: sizes as of the real ones; the files are not there."""
    return [_sticker(identifier, emoji) for identifier, emoji in ICONS.items()]


METHODS = (
    createforumtopic, editforumtopic, closeforumtopic, reopenforumtopic, deleteforumtopic, getforumtopiciconstickers,
)  # fmt: skip


def _sticker(identifier: str, emoji: str) -> Json:
    # Sizes and the lengths of the identifiers are those of the real stickers, which python-telegram-bot's tests know.
    thumbnail = {
        "file_id": f"topic-icon-thumbnail-{identifier}",
        "file_unique_id": f"AQAD{identifier[-12:]}",
        "width": 128,
        "height": 128,
        "file_size": 4_000,
    }
    return {
        "file_id": f"topic-icon-{identifier}",
        "file_unique_id": f"AgAD{identifier[-11:]}",
        "type": "custom_emoji",
        "width": 512,
        "height": 512,
        "is_animated": True,
        "is_video": False,
        "thumbnail": thumbnail,
        "emoji": emoji,
        "set_name": "Topics",
        "custom_emoji_id": identifier,
        "file_size": 30_000,
    }


def _topic_chat(world: World, args: Args) -> Chat:
    chat = find_chat(world, args)
    if not (chat.is_forum or chat.type == "private"):
        raise bad_request("the chat is not a forum")
    return chat


def _topic(chat: Chat, args: Args) -> Topic:
    thread_id = args.integer("message_thread_id")
    if thread_id <= 0:
        raise bad_request("invalid forum topic identifier specified")
    topic = chat.topics.get(thread_id)
    if topic is None:
        raise bad_request("TOPIC_ID_INVALID")
    return topic


def _icon(args: Args) -> str:
    icon = args.text("icon_custom_emoji_id")
    if icon and icon not in ICONS:
        raise bad_request("DOCUMENT_INVALID")
    return icon


def _close(world: World, args: Args, now: float, *, closed: bool) -> bool:
    chat = find_chat(world, args)
    if not chat.is_forum:
        raise bad_request("the chat is not a supergroup forum")
    topic = _topic(chat, args)
    need_right(chat, "can_manage_topics", "close the topic" if closed else "reopen the topic")
    if topic.closed is closed:
        raise bad_request("TOPIC_NOT_MODIFIED")
    world.close_topic(chat, world.bot, topic, now, closed=closed)
    return True
