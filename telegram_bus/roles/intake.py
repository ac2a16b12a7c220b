"""Updates as they come from Telegram: stored with their offset, then given to their owners or answered by us."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import trio
from attrs import define, field

from telegram_bus import crash
from telegram_bus.core import lobby
from telegram_bus.core.codec import dumps, loads
from telegram_bus.core.errors import BusError, InvalidEnvelope, StateError
from telegram_bus.core.routing import Deliver, Drop, Lobby, LobbyTopic, Rules, route
from telegram_bus.core.updates import UpdateInfo, describe
from telegram_bus.roles.term import Term
from telegram_bus.roles.threads import Call
from telegram_bus.store import NewUpdate, StoredUpdate

__all__ = ["Intake"]

log = logging.getLogger(__name__)

PROMOTION_GRACE: Final = 2.5  # seconds in which the followers of a leader that died find the next one (section 10)
LOBBY_BATCH: Final = 256  # of what an earlier leader left unanswered; older people have long asked again


@define(kw_only=True, eq=False)
class Intake:
    """The way in. `rules` is asked anew for each batch: the bot's name is known only once Telegram has answered."""

    term: Term
    rules: Callable[[], Rules]
    call: Call = field(repr=False)
    _channel: tuple[trio.MemorySendChannel[StoredUpdate], trio.MemoryReceiveChannel[StoredUpdate]] = field(
        factory=lambda: trio.open_memory_channel[StoredUpdate](math.inf)  # what is in it is in the store too
    )

    async def commit(self, batch: Sequence[dict[str, Any]], next_offset: int) -> None:
        """Store a batch and its offset, then let it go its ways; returns once it is on the disk.

        An update that cannot be read is logged and passed over. Raises what the store raises.
        """
        rows, rules = [], self.rules()
        for raw in batch:
            try:
                info, body = describe(raw), dumps(raw)
            except (ValueError, InvalidEnvelope) as error:
                log.warning("passed over: %s", error)
                continue
            await self._look_up_owner(info)
            if (row := self._row(body, info, rules)) is not None:
                rows.append(row)
        crash.point("after-poll")
        stored = await self.term.store.admit_batch(rows, next_offset, self.term.now_ms())
        crash.point("after-admit")
        self.term.deliveries.put(update for update in stored if update.owner_key is not None)
        for update in stored:
            if update.owner_key is None:
                self._channel[0].send_nowait(update)

    async def serve_lobby(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Answer what belongs to nobody, one after another, until cancelled."""
        for update in await self.term.store.pending(None, LOBBY_BATCH):
            self._channel[0].send_nowait(update)
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

    async def _look_up_owner(self, info: UpdateInfo) -> None:
        """Bring the owner of the message that the update is about into memory, where `route` looks."""
        message = info.reply_to if info.kind in ("message", "edited_message") else info.message_id
        if info.chat_id is not None and message is not None:
            await self.term.store.owner_of(info.chat_id, message)

    def _row(self, body: bytes, info: UpdateInfo, rules: Rules) -> NewUpdate | None:
        match route(info, rules, _Known(self.term)):
            case Drop(reason=reason):
                log.debug("update %d dropped: %s", info.update_id, reason)
                return None
            case Deliver(key=key):
                owner: str | None = key
                self.term.note_given(info, key)
            case Lobby():
                owner = None
        return NewUpdate(
            update_id=info.update_id,
            kind=info.kind,
            body=body,
            owner_key=owner,
            chat_id=info.chat_id,
            thread_id=info.thread_id,
        )

    async def _see_to(self, update: StoredUpdate) -> None:
        info = describe(loads(update.body))
        await self._look_up_owner(info)
        way = route(info, self.rules(), _Known(self.term))
        if isinstance(way, Lobby) and info.thread_id is not None and self._store_is_new():
            await self._let_owners_come()
            way = route(info, self.rules(), _Known(self.term))
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
            await self.call("answerCallbackQuery", {"callback_query_id": info.callback_id, "text": text}, None)
            return
        place: dict[str, Any] = {"chat_id": info.chat_id, "text": text, "link_preview_options": {"is_disabled": True}}
        if info.thread_id is not None:
            place["message_thread_id"] = info.thread_id
        await self.call("sendMessage", place, info.chat_id)


class _Known:
    """Who owns what, from memory."""

    def __init__(self, term: Term) -> None:
        self.of_thread = term.threads.of_thread
        self._store = term.store

    def of_message(self, chat_id: int, message_id: int, /) -> str | None:
        """The follower that sent a message."""
        return self._store.owner_nowait(chat_id, message_id)
