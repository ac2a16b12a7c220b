"""Chats that nothing can be sent to, because a person blocked the bot or threw it out, until somebody writes there."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from attrs import define, field

from telegram_bus.core.errors import ApiError, BusError, RequestRefused
from telegram_bus.store import Store

__all__ = ["Parking", "closes_chat"]

log = logging.getLogger(__name__)

_SIGNS: Final = (
    ("bot was blocked by the user", "the person has blocked the bot"),
    ("user is deactivated", "the person's account is gone"),
    ("bot was kicked", "the bot was thrown out of the group"),
    ("bot is not a member", "the bot is no member of the group"),
    ("bot can't initiate conversation", "the person has not pressed Start yet"),
)
"""What Telegram says with 403 where the whole chat is closed to us (bot-api M9; compared without case)."""


def closes_chat(error: ApiError) -> str | None:
    """Why nothing at all can be sent to the chat of the refused call; None where the refusal says less."""
    text = error.description.casefold()
    return next((why for sign, why in _SIGNS if error.code == 403 and sign in text), None)


@define(kw_only=True, eq=False)
class Parking:
    """The parked chats, in memory and in the store: also the next leader sends nothing there."""

    store: Store = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    _parked: dict[int, str] = field(factory=dict)

    def recall(self, parked: dict[int, str]) -> None:
        """What earlier leaders learned: chats, each with the reason."""
        self._parked = dict(parked)

    def why(self, chat_id: int | None) -> str | None:
        """Why nothing is sent to the chat; None where it is not parked."""
        return None if chat_id is None else self._parked.get(chat_id)

    def all(self) -> dict[int, str]:
        """The parked chats, each with the reason."""
        return dict(self._parked)

    def check(self, method: str, chat_id: int | None) -> None:
        """Raises RequestRefused where the chat is parked."""
        if (why := self.why(chat_id)) is not None:
            raise RequestRefused(
                f"{method} was not sent: nothing can be sent to chat {chat_id}, {why}; "
                "it is tried again once somebody writes to the bot there",
                method=method,
            )

    async def closed(self, chat_id: int, why: str) -> None:
        """Telegram lets nothing into the chat any more."""
        if chat_id in self._parked:
            return
        self._parked[chat_id] = why
        log.warning("nothing is sent to chat %d any more: %s", chat_id, why)
        try:
            await self.store.park(chat_id, why, self.now_ms())
        except BusError as error:  # the next leader will hear it from Telegram
            log.warning("not noted that chat %d is closed: %s", chat_id, error)

    async def opened(self, chat_id: int) -> bool:
        """Somebody has written there; True where that is news. To be called for each update that comes from a chat.

        No checkpoint where the chat was not parked.
        """
        if self._parked.pop(chat_id, None) is None:
            return False
        log.info("chat %d can be written to again", chat_id)
        try:
            await self.store.unpark(chat_id)
        except BusError as error:
            log.warning("not noted that chat %d is open again: %s", chat_id, error)
        return True
