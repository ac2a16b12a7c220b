"""Who gets an update: its owner, the leader itself, or nobody."""

from __future__ import annotations

import re
from typing import Final, Literal, Protocol

from attrs import frozen

from telegram_bus.core.buttons import LEADERS
from telegram_bus.core.updates import UpdateInfo

__all__ = ["Deliver", "Drop", "DropReason", "Lobby", "Owners", "Route", "Rules", "command_of", "route"]

DropReason = Literal[
    "stranger",
    "own",
    "service",
    "unknown kind",
    "edit of nobody's message",
    "nobody's message",
    "another bot's command",
]

LobbyTopic = Literal[
    "status", "agents", "help", "use", "mute", "unmute", "who", "unowned", "unowned button", "other chat", "migrated"
]
"""What the leader sees to itself; `unowned` is a message that waits until a person has chosen who gets it."""

_EVERYWHERE: Final[dict[str, LobbyTopic]] = {"agents": "agents", "help": "help", "mute": "mute", "unmute": "unmute"}
"""The leader's own commands that it takes in the threads of agents too."""

_COMMANDS: Final[dict[str, LobbyTopic]] = {**_EVERYWHERE, "status": "status", "start": "help", "use": "use"}
"""The leader's own commands, in the main chat (General in a forum)."""


@frozen(kw_only=True)
class Deliver:
    """The update belongs to the follower whose binding key this is."""

    key: str


@frozen(kw_only=True)
class Lobby:
    """The leader answers by itself."""

    topic: LobbyTopic


@frozen(kw_only=True)
class Drop:
    """Nobody gets it, for this reason."""

    reason: DropReason


Route = Deliver | Lobby | Drop


@frozen(kw_only=True)
class Rules:
    """The bot's chat, the people it listens to, itself (`username` without the @, None while unknown)."""

    chat_id: int
    allowed: frozenset[int]
    bot_id: int
    username: str | None = None


class Owners(Protocol):
    """Who owns what; all but `shared` answer a binding key or None."""

    def of_thread(self, chat_id: int, thread_id: int, /) -> str | None:
        """The follower bound to a thread."""

    def of_message(self, chat_id: int, message_id: int, /) -> str | None:
        """The follower that sent a message."""

    def given(self, chat_id: int, message_id: int, /) -> str | None:
        """The follower that was given a person's message."""

    def shared(self, chat_id: int, /) -> bool:
        """Whether agents without a thread of their own share the main chat."""

    def chosen(self, chat_id: int, user_id: int, /) -> str | None:
        """To which of the agents that share the main chat this person writes."""


def command_of(text: str, username: str | None) -> str | None:
    """The command that a text is, in lower case and without its slash; None if it is none, or another bot's."""
    if not text.startswith("/"):
        return None
    word = text[1:].split(maxsplit=1)[0] if text[1:].strip() else ""
    name, at, bot = word.partition("@")
    if at and bot.casefold() != (username or "").casefold():
        return None
    return name.casefold() or None


def _for_another_bot(text: str, username: str | None) -> bool:
    """Whether a text or caption begins with a command that names another bot; while ours is unknown none does.

    `/tmp/a@b is full` and `/a@b.org` are no commands (Bot API: 1 to 32 of a-z, 0-9 and _, then the bot's name).
    """
    if username is None or not text.startswith("/"):
        return False
    named = re.match(r"/[A-Za-z0-9_]{1,32}@([A-Za-z0-9_]{3,64})(?!\S)", text)
    return named is not None and named[1].casefold() != username.casefold()


def _message(info: UpdateInfo, rules: Rules, owners: Owners) -> Route:
    assert info.chat_id is not None
    if info.service:
        return Drop(reason="service")
    if _for_another_bot(info.text, rules.username):
        return Drop(reason="another bot's command")
    edited = info.kind == "edited_message"
    command = command_of(info.text, rules.username)
    if not edited and (topic := _EVERYWHERE.get(command or "")) is not None:
        return Lobby(topic=topic)
    key = None
    if info.thread_id is not None:
        key = owners.of_thread(info.chat_id, info.thread_id)
    elif info.reply_to is not None:
        key = owners.of_message(info.chat_id, info.reply_to)
    if key is None and edited and info.message_id is not None:
        key = owners.given(info.chat_id, info.message_id)
    if key is not None:
        return Deliver(key=key)
    if edited:
        return Drop(reason="edit of nobody's message")
    if (topic := _COMMANDS.get(command or "")) is not None:
        return Lobby(topic=topic)
    if info.thread_id is None and not owners.shared(info.chat_id):
        return Lobby(topic="who")
    if info.thread_id is None and info.sender_id is not None:
        key = owners.chosen(info.chat_id, info.sender_id)
    return Lobby(topic="unowned") if key is None else Deliver(key=key)


def route(info: UpdateInfo, rules: Rules, owners: Owners) -> Route:
    """Decide who gets an update.

    Strangers come first: nothing of theirs is looked at any further. A thread beats a reply, since a
    follower's messages stay in its thread; buttons and reactions go to who sent the message under them,
    because such updates may carry no thread. That a group became a supergroup counts whoever made it one: nobody
    can make up Telegram's own notice of it.
    """
    if info.migrated is not None and info.chat_id in info.migrated and rules.chat_id in info.migrated:
        return Lobby(topic="migrated")
    if info.sender_id == rules.bot_id:
        return Drop(reason="own")
    if info.sender_id is None or info.sender_id not in rules.allowed or info.chat_id is None:
        return Drop(reason="stranger" if info.kind != "other" else "unknown kind")
    if info.chat_id != rules.chat_id:
        if info.kind == "message" and info.chat_is_private and not info.service:
            return Lobby(topic="other chat")
        return Drop(reason="nobody's message")
    match info.kind:
        case "message" | "edited_message":
            return _message(info, rules, owners)
        case "callback_query" | "message_reaction":
            key = owners.of_message(info.chat_id, info.message_id) if info.message_id is not None else None
            leaders = info.kind == "callback_query" and info.text.startswith(LEADERS)  # in whatever thread it stands
            if key is None and info.thread_id is not None and not leaders:
                key = owners.of_thread(info.chat_id, info.thread_id)
            if key is not None:
                return Deliver(key=key)
            return Lobby(topic="unowned button") if info.kind == "callback_query" else Drop(reason="nobody's message")
        case "my_chat_member" | "other":
            return Drop(reason="unknown kind")
