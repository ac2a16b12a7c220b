"""The leader's lobby: answers what belongs to no follower, one thing after another."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any, Final

import trio
from attrs import define, field

from telegram_bus.core import lobby
from telegram_bus.core.codec import loads
from telegram_bus.core.errors import BusError, StateError
from telegram_bus.core.routing import Deliver, Drop, Lobby, LobbyTopic, Rules, route
from telegram_bus.core.updates import UpdateInfo, describe
from telegram_bus.roles.term import Term
from telegram_bus.roles.threads import Call
from telegram_bus.store import StoredUpdate

__all__ = ["Known", "LobbyDesk", "look_up_owner"]

log = logging.getLogger(__name__)

PROMOTION_GRACE: Final = 2.5  # seconds in which the followers of a leader that died find the next one (section 10)
LOBBY_BATCH: Final = 256  # of what an earlier leader left unanswered; older people have long asked again


class Known:
    """Who owns what, from memory."""

    def __init__(self, term: Term) -> None:
        self.of_thread = term.threads.of_thread
        self._store = term.store

    def of_message(self, chat_id: int, message_id: int, /) -> str | None:
        """The follower that sent a message."""
        return self._store.owner_nowait(chat_id, message_id)


async def look_up_owner(term: Term, info: UpdateInfo) -> None:
    """Bring the owner of the message that the update is about into memory, where `route` looks."""
    message = info.reply_to if info.kind in ("message", "edited_message") else info.message_id
    if info.chat_id is not None and message is not None:
        await term.store.owner_of(info.chat_id, message)


@define(kw_only=True, eq=False)
class LobbyDesk:
    """Sees to updates without an owner, which are in the store."""

    term: Term
    rules: Callable[[], Rules]
    call: Call = field(repr=False)
    _channel: tuple[trio.MemorySendChannel[StoredUpdate], trio.MemoryReceiveChannel[StoredUpdate]] = field(
        factory=lambda: trio.open_memory_channel[StoredUpdate](math.inf)  # what is in it is in the store too
    )

    def put(self, update: StoredUpdate) -> None:
        """Take an update that is in the store and has no owner."""
        if self.term.buttons.put(update):
            return
        self._channel[0].send_nowait(update)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """See to what is put, and to what an earlier leader left, until cancelled."""
        for update in await self.term.store.pending(None, LOBBY_BATCH):
            self.put(update)
        task_status.started()
        async for update in self._channel[1]:
            try:
                await self._see_to(update)
            except StateError as error:  # the next leader finds it; this one goes on with what it can do
                log.error("update %d may be answered once more: %s", update.update_id, error)  # noqa: TRY400

    def _store_is_new(self) -> bool:
        return all(binding.since_ms >= self.term.since_ms for binding in self.term.threads.all())

    async def _let_owners_come(self) -> None:
        """Where a store was lost only the followers know which threads are theirs: they register soon."""
        age = (self.term.now_ms() - self.term.since_ms) / 1000
        await trio.sleep(min(PROMOTION_GRACE, max(0.0, PROMOTION_GRACE - age)))

    async def _see_to(self, update: StoredUpdate) -> None:
        info = describe(loads(update.body))
        await look_up_owner(self.term, info)
        way = route(info, self.rules(), Known(self.term))
        if isinstance(way, Lobby) and info.thread_id is not None and self._store_is_new():
            await self._let_owners_come()
            way = route(info, self.rules(), Known(self.term))
        match way:
            case Deliver(key=key):  # it has got an owner since
                await self.term.store.assign(update.seq, key)
                self.term.note_given(info, key)
                self.term.deliveries.take_over(update, key)
                return
            case Lobby(topic=topic):
                try:
                    await self._say(topic, info)
                except BusError as error:
                    log.warning("update %d got no answer: %s", update.update_id, error)
            case Drop(reason=reason):
                log.debug("update %d dropped: %s", update.update_id, reason)
        await self.term.store.settle(update.seq, "answered", self.term.now_ms())

    async def _say(self, topic: LobbyTopic, info: UpdateInfo) -> None:
        text = lobby.answer(topic, self.term.bus_line(), self.term.agent_lines())
        if info.callback_id is not None:
            self.term.buttons.say(info.callback_id, text)
            return
        place: dict[str, Any] = {"chat_id": info.chat_id, "text": text, "link_preview_options": {"is_disabled": True}}
        if info.thread_id is not None:
            place["message_thread_id"] = info.thread_id
        await self.call("sendMessage", place, info.chat_id)
