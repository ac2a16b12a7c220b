"""Updates on their way to their owners: in order for each of them, one at a time, until there is a receipt."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Final, Protocol, TypeVar

import trio
from attrs import define, evolve, field

from telegram_bus import crash
from telegram_bus.core.codec import loads
from telegram_bus.core.envelopes import Ack, Forward
from telegram_bus.core.errors import AnswerLost, InvalidEnvelope, NotSent, StateError
from telegram_bus.core.receiving import receipt
from telegram_bus.core.registry import Member
from telegram_bus.core.updates import forward
from telegram_bus.store import Outcome, Store, StoredUpdate

__all__ = ["Deliveries", "Members"]

log = logging.getLogger(__name__)

IN_MEMORY: Final = 256  # updates of one owner; what waits beyond stays in the store until these are gone
RECEIPT_LIMIT: Final = 30.0  # for a follower to store an update (protocol section 1)
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 10.0

T = TypeVar("T")


class Members(Protocol):
    """The live followers, as the registry knows them."""

    def by_key(self, key: str, /) -> Member | None:
        """The member with this binding key."""


@define(eq=False)
class _Box:
    """What waits for one owner: `unsettled` in all; `more` says that not all of it is in memory.

    `held` are the numbers of what is in memory: what waits, and what has ended but is not yet stored as such. `left`
    counts what was put while it had to stay in the store.
    """

    key: str
    unsettled: int = 0
    waiting: deque[StoredUpdate] = field(factory=deque)
    held: set[int] = field(factory=set)
    more: bool = False
    left: int = 0
    busy: bool = False
    knock: trio.Event = field(factory=trio.Event)


@define(kw_only=True, eq=False)
class Deliveries:
    """The updates that wait for their owners. `forward` sends an envelope to a member's endpoint."""

    store: Store = field(repr=False)
    members: Members = field(repr=False)
    forward: Callable[[Member, Forward], Awaitable[Ack]] = field(repr=False)
    secret: str = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    _boxes: dict[str, _Box] = field(factory=dict)
    _serial: int = 0
    _channel: tuple[trio.MemorySendChannel[_Box], trio.MemoryReceiveChannel[_Box]] = field(
        factory=lambda: trio.open_memory_channel[_Box](math.inf)  # each box is in it at most once
    )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Deliver until cancelled: first what earlier leaders left, then whatever is `put`."""
        for key, unsettled in (await self._stubbornly(self.store.waiting)).items():
            if key is not None:
                self._boxes[key] = _Box(key, unsettled, more=True)
        async with trio.open_nursery() as nursery:
            task_status.started()
            self.wake(self._boxes)
            async for box in self._channel[1]:
                nursery.start_soon(self._serve, box, nursery)

    def put(self, updates: Iterable[StoredUpdate]) -> None:
        """Take updates that are in the store and have an owner."""
        for update in updates:
            assert update.owner_key is not None
            box = self._boxes.get(update.owner_key)
            if box is None:
                box = self._boxes[update.owner_key] = _Box(update.owner_key)
            box.unsettled += 1
            if box.more or len(box.waiting) >= IN_MEMORY:
                box.more = True
                box.left += 1
            elif update.seq not in box.held:  # else it was read from the store before we were told of it
                box.waiting.append(update)
                box.held.add(update.seq)
            self._start(box)

    def take_over(self, update: StoredUpdate, key: str) -> None:
        """An update that was nobody's has got an owner, in the store too."""
        self.put([evolve(update, owner_key=key)])

    def wake(self, keys: Iterable[str]) -> None:
        """These owners are here (again): try at once what waits for them."""
        for key in list(keys):
            if box := self._boxes.get(key):
                box.knock.set()
                box.knock = trio.Event()
                self._start(box)

    def waiting(self, key: str) -> int:
        """How many updates wait for an owner."""
        box = self._boxes.get(key)
        return box.unsettled if box is not None else 0

    def total_waiting(self) -> int:
        """How many updates wait for their owners."""
        return sum(box.unsettled for box in self._boxes.values())

    def _start(self, box: _Box) -> None:
        if not box.busy and (box.waiting or box.more) and self.members.by_key(box.key) is not None:
            box.busy = True
            self._channel[0].send_nowait(box)

    async def _serve(self, box: _Box, nursery: trio.Nursery) -> None:
        """Deliver what waits for one owner, until nothing does or the owner has gone."""
        pause = FIRST_PAUSE
        try:
            while await self._fill(box):
                member = self.members.by_key(box.key)
                if member is None:
                    return
                crash.point("before-forward")
                outcome = await self._attempt(member, box.waiting[0])
                crash.point("after-forward")
                if outcome is None:
                    with trio.move_on_after(pause):
                        await box.knock.wait()
                    pause = min(pause * 2, LONGEST_PAUSE)
                    continue
                pause = FIRST_PAUSE
                nursery.start_soon(self._settle, box, box.waiting.popleft(), outcome)
        finally:
            box.busy = False

    async def _fill(self, box: _Box) -> bool:
        """See to it that what waits is in memory; False when nothing waits."""
        while not box.waiting and box.more:
            # While the store is read, ends may be stored and updates put that the answer knows nothing of.
            settling, left = frozenset(box.held), box.left
            read = partial(self.store.pending, box.key, IN_MEMORY + len(settling))
            stored = await self._stubbornly(read)
            box.more = len(stored) >= IN_MEMORY or box.left != left
            box.waiting.extend(update for update in stored if update.seq not in settling)
            box.held.update(update.seq for update in box.waiting)
        return bool(box.waiting)

    async def _settle(self, box: _Box, update: StoredUpdate, outcome: Outcome) -> None:
        """Note the outcome; if we die before it is noted, the owner recognises the repetition by its id."""
        await self._stubbornly(partial(self.store.settle, update.seq, outcome, self.now_ms()))
        crash.point("after-settle")
        box.unsettled -= 1
        box.held.discard(update.seq)

    async def _stubbornly(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do what the store has to do, again and again while its disk fails: a leader outlives a full disk."""
        pause = FIRST_PAUSE
        while True:
            try:
                return await work()
            except StateError as error:
                log.error("deliveries go on when this is mended: %s", error)  # noqa: TRY400 - its text says it all
            await trio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _attempt(self, member: Member, update: StoredUpdate) -> Outcome | None:
        """Try once; None means: again later (protocol section 6, how a forward is settled)."""
        try:
            envelope = self._envelope(member, update)
        except (InvalidEnvelope, KeyError, ValueError) as error:
            log.error("update %d can be delivered to nobody: %r", update.update_id, error)  # noqa: TRY400
            return "rejected"
        try:
            with trio.fail_after(RECEIPT_LIMIT):
                ack = await self.forward(member, envelope)
        except (NotSent, AnswerLost, trio.TooSlowError) as error:
            log.info("update %d has not reached %s yet: %s", update.update_id, member.key, error)
            return None
        except InvalidEnvelope as error:
            log.error("update %d cannot be written: %s", update.update_id, error)  # noqa: TRY400
            return "rejected"
        if ack.request_id != envelope.request_id:
            log.error("update %d: %s answered another request", update.update_id, member.key)
            return "rejected"
        if not ack.ok:
            log.info("update %d: %s refused it: %s", update.update_id, member.key, ack.message)
            return None
        if ack.result != receipt(envelope.delivery):
            log.error("update %d: %s gave no receipt for it", update.update_id, member.key)
            return "rejected"
        return "accepted"

    def _envelope(self, member: Member, update: StoredUpdate) -> Forward:
        """Raises KeyError for a kind that is not forwarded, ValueError where the update can have no delivery id."""
        self._serial += 1
        return forward(
            loads(update.body),
            update.kind,  # type: ignore[arg-type]  # stored as one of these
            key=update.owner_key or "",
            instance=member.instance_id,
            generation=member.generation or "",
            request_id=f"l:{self.store.epoch}:{self._serial}",
            auth=self.secret,
            now_ms=self.now_ms(),
        )
