"""The outbox: calls that must not be made twice, from their acceptance until they are sent, refused or unknown.

A call with an id of its program's choice (`once=…`) is durable from its acceptance on: whoever leads sends it, asked
again or not. One without an id goes out by this leader, or by the next one if its program lives to ask again: one that
begins anew asks anew, under another id; it is claimed only when it is its turn. Files travel as open descriptors, which
end with the leader, so a call with files is claimed only, whatever its id.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Any, Final, assert_never

import trio
from attrs import define, field

from telegram_bus import crash
from telegram_bus.botapi.sender import Failed, Outcome, Sender
from telegram_bus.core import outcomes
from telegram_bus.core.codec import dumps, loads
from telegram_bus.core.errors import BusError, RequestRefused, StateError
from telegram_bus.core.permissions import Allowed
from telegram_bus.roles.doubts import REMEMBERED, Doubts, Work
from telegram_bus.roles.files import Files
from telegram_bus.roles.parking import Parking
from telegram_bus.roles.passage import FIRST_PAUSE, Item, Passage, Place, begun
from telegram_bus.store import Collision, New, Repeat, Store, Unknown
from telegram_bus.store.outbox import Open

__all__ = ["Outbox"]

log = logging.getLogger(__name__)

MOST: Final = 1_000
"""Calls of one follower that are accepted and not settled; who asks for more is refused."""

PAGE: Final = 50  # of what an earlier leader left, at once
LONGEST_PAUSE: Final = 30.0
"""Seconds, at most, between the tries of a call that was surely not sent: no network, a closed chat, a full disk."""


@define(kw_only=True, eq=False)
class Outbox:
    """The calls of one term that must not be made twice; `run` does what nobody waits for."""

    store: Store = field(repr=False)
    sender: Sender = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    files: Files = field(repr=False)
    parking: Parking = field(repr=False)
    _running: dict[Place, Item] = field(factory=dict)
    _open: Counter[str] = field(factory=Counter)
    _replaying: dict[str, trio.Event] = field(factory=dict)
    _work: tuple[trio.MemorySendChannel[Work], trio.MemoryReceiveChannel[Work]] = field(
        factory=lambda: trio.open_memory_channel[Work](math.inf)  # one for each open call
    )
    doubts: Doubts = field(init=False, repr=False)
    passage: Passage = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.doubts = Doubts(
            store=self.store, now_ms=self.now_ms, send=self._send_stored, call=self.sender.call, do=self._do
        )
        self.passage = Passage(
            store=self.store,
            sender=self.sender,
            now_ms=self.now_ms,
            files=self.files,
            parking=self.parking,
            later=self._later,
            leave=self._leave,
            doubt=self.doubts.note,
            do=self._do,
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
        self, place: Place, call: Allowed, told_apart_by: list[Any], *, durable: bool, files: Callable[[], Any]
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
        item = Item(place, call, digest, durable, self.now_ms(), waiters=1)
        self._enter(item)
        try:
            return await self._look(item, files)
        finally:
            item.waiters -= 1
            if not item.with_sender:
                self._leave(item, None)

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

    async def _look(self, item: Item, files: Callable[[], Any]) -> Any:
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
                raise begun(method)
            case Collision():
                raise RequestRefused(
                    f"another call was made under the id {place[1]}; give each call an id of its own",
                    code="request-id-collision",
                    method=method,
                )
            case _:
                assert_never(known)

    def _check(self, item: Item) -> None:
        method, chat = item.call.api_method, outcomes.chat_of(item.call.body)
        self.sender.check(method, chat, owner=item.place[0], patient=item.call.patient)
        if item.durable and self._open[item.place[0]] > MOST:
            raise RequestRefused(f"{MOST} calls of {item.place[0]} wait to be sent; wait for some of them")

    async def _first(self, item: Item) -> Any:
        """The first try, in the task of who asks; what follows is the outbox's."""
        item.with_sender = True
        try:
            result = await self.passage.attempt(item)
        except BusError:
            if not (item.goes_on and item.durable):
                raise
        else:
            if not item.goes_on:
                return result
        await item.done.wait()
        return item.result()

    # -- what the outbox does by itself

    def _later(self, item: Item, unsaved: Outcome | None) -> None:
        item.unsaved = unsaved
        self._tend(item)

    def _tend(self, item: Item) -> None:
        item.goes_on = True
        if not item.tended:
            item.tended = True
            self._do(partial(self._go_on, item))

    async def _go_on(self, item: Item) -> None:
        """Try until it is settled, with growing pauses."""
        while not item.done.is_set():
            await trio.sleep(item.pause)
            item.pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, item.pause * 2))
            with suppress(BusError):
                if item.unsaved is not None:
                    unsaved, item.unsaved = item.unsaved, None
                    await self.passage.end(item, unsaved)
                elif self.passage.stale(item):
                    await self._expire(item)
                else:
                    await self.passage.attempt(item)

    async def _expire(self, item: Item) -> None:
        fault = RequestRefused(f"{item.call.api_method} could not be sent for two days, and is not sent any more")
        await self.store.settle_call(*item.place, outcomes.remembered(fault), self.now_ms())
        log.warning("%s of %s: %s", item.call.api_method, item.place[0], fault)
        self._leave(item, Failed(fault))

    async def _begin(self, nursery: trio.Nursery) -> bool:
        """Take over what earlier leaders left; False where the disk does not let us."""
        try:
            found = await self.store.begin_calls(REMEMBERED)
        except StateError as error:
            log.warning("what an earlier leader had to send cannot be looked up yet: %s", error)
            return False
        self.parking.recall(found.parked)
        self.doubts.recall(found.unknown)
        for key in found.keys:
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

    # -- what is under way

    def _send_stored(self, row: Open) -> Item | None:
        """Send a call from the store; None where it is under way."""
        if (row.key, row.request_id) in self._running:
            return None
        call = Allowed(method="call", args=(row.method, loads(row.body or b"{}")))
        item = Item((row.key, row.request_id), call, row.digest, True, row.since_ms, with_sender=True, pause=0.0)
        self._enter(item)
        self._tend(item)
        return item

    def _do(self, work: Work) -> None:
        self._work[0].send_nowait(work)

    def _enter(self, item: Item) -> None:
        self._running[item.place] = item
        self._open[item.place[0]] += 1

    def _leave(self, item: Item, outcome: Outcome | None) -> None:
        item.outcome = outcome
        if self._running.pop(item.place, None) is not None:
            self._open[item.place[0]] -= 1
            if not self._open[item.place[0]]:
                del self._open[item.place[0]]
        item.tried.set()
        item.done.set()
