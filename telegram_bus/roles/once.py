"""Each request is done once: repeats get its answer, those that come while it runs wait for it; and turns by key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from typing import NamedTuple, assert_never

import trio

from telegram_bus.core import ledger
from telegram_bus.core.answers import refused
from telegram_bus.core.codec import encode
from telegram_bus.core.decisions import Refuse
from telegram_bus.core.envelopes import (
    Ack,
    Envelope,
    FollowerRequest,
    Forward,
    ForwardQueueHandoff,
    OfferQueueHandoff,
    Register,
    ReplaceFollowerTarget,
)

__all__ = ["Answer", "Once", "Turns", "Work"]

Work = Callable[[], Awaitable[Ack]]

Answer = Ack | Work
"""An answer, or what to await for it in a task of its own."""


class _Place(NamedTuple):
    """Where a request stands in the ledger."""

    sender: tuple[str | None, str, str | None]
    request_id: str
    fingerprint: tuple[int, int]

    def size(self, answer: Ack) -> int:
        """Bytes that the answer costs where it is kept: whoever asks chooses its own name, and how long that is."""
        return len(encode(answer)) + sum(len(part) for part in self.sender if part)


class Once:
    """A ledger, and those who wait in it. What it returns may also never be run: nothing is noted before it is."""

    def __init__(self, bounds: ledger.Bounds | None = None) -> None:
        self._ledger = ledger.Ledger(bounds)
        self._running: dict[_Place, trio.Event | None] = {}  # for those that wait, if any

    def answer(self, envelope: Envelope, act: Callable[[], Answer]) -> Answer:
        """What `act` answers to a new request, or what it answered when the request came before."""
        line = encode(envelope)
        place = _Place((envelope.auth, *_sender_of(envelope)), envelope.request_id, (len(line), hash(line)))
        outcome = self._ledger.look(place.sender, place.request_id, place.fingerprint)
        if isinstance(outcome, ledger.New):
            answer = act()
            if isinstance(answer, Ack):
                self._ledger.begin(place.sender, place.request_id, place.fingerprint)
                self._ledger.settle(place.sender, place.request_id, answer, place.size(answer))
                return answer
            return lambda: self._attempt(envelope, place, lambda: answer)
        known = _known(envelope, outcome)
        return known if known is not None else lambda: self._attempt(envelope, place, act)

    async def _attempt(self, envelope: Envelope, place: _Place, act: Callable[[], Answer]) -> Ack:
        """Does the work, or waits for whoever is doing it; an attempt that was cut off is made again."""
        while True:
            outcome = self._ledger.begin(place.sender, place.request_id, place.fingerprint)
            if isinstance(outcome, ledger.New):
                return await self._work(place, act)
            known = _known(envelope, outcome)
            if known is not None:
                await trio.lowlevel.checkpoint()
                return known
            finished = self._running[place]
            if finished is None:
                finished = self._running[place] = trio.Event()
            await finished.wait()

    async def _work(self, place: _Place, act: Callable[[], Answer]) -> Ack:
        self._running[place] = None
        settled = False
        try:
            answer = act()
            ack = answer if isinstance(answer, Ack) else await answer()
            self._ledger.settle(place.sender, place.request_id, ack, place.size(ack))
            settled = True
            return ack
        finally:
            if not settled:
                self._ledger.abandon(place.sender, place.request_id)
            if (finished := self._running.pop(place)) is not None:
                finished.set()


class Turns:
    """One at a time for each key; a key that nobody waits for costs nothing."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, tuple[trio.Lock, int]] = {}

    @asynccontextmanager
    async def take(self, key: Hashable) -> AsyncIterator[None]:
        """Waits for the key's turn and holds it."""
        lock, users = self._locks.get(key, (trio.Lock(), 0))
        self._locks[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks[key]
            if users > 1:
                self._locks[key] = (lock, users - 1)
            else:
                del self._locks[key]


def _known(envelope: Envelope, outcome: ledger.Outcome) -> Ack | None:
    """What the ledger answers by itself; None when the request is new or still running."""
    match outcome:
        case ledger.New():
            return None
        case ledger.Repeat(answer=answer):
            return answer
        case ledger.Collision():
            message = f"request id {envelope.request_id} was used for another request: take a new one"
            return refused(envelope, Refuse(message=message, code="request-id-collision"))
        case ledger.Full():
            message = "too many requests of this follower are unanswered: wait for their answers first"
            return refused(envelope, Refuse(message=message, code="ledger-overloaded"))
        case _:
            assert_never(outcome)


def _sender_of(envelope: Envelope) -> tuple[str, str | None]:
    """In whose name a request is, or for whom it is meant, and in which generation.

    A follower that registered anew asks for the answer that it missed under the same id, and with its new
    generation: that is no collision, and not the refusal of the old generation either.
    """
    match envelope:
        case Register():
            return envelope.registration.instance_id, None
        case FollowerRequest() | OfferQueueHandoff():
            return envelope.instance_id, envelope.registration_generation
        case Forward() | ForwardQueueHandoff() | ReplaceFollowerTarget():
            return envelope.recipient_instance_id, envelope.recipient_registration_generation
        case _:
            return "", None
