"""Updates as they come from Telegram: stored with their offset, then given to their owners or answered by us."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import trio
from attrs import define, evolve, field

from telegram_bus import crash
from telegram_bus.core import lobby
from telegram_bus.core.codec import dumps, loads
from telegram_bus.core.errors import BusError, InvalidEnvelope, StateError
from telegram_bus.core.notices import Backlog
from telegram_bus.core.routing import Deliver, Drop, Lobby, LobbyTopic, Rules, route
from telegram_bus.core.updates import UpdateInfo, amended, date_of, describe
from telegram_bus.roles.absences import Absences
from telegram_bus.roles.notices import Notices
from telegram_bus.roles.term import Term
from telegram_bus.roles.threads import Call
from telegram_bus.store import Amendment, NewUpdate, Outcome, StoredUpdate

__all__ = ["Intake"]

log = logging.getLogger(__name__)

PROMOTION_GRACE: Final = 2.5  # seconds in which the followers of a leader that died find the next one (section 10)
FULL_BATCH: Final = 100  # updates in one answer of Telegram; it may have more then
LOBBY_BATCH: Final = 256  # of what an earlier leader left unanswered; older people have long asked again


@define(eq=False)
class _News:
    """What a batch comes to: updates to store with their ages (s), and edits with the waiting updates they change."""

    rows: list[NewUpdate] = field(factory=list)
    ages: list[float] = field(factory=list)
    edits: list[tuple[Amendment, StoredUpdate | None]] = field(factory=list)
    frozen: dict[int, StoredUpdate] = field(factory=dict)
    bodies: dict[int, bytes] = field(factory=dict)


@define(kw_only=True, eq=False)
class Intake:
    """The way in. `rules` is asked anew for each batch: the bot's name is known only once Telegram has answered."""

    term: Term
    rules: Callable[[], Rules]
    call: Call = field(repr=False)
    absences: Absences = field(repr=False)
    notices: Notices = field(repr=False)
    received: int = 0
    """Updates that polls have brought."""
    _backlog: Backlog = field(factory=Backlog)
    _channel: tuple[trio.MemorySendChannel[StoredUpdate], trio.MemoryReceiveChannel[StoredUpdate]] = field(
        factory=lambda: trio.open_memory_channel[StoredUpdate](math.inf)  # what is in it is in the store too
    )

    async def commit(self, batch: Sequence[dict[str, Any]], next_offset: int) -> None:
        """Store a batch and its offset, then let it go its ways; returns once it is on the disk.

        An update that cannot be read is logged and passed over. Raises what the store raises.
        """
        news = _News()
        try:
            await self._sort(batch, news)
            crash.point("after-poll")
            stored = await self.term.store.admit_batch(
                news.rows, next_offset, self.term.now_ms(), [edit for edit, _ in news.edits]
            )
            crash.point("after-admit")
        except Exception:  # where we were cancelled it is stored all the same, and what was frozen must stay so
            for frozen in news.frozen.values():
                self.term.deliveries.thaw(frozen, None)
            raise
        for edit, update in news.edits:
            if update is not None and update.seq in news.frozen:
                self.term.deliveries.thaw(news.frozen.pop(update.seq), news.bodies[update.seq])
            log.info("update %d changed one that waits", edit.update_id)
        self.received += len(batch)
        self.term.deliveries.put(update for update in stored if update.owner_key is not None)
        self.absences.note_kept({update.owner_key for update in stored if update.owner_key is not None})
        for update in stored:
            if update.owner_key is None:
                self._channel[0].send_nowait(update)
        if text := self._backlog.add(news.ages, more=len(batch) >= FULL_BATCH):
            self.notices.say(text)

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

    async def _sort(self, batch: Sequence[dict[str, Any]], news: _News) -> None:
        """Decide what becomes of each update of a batch."""
        rules, now = self.rules(), self.term.now_ms() / 1000
        for raw in batch:
            try:
                info, body = describe(raw), dumps(raw)
            except (ValueError, InvalidEnvelope) as error:
                log.warning("passed over: %s", error)
                continue
            await self._look_up_owner(info)
            row = self._row(body, info, rules)
            if row is None:
                continue
            date = date_of(raw)
            news.ages.append(0.0 if date is None else now - date)
            if row.kind != "edited_message" or not await self._amend(raw, row, news):
                news.rows.append(row)

    async def _amend(self, raw: dict[str, Any], edit: NewUpdate, news: _News) -> bool:
        """Let an edit change the message itself where that still waits and nobody can have it yet."""
        key, chat_id, message_id = edit.owner_key, edit.chat_id, edit.message_id
        if key is None or chat_id is None or message_id is None:
            return False
        for place, row in enumerate(news.rows):  # both in one batch, which is usual after an absence
            if (row.kind, row.owner_key, row.chat_id, row.message_id) == ("message", key, chat_id, message_id):
                news.rows[place] = evolve(row, body=dumps(amended(loads(row.body), raw)))
                news.edits.append((Amendment(update_id=edit.update_id, seq=None, body=b""), None))
                return True
        if not self.term.deliveries.waiting(key):
            return False
        waiting = await self.term.store.waiting_message(key, chat_id, message_id)
        if waiting is None:
            return False
        if waiting.seq not in news.frozen:
            if not self.term.deliveries.freeze(waiting):
                return False
            news.frozen[waiting.seq] = waiting
        body = news.bodies[waiting.seq] = dumps(amended(loads(waiting.body), raw))
        news.edits.append((Amendment(update_id=edit.update_id, seq=waiting.seq, body=body), waiting))
        return True

    async def _look_up_owner(self, info: UpdateInfo) -> None:
        """Bring the owner of the message that the update is about into memory, where `route` looks."""
        message = info.reply_to if info.kind in ("message", "edited_message") else info.message_id
        if info.chat_id is not None and message is not None:
            await self.term.store.owner_of(info.chat_id, message)

    def _row(self, body: bytes, info: UpdateInfo, rules: Rules) -> NewUpdate | None:
        owner: str | None = None
        outcome: Outcome | None = None
        match route(info, rules, _Known(self.term)):
            case Drop(reason="unknown kind") if info.sender_id in rules.allowed and info.chat_id == rules.chat_id:
                log.info(
                    "update %d is of a kind that no follower takes (%s); kept for a while", info.update_id, info.kind
                )
                owner, outcome = None, "dropped"
            case Drop(reason=reason):
                log.debug("update %d dropped: %s", info.update_id, reason)
                return None
            case Deliver(key=key):
                owner = key
                self.term.note_given(info, key)
            case Lobby():
                pass
        return NewUpdate(
            update_id=info.update_id,
            kind=info.kind,
            body=body,
            owner_key=owner,
            chat_id=info.chat_id,
            thread_id=info.thread_id,
            message_id=info.message_id,
            outcome=outcome,
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
