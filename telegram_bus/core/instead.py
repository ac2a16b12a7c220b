"""What to use in the place of a Bot API method that followers may not call; for refusals only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from telegram_bus.core.methods import nearest
from telegram_bus.core.methods_table import METHODS, OTHERS

__all__ = ["hint"]

_OWN: Final = "copyMessage copies a message of your own thread"
_HELD: Final = "the leader keeps the connection to Telegram"
_ASK: Final = "ask_person asks people with buttons (x.buttons.keep)"
_PERSON: Final = "a person does that in the chat"

_INSTEAD: Final[Mapping[str, str]] = {
    "copyMessages": _OWN,
    "createForumTopic": "the leader makes your thread; a follower of another name has another one",
    "deleteMessages": "deleteMessage deletes one after another",
    "forwardMessage": f"{_OWN}; hand_over gives work to another follower (x.update.hand)",
    "forwardMessages": f"{_OWN}; hand_over gives work to another follower (x.update.hand)",
    "getChat": "update.message and update.sender say where it was written, and who wrote it",
    "getChatMember": "update.sender says who wrote",
    "getFile": "download fetches a file (x.file.get, downloadFile)",
    "getUpdates": "what people write in your thread is delivered to you",
    "reopenForumTopic": "the leader opens a closed thread when its follower is started anew",
    "sendContact": "sendMessage tells it as text",
    "sendDice": "sendMessage tells it as text",
    "sendPoll": _ASK,
    "sendChecklist": _ASK,
    "sendSticker": "sendPhoto and sendAnimation show pictures",
    "sendLivePhoto": "sendPhoto and sendVideo show it",
    "sendVenue": "sendLocation shows a place",
    "sendVideoNote": "sendVideo shows it",
    **dict.fromkeys(("close", "deleteWebhook", "getWebhookInfo", "logOut", "setWebhook"), _HELD),
    **dict.fromkeys(("pinChatMessage", "unpinChatMessage", "banChatMember", "setChatTitle", "setChatPhoto"), _PERSON),
}
"""Beside methods of the bus in Python the envelopes are named that do it for other programs."""


def hint(name: str, known: Iterable[str]) -> str:
    """How the refusal of a method that is not among `known` ends: what to call instead; "" where there is nothing.

    A method that the Bot API has is refused on purpose, so a name that looks like it would not help; any other may be
    misspelt.
    """
    allowed = list(known)
    meant = {one.casefold(): one for one in (*METHODS, *OTHERS.split())}.get(name.casefold())
    if meant is not None and meant not in allowed:
        return f": {_INSTEAD[meant]}" if meant in _INSTEAD else ""
    like = meant or nearest(name, allowed)
    return "" if like is None else f"; {like} is"
