"""The outbox: calls that must not be made twice, from their acceptance until they are sent, refused or unknown.

A call with an id of its program's choice (`once=…`) is durable from its acceptance on: whoever leads sends it, asked
again or not. One without an id lives as long as who asks for it, since a program that begins anew asks anew, under
another id; it is claimed only when it is its turn. Files travel as open descriptors, which end with the leader, so a
call with files is claimed only, whatever its id.
"""

from __future__ import annotations

import logging
import math
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Any, Final, assert_never

import trio
from attrs import define, field

from telegram_bus import crash
from telegram_bus.botapi.sender import Failed, Outcome, Sender, Sent
from telegram_bus.botapi.uploads import Upload
from telegram_bus.core import outcomes
from telegram_bus.core.codec import dumps, loads
from telegram_bus.core.errors import ApiError, BusError, CommitUnknown, RequestRefused, StateError
from telegram_bus.core.files import file_ids
from telegram_bus.core.permissions import Allowed
from telegram_bus.roles.doubts import Doubts, Work
from telegram_bus.roles.files import Files
from telegram_bus.roles.parking import Parking, closes_chat
from telegram_bus.roles.threads import Missing
from telegram_bus.store import Collision, New, Repeat, Store, Unknown
from telegram_bus.store.outbox import LEADER, Open
from telegram_bus.store.values import SEEN_MS

__all__ = ["Outbox"]

log = logging.getLogger(__name__)

MOST: Final = 1_000
"""Calls of one follower that are accepted and not settled; who asks for more is refused."""

PAGE: Final = 50  # of what an earlier leader left, at once
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
"""Seconds between the tries of a call that was surely not sent: no network, a chat that has to wait, a full disk."""

STALE_MS: Final = SEEN_MS
"""A call that could not be sent for so long is refused: by then its id would be forgotten."""

_Place = tuple[str, str]
"""A call in the store: whose it is, and its id."""


@define(eq=False)
class _Item:
    """A call under way; who asks for it again waits for the same end, whoever of them is cut off meanwhile."""

    place: _Place
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
        match self.outcome:
            case Sent(result=result):
                return result
            case Failed(fault=fault):
                raise fault
        raise AssertionError("ended without an outcome")


@define(kw_only=True, eq=False)
class Outbox:
    """The calls of one term. `thread_missing` and `chat_migrated` are those of `Threads`; `run` does the work.

    Whoever closes a chat or a thread to us is seen here first, also by calls that may be repeated (`notice`).
    """

    store: Store = field(repr=False)
    sender: Sender = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    files: Files = field(repr=False)
    parking: Parking = field(repr=False)
    thread_missing: Callable[[int, int, Missing], None] = field(default=lambda *_: None, repr=False)
    chat_migrated: Callable[[int, int], Awaitable[bool]] | None = field(default=None, repr=False)
    _running: dict[_Place, _Item] = field(factory=dict)
    _open: Counter[str] = field(factory=Counter)
    _replaying: dict[str, trio.Event] = field(factory=dict)
    _moved: dict[int, int] = field(factory=dict)
    _work: tuple[trio.MemorySendChannel[Work], trio.MemoryReceiveChannel[Work]] = field(
        factory=lambda: trio.open_memory_channel[Work](math.inf)  # one for each open call
    )
    doubts: Doubts = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.doubts = Doubts(
            store=self.store, now_ms=self.now_ms, send=self._send_stored, call=self.sender.call, do=self._do
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Send what earlier leaders had accepted, and whatever cannot be sent at once, until cancelled."""
        async with trio.open_nursery() as nursery:
            if not await self._begin(nursery):
                nursery.start_soon(self._begin_later, nursery)
            task_status.started()
            async for work in self._work[1]:
                nursery.start_soon(work)

    async def once(
        self, place: _Place, call: Allowed, told_apart_by: list[Any], *, durable: bool, files: Callable[[], Any]
    ) -> Any:
        """Make the call of this place (owner, id) and return its result; one that was made is not made again.

        `told_apart_by` is what two calls of one id must have in common. `files` takes the open files of the call.
        Raises ApiError, CommitUnknown, RequestRefused, NotSent, and what the store raises.
        """
        if (replaying := self._replaying.get(place[0])) is not None:
            await replaying.wait()  # what the owner had asked for before goes out before
        while (running := self._running.get(place)) is not None:
            running.waiters += 1
            try:
                await running.done.wait()
            finally:
                running.waiters -= 1
        digest = sha256(dumps(told_apart_by)).hexdigest()
        item = _Item(place, call, digest, durable, self.now_ms(), waiters=1)
        self._enter(item)
        try:
            return await self._look(item, files)
        finally:
            item.waiters -= 1
            if not item.with_sender:
                self._leave(item, None)

    async def notice(self, call: Allowed, error: ApiError) -> Allowed | None:
        """What a refusal says beyond its call: a chat that is closed, a thread that is gone.

        Returns the call as it is to be made instead, where its chat has become another one.
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
            return outcomes.moved(call, new)
        if (why := closes_chat(error)) is not None:
            await self.parking.closed(chat, why)
        thread = call.body.get("message_thread_id")
        if isinstance(thread, int) and (how := outcomes.thread_trouble(error)) is not None:
            self.thread_missing(chat, thread, how)
        return None

    def status(self) -> dict[str, Any]:
        """What is not settled, for the status: docs/commands.md lists the fields."""
        parked = [{"chat_id": chat, "why": why} for chat, why in self.parking.all().items()]
        return {"waiting": len(self._running), "parked": parked, **self.doubts.status()}

    def waiting(self, key: str) -> int:
        """How many calls of a follower are not settled."""
        return self._open[key]

    @property
    def busy(self) -> bool:
        """Whether something is to be sent yet that can be sent."""
        chats = (outcomes.chat_of(item.call.body) for item in self._running.values())
        return bool(self._replaying) or any(self.parking.why(chat) is None for chat in chats)

    # -- the way of a call

    async def _look(self, item: _Item, files: Callable[[], Any]) -> Any:
        place, method = item.place, item.call.api_method
        try:
            self._check(item)
        except BusError:
            known = await self.store.known_call(*place, item.digest)
            if isinstance(known, New):
                raise
        else:
            if item.durable:
                with trio.CancelScope(shield=True):  # what is accepted has to be sent
                    known = await self.store.accept_call(*place, item.digest, self.now_ms(), item.what)
                crash.point("after-accept")
            else:
                known = await self.store.known_call(*place, item.digest)
        match known:
            case New():
                item.files = files()
                item.with_files = bool(item.files)
                return await self._first(item)
            case Repeat(answer=answer):
                return outcomes.recall(method, answer)
            case Unknown():
                raise _begun(method)
            case Collision():
                raise RequestRefused(
                    f"another call was made under the id {place[1]}; give each call an id of its own",
                    code="request-id-collision",
                    method=method,
                )
            case _:
                assert_never(known)

    def _check(self, item: _Item) -> None:
        method, chat = item.call.api_method, outcomes.chat_of(item.call.body)
        self.parking.check(method, chat)
        self.sender.check(method, chat, owner=item.place[0], patient=item.call.patient)
        if item.durable and self._open[item.place[0]] > MOST:
            raise RequestRefused(f"{MOST} calls of {item.place[0]} wait to be sent; wait for some of them")

    async def _first(self, item: _Item) -> Any:
        """The first try, in the task of who asks; what follows is the outbox's."""
        item.with_sender = True
        try:
            result = await self._try(item)
        except BusError:
            if not (item.goes_on and item.durable):
                raise
        else:
            if not item.goes_on:
                return result
        await item.done.wait()
        return item.result()

    async def _try(self, item: _Item) -> Any:
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
                after=partial(self._end, item),
                files=item.files,
                owner=item.place[0],
                urgency=item.call.urgency,
                patient=item.call.patient or (item.durable and not item.waiters),
            )
        finally:
            item.tried.set()

    async def _claim(self, item: _Item) -> None:
        """When it is its turn: what only waits when this leader dies was surely not sent, and the next one does."""
        method = item.call.api_method
        self.parking.check(method, outcomes.chat_of(item.call.body))
        with trio.CancelScope(shield=True):  # a claim that is made has to be known: what was not sent is taken back
            known = await self.store.claim_call(*item.place, item.digest, self.now_ms(), item.what)
        if not isinstance(known, New):
            raise _begun(method)
        item.claimed = True
        crash.point("after-claim")

    async def _release(self, item: _Item) -> None:
        """Telegram wants it later (429), so it waits again and was surely not sent."""
        if item.durable:
            await self.store.release_call(*item.place)
        else:
            await self.store.withdraw_call(*item.place)
        item.claimed = False
        crash.point("after-release")

    async def _end(self, item: _Item, outcome: Outcome) -> None:
        """In the sender's task: what Telegram did is stored whoever still waits for it, and what follows is begun."""
        if item.claimed:
            crash.point("after-send")
        try:
            final = await self._settle(item, outcome)
        except StateError as fault:  # it may have room again in a moment: so long nobody is told an outcome
            log.warning("the outcome of %s is not stored yet: %s", item.call.api_method, fault)
            self._later(item, outcome)
            raise
        except BaseException:  # the sender does not wait for ever, and a leader that was deposed stores nothing
            self._later(item, outcome)
            raise
        finally:
            for upload in item.files:
                os.close(upload.descriptor)
            item.files = ()
        if final is None:
            self._later(item, None)
            return
        crash.point("after-settle-call")
        self._leave(item, final)
        if final is not outcome and isinstance(final, Failed):
            raise final.fault

    async def _settle(self, item: _Item, outcome: Outcome) -> Outcome | None:
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
                if isinstance(fault, RequestRefused) and (item.waiters or self._stale(item)):
                    await self.store.withdraw_call(*item.place)
                    return outcome
                if item.claimed:
                    await self._release(item)
                return None
        raise AssertionError(outcome)

    async def _settle_sent(self, item: _Item, result: Any) -> Outcome:
        call, key = item.call, item.place[0]
        if found := outcomes.strays(call, result):
            fault = outcomes.wrong_place(call, found)
            await self.store.settle_call(*item.place, outcomes.remembered(fault), self.now_ms())
            log.warning("%s of %s: %s", call.api_method, key, fault)
            self._do(partial(self._delete, found))
            chat, thread = outcomes.chat_of(call.body), call.body.get("message_thread_id")
            if chat is not None and isinstance(thread, int):
                self.thread_missing(chat, thread, "elsewhere")
            return Failed(fault)
        sent = [] if key == LEADER else outcomes.sent_messages(call, result)
        self.files.note(key, file_ids(result))
        await self.store.settle_call(*item.place, outcomes.remembered(result), self.now_ms(), sent=sent)
        return Sent(result)

    async def _settle_refusal(self, item: _Item, error: ApiError) -> Outcome | None:
        instead = await self.notice(item.call, error)
        if instead is not None and not item.with_files:  # surely not sent, so that it goes out once, in the new chat
            item.call, item.pause, item.durable = instead, 0.0, True
            await self.store.release_call(*item.place, item.what[1])
            return None
        if instead is not None or closes_chat(error) is not None:  # the same id shall do it when the chat is open again
            await self.store.withdraw_call(*item.place)
        else:
            await self.store.settle_call(*item.place, outcomes.remembered(error), self.now_ms())
        return Failed(error)

    async def _doubt(self, item: _Item) -> None:
        log.warning("whether %s of %s was carried out is not known", item.call.api_method, item.place[0])
        row = await self.store.doubt_call(*item.place)
        crash.point("after-doubt")
        if row is not None:
            self.doubts.note(row)

    def _stale(self, item: _Item) -> bool:
        return self.now_ms() - item.since_ms > STALE_MS

    # -- what the outbox does by itself

    def _later(self, item: _Item, unsaved: Outcome | None) -> None:
        item.unsaved = unsaved
        self._tend(item)

    def _tend(self, item: _Item) -> None:
        item.goes_on = True
        if not item.tended:
            item.tended = True
            self._do(partial(self._go_on, item))

    async def _go_on(self, item: _Item) -> None:
        """Try until it is settled, with growing pauses."""
        while not item.done.is_set():
            await trio.sleep(item.pause)
            item.pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, item.pause * 2))
            with suppress(BusError):
                if item.unsaved is not None:
                    unsaved, item.unsaved = item.unsaved, None
                    await self._end(item, unsaved)
                elif self._stale(item):
                    await self._expire(item)
                else:
                    await self._try(item)

    async def _expire(self, item: _Item) -> None:
        fault = RequestRefused(f"{item.call.api_method} could not be sent for two days, and is not sent any more")
        await self.store.settle_call(*item.place, outcomes.remembered(fault), self.now_ms())
        log.warning("%s of %s: %s", item.call.api_method, item.place[0], fault)
        self._leave(item, Failed(fault))

    async def _begin(self, nursery: trio.Nursery) -> bool:
        """Take over what earlier leaders left; False where the disk does not let us."""
        try:
            await self.parking.load()
            keys = await self.store.begin_calls()
            await self.doubts.load()
        except StateError as error:
            log.warning("what an earlier leader had to send cannot be looked up yet: %s", error)
            return False
        for key in keys:
            self._replaying[key] = trio.Event()
            nursery.start_soon(self._replay, key)
        nursery.start_soon(self.doubts.tell_all)
        return True

    async def _begin_later(self, nursery: trio.Nursery) -> None:
        while True:
            await trio.sleep(FIRST_PAUSE)
            if await self._begin(nursery):
                return

    async def _replay(self, key: str) -> None:
        """Send what was accepted of this owner, in order; what then cannot be sent is tried on, behind nobody's way."""
        after = 0
        try:
            while rows := await self.store.accepted_calls(key, after, PAGE):
                for row in rows:
                    after = row.seq
                    log.info("sending what was accepted before: %s of %s", row.method, row.key or "the leader")
                    if (item := self._send_stored(row)) is not None:
                        await item.tried.wait()
        except StateError as error:
            log.warning("what was accepted of %s is sent by the next leader: %s", key, error)
        finally:
            self._replaying.pop(key).set()

    async def _delete(self, found: list[tuple[int, int, int | None]]) -> None:
        for chat, message, _ in found:
            try:
                await self.sender.call("deleteMessage", {"chat_id": chat, "message_id": message}, chat)
            except BusError as error:
                log.warning("message %d of chat %d stands in a wrong place and stays: %s", message, chat, error)

    # -- what is under way

    def _send_stored(self, row: Open) -> _Item | None:
        """Send a call from the store; None where it is under way."""
        if (row.key, row.request_id) in self._running:
            return None
        call = Allowed(method="call", args=(row.method, loads(row.body or b"{}")))
        item = _Item((row.key, row.request_id), call, row.digest, True, row.since_ms, with_sender=True, pause=0.0)
        self._enter(item)
        self._tend(item)
        return item

    def _do(self, work: Work) -> None:
        self._work[0].send_nowait(work)

    def _enter(self, item: _Item) -> None:
        self._running[item.place] = item
        self._open[item.place[0]] += 1

    def _leave(self, item: _Item, outcome: Outcome | None) -> None:
        item.outcome = outcome
        if self._running.pop(item.place, None) is not None:
            self._open[item.place[0]] -= 1
            if not self._open[item.place[0]]:
                del self._open[item.place[0]]
        item.tried.set()
        item.done.set()


def _begun(method: str) -> CommitUnknown:
    return CommitUnknown(
        f"{method} was begun and its outcome is not known; look into the chat before you send it again"
    )
