"""Updates on their way to their owners: in order for each of them, one at a time, until there is a receipt."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, Literal, Protocol, TypeVar

import trio
from attrs import define, evolve, field

from telegram_bus import crash
from telegram_bus.core.codec import loads
from telegram_bus.core.envelopes import Ack, Forward, ForwardMessage
from telegram_bus.core.errors import AnswerLost, InvalidEnvelope, NotSent, RequestRefused, StateError
from telegram_bus.core.gathering import comments_on
from telegram_bus.core.receiving import receipt
from telegram_bus.core.registry import Member
from telegram_bus.core.text import plain
from telegram_bus.core.updates import forward
from telegram_bus.roles.together import together
from telegram_bus.store import Outcome, Store, StoredUpdate

__all__ = ["Deliveries", "Members"]

log = logging.getLogger(__name__)

IN_MEMORY: Final = 256  # updates of one owner; what waits beyond stays in the store until these are gone
RECEIPT_LIMIT: Final = 30.0  # for a follower to store an update (protocol section 1)
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 10.0

REFUSALS: Final = 20
"""So often an owner that is here may refuse an update before it is set aside and the next one has its turn: 2.5 min."""

BUSY: Final = "ledger-overloaded"  # the error of an owner that cannot take more just now; it is not counted

Position = Literal["comment", "forward"]
"""Of a message that was sent with a forward, or of that forward (protocol section 2)."""

_FORWARD: Final = b'"forward_origin":'

T = TypeVar("T")


class Members(Protocol):
    """The live followers, as the registry knows them."""

    def by_key(self, key: str, /) -> Member | None:
        """The member with this binding key."""


@define(eq=False)
class _Box:
    """What waits for one owner: `unsettled` in all; `more` says that not all of it is in memory.

    `held` are the numbers of what is in memory: what waits, and what has ended but is not yet stored as such. `left`
    counts what was put while it had to stay in the store, `gone` is what was let go while the store was asked what
    waits. What has a number up to `tried` may be known to the owner; what is above it may still be changed: `frozen` is
    not tried while it is, `amended` are the new bodies. `comment` is the last message whose forward was announced.
    """

    key: str
    unsettled: int = 0
    waiting: deque[StoredUpdate] = field(factory=deque)
    held: set[int] = field(factory=set)
    gone: set[int] = field(factory=set)
    tried: int = 0
    amended: dict[int, bytes] = field(factory=dict)
    frozen: dict[int, trio.Event] = field(factory=dict)
    more: bool = False
    left: int = 0
    busy: bool = False
    comment: dict[str, Any] = field(factory=dict)
    knock: trio.Event = field(factory=trio.Event)

    def position(self) -> Position | None:
        """Whether the first one that waits is a comment on the forward behind it, or such a forward.

        Both mostly come in one batch. A comment alone looks like any message, for which nobody shall be made to wait.
        """
        pair = [update.body if update.kind == "message" else b"" for update in islice(self.waiting, 2)]
        if not pair[0] or not any(_FORWARD in body for body in pair):
            return None
        first, *second = (loads(body)["message"] for body in pair if body)
        if comments_on(self.comment, first):
            return "forward"
        if not second or not comments_on(first, *second):
            return None
        self.comment = first
        return "comment"


@define(kw_only=True, eq=False)
class Deliveries:
    """The updates that wait for their owners. `forward` sends an envelope to a member's endpoint."""

    store: Store = field(repr=False)
    members: Members = field(repr=False)
    forward: Callable[[Member, Forward], Awaitable[Ack]] = field(repr=False)
    secret: str = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    aside: Callable[[StoredUpdate, str, int], None] = field(repr=False, default=lambda *_: None)
    """Hears of each update that is set aside, why, and when that was stored (ms)."""
    ails: Callable[[str | None], None] = field(repr=False, default=lambda _why: None)
    """Hears why the store cannot be used, and None once it can again."""
    _floor: int = 0
    _boxes: dict[str, _Box] = field(factory=dict)
    _serial: int = 0
    _channel: tuple[trio.MemorySendChannel[_Box], trio.MemoryReceiveChannel[_Box]] = field(
        factory=lambda: trio.open_memory_channel[_Box](math.inf)  # each box is in it at most once
    )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Deliver until cancelled: first what earlier leaders left, then whatever is `put`."""

        async def know_owners() -> None:
            for key, unsettled in (await self._stubbornly(self.store.waiting)).items():
                if key is not None:
                    self._boxes[key] = _Box(key, unsettled, more=True)

        async def know_floor() -> None:
            self._floor = await self._stubbornly(self.store.newest_seq)  # an earlier leader may have tried all of these

        await together(know_owners, know_floor)
        async with trio.open_nursery() as nursery:
            task_status.started()
            self.wake(self._boxes)
            async for box in self._channel[1]:
                nursery.start_soon(self._serve, box, nursery)

    def put(self, updates: Iterable[StoredUpdate]) -> None:
        """Take updates that are in the store and have an owner."""
        for update in updates:
            assert update.owner_key is not None
            box = self._box(update.owner_key)
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

    def freeze(self, update: StoredUpdate) -> bool:
        """Do not try this update until `thaw`, so that it can be changed; False where its owner may know it already."""
        box = self._box(update.owner_key or "")
        if update.seq <= max(box.tried, self._floor) or update.seq in box.frozen:
            return False
        box.frozen[update.seq] = trio.Event()
        return True

    def thaw(self, update: StoredUpdate, body: bytes | None) -> None:
        """Go on with an update that was frozen; `body` is its new one, None where it was not changed."""
        box = self._box(update.owner_key or "")
        if body is not None:
            box.amended[update.seq] = body
        box.frozen.pop(update.seq).set()

    async def expire(self, key: str, before_ms: int, now_ms: int, reason: str) -> int:
        """Set aside what waits for an absent owner since before then; returns how many updates that were."""
        box = self._box(key)
        if box.busy or self.members.by_key(key) is not None:
            return 0
        box.busy = True  # an owner that comes now waits for the store's answer
        try:
            return self._forget(box, await self.store.expire(key, before_ms, now_ms, reason))
        finally:
            box.busy = False
            self._start(box)

    async def drop(self, seq: int) -> bool:
        """Let go of an update that waits or was set aside; False where it does neither. Raises StateError.

        One that is on its way to its owner at this moment may still get there.
        """
        dropped = await self.store.drop(seq, self.now_ms())
        if dropped is not None and dropped.outcome is None and dropped.update.owner_key is not None:
            self._forget(self._box(dropped.update.owner_key), [seq])
        return dropped is not None

    async def retry(self, seq: int) -> bool:
        """Deliver an update that was set aside; False where it was not set aside. Raises StateError."""
        update = await self.store.retry(seq)
        if update is not None:
            self.put([update])
        return update is not None

    def owners(self) -> list[str]:
        """Those for whom something waits."""
        return [key for key, box in self._boxes.items() if box.unsettled > 0]

    def waiting(self, key: str) -> int:
        """How many updates wait for an owner."""
        box = self._boxes.get(key)
        return box.unsettled if box is not None else 0

    def total_waiting(self) -> int:
        """How many updates wait for their owners."""
        return sum(box.unsettled for box in self._boxes.values())

    def _box(self, key: str) -> _Box:
        if key not in self._boxes:
            self._boxes[key] = _Box(key)
        return self._boxes[key]

    def _forget(self, box: _Box, gone: Sequence[int]) -> int:
        """These updates of a box wait no more; the store knows that already."""
        numbers = frozenset(gone)
        box.unsettled -= len(numbers)
        box.waiting = deque(update for update in box.waiting if update.seq not in numbers)
        box.held -= numbers
        if box.busy:
            box.gone |= numbers
        for number in numbers:
            box.amended.pop(number, None)
        return len(numbers)

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
                update = box.waiting[0]
                if gate := box.frozen.get(update.seq):
                    await gate.wait()
                    continue
                box.tried = max(box.tried, update.seq)
                if update.seq in box.amended:
                    update = box.waiting[0] = evolve(update, body=box.amended.pop(update.seq))
                crash.point("before-forward")
                outcome, reason = await self._attempt(member, update, box)
                crash.point("after-forward")
                if update.seq not in box.held:
                    continue  # it was dropped meanwhile
                if outcome is None:
                    with trio.move_on_after(pause):
                        await box.knock.wait()
                    pause = min(pause * 2, LONGEST_PAUSE)
                    continue
                pause = FIRST_PAUSE
                box.waiting.popleft()
                nursery.start_soon(self._settle, box, update, outcome, reason)
        finally:
            box.busy = False

    async def _fill(self, box: _Box) -> bool:
        """See to it that what waits is in memory; False when nothing waits."""
        while not box.waiting and box.more:
            # While the store is read, ends may be stored and updates put that the answer knows nothing of.
            settling, left = frozenset(box.held), box.left
            box.gone.clear()
            read = partial(self.store.pending, box.key, IN_MEMORY + len(settling))
            stored = await self._stubbornly(read)
            box.more = len(stored) >= IN_MEMORY or box.left != left
            box.waiting.extend(update for update in stored if update.seq not in settling | box.gone)
            box.held.update(update.seq for update in box.waiting)
        return bool(box.waiting)

    async def _settle(self, box: _Box, update: StoredUpdate, outcome: Outcome, reason: str | None) -> None:
        """Note the outcome; if we die before it is noted, the owner recognises the repetition by its id."""
        now_ms = self.now_ms()
        settle = partial(self.store.settle, update.seq, outcome, now_ms, reason)
        settled = await self._stubbornly(settle)
        crash.point("after-settle")
        if settled:  # else it was dropped meanwhile, and counted then
            box.unsettled -= 1
            box.held.discard(update.seq)
            if reason is not None:
                self.aside(update, reason, now_ms)

    async def _stubbornly(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do what the store has to do, again and again while its disk fails: a leader outlives a full disk."""
        pause = FIRST_PAUSE
        while True:
            try:
                result = await work()
                self.ails(None)
            except StateError as error:
                self.ails(str(error))
                log.error("deliveries go on when this is mended: %s", error)  # noqa: TRY400 - its text says it all
            else:
                return result
            await trio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _attempt(self, member: Member, update: StoredUpdate, box: _Box) -> tuple[Outcome | None, str | None]:
        """Try once; None means: again later (protocol section 6, how a forward is settled). With the reason if not."""
        try:
            envelope = self._envelope(member, update, box)
        except (InvalidEnvelope, KeyError, ValueError) as error:
            return self._reject(update, f"it can be delivered to nobody: {error!r}")
        try:
            with trio.fail_after(RECEIPT_LIMIT):
                ack = await self.forward(member, envelope)
        except (NotSent, AnswerLost, trio.TooSlowError) as error:
            log.info("update %d has not reached %s yet: %s", update.update_id, member.key, error)
            return None, None
        except (InvalidEnvelope, RequestRefused) as error:  # the latter: it is too long for any follower
            return self._reject(update, f"it cannot be written: {error}")
        if ack.request_id != envelope.request_id:
            return self._reject(update, f"{member.key} answered another request")
        if not ack.ok:
            return await self._refused(update, member.key, ack)
        if ack.result != receipt(envelope.delivery):
            return self._reject(update, f"{member.key} gave no receipt for it")
        return "accepted", None

    async def _refused(self, update: StoredUpdate, key: str, ack: Ack) -> tuple[Outcome | None, str | None]:
        why = plain((ack.message or "without a reason")[:1_000])[:200].encode(errors="replace").decode()
        log.info("update %d: %s refused it: %s", update.update_id, key, why)
        if ack.error is not None and ack.error.code == BUSY:
            return None, None
        times = await self._stubbornly(partial(self.store.note_attempt, update.seq))
        if times < REFUSALS:
            return None, None
        return self._reject(update, f"{key} refused it {times} times: {why}")

    def _reject(self, update: StoredUpdate, reason: str) -> tuple[Outcome, str]:
        log.error("update %d is set aside: %s", update.update_id, reason)
        return "rejected", reason

    def _envelope(self, member: Member, update: StoredUpdate, box: _Box) -> Forward:
        """Raises KeyError for a kind that is not forwarded, ValueError where the update can have no delivery id."""
        self._serial += 1
        envelope = forward(
            loads(update.body),
            update.kind,  # type: ignore[arg-type]  # stored as one of these
            key=update.owner_key or "",
            instance=member.instance_id,
            generation=member.generation or "",
            request_id=f"l:{self.store.epoch}:{self._serial}",
            auth=self.secret,
            now_ms=self.now_ms(),
        )
        if isinstance(envelope, ForwardMessage) and (position := box.position()) is not None:
            envelope = evolve(envelope, forward_comment_batch_position=position)
        return envelope
