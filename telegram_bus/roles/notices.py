"""The leader's own messages to people: one after another, and never in the way of anything else."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio
from attrs import define, field, frozen

from telegram_bus.botapi.polling import STOOD_DOWN, PollState
from telegram_bus.core.errors import BusError, NotSent
from telegram_bus.core.health import Condition, LeaderState, remedy
from telegram_bus.core.permissions import Allowed
from telegram_bus.roles.outbox import Outbox
from telegram_bus.roles.threads import Call
from telegram_bus.store.outbox import LEADER

__all__ = ["Notices", "once_by"]

Named = Callable[[str, dict[str, Any]], Awaitable[Any]]

log = logging.getLogger(__name__)

MOST: Final = 100
"""Notices that wait while Telegram cannot be reached; the ones that come then are only logged."""

PAUSE: Final = 10.0

TOLD: Final = frozenset({"conflict", "webhook", "storage"})
"""States of polling that the chat is told of: only a person can mend them, and messages still go out."""


@frozen
class _Notice:
    text: str
    thread_id: int | None
    reply_to: int | None
    name: str | None


def once_by(outbox: Outbox) -> Named:
    """Sends a message under a name in the leader's own name: once in 48 h, whichever leaders die meanwhile."""

    async def send(name: str, params: dict[str, Any]) -> None:
        call = Allowed(method="call", args=("sendMessage", params), patient=True)
        await outbox.once((LEADER, name), call, ["sendMessage"], durable=True, files=tuple)

    return send


@define(kw_only=True, eq=False)
class Notices:
    """Says each thing once. While Telegram cannot be reached it waits; what Telegram refuses is only logged."""

    chat_id: int
    call: Call = field(repr=False)
    threadless: Callable[[], bool] = field(default=lambda: False, repr=False)
    """Whether the chat has no threads now, so that everything is said in the main chat."""
    named: Named | None = field(default=None, repr=False)
    """Sends what has a name; None: as the rest is sent."""
    _told: set[str] = field(factory=set)
    _channel: tuple[trio.MemorySendChannel[_Notice], trio.MemoryReceiveChannel[_Notice]] = field(
        factory=lambda: trio.open_memory_channel[_Notice](MOST)
    )

    def say(
        self, text: str, thread_id: int | None = None, reply_to: int | None = None, *, name: str | None = None
    ) -> None:
        """Say it in a thread, or in the main chat; under a name it is said once, by whatever leader."""
        log.info("to the chat: %s", text)
        try:
            self._channel[0].send_nowait(_Notice(text, thread_id, reply_to, name))
        except trio.WouldBlock:
            log.warning("the chat was not told: %s", text)

    def say_once(self, state: LeaderState, detail: str) -> None:
        """Say in the main chat, once in a term, that the leader is in a state that only a person can mend."""
        if state not in self._told:
            self._told.add(state)
            todo = remedy(Condition(state, detail))
            self.say(f"This bot cannot hear you ({state}): {detail}" + (f" — {todo}" if todo else ""))

    def note_polling(self, state: PollState) -> None:
        """A state of polling; a conflict is worth a word only when it lasts."""
        detail = state.detail or "nobody knows why"
        if state.state in TOLD and (state.state != "conflict" or STOOD_DOWN in detail):
            self.say_once(state.state, detail)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Send what is said, until cancelled."""
        task_status.started()
        async for notice in self._channel[1]:
            await self._send(notice)

    async def _send(self, notice: _Notice) -> None:
        while True:
            try:
                if notice.name is not None and self.named is not None:
                    await self.named(notice.name, self._params(notice))
                else:
                    await self.call("sendMessage", self._params(notice), self.chat_id)
            except NotSent:
                await trio.sleep(PAUSE)
                continue
            except BusError as error:
                log.warning("the chat was not told %r: %s", notice.text, error)
            return

    def _params(self, notice: _Notice) -> dict[str, Any]:
        params: dict[str, Any] = {"chat_id": self.chat_id, "text": notice.text, "disable_notification": True}
        if notice.thread_id is not None and not self.threadless():
            params["message_thread_id"] = notice.thread_id
        if notice.reply_to is not None:
            params["reply_parameters"] = {"message_id": notice.reply_to, "allow_sending_without_reply": True}
        return params
