"""The way of one call to Telegram: claimed when it is its turn, settled, released or left in doubt."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import trio
from attrs import define, field

from telegram_bus import crash
from telegram_bus.botapi.sender import Failed, Outcome, Sender, Sent
from telegram_bus.botapi.uploads import Upload
from telegram_bus.core import outcomes
from telegram_bus.core.codec import dumps
from telegram_bus.core.errors import ApiError, BusError, CommitUnknown, RequestRefused, StateError
from telegram_bus.core.files import file_ids
from telegram_bus.core.permissions import Allowed
from telegram_bus.roles.doubts import Work
from telegram_bus.roles.files import Files
from telegram_bus.roles.parking import Parking, closes_chat
from telegram_bus.roles.threads import Missing
from telegram_bus.store import New, Store
from telegram_bus.store.outbox import LEADER, Open
from telegram_bus.store.values import SEEN_MS

__all__ = ["FIRST_PAUSE", "Item", "Passage", "Place", "begun"]

log = logging.getLogger(__name__)

FIRST_PAUSE: Final = 0.5
"""Seconds until the second try of a call that was surely not sent."""

STALE_MS: Final = SEEN_MS
"""A call that could not be sent for so long is refused: by then its id would be forgotten."""

Place = tuple[str, str]
"""A call in the store: whose it is, and its id."""


@define(eq=False)
class Item:
    """A call under way; who asks for it again waits for the same end, whoever of them is cut off meanwhile."""

    place: Place
    call: Allowed
    digest: str
    durable: bool
    since_ms: int
    files: tuple[Upload, ...] = ()
    waiters: int = 0
    with_files: bool = False
    with_sender: bool = False  # which then tells when it has ended
    claimed: bool = False
    goes_on: bool = False  # the outbox goes on with it: who asked has to wait for that
    tended: bool = False  # by a task of the outbox
    pause: float = FIRST_PAUSE
    unsaved: Outcome | None = None  # what could not be stored yet
    outcome: Outcome | None = None
    tried: trio.Event = field(factory=trio.Event)
    done: trio.Event = field(factory=trio.Event)

    @property
    def what(self) -> tuple[str, bytes]:
        """Method and parameters as they are stored."""
        body = {**self.call.body, outcomes.FILES: len(self.files)} if self.files else self.call.body
        return self.call.api_method, dumps(body)

    def result(self) -> Any:
        """What came of it; raises what it failed with."""
        match self.outcome:
            case Sent(result=result):
                return result
            case Failed(fault=fault):
                raise fault
        raise AssertionError("ended without an outcome")


@define(kw_only=True, eq=False)
class Passage:
    """How calls leave in one term. `thread_missing` and `chat_migrated` are told what refusals say beyond their call.

    `later` has a call tried again (or its outcome stored, where that failed), `leave` ends it, `doubt` is given those
    of which nobody knows what became, `do` has work done in the background.
    """

    store: Store = field(repr=False)
    sender: Sender = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    files: Files = field(repr=False)
    parking: Parking = field(repr=False)
    later: Callable[[Item, Outcome | None], None] = field(repr=False)
    leave: Callable[[Item, Outcome], None] = field(repr=False)
    doubt: Callable[[Open], None] = field(repr=False)
    do: Callable[[Work], None] = field(repr=False)
    thread_missing: Callable[[int, int, Missing], None] = field(default=lambda *_: None, repr=False)
    chat_migrated: Callable[[int, int], Awaitable[bool]] | None = field(default=None, repr=False)
    _moved: dict[int, int] = field(factory=dict)

    async def notice(self, call: Allowed, error: ApiError) -> Allowed | None:
        """What a refusal says beyond its call: a chat that is closed, a thread that is gone.

        Returns the call as it is to be made instead, where its chat has become another one; not one about a message,
        which is not in the new chat, where another may have its id.
        """
        chat = outcomes.chat_of(call.body)
        if chat is None:
            return None
        new = error.migrate_to_chat_id
        if new is not None and new != chat and call.body.get("chat_id") not in self._moved.values():
            self._moved[chat] = new
            log.warning("chat %d has become chat %d", chat, new)
            if self.chat_migrated is not None:
                await self.chat_migrated(chat, new)
            return None if "message_id" in call.body else outcomes.moved(call, new)
        if (why := closes_chat(error)) is not None:
            await self.parking.closed(chat, why)
        thread = call.body.get("message_thread_id")
        if isinstance(thread, int) and (how := outcomes.thread_trouble(error)) is not None:
            self.thread_missing(chat, thread, how)
        return None

    async def attempt(self, item: Item) -> Any:
        """Queue the call and return the result, or raise what became of it; where it goes on, that is said later."""
        chat = outcomes.chat_of(item.call.body)
        if (new := self._moved.get(chat or 0)) is not None:
            item.call, chat = outcomes.moved(item.call, new), new
        item.claimed = item.goes_on = False
        try:
            return await self.sender.call(
                item.call.api_method,
                item.call.body,
                chat,
                before=partial(self._claim, item),
                release=partial(self._release, item),
                after=partial(self.end, item),
                files=item.files,
                owner=item.place[0],
                urgency=item.call.urgency,
                patient=item.call.patient or (item.durable and not item.waiters),
            )
        finally:
            item.tried.set()

    async def _claim(self, item: Item) -> None:
        """When it is its turn: what only waits when this leader dies was surely not sent, and the next one does."""
        method = item.call.api_method
        self.parking.check(method, outcomes.chat_of(item.call.body))
        with trio.CancelScope(shield=True):  # a claim that is made has to be known: what was not sent is taken back
            known = await self.store.claim_call(*item.place, item.digest, self.now_ms(), item.what)
        if not isinstance(known, New):
            raise begun(method)
        item.claimed = True
        crash.point("after-claim")

    async def _release(self, item: Item) -> None:
        """Telegram wants it later (429), so it waits again and was surely not sent."""
        if item.durable:
            await self.store.release_call(*item.place)
        else:
            await self.store.withdraw_call(*item.place)
        item.claimed = False
        crash.point("after-release")

    async def end(self, item: Item, outcome: Outcome) -> None:
        """In the sender's task: what Telegram did is stored whoever still waits for it, and what follows is begun."""
        if item.claimed:
            crash.point("after-send")
        try:
            final = await self._settle(item, outcome)
        except StateError as fault:  # it may have room again in a moment: so long nobody is told an outcome
            log.warning("the outcome of %s is not stored yet: %s", item.call.api_method, fault)
            self.later(item, outcome)
            raise
        except BaseException:  # the sender does not wait for ever, and a leader that was deposed stores nothing
            self.later(item, outcome)
            raise
        finally:
            for upload in item.files:
                os.close(upload.descriptor)
            item.files = ()
        if final is None:
            self.later(item, None)
            return
        crash.point("after-settle-call")
        self.leave(item, final)
        if final is not outcome and isinstance(final, Failed):
            raise final.fault

    async def _settle(self, item: Item, outcome: Outcome) -> Outcome | None:
        """Store an outcome and return what is told of it; None where the call goes on."""
        match outcome:
            case Sent(result=result):
                return await self._settle_sent(item, result)
            case Failed(fault=ApiError() as error):
                return await self._settle_refusal(item, error)
            case Failed(fault=CommitUnknown()):
                if item.claimed:
                    await self._doubt(item)
                return outcome
            case Failed(fault=fault):
                if not item.durable:
                    if item.claimed:
                        await self.store.withdraw_call(*item.place)
                    return outcome
                if isinstance(fault, RequestRefused) and (item.waiters or self.stale(item)):
                    await self.store.withdraw_call(*item.place)
                    return outcome
                if item.claimed:
                    await self._release(item)
                return None
        raise AssertionError(outcome)

    async def _settle_sent(self, item: Item, result: Any) -> Outcome:
        call, key = item.call, item.place[0]
        if found := outcomes.strays(call, result):
            fault = outcomes.wrong_place(call, found)
            await self.store.settle_call(*item.place, outcomes.remembered(fault), self.now_ms())
            log.warning("%s of %s: %s", call.api_method, key, fault)
            self.do(partial(self._delete, found))
            chat, thread = outcomes.chat_of(call.body), call.body.get("message_thread_id")
            if chat is not None and isinstance(thread, int):
                self.thread_missing(chat, thread, "elsewhere")
            return Failed(fault)
        sent = [] if key == LEADER else outcomes.sent_messages(call, result)
        self.files.note(key, file_ids(result))
        await self.store.settle_call(*item.place, outcomes.remembered(result), self.now_ms(), sent=sent)
        return Sent(result)

    async def _settle_refusal(self, item: Item, error: ApiError) -> Outcome | None:
        instead = await self.notice(item.call, error)
        if instead is not None and not item.with_files:  # surely not sent, so that it goes out once, in the new chat
            item.call, item.pause, item.durable = instead, 0.0, True
            await self.store.release_call(*item.place, item.what[1])
            return None
        surely_not = closes_chat(error) is not None or outcomes.thread_trouble(error) is not None
        if instead is not None or surely_not:  # the same id shall do it when the chat is open, or has another thread
            await self.store.withdraw_call(*item.place)
        else:
            await self.store.settle_call(*item.place, outcomes.remembered(error), self.now_ms())
        return Failed(error)

    async def _doubt(self, item: Item) -> None:
        log.warning("whether %s of %s was carried out is not known", item.call.api_method, item.place[0])
        row = await self.store.doubt_call(*item.place)
        crash.point("after-doubt")
        if row is not None:
            self.doubt(row)

    def stale(self, item: Item) -> bool:
        """Whether it could not be sent for too long."""
        return self.now_ms() - item.since_ms > STALE_MS

    async def _delete(self, found: list[tuple[int, int, int | None]]) -> None:
        for chat, message, _ in found:
            try:
                await self.sender.call("deleteMessage", {"chat_id": chat, "message_id": message}, chat)
            except BusError as error:
                log.warning("message %d of chat %d stands in a wrong place and stays: %s", message, chat, error)


def begun(method: str) -> CommitUnknown:
    """The fault of a call that was claimed and has no answer."""
    return CommitUnknown(
        f"{method} was begun and its outcome is not known; look into the chat before you send it again"
    )
