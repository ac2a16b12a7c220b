"""The updates that wait for a program: on the disk before they are acknowledged, then handed out in order."""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Final

import trio
from attrs import define, evolve, field

from telegram_bus import crash
from telegram_bus.core.codec import dumps, loads
from telegram_bus.core.receiving import Incoming
from telegram_bus.core.updates import SOURCE_MARKER
from telegram_bus.roles.watched import Watched
from telegram_bus.store.inbox import Inbox, Received

__all__ = ["LIMIT", "Unread"]

LIMIT: Final = 1_000  # updates that wait for the program; the leader keeps what comes beyond


@define(kw_only=True, eq=False)
class Unread:
    """What an inbox holds and the program has not taken, the oldest first; all of it is in memory too."""

    inbox: Inbox = field(repr=False)
    waiting: deque[Received] = field(factory=deque)
    arrived: Watched[int] = field(factory=lambda: Watched(0))

    @property
    def full(self) -> bool:
        """Whether the program has to take something before more may come."""
        return len(self.waiting) >= LIMIT

    async def load(self) -> None:
        """Read what an earlier process did not finish."""
        for delivery in await self.inbox.pending():
            self._put(delivery)

    async def next(self) -> Received:
        """The next update, once there is one."""
        await trio.lowlevel.checkpoint()  # also where many wait: other tasks want their turn
        while not self.waiting:
            await self.arrived.wait_changed()
        return self.waiting.popleft()

    async def store(self, incoming: Incoming) -> None:
        """Commit an update; one that was received before is not put a second time. Raises StateError."""
        waiting = self._edited(incoming)
        if waiting is not None:
            await self._amend(waiting, incoming)
            return
        received = _received(incoming)
        if await self.inbox.append(received.delivery_id, received.kind, received.source_update_id, received.body):
            crash.point("after-append")
            self._put(received)

    def _edited(self, incoming: Incoming) -> Received | None:
        """The message that this is an edit of, if the program has not looked at it yet."""
        if incoming.kind != "edited_message":
            return None
        for waiting in self.waiting:
            if waiting.kind == "message" and _place(loads(waiting.body)) == _place(incoming.body):
                return waiting
        return None

    async def _amend(self, waiting: Received, incoming: Incoming) -> None:
        """Let an edit change the message itself."""
        delivery = incoming.delivery
        marked = dumps({**incoming.body, SOURCE_MARKER: waiting.source_update_id})
        if not await self.inbox.amend(
            waiting.delivery_id, marked, by=delivery.delivery_id, source_update_id=delivery.source_update_id
        ):
            return  # it was received before
        for place, other in enumerate(self.waiting):
            if other.delivery_id == waiting.delivery_id:
                self.waiting[place] = evolve(other, body=marked)
                return
        # the program took it meanwhile, as it was: so it gets the edit as well
        self._put(_received(incoming))

    def _put(self, delivery: Received) -> None:
        self.waiting.append(delivery)
        self.arrived.set(self.arrived.value + 1)


def _received(incoming: Incoming) -> Received:
    return Received(
        delivery_id=incoming.delivery.delivery_id,
        kind=incoming.kind,
        source_update_id=incoming.delivery.source_update_id,
        body=dumps(incoming.body),
        received_ms=time.time_ns() // 1_000_000,
    )


def _place(message: dict[str, Any]) -> tuple[Any, Any]:
    chat = message.get("chat")
    return (chat.get("id") if isinstance(chat, dict) else None, message.get("message_id"))
