"""The updates that wait for a program: on the disk before they are acknowledged, then handed out in order.

What belongs together is one item. Which item an update is part of is decided as it is stored and stored with it, so
that nothing is held in memory alone: an item is whole again after a crash of this process, and a part is never in two.
"""

from __future__ import annotations

import logging
import math
import time
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import trio
from attrs import define, evolve, field

from telegram_bus import crash
from telegram_bus.core import gathering
from telegram_bus.core.codec import dumps, loads
from telegram_bus.core.errors import StateError
from telegram_bus.core.gathering import Trace
from telegram_bus.core.receiving import Incoming
from telegram_bus.core.updates import SOURCE_MARKER
from telegram_bus.roles.watched import Watched
from telegram_bus.store.commits import lasts
from telegram_bus.store.inbox import Inbox, Received

__all__ = ["LIMIT", "Item", "Unread"]

log = logging.getLogger(__name__)

LIMIT: Final = 1_000  # items that wait for the program; the leader keeps what comes beyond

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 15.0
"""Seconds, at most, between two tries to write on a disk that takes nothing."""

LEADERLESS: Final = 15.0
"""Seconds for which an item that may not be whole waits for the next leader: a frozen one is replaced in 14 s."""

TAKEOVER: Final = 5.0
"""Seconds within which the next leader has polled and delivered what is left of it."""

ALBUMS: Final = 256  # of those that the program has had, to name them when more of them comes


@define(eq=False)
class Item:
    """One update, or several that belong together, the first one of which gives it its id and its place in the queue.

    `first` and `last` are what decides whether a further message belongs to it, None where none does. `wait` is how
    long it stays open after its newest part came at `arrived` (Trio's clock); 0.0: it is whole.
    """

    parts: list[Received] = field(factory=list)
    first: Trace | None = None
    last: Trace | None = None
    wait: float = 0.0
    arrived: float = 0.0

    @property
    def id(self) -> str:
        """The delivery id of its first part."""
        return self.parts[0].delivery_id

    @property
    def kind(self) -> str:
        """What kind of update it is."""
        return self.parts[0].kind

    @property
    def follows(self) -> str | None:
        """The id of the earlier item that it belongs to, for which it came too late."""
        return self.parts[0].follows

    def bodies(self) -> list[dict[str, Any]]:
        """The Telegram objects that it consists of, as they were sent."""
        bodies = [loads(part.body) for part in self.parts]
        return gathering.in_order(bodies) if len(bodies) > 1 else bodies

    def grow(self, part: Received, trace: Trace | None, *, announced: bool = False) -> None:
        """One more part, or the first one."""
        self.parts.append(part)
        if trace is None:
            return
        self.first, self.last, self.arrived = self.first or trace, trace, trio.current_time()
        self.wait = gathering.patience(self.first, trace, len(self.parts), announced=announced)


@define(kw_only=True, eq=False)
class Unread:
    """What an inbox holds and the program has not taken, the oldest first; all of it is in memory too."""

    inbox: Inbox = field(repr=False)
    waiting: deque[Item] = field(factory=deque)
    arrived: Watched[int] = field(factory=lambda: Watched(0))
    trouble: str | None = None
    """Why the inbox could not be written the last time; None: it could."""
    _led_since: float | None = None
    _growing: Item | None = None  # while a part of it is being stored
    _taken: Item | None = None  # the newest one that the program has
    _albums: OrderedDict[str, str] = field(factory=OrderedDict)
    _storing: trio.Lock = field(factory=trio.Lock)

    @property
    def full(self) -> bool:
        """Whether the program has to take something before more may come."""
        return len(self.waiting) >= LIMIT

    async def load(self) -> None:
        """Read what an earlier process did not finish."""
        self._albums.update(await self.inbox.albums(ALBUMS))
        given_away = {frozen.item for frozen in await self.inbox.frozen()}
        items: dict[str, Item] = {}
        for part in await self.inbox.pending():
            if (part.item or part.delivery_id) in given_away:
                continue
            item = items.get(part.item or "")
            if item is None:
                item = items[part.delivery_id] = Item()
                self.waiting.append(item)
            age = max(0, self.inbox.now_ms() - part.received_ms) / 1000
            recent = age < LEADERLESS and part.kind == "message"  # what lies here for longer is as whole as it will be
            item.grow(part, gathering.trace(loads(part.body)) if recent else None)
            item.arrived -= age
        self._changed()

    @contextmanager
    def led(self) -> Iterator[None]:
        """As long as this is open a leader may deliver; outside, what is not whole waits for the next one."""
        self._led_since = trio.current_time()
        self._changed()
        try:
            yield
        finally:
            self._led_since = None
            self._changed()

    async def next(self) -> Item:
        """The next item, once there is one and no more of it can be expected."""
        await trio.lowlevel.checkpoint()  # also where many wait: other tasks want their turn
        while (left := self._left()) > 0:
            with trio.move_on_after(left):
                await self.arrived.wait_changed()
        self._taken = item = self.waiting.popleft()
        for part in item.parts:
            if part.album is not None:
                self._note_album(part.album, item)
        return item

    def put_back(self, parts: list[Received]) -> None:
        """An item that was to be given away, and was not taken, is the next one again."""
        item = Item()
        for part in parts:
            item.grow(part, None)
        self.waiting.appendleft(item)
        self._changed()

    async def store(self, incoming: Incoming) -> None:
        """Commit an update; one that was received before is not put a second time. Raises StateError."""
        try:
            async with self._storing:
                waiting = self._edited(incoming)
                if waiting is not None:
                    await self._amend(waiting, incoming)
                else:
                    await self._append(incoming)
        except StateError as error:
            self._note_trouble(str(error))
            raise
        self._note_trouble(None)

    async def done(self, item_id: str) -> None:
        """Have it on the disk that the program is done with an item; while that takes nothing, wait and try again.

        Raises StateError where it is the inbox itself that is damaged.
        """
        pause = FIRST_PAUSE
        while True:
            try:
                await self.inbox.done(item_id)
            except StateError as error:
                if lasts(error):
                    raise
                self._note_trouble(str(error))
                await trio.sleep(pause)
                pause = min(LONGEST_PAUSE, pause * 2)
            else:
                self._note_trouble(None)
                return

    def _note_trouble(self, trouble: str | None) -> None:
        before, self.trouble = self.trouble, trouble
        if trouble is not None and before is None:
            log.warning("%s; this follower goes on, and tries again until it can be", trouble)
        elif trouble is None and before is not None:
            log.warning("the inbox can be written again")

    # -- what belongs together

    async def _append(self, incoming: Incoming) -> None:
        trace = gathering.trace(incoming.body) if incoming.kind == "message" else None
        item, follows = self._place(trace) if trace is not None else (None, None)
        part = _received(
            incoming,
            item=item.id if item is not None else None,
            follows=follows,
            album=trace.album if trace is not None else None,
        )
        self._growing = item
        try:
            new = await self.inbox.append(
                part.delivery_id,
                part.kind,
                part.source_update_id,
                part.body,
                item=part.item,
                follows=part.follows,
                album=part.album,
            )
            if new:
                crash.point("after-append")
                if item is None:
                    item = Item()
                    self.waiting.append(item)
                item.grow(part, trace, announced=incoming.announced)
                self._changed()
        finally:
            if self._growing is not None:
                self._growing = None
                self._changed()

    def _place(self, new: Trace) -> tuple[Item | None, str | None]:
        """The item that a message is part of, or else the id of the one for which it came too late."""
        if new.album is not None:
            for item in self.waiting:
                if any(part.album == new.album for part in item.parts):
                    return item, None
            if new.album in self._albums:
                return None, self._albums[new.album]
        before = self.waiting[-1] if self.waiting else self._taken
        if before is None or before.first is None or before.last is None:
            return None, None
        if not gathering.belongs(before.first, before.last, new):
            return None, None
        if self.waiting and len(before.parts) < gathering.MOST_PARTS:
            return before, None
        return None, before.follows or before.id

    def _left(self) -> float:
        """Seconds until the first item may be handed out."""
        if not self.waiting or self.waiting[0] is self._growing:
            return math.inf
        item = self.waiting[0]
        if item.wait == 0:
            return 0.0
        ready = item.arrived + item.wait
        if self._led_since is None:
            ready = item.arrived + LEADERLESS
        elif item.arrived < self._led_since <= item.arrived + LEADERLESS:
            ready = self._led_since + TAKEOVER
        return max(0.0, ready - trio.current_time())

    def _note_album(self, album: str, item: Item) -> None:
        self._albums.setdefault(album, item.follows or item.id)
        if len(self._albums) > ALBUMS:
            self._albums.popitem(last=False)

    # -- edits

    def _edited(self, incoming: Incoming) -> Received | None:
        """The message that this is an edit of, if the program has not looked at it yet."""
        if incoming.kind != "edited_message":
            return None
        for item in self.waiting:
            for part in item.parts:
                if part.kind == "message" and _place_of(loads(part.body)) == _place_of(incoming.body):
                    return part
        return None

    async def _amend(self, waiting: Received, incoming: Incoming) -> None:
        """Let an edit change the message itself."""
        delivery = incoming.delivery
        marked = dumps({**incoming.body, SOURCE_MARKER: waiting.source_update_id})
        plain = _received(incoming)
        if not await self.inbox.amend(
            waiting.delivery_id,
            marked,
            by=delivery.delivery_id,
            source_update_id=delivery.source_update_id,
            late=plain.body,
        ):
            return  # it was received before
        for item in self.waiting:
            for place, part in enumerate(item.parts):
                if part.delivery_id == waiting.delivery_id:
                    item.parts[place] = evolve(part, body=marked)
                    return
        # the program took it meanwhile, as it was: so it gets the edit as well
        await self.inbox.reopen(plain.delivery_id, plain.body)
        late = Item()
        late.grow(plain, None)
        self.waiting.append(late)
        self._changed()

    def _changed(self) -> None:
        self.arrived.set(self.arrived.value + 1)


def _received(incoming: Incoming, **belonging: str | None) -> Received:
    return Received(
        delivery_id=incoming.delivery.delivery_id,
        kind=incoming.kind,
        source_update_id=incoming.delivery.source_update_id,
        body=dumps(incoming.body),
        received_ms=time.time_ns() // 1_000_000,
        **belonging,
    )


def _place_of(message: dict[str, Any]) -> tuple[Any, Any]:
    chat = message.get("chat")
    return (chat.get("id") if isinstance(chat, dict) else None, message.get("message_id"))
