"""The ledger of requests: the same request again gets the same answer, and never the same work (protocol section 5)."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from attrs import define, field, frozen

from telegram_bus.core.envelopes import Ack

__all__ = ["Bounds", "Collision", "Full", "Ledger", "New", "Outcome", "Repeat"]

_OVERHEAD: Final = 600
"""Bytes that a settled entry costs beside its answer: ids, fingerprint, the objects around them."""


@frozen(kw_only=True)
class Bounds:
    """How much is remembered: requests in flight and settled ones for a sender, bytes of answers, senders."""

    in_flight: int = 64
    settled: int = 256
    sender_bytes: int = 256 * 1024
    total_bytes: int = 16 * 1024 * 1024
    senders: int = 8192


@frozen(kw_only=True)
class New:
    """Not seen before: do the work, then `settle` or `abandon`."""


@frozen(kw_only=True)
class Repeat:
    """Seen before: `answer` is its answer, None while the first is still running."""

    answer: Ack | None


@frozen(kw_only=True)
class Collision:
    """The same id with another body."""


@frozen(kw_only=True)
class Full:
    """The sender has too many requests in flight."""


Outcome = New | Repeat | Collision | Full

_NEW: Final = New()
_RUNNING: Final = Repeat(answer=None)
_COLLISION: Final = Collision()
_FULL: Final = Full()


@frozen
class _Settled:
    fingerprint: Hashable
    answer: Ack
    size: int


@define
class _Sender:
    in_flight: dict[str, Hashable] = field(factory=dict)
    settled: OrderedDict[str, _Settled] = field(factory=OrderedDict)
    size: int = 0


class Ledger:
    """What was asked and answered, by sender and request id.

    A sender is any hashable value, a fingerprint one that differs when the body does. The oldest settled answers are
    forgotten first; a sender's newest one stays whatever its size, so that a lost answer can be asked for again.
    """

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._bounds = bounds or Bounds()
        self._senders: OrderedDict[Hashable, _Sender] = OrderedDict()
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes of settled answers, about."""
        return self._size

    def look(self, sender: Hashable, request_id: str, fingerprint: Hashable) -> Outcome:
        """What the request is; nothing changes."""
        entry = self._senders.get(sender)
        if entry is None:
            return _NEW
        settled = entry.settled.get(request_id)
        if settled is not None:
            return Repeat(answer=settled.answer) if settled.fingerprint == fingerprint else _COLLISION
        if request_id in entry.in_flight:
            return _RUNNING if entry.in_flight[request_id] == fingerprint else _COLLISION
        return _FULL if len(entry.in_flight) >= self._bounds.in_flight else _NEW

    def begin(self, sender: Hashable, request_id: str, fingerprint: Hashable) -> Outcome:
        """What the request is; after `New` it is in flight."""
        outcome = self.look(sender, request_id, fingerprint)
        if isinstance(outcome, New):
            entry = self._senders.get(sender)
            if entry is None:
                entry = self._senders[sender] = _Sender()
            self._senders.move_to_end(sender)
            entry.in_flight[request_id] = fingerprint
            self._forget_senders()
        return outcome

    def settle(self, sender: Hashable, request_id: str, answer: Ack, size: int) -> None:
        """The request in flight has its answer; `size` is about the bytes of that and of the sender's name."""
        entry = self._senders[sender]
        fingerprint = entry.in_flight.pop(request_id)
        size += _OVERHEAD
        entry.settled[request_id] = _Settled(fingerprint, answer, size)
        self._grow(entry, size)
        while len(entry.settled) > 1 and (
            len(entry.settled) > self._bounds.settled or entry.size > self._bounds.sender_bytes
        ):
            self._forget_oldest(entry)
        self._forget_bytes()

    def abandon(self, sender: Hashable, request_id: str) -> None:
        """The request in flight ended without an answer; when it comes again it is new."""
        entry = self._senders[sender]
        entry.in_flight.pop(request_id)
        if not (entry.in_flight or entry.settled):
            del self._senders[sender]

    def _grow(self, entry: _Sender, size: int) -> None:
        entry.size += size
        self._size += size

    def _forget_oldest(self, entry: _Sender) -> None:
        _, oldest = entry.settled.popitem(last=False)
        self._grow(entry, -oldest.size)

    def _forget_bytes(self) -> None:
        """Takes from the senders that were silent longest, until the total fits; the latest sender keeps its newest.

        Of whom nothing is left the name goes as well: it may be longer than all that was answered.
        """
        if self._size <= self._bounds.total_bytes:
            return
        latest = next(reversed(self._senders), None)
        emptied = []
        for sender, entry in self._senders.items():
            while self._size > self._bounds.total_bytes and len(entry.settled) > (sender == latest):
                self._forget_oldest(entry)
            if not (entry.in_flight or entry.settled):
                emptied.append(sender)
            if self._size <= self._bounds.total_bytes:
                break
        for sender in emptied:
            del self._senders[sender]

    def _forget_senders(self) -> None:
        """Forgets senders beyond the bound, the longest silent first; never one with a request in flight."""
        surplus = len(self._senders) - self._bounds.senders
        if surplus > 0:
            idle = (sender for sender, entry in self._senders.items() if not entry.in_flight)
            for sender in list(itertools.islice(idle, surplus)):
                self._size -= self._senders.pop(sender).size
