"""Turns in a pool of waiting calls: by class, then by follower (start-time fair queueing), in order within a stream."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final

from telegram_bus.core.meters import Allowance
from telegram_bus.core.urgency import Kind, Nature, Urgency

__all__ = ["FREE_AT_ONCE", "Place", "Pool", "Ticket"]

SHARES: Final = {Urgency.FINAL: 8, Urgency.MESSAGE: 4, Urgency.PROGRESS: 2, Urgency.TYPING: 1, Urgency.CLICK: 1}
"""What the classes get where all of them wait. Answers to clicks need no share: they go first, and are few."""

FREE_AT_ONCE: Final = 12
"""Of those that are not limited (answers to buttons), which have places of their own."""

CHATLESS_AT_ONCE: Final = 8
"""Calls of one follower without a chat (getMe), among which there is no order."""

Place = tuple[Kind, int | None]
"""What a pool is for: a kind of call, in a chat."""


class Ticket:
    """A call in the budget: what it is, whose, and (for the shell) `load`, what it stands for."""

    __slots__ = ("chat_id", "held", "load", "method", "nature", "number", "owner", "place", "running", "start_at")

    def __init__(self, nature: Nature, method: str, chat_id: int | None, owner: str, load: Any = None) -> None:
        self.nature, self.method, self.chat_id, self.owner, self.load = nature, method, chat_id, owner, load
        self.place: Place = (nature.kind, chat_id)
        self.number = 0
        self.held = self.running = False
        self.start_at = 0.0

    @property
    def click(self) -> bool:
        return self.nature.urgency is Urgency.CLICK

    @property
    def progress(self) -> bool:
        return self.nature.urgency is Urgency.PROGRESS


class _Stream:
    """Calls of one follower whose order is kept, and how many of them are on their way."""

    __slots__ = ("at_once", "name", "running", "tickets")

    def __init__(self, name: str, at_once: int) -> None:
        self.name, self.at_once = name, at_once
        self.running = 0
        self.tickets: deque[Ticket] = deque()

    def urgency(self) -> Urgency:
        """That of the most urgent one: what stands before it has to go first."""
        if len(self.tickets) == 1:
            return self.tickets[0].nature.urgency
        return min(ticket.nature.urgency for ticket in self.tickets)


class _Owner:
    """A follower in a pool; `passes` counts, for each class, what it got."""

    __slots__ = ("passes", "streams")

    def __init__(self) -> None:
        self.streams: dict[str, _Stream] = {}
        self.passes = [0.0] * len(Urgency)

    @property
    def waiting(self) -> int:
        return sum(len(stream.tickets) for stream in self.streams.values())


class Pool:
    """All calls that wait for one limit. Start-time fair queueing: by class, then by follower.

    `limits` are all that its calls count for: the overall one, if any, and their own.
    """

    def __init__(self, place: Place, allowance: Allowance | None, overall: Allowance | None = None) -> None:
        self.place, self.allowance = place, allowance
        self.limits = tuple(one for one in (overall, allowance) if one is not None)
        self.owners: dict[str, _Owner] = {}
        self._ready: dict[_Stream, _Owner] = {}  # in which something waits: of a thousand followers few
        self.waiting = self.running = 0
        self.passed = 0.0  # of the pools among each other
        self._class_passes = [0.0] * len(Urgency)
        self._class_now = 0.0
        self._owner_now = [0.0] * len(Urgency)

    def stream(self, ticket: Ticket) -> _Stream:
        owner = self.owners.get(ticket.owner)
        if owner is None:
            owner = self.owners[ticket.owner] = _Owner()
        name = ticket.nature.stream
        found = owner.streams.get(name)
        if found is None:
            kind, chat_id = self.place
            at_once = FREE_AT_ONCE if kind == "free" else 1 if chat_id is not None else CHATLESS_AT_ONCE
            found = owner.streams[name] = _Stream(name, at_once)
        return found

    def add(self, ticket: Ticket, *, first: bool = False) -> None:
        """One more call waits, before all others of its stream or behind them."""
        stream = self.stream(ticket)
        if first:
            stream.tickets.appendleft(ticket)
        else:
            stream.tickets.append(ticket)
        self._ready[stream] = self.owners[ticket.owner]
        self.waiting += 1

    def remove(self, ticket: Ticket) -> bool:
        """The call waits no more; False where it did not."""
        owner = self.owners.get(ticket.owner)
        stream = None if owner is None else owner.streams.get(ticket.nature.stream)
        if stream is None or ticket not in stream.tickets:
            return False
        stream.tickets.remove(ticket)
        self._has_left(stream)
        return True

    def before(self, owner: str, weight: int) -> int:
        """How much is served, about, until so much more of this follower is: all of its own, as much of the others."""
        own = self.owners.get(owner)
        mine = weight + (0 if own is None else own.waiting)
        return mine + sum(min(one.waiting, mine) for one in set(self._ready.values()) if one is not own)

    def candidate(self, now: float, lead: float, *, uploads: bool) -> tuple[Ticket, Urgency, float] | None:
        """The next call by class and turn, the class whose turn it has, and how long that has to wait for its share.

        Progress beyond its share is overtaken.
        """
        best: dict[Urgency, tuple[float, int, Ticket]] = {}
        for stream, owner in self._ready.items():
            if stream.running >= stream.at_once or (stream.name == "upload" and not uploads):
                continue
            urgency, head = stream.urgency(), stream.tickets[0]
            rank = (max(owner.passes[urgency], self._owner_now[urgency]), head.number, head)
            if urgency not in best or rank[:2] < best[urgency][:2]:
                best[urgency] = rank
        if not best:
            return None
        if Urgency.CLICK in best:
            return best[Urgency.CLICK][2], Urgency.CLICK, 0.0
        hold = 0.0
        if Urgency.PROGRESS in best and self.allowance is not None:
            weight = best[Urgency.PROGRESS][2].nature.weight
            hold = self.allowance.wait_progress(now, weight)
            if hold > lead and len(best) > 1:
                del best[Urgency.PROGRESS]
        chosen = min(best, key=lambda urgency: (max(self._class_passes[urgency], self._class_now), urgency))
        return best[chosen][2], chosen, hold if chosen is Urgency.PROGRESS else 0.0

    def serve(self, ticket: Ticket, urgency: Urgency) -> None:
        """It is the ticket's turn."""
        weight = ticket.nature.weight
        owner = self.owners[ticket.owner]
        began = self._owner_now[urgency] = max(owner.passes[urgency], self._owner_now[urgency])
        owner.passes[urgency] = began + weight
        if urgency is not Urgency.CLICK:
            self._class_now = max(self._class_passes[urgency], self._class_now)
            self._class_passes[urgency] = self._class_now + weight / SHARES[urgency]
        stream = owner.streams[ticket.nature.stream]
        stream.tickets.popleft()
        self._has_left(stream)
        stream.running += 1
        self.running += 1

    def _has_left(self, stream: _Stream) -> None:
        self.waiting -= 1
        if not stream.tickets:
            del self._ready[stream]

    def __iter__(self) -> Iterator[Ticket]:
        for owner in self.owners.values():
            for stream in owner.streams.values():
                yield from stream.tickets
