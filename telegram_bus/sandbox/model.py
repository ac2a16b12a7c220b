"""The sandbox's world: a bot, its people and chats, and everything that happens between them. Pure and synchronous."""

from __future__ import annotations

import random
import string
from typing import Any

from telegram_bus.sandbox.model_changes import Changes
from telegram_bus.sandbox.model_files import FileStore
from telegram_bus.sandbox.model_polls import Polls
from telegram_bus.sandbox.model_profile import Profile
from telegram_bus.sandbox.model_queue import UpdateQueue
from telegram_bus.sandbox.model_types import (
    ADMIN_RIGHTS,
    Callback,
    Chat,
    Json,
    Message,
    Settings,
    Topic,
    User,
)
from telegram_bus.sandbox.model_views import message_view, shown_message, topic_view

__all__ = ["ICON_COLORS", "World"]

# Of a chat; bounds the memory of a long run.
KEPT_MESSAGES = 10_000
ICON_COLORS = (7322096, 16766590, 13338331, 9367192, 16749490, 16478047)  # contract T9
_TOKEN_LETTERS = string.ascii_letters + string.digits + "_-"
# Of what a bot does itself, these service messages come back to it, and nothing else (T14).
_OWN_SERVICES = frozenset(
    "forum_topic_created forum_topic_edited forum_topic_closed forum_topic_reopened general_forum_topic_hidden "
    "general_forum_topic_unhidden pinned_message new_chat_title new_chat_photo delete_chat_photo "
    "left_chat_member".split()
)


class World:
    """All state of one sandbox. Every method takes the time; randomness comes from the `rng` given at the start."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        bot_id = rng.randrange(1_000_000_000, 7_999_999_999)
        self.token = f"{bot_id}:" + "AA" + "".join(rng.choice(_TOKEN_LETTERS) for _ in range(33))
        self.bot = User(id=bot_id, first_name="Sandbox Bot", username=f"sandbox_{bot_id % 10_000}_bot", is_bot=True)
        self.settings = Settings()
        self.users: dict[int, User] = {}
        self.chats: dict[int, Chat] = {}
        self.callbacks: dict[str, Callback] = {}
        self.commands: dict[tuple[str, str], list[Json]] = {}
        self.webhook: Json = {}
        self.queue = UpdateQueue(rng)
        self.polls = Polls(self.queue)
        self.changes = Changes()
        self.files = FileStore(rng)
        self.profile = Profile()
        self.closing: dict[str, tuple[float, Message]] = {}  # open polls that end by themselves, by their id
        self.votes: dict[str, dict[int, list[int]]] = {}  # of polls by their id: who chose what
        self.drafts: dict[tuple[int, int], Json] = {}  # by chat and draft id: thread_id, until, can_stop
        self._settle_in()

    # -- finding ---------------------------------------------------------------------------------------

    def member_of(self, chat: Chat, user_id: int) -> bool:
        """Whether a person belongs to a chat."""
        return user_id in chat.members

    def topics_on(self, chat: Chat) -> bool:
        """Whether a chat has topics: a forum, or a private chat in Threaded Mode."""
        return chat.is_forum or (chat.type == "private" and self.settings.threaded_mode)

    def view(self, message: Message) -> Json:
        """A message as the Bot API shows it."""
        return message_view(self, message)

    # -- what happens ----------------------------------------------------------------------------------

    def post(self, chat: Chat, sender: User, now: float, **fields: Any) -> Message:
        """Add a message to a chat and queue the update for the bot, if the bot gets to see it."""
        message = Message(message_id=chat.take_id(), chat_id=chat.id, date=int(now), sender=sender, **fields)
        chat.messages[message.message_id] = message
        if len(chat.messages) > KEPT_MESSAGES:
            _forget_oldest(chat)
        self.changes.add("message", chat_id=chat.id, message=shown_message(self, message))
        if self._bot_sees(chat, message):
            sender.known = True
            self.emit("message", self.view(message), now)
        return message

    def changed(self, message: Message) -> None:
        """Tell the followers of the world that a message is not what it was."""
        self.changes.add("edit", chat_id=message.chat_id, message=shown_message(self, message))

    def remove(self, chat: Chat, message_ids: list[int]) -> None:
        """Take messages away; the bot learns nothing of it."""
        for message_id in message_ids:
            del chat.messages[message_id]
        chat.pinned = [item for item in chat.pinned if item in chat.messages]
        self.changes.add("delete", chat_id=chat.id, message_ids=message_ids)

    def emit(self, kind: str, payload: Json, now: float) -> None:
        """Queue an update and wake the poll that waits."""
        if self.queue.add(kind, payload, now) is not None:
            self.polls.wake(now)

    # -- topics ----------------------------------------------------------------------------------------

    def open_topic(self, chat: Chat, maker: User, topic: Topic, now: float) -> Topic:
        """Create a topic with its service message; `topic.thread_id` is set from that message."""
        topic.thread_id = chat.next_id
        chat.topics[topic.thread_id] = topic
        self.changes.add("topic", chat_id=chat.id, topic=topic_view(topic))
        created: Json = {"name": topic.name, "icon_color": topic.icon_color}
        if topic.icon_custom_emoji_id:
            created["icon_custom_emoji_id"] = topic.icon_custom_emoji_id
        if topic.name_implicit:
            created["is_name_implicit"] = True
        self.post(chat, maker, now, thread_id=topic.thread_id, service={"forum_topic_created": created})
        return topic

    def rename_topic(self, chat: Chat, actor: User, topic: Topic, edited: Json, now: float) -> None:
        """Change name or icon of a topic and say so in it."""
        topic.name = edited.get("name", topic.name)
        topic.icon_custom_emoji_id = edited.get("icon_custom_emoji_id", topic.icon_custom_emoji_id)
        topic.name_implicit = False
        self.changes.add("topic", chat_id=chat.id, topic=topic_view(topic))
        self.post(chat, actor, now, thread_id=topic.thread_id, service={"forum_topic_edited": edited})

    def close_topic(self, chat: Chat, actor: User, topic: Topic, now: float, *, closed: bool) -> None:
        """Close or reopen a topic and say so in it."""
        topic.closed = closed
        self.changes.add("topic", chat_id=chat.id, topic=topic_view(topic))
        service = "forum_topic_closed" if closed else "forum_topic_reopened"
        self.post(chat, actor, now, thread_id=topic.thread_id, service={service: {}})

    def prune_topic(self, chat: Chat, topic: Topic) -> None:
        """The server does not find a topic for the bot any more; people go on there (T19)."""
        topic.pruned = True
        self.changes.add("topic", chat_id=chat.id, topic=topic_view(topic))

    def drop_topic(self, chat: Chat, topic: Topic, now: float) -> None:
        """Delete a topic and what was said in it; there is no update for that (T13)."""
        gone = [item.message_id for item in chat.messages.values() if item.thread_id == topic.thread_id]
        self.remove(chat, gone)
        del chat.topics[topic.thread_id]
        chat.forget_deleted_topics(now)
        chat.deleted_topics[topic.thread_id] = now
        self.changes.add("topic_deleted", chat_id=chat.id, thread_id=topic.thread_id)

    # -- inside ----------------------------------------------------------------------------------------

    def _bot_sees(self, chat: Chat, message: Message) -> bool:
        if chat.bot_status in {"left", "kicked"}:
            return "left_chat_member" in message.service
        if message.sender is self.bot:
            return not _OWN_SERVICES.isdisjoint(message.service)
        if chat.type == "private" or chat.bot_is_admin or message.service or not self.settings.privacy:
            return True
        return self._is_meant(chat, message)

    def _is_meant(self, chat: Chat, message: Message) -> bool:
        # Group privacy mode: commands, replies to the bot and mentions of it only.
        replied = chat.messages.get(message.reply_to)
        if replied is not None and replied.sender is self.bot:
            return True
        mine = f"@{self.bot.username}".lower()
        first = message.text.split(maxsplit=1)[0].lower() if message.text else ""
        if first.startswith("/"):
            return "@" not in first or first.endswith(mine)
        return mine in message.text.lower()

    def _settle_in(self) -> None:
        owner = self._person("Olivia", "Owner", "olivia_sandbox")
        friend = self._person("Frank", "Friend", "frank_sandbox")
        stranger = self._person("Sam", "Stranger", "sam_sandbox")
        stranger.started = False
        for user in (owner, friend, stranger):
            self.chats[user.id] = Chat(id=user.id, type="private", members=[user.id])
        people = [owner.id, friend.id, stranger.id]
        forum_id = -1_000_000_000_000 - self.rng.randrange(1_000_000_000, 2_000_000_000)
        self.chats[forum_id] = Chat(
            id=forum_id, type="supergroup", title="Sandbox Forum", is_forum=True, members=people,
            bot_status="administrator", rights=ADMIN_RIGHTS,
        )  # fmt: skip
        group_id = -self.rng.randrange(100_000_000, 900_000_000)
        self.chats[group_id] = Chat(id=group_id, type="group", title="Sandbox Group", members=list(people))
        self.owner, self.forum_id, self.group_id = owner, forum_id, group_id

    def _person(self, first: str, last: str, username: str) -> User:
        user = User(
            id=self.rng.randrange(100_000_000, 999_999_999), first_name=first, last_name=last, username=username
        )
        self.users[user.id] = user
        return user


def _forget_oldest(chat: Chat) -> None:
    # What created a topic stays as long as the topic.
    oldest = next(item for item in chat.messages.values() if item.message_id not in chat.topics)
    del chat.messages[oldest.message_id]
    if oldest.message_id in chat.pinned:
        chat.pinned.remove(oldest.message_id)
