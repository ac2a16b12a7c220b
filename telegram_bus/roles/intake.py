"""Updates as they come from Telegram: stored with their offset, then given to their owners or answered by us."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import trio
from attrs import define, evolve, field

from telegram_bus import crash
from telegram_bus.core.codec import dumps, loads
from telegram_bus.core.errors import InvalidEnvelope, StateError
from telegram_bus.core.notices import Backlog
from telegram_bus.core.routing import Deliver, Drop, Lobby, Rules, route
from telegram_bus.core.updates import UpdateInfo, amended, date_of, describe
from telegram_bus.roles.absences import Absences
from telegram_bus.roles.keyboards import Ends
from telegram_bus.roles.lobby import LobbyDesk, look_up_owner
from telegram_bus.roles.notices import Notices
from telegram_bus.roles.term import Term
from telegram_bus.store import Amendment, NewUpdate, Outcome, StoredUpdate

__all__ = ["Intake"]

log = logging.getLogger(__name__)

FULL_BATCH: Final = 100  # updates in one answer of Telegram; it may have more then


@define(eq=False)
class _News:
    """What a batch comes to: updates to store with their ages (s), and edits with the waiting updates they change.

    `presses` are the buttons that were pressed, each with its owner.
    """

    rows: list[NewUpdate] = field(factory=list)
    ages: list[float] = field(factory=list)
    edits: list[tuple[Amendment, StoredUpdate | None]] = field(factory=list)
    frozen: dict[int, StoredUpdate] = field(factory=dict)
    bodies: dict[int, bytes] = field(factory=dict)
    presses: list[tuple[str, str | None]] = field(factory=list)
    ends: Ends = field(factory=Ends)
    migrated: list[tuple[int, int]] = field(factory=list)
    """The group became a supergroup, from this id to that one."""


@define(kw_only=True, eq=False)
class Intake:
    """The way in. `rules` is asked anew for each batch: the bot's name is known only once Telegram has answered."""

    term: Term
    rules: Callable[[], Rules]
    lobby: LobbyDesk = field(repr=False)
    absences: Absences = field(repr=False)
    notices: Notices = field(repr=False)
    received: int = 0
    """Updates that polls have brought."""
    _backlog: Backlog = field(factory=Backlog)

    async def commit(self, batch: Sequence[dict[str, Any]], next_offset: int) -> None:
        """Store a batch and its offset, then let it go its ways; returns once it is on the disk.

        An update that cannot be read is logged and passed over. Raises what the store raises.
        """
        await self.term.threads.heard(batch, self.rules().bot_id)
        news, came = _News(), trio.current_time()
        try:
            await self._sort(batch, news)
            crash.point("after-poll")
            stored = await self.term.store.admit_batch(
                news.rows,
                next_offset,
                self.term.now_ms(),
                [edit for edit, _ in news.edits],
                list(news.ends.ends.values()),
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
        for query_id, owner in news.presses:
            self.term.buttons.expect(query_id, owner, came)
        self.term.keyboards.note_ends(news.ends)
        self.term.deliveries.put(update for update in stored if update.owner_key is not None)
        self.absences.note_kept({update.owner_key for update in stored if update.owner_key is not None})
        for update in stored:
            if update.owner_key is None:
                self.lobby.put(update)
        if text := self._backlog.add(news.ages, more=len(batch) >= FULL_BATCH):
            self.notices.say(text)
        await self._migrate(news.migrated)  # last: it is stored, and where that fails nothing is to be taken once more

    async def _migrate(self, migrated: Sequence[tuple[int, int]]) -> None:
        """Before the next batch is sorted, which comes from the new chat."""
        for old, new in migrated:
            try:
                await self.lobby.migrate(old, new)
            except StateError as error:  # the lobby tries it again when it comes to the notice, which is stored too
                log.error("the group became the supergroup %d, which is not noted yet: %s", new, error)  # noqa: TRY400

    async def _sort(self, batch: Sequence[dict[str, Any]], news: _News) -> None:
        """Decide what becomes of each update of a batch."""
        rules, now = self.rules(), self.term.now_ms() / 1000
        for raw in batch:
            try:
                info, body = describe(raw), dumps(raw)
            except (ValueError, InvalidEnvelope) as error:
                log.warning("passed over: %s", error)
                continue
            await look_up_owner(self.term, info)
            await self.lobby.notice(info, rules)
            row = self._row(body, info, rules)
            if row is None:
                if info.kind == "edited_message" and info.chat_id == rules.chat_id and info.sender_id in rules.allowed:
                    await self._amend_unowned(raw, body, info, news)
                continue
            if info.migrated is not None:
                news.migrated.append(info.migrated)
                rules = evolve(rules, chat_id=info.migrated[1])
            row = await self.term.keyboards.weigh(info, raw, row, news.ends)
            if info.callback_id is not None:
                if row.owner_key is not None:  # a kept button says itself whose it is
                    self.term.note_given(info, row.owner_key)
                news.presses.append((info.callback_id, row.owner_key))
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

    async def _amend_unowned(self, raw: dict[str, Any], edit: bytes, info: UpdateInfo, news: _News) -> None:
        """Let an edit change a message that nobody owns yet: whoever gets it gets it as it is then."""
        assert info.chat_id is not None
        for place, row in enumerate(news.rows):
            if (row.kind, row.owner_key, row.chat_id, row.message_id) == (
                "message",
                None,
                info.chat_id,
                info.message_id,
            ):
                news.rows[place] = evolve(row, body=dumps(amended(loads(row.body), raw)))
                news.edits.append((Amendment(update_id=info.update_id, seq=None, body=b""), None))
                return
        waiting = await self.term.store.lobby.unowned(info.chat_id, info.message_id or 0)
        if waiting is not None:
            body = dumps(amended(loads(waiting.body), raw))
            late = _new(info, edit)  # a person may choose at this moment who gets it
            change = Amendment(update_id=info.update_id, seq=waiting.seq, body=body, otherwise=late)
            news.edits.append((change, None))

    def _row(self, body: bytes, info: UpdateInfo, rules: Rules) -> NewUpdate | None:
        owner: str | None = None
        outcome: Outcome | None = None
        match route(info, rules, self.lobby.known):
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
        return _new(info, body, owner, outcome)


def _new(info: UpdateInfo, body: bytes, owner: str | None = None, outcome: Outcome | None = None) -> NewUpdate:
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
