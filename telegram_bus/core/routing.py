"""Who gets an update: its owner, the leader itself, or nobody."""

from __future__ import annotations

from typing import Final, Literal, Protocol

from attrs import frozen

from telegram_bus.core.buttons import LEADERS
from telegram_bus.core.updates import UpdateInfo

__all__ = ["Deliver", "Drop", "DropReason", "Lobby", "Owners", "Route", "Rules", "command_of", "route"]

DropReason = Literal["stranger", "own", "service", "unknown kind", "edit of nobody's message", "nobody's message"]

LobbyTopic = Literal["status", "agents", "help", "who", "unowned thread", "unowned button", "other chat"]

_COMMANDS: Final[dict[str, LobbyTopic]] = {
    "status": "status",
    "agents": "agents",
    "help": "help",
    "start": "help",
}
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
    """Who owns what; both answer a binding key or None."""

    def of_thread(self, chat_id: int, thread_id: int, /) -> str | None:
        """The follower bound to a thread."""

    def of_message(self, chat_id: int, message_id: int, /) -> str | None:
        """The follower that sent a message."""


def command_of(text: str, username: str | None) -> str | None:
    """The command that a text is, in lower case and without its slash; None if it is none, or another bot's."""
    if not text.startswith("/"):
        return None
    word = text[1:].split(maxsplit=1)[0] if text[1:].strip() else ""
    name, at, bot = word.partition("@")
    if at and bot.casefold() != (username or "").casefold():
        return None
    return name.casefold() or None


def _message(info: UpdateInfo, rules: Rules, owners: Owners) -> Route:
    assert info.chat_id is not None
    if info.service:
        return Drop(reason="service")
    edited = info.kind == "edited_message"
    key = None
    if info.thread_id is not None:
        key = owners.of_thread(info.chat_id, info.thread_id)
    elif info.reply_to is not None:
        key = owners.of_message(info.chat_id, info.reply_to)
    if key is not None:
        return Deliver(key=key)
    if edited:
        return Drop(reason="edit of nobody's message")
    command = command_of(info.text, rules.username)
    if command is None and info.text.startswith("/") and "@" in info.text.split(maxsplit=1)[0]:
        return Drop(reason="nobody's message")  # a command for another bot of the group
    topic = _COMMANDS.get(command or "")
    return Lobby(topic=topic or ("who" if info.thread_id is None else "unowned thread"))


def route(info: UpdateInfo, rules: Rules, owners: Owners) -> Route:
    """Decide who gets an update.

    Strangers come first: nothing of theirs is looked at any further. A thread beats a reply, since a
    follower's messages stay in its thread; buttons and reactions go to who sent the message under them,
    because such updates may carry no thread.
    """
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
