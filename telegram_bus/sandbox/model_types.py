"""What the sandbox's world consists of: users, chats, topics, messages, callback queries."""

from __future__ import annotations

from typing import Any

import attrs

__all__ = ["ADMIN_RIGHTS", "Callback", "Chat", "General", "Json", "Message", "Settings", "Topic", "User"]

Json = dict[str, Any]

TOPIC_CACHED = 60.0  # seconds that a deleted topic may still be there for the bot, T4

# What a person gives a bot by default when making it administrator: all but the right to make others.
ADMIN_RIGHTS = frozenset(
    "can_manage_chat can_change_info can_delete_messages can_invite_users can_manage_topics can_manage_video_chats "
    "can_pin_messages can_restrict_members".split()
)


@attrs.define(kw_only=True)
class User:
    """A person or the bot; `started` says whether a person ever wrote to the bot, `blocked` that they blocked it.

    `known` people were seen by the bot somewhere; `deactivated` ones deleted their account.
    """

    id: int
    first_name: str
    username: str
    last_name: str = ""
    is_bot: bool = False
    started: bool = True
    blocked: bool = False
    known: bool = False
    deactivated: bool = False


@attrs.define(kw_only=True)
class General:
    """The topic General of a forum, which has no thread id when one writes into it."""

    name: str = "General"
    closed: bool = False
    hidden: bool = False


@attrs.define(kw_only=True)
class Topic:
    """A thread of a chat; its id is the id of the service message that created it (contract T8).

    A `pruned` one is not found for the bot any more, though people write there (T19).
    """

    thread_id: int
    name: str
    icon_color: int
    icon_custom_emoji_id: str = ""
    closed: bool = False
    name_implicit: bool = False
    pruned: bool = False


@attrs.define(kw_only=True)
class Message:
    """One message; `service` holds what a service message says, and is empty for an ordinary one.

    `content` is what it shows beside text, as the Bot API names it (photo, document, poll, …); its `text` is then the
    caption. `extras` are further fields as they are shown (forward_origin, quote, link_preview_options, …).
    """

    message_id: int
    chat_id: int
    date: int
    sender: User
    text: str = ""
    entities: list[Json] = attrs.field(factory=list)
    thread_id: int = 0
    reply_to: int = 0
    reply_markup: Json | None = None
    edit_date: int = 0
    service: Json = attrs.field(factory=dict)
    reactions: dict[int, str] = attrs.field(factory=dict)
    content: Json = attrs.field(factory=dict)
    album: str = ""
    extras: Json = attrs.field(factory=dict)

    @property
    def is_protected(self) -> bool:
        """Whether it may not be forwarded or copied."""
        return bool(self.extras.get("has_protected_content"))


@attrs.define(kw_only=True)
class Chat:
    """A chat the bot can know: private, group or supergroup; ids of messages and topics come from one counter.

    `admins` are people with their rights, `banned` those who may not come back, `restricted` what single people may do
    and `permissions` what all may do; `migrated_to` is the supergroup that a group became; `deleted_topics` are those
    that went lately, with the time (T4).
    """

    id: int
    type: str
    title: str = ""
    is_forum: bool = False
    members: list[int] = attrs.field(factory=list)
    rights: frozenset[str] = frozenset()
    bot_status: str = "member"
    next_id: int = 2
    messages: dict[int, Message] = attrs.field(factory=dict)
    topics: dict[int, Topic] = attrs.field(factory=dict)
    general: General = attrs.field(factory=General)
    pinned: list[int] = attrs.field(factory=list)
    admins: dict[int, Json] = attrs.field(factory=dict)
    banned: set[int] = attrs.field(factory=set)
    restricted: dict[int, Json] = attrs.field(factory=dict)
    permissions: Json = attrs.field(factory=dict)
    description: str = ""
    photo: Json = attrs.field(factory=dict)
    links: dict[str, Json] = attrs.field(factory=dict)
    migrated_to: int = 0
    deleted_topics: dict[int, float] = attrs.field(factory=dict)

    def take_id(self) -> int:
        """The next id of a message."""
        self.next_id += 1
        return self.next_id - 1

    def forget_deleted_topics(self, now: float) -> None:
        """Forget the topics whose deletion the server has noticed by now (T4)."""
        if self.deleted_topics:
            self.deleted_topics = {key: at for key, at in self.deleted_topics.items() if now < at + TOPIC_CACHED}

    @property
    def bot_is_admin(self) -> bool:
        """Whether the bot is an administrator here."""
        return self.bot_status == "administrator"


@attrs.define(kw_only=True)
class Callback:
    """A pressed button; its spinner turns until `answered`."""

    id: str
    chat_id: int
    message_id: int
    user_id: int
    made: float
    answered: bool = False


@attrs.define(kw_only=True)
class Settings:
    """What a person can switch while the sandbox runs; `privacy` is the group privacy mode of the bot.

    With `topic_cache` the bot may still send into a topic that was deleted a moment ago (T4).
    """

    threaded_mode: bool = True
    users_create_topics: bool = True
    privacy: bool = True
    topic_cache: bool = False
