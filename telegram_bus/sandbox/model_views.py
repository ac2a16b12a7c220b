"""How users, chats and messages look in the Bot API's JSON, and to those who follow the sandbox."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from telegram_bus.sandbox.model_types import Chat, Json, Message, Topic, User

if TYPE_CHECKING:
    from telegram_bus.sandbox.model import World

__all__ = [
    "PERMISSIONS",
    "chat_full_view",
    "chat_state",
    "chat_view",
    "message_view",
    "shown_message",
    "topic_view",
    "user_view",
    "world_state",
]

# Colours of names, as Telegram gives them to clients.
ACCENTS = 7
PERMISSIONS = (
    "can_send_messages can_send_audios can_send_documents can_send_photos can_send_videos can_send_video_notes "
    "can_send_voice_notes can_send_polls can_send_other_messages can_add_web_page_previews can_change_info "
    "can_invite_users can_pin_messages can_manage_topics can_react_to_messages can_edit_tag"
).split()


def user_view(user: User) -> Json:
    """A User object."""
    view: Json = {"id": user.id, "is_bot": user.is_bot, "first_name": user.first_name}
    if user.last_name:
        view["last_name"] = user.last_name
    if user.username:
        view["username"] = user.username
    if not user.is_bot:
        view["language_code"] = "en"
    return view


def chat_view(world: World, chat: Chat) -> Json:
    """A Chat object."""
    if chat.type == "private":
        user = world.users[chat.id]
        view: Json = {"id": chat.id, "first_name": user.first_name}
        if user.last_name:
            view["last_name"] = user.last_name
        return view | {"username": user.username, "type": "private"}
    view = {"id": chat.id, "title": chat.title, "type": chat.type}
    if chat.is_forum:
        view["is_forum"] = True
    return view


def chat_full_view(world: World, chat: Chat) -> Json:
    """A ChatFullInfo object."""
    gifts = dict.fromkeys(
        ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels"),
        chat.type == "private",
    )
    view = chat_view(world, chat) | {
        "accent_color_id": abs(chat.id) % ACCENTS,
        "max_reaction_count": 11,
        "accepted_gift_types": gifts,
    }
    if chat.photo:
        view["photo"] = chat.photo
    if chat.pinned:
        # The newest one by its date, which is not always the one pinned last.
        view["pinned_message"] = message_view(world, chat.messages[max(chat.pinned)])
    if chat.type == "private":
        return view | {"active_usernames": [world.users[chat.id].username]}
    if chat.description:
        view["description"] = chat.description
    return view | {"permissions": dict.fromkeys(PERMISSIONS, True) | chat.permissions}


def message_view(world: World, message: Message, *, nested: bool = False) -> Json:
    """A Message object; the message that it replies to is `nested` in it and shows none itself."""
    chat = world.chats[message.chat_id]
    view: Json = {
        "message_id": message.message_id,
        "from": user_view(message.sender),
        "chat": chat_view(world, chat),
        "date": message.date,
    }
    if message.edit_date:
        view["edit_date"] = message.edit_date
    if message.thread_id:
        view["message_thread_id"] = message.thread_id
        if chat.type == "private" or chat.is_forum:
            # In other supergroups it is a thread of replies, which is no topic (T2).
            view["is_topic_message"] = True
    replied = None if nested else _replied(chat, message)
    if replied is not None:
        view["reply_to_message"] = message_view(world, replied, nested=True)
    prefix = "caption_" if message.content else ""
    if message.text:
        view["caption" if message.content else "text"] = message.text
    if message.entities:
        view[f"{prefix}entities"] = message.entities
    if message.album:
        view["media_group_id"] = message.album
    if message.reply_markup:
        view["reply_markup"] = message.reply_markup
    return view | message.content | message.extras | message.service


def _replied(chat: Chat, message: Message) -> Message | None:
    if message.reply_to:
        return chat.messages.get(message.reply_to)
    if chat.is_forum and message.thread_id != message.message_id:
        # In a forum, what answers nothing shows the message that created its topic.
        return chat.messages.get(message.thread_id)
    return None


def topic_view(topic: Topic) -> Json:
    """A topic as the sandbox's followers see it; the Bot API shows only some of it, and never a list."""
    return {
        "thread_id": topic.thread_id,
        "name": topic.name,
        "icon_color": topic.icon_color,
        "icon_custom_emoji_id": topic.icon_custom_emoji_id,
        "closed": topic.closed,
        "name_implicit": topic.name_implicit,
        "pruned": topic.pruned,
    }


def shown_message(world: World, message: Message) -> Json:
    """A Message object with what only the people in the chat see: whose it is, the reactions, a poll's votes."""
    counts = Counter(message.reactions.values())
    reactions = [
        {"emoji": emoji, "by": [user for user, given in message.reactions.items() if given == emoji]}
        for emoji in counts
    ]
    own = message.sender is world.bot
    shown = message_view(world, message) | {"by_bot": own, "reactions": reactions}
    if (poll := message.content.get("poll")) is None:
        return shown
    votes = [{"user_id": user, "options": chosen} for user, chosen in world.votes.get(poll["id"], {}).items()]
    return shown | {"votes": votes}


def chat_state(world: World, chat: Chat) -> Json:
    """A chat with its topics and messages."""
    return {
        **chat_view(world, chat),
        "has_topics": world.topics_on(chat),
        "members": chat.members,
        "bot_status": chat.bot_status,
        "rights": sorted(chat.rights),
        "pinned": list(chat.pinned),
        "general": {"name": chat.general.name, "closed": chat.general.closed, "hidden": chat.general.hidden},
        "migrated_to": chat.migrated_to,
        "topics": [topic_view(topic) for topic in chat.topics.values()],
        "messages": [shown_message(world, message) for message in chat.messages.values()],
    }


def _person(user: User) -> Json:
    return user_view(user) | {"started": user.started, "blocked": user.blocked, "deactivated": user.deactivated}


def world_state(world: World) -> Json:
    """Everything that the page shows, with the number of the last change it contains."""
    return {
        "seq": world.changes.last,
        "bot": user_view(world.bot),
        "users": [_person(user) for user in world.users.values()],
        "owner_id": world.owner.id,
        "forum_id": world.forum_id,
        "group_id": world.chats[world.group_id].migrated_to or world.group_id,
        "chats": [chat_state(world, chat) for chat in world.chats.values()],
        "settings": {
            "threaded_mode": world.settings.threaded_mode,
            "users_create_topics": world.settings.users_create_topics,
            "privacy": world.settings.privacy,
            "topic_cache": world.settings.topic_cache,
        },
    }
