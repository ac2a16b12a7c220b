"""Who the bot is and what Telegram lets it do in its chat, and what a person has to change about that."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import trio
from attrs import frozen

from telegram_bus.core.errors import ApiError, BusError
from telegram_bus.core.health import Condition, advice

__all__ = ["BotFacts", "hindrances", "learn_bot", "why_no_chat", "without_threads"]

log = logging.getLogger(__name__)

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0


@frozen(kw_only=True)
class BotFacts:
    """What getMe said, and getChatMember of the bot in its group; None where Telegram has not answered (yet)."""

    id: int
    username: str | None = None
    has_topics: bool | None = None
    reads_groups: bool | None = None
    is_administrator: bool | None = None
    manages_topics: bool | None = None
    is_forum: bool | None = None
    """Whether its group has topics."""
    no_chat: str | None = None
    """Why Telegram does not let the bot into its chat."""

    @property
    def name(self) -> str:
        """The bot as people call it."""
        return f"@{self.username}" if self.username else f"bot {self.id}"


async def learn_bot(call: Callable[[str, Mapping[str, Any]], Awaitable[Any]], bot_id: int, chat_id: int) -> BotFacts:
    """Ask Telegram who the bot is, for as long as it takes; `call` makes a Bot API call."""
    pause = FIRST_PAUSE
    while True:
        try:
            me = await call("getMe", {})
            break
        except BusError as error:
            if not isinstance(error, ApiError):  # what Telegram says of the token, polling says too
                log.warning("who the bot is will be asked again: %s", error)
            await trio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
    chat, seat, no_chat = await _look_into_chat(call, bot_id, chat_id)
    status = seat.get("status")
    return BotFacts(
        id=bot_id,
        username=me.get("username"),
        has_topics=me.get("has_topics_enabled"),
        reads_groups=me.get("can_read_all_group_messages"),
        is_administrator=status in ("administrator", "creator") if status else None,
        manages_topics=bool(seat.get("can_manage_topics")) if status else None,
        is_forum=chat.get("is_forum") is True if chat and chat_id < 0 else None,
        no_chat=no_chat,
    )


async def _look_into_chat(
    call: Callable[[str, Mapping[str, Any]], Awaitable[Any]], bot_id: int, chat_id: int
) -> tuple[Mapping[str, Any], Mapping[str, Any], str | None]:
    """The chat, the bot's seat in its group, and why it is not let in; all empty where nobody can tell."""
    chat: Mapping[str, Any] = {}
    try:
        told = await call("getChat", {"chat_id": chat_id})
        chat = told if isinstance(told, dict) else {}
        if chat_id < 0:
            return chat, await call("getChatMember", {"chat_id": chat_id, "user_id": bot_id}), None
    except ApiError as error:
        return chat, {}, error.description
    except BusError as error:
        log.info("the chat was not looked into: %s", error)
    return chat, {}, None


def without_threads(facts: BotFacts, chat_id: int) -> tuple[str | None, bool] | None:
    """Why agents get no threads in this chat, with the switch to turn (None: they do), and whether none has one.

    None where Telegram has not said enough.
    """
    if chat_id > 0:
        if facts.has_topics is None:
            return None
        switch = "switch on Threaded Mode of the bot in @BotFather's mini app"
        return (None, False) if facts.has_topics else (f"{facts.name} has no threads in private chats: {switch}", True)
    if facts.is_forum is None:
        return None
    if not facts.is_forum:
        return f"{facts.name} finds no topics in this group: switch on Topics in the group's settings", True
    if facts.manages_topics is False:
        right = "make it an administrator with the right to manage topics"
        return f"{facts.name} cannot make threads in the group: {right}", False
    return None, False


def why_no_chat(facts: BotFacts, chat_id: int) -> str | None:
    """Why the bot can do nothing in this chat; None: it can, as far as Telegram has said."""
    return None if facts.no_chat is None else f"{facts.name} cannot use chat {chat_id} (Telegram says: {facts.no_chat})"


def hindrances(facts: BotFacts, chat_id: int) -> list[str]:
    """What keeps the bus from working in this chat, each with the switch to turn."""
    if facts.no_chat is not None:
        return [advice(Condition("no chat", why_no_chat(facts, chat_id)))]
    threads = without_threads(facts, chat_id)
    lacking = [threads[0]] if threads is not None and threads[0] is not None else []
    if chat_id > 0:
        return lacking
    found = []
    if facts.reads_groups is False and facts.is_administrator is False:
        found.append(
            f"{facts.name} is in privacy mode and no administrator of the group, so it sees only commands and replies: "
            "make it an administrator, or switch off Group Privacy in @BotFather and add it to the group again"
        )
    return found + lacking
