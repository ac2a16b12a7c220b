"""The one budget of everything that leaves for Telegram: who may start next, and when.

Calls wait in pools, one for each limit: those that count in a chat, its typing, what counts overall only. In a pool the
classes have shares, and within a class the followers take turns. A follower's own calls keep their order within a
stream, one at a time; a hung call holds up nothing but its stream.
"""

from __future__ import annotations

import math
from typing import Final

from telegram_bus.core.meters import DEFAULT_LIMITS, NEVER, Allowance, Limits
from telegram_bus.core.turns import FREE_AT_ONCE, Place, Pool, Ticket
from telegram_bus.core.urgency import Kind, Urgency, replaces

__all__ = ["Budget", "Ticket"]

AT_ONCE: Final = 48
"""Calls on their way; the client has 64 connections, and beyond them a call fails instead of waiting."""

UPLOADS_AT_ONCE: Final = 6
"""Of those that bring files, which have 8 connections."""

SOONEST: Final = 1e-4
"""Seconds: nobody has to ask again sooner, whatever the rounding of the clock."""


class Budget:
    """Who may start: `put` and `next` for calls that come, `end`, `refuse` and `again` for what becomes of them.

    Times are seconds of one clock that never runs backwards.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self._overall = Allowance(limits.overall)
        self._pools: dict[Place, Pool] = {}
        self._paused: dict[Place, float] = {}
        self._all_paused = -math.inf
        self._all_seen: list[tuple[float, int | None]] = []
        self._unsure_since: float | None = None
        self._numbers = 0
        self._passed = 0.0
        self._running = self._free_running = self._uploads = 0
        self.queued = 0
        """How many calls wait."""

    # -- calls that come

    def put(self, ticket: Ticket) -> Ticket | None:
        """Queue a call. Returns the one whose place it has taken, which will not be made."""
        self._numbers += 1
        ticket.number = self._numbers
        pool = self._pool(ticket.place)
        stream = pool.stream(ticket)
        if ticket.nature.key is not None:
            for index, older in enumerate(stream.tickets):
                if older.nature.key == ticket.nature.key and _takes_place(ticket, older):
                    ticket.number = older.number
                    urgency = min(ticket.nature.urgency, older.nature.urgency)
                    ticket.nature = ticket.nature._replace(urgency=urgency)
                    stream.tickets[index] = ticket
                    return older
        pool.add(ticket)
        self.queued += 1
        return None

    def take_back(self, ticket: Ticket) -> bool:
        """The call is not to be made any more; False where it does not wait."""
        pool = self._pools.get(ticket.place)
        if pool is None or not pool.remove(ticket):
            return False
        self.queued -= 1
        return True

    def next(self, now: float, lead: float = 0.0) -> list[Ticket]:
        """The calls that start now, in order; each is held until `end`, `refuse` or `drop`, and has to `leave` then.

        With a `lead` those too whose turn comes so soon, at `start_at`: what has to be done before is done meanwhile.
        """
        started: list[Ticket] = []
        while self.queued and (found := self._best(now, lead)) is not None:
            pool, ticket, urgency, delay = found
            ticket.start_at = now + delay
            pool.serve(ticket, urgency)
            self.queued -= 1
            pool.passed = self._passed = max(pool.passed, self._passed)
            pool.passed += ticket.nature.weight
            self._count(ticket, 1)
            for allowance in pool.limits:
                allowance.start(ticket.nature.weight, click=ticket.click, progress=ticket.progress)
            ticket.held = ticket.running = True
            started.append(ticket)
        return started

    def wake(self, now: float, lead: float = 0.0) -> float:
        """When `next` should be asked again, if nothing happens before; infinity: not at all."""
        soonest = NEVER
        if not self.queued:
            return NEVER
        uploads = self._uploads < UPLOADS_AT_ONCE
        for pool in self._pools.values():
            found = pool.candidate(now, lead, uploads=uploads) if pool.waiting else None
            if found is not None:
                delay = max(self._delay(pool, found[0], found[2], now), self._overall_delay(found[0], now))
                # what could start and does not, waits for another to leave
                soonest = min(soonest, delay - lead if delay > lead else NEVER)
        return now + max(soonest, SOONEST)

    # -- what becomes of those that started

    def end(self, ticket: Ticket, now: float) -> None:
        """It was answered, or nobody knows: it may have arrived until now. Does nothing for what is not held."""
        for allowance in self._holding(ticket):
            allowance.end(now, ticket.nature.weight, click=ticket.click, progress=ticket.progress)

    def drop(self, ticket: Ticket) -> None:
        """It surely did not arrive."""
        for allowance in self._holding(ticket):
            allowance.drop(ticket.nature.weight, click=ticket.click, progress=ticket.progress)

    def refuse(self, ticket: Ticket, retry_after: float, now: float) -> float:
        """It got a 429 and did not count; what that concerns waits until the time that is returned."""
        self.drop(ticket)
        place, until = _pausing(ticket.place), now + retry_after
        first = self._paused.get(place, -math.inf) <= now
        self._paused[place] = max(until, self._paused.get(place, -math.inf))
        if first and ticket.nature.kind in ("spend", "typing"):
            self._pool(ticket.place).limits[-1].lower(now)
        others = [end for (kind, _), end in self._paused.items() if kind == "spend" and end > now]
        if place[0] == "spend" and len(others) > 1:
            if self._all_paused <= now:
                self._overall.lower(now)
            self._all_paused = max(self._all_paused, until)
        return self.paused_until(ticket.place)

    def leave(self, ticket: Ticket) -> None:
        """The next one of its stream may start."""
        if ticket.running:
            ticket.running = False
            pool = self._pools[ticket.place]
            pool.running -= 1
            pool.owners[ticket.owner].streams[ticket.nature.stream].running -= 1
            self._count(ticket, -1)

    def again(self, ticket: Ticket) -> None:
        """It is to be made once more, before all others of its stream."""
        self.leave(ticket)
        self._pool(ticket.place).add(ticket, first=True)
        self.queued += 1

    # -- looking

    def paused_until(self, place: Place) -> float:
        """Until when a 429 keeps these calls back (a time; minus infinity: it does not)."""
        if not self._paused:
            return -math.inf if place[0] == "free" else self._all_paused
        until = self._paused.get(_pausing(place), -math.inf)
        if place[0] == "typing":
            until = max(until, self._paused.get(("spend", place[1]), -math.inf))
        return until if place[0] == "free" else max(until, self._all_paused)

    def pauses(self, now: float) -> list[tuple[Kind, int | None, float]]:
        """What is kept back by a 429, until when; chat None with kind `spend`: everything."""
        found = [(kind, chat, until) for (kind, chat), until in self._paused.items() if until > now]
        return found + ([("spend", None, self._all_paused)] if self._all_paused > now else [])

    def estimate(self, ticket: Ticket, now: float) -> float:
        """About how long the call would wait if it were put now."""
        pool, weight = self._pool(ticket.place), ticket.nature.weight
        ahead = weight if ticket.click or not pool.waiting else pool.before(ticket.owner, weight)
        wait = max(0.0, self.paused_until(ticket.place) - now)
        for allowance in pool.limits:
            wait = max(wait, allowance.wait_for_many(now, ahead))
        return wait

    def waiting(self, owner: str | None = None) -> list[Ticket]:
        """The calls that wait, of one follower or of all."""
        return [
            ticket for pool in self._pools.values() if pool.waiting for ticket in pool if owner in (None, ticket.owner)
        ]

    @property
    def levels(self) -> dict[int | None, tuple[int, float]]:
        """What is allowed below its nominal value: by chat (None: overall) as of `Allowance.level`."""
        found = {
            pool.place[1]: pool.allowance.level
            for pool in self._pools.values()
            if pool.allowance is not None and pool.place[0] == "spend" and pool.allowance.lowered
        }
        return found | ({None: self._overall.level} if self._overall.lowered else {})

    # -- what an earlier leader did

    def recall(self, chat_id: int | None, weight: int, ended: float, *, progress: bool = False) -> None:
        """Something that it sent was answered then; in the order of the answers."""
        self._overall.recall(ended, weight)
        if chat_id is not None and (allowance := self._pool(("spend", chat_id)).allowance) is not None:
            allowance.recall(ended, weight, progress=progress)

    def recall_pause(self, chat_id: int | None, until: float) -> None:
        """It was told to pause until then; without a chat, all."""
        if chat_id is None:
            self._all_paused = max(self._all_paused, until)
        else:
            self._paused["spend", chat_id] = until

    def recall_level(self, chat_id: int | None, level: tuple[int, float], now: float) -> None:
        """It had come to this (`levels`)."""
        allowance = self._overall if chat_id is None else self._pool(("spend", chat_id)).allowance
        if allowance is not None:
            allowance.adopt(*level, now)

    def be_unsure(self, now: float) -> None:
        """What was sent before is not known: every limit counts as spent at this moment."""
        self._overall.spend_all(now)
        self._unsure_since = now
        for pool in self._pools.values():
            if pool.allowance is not None:
                pool.allowance.spend_all(now)

    # -- inside

    def _best(self, now: float, lead: float) -> tuple[Pool, Ticket, Urgency, float] | None:
        """The call that starts next, if one may start now, and its delay; what does not fit is not overtaken."""
        chosen: tuple[Pool, Ticket, Urgency, float] | None = None
        rank: tuple[bool, float, int] | None = None
        uploads = self._uploads < UPLOADS_AT_ONCE
        for pool in self._pools.values():
            if not pool.waiting or self._full(pool.place[0]):
                continue
            found = pool.candidate(now, lead, uploads=uploads)
            if found is None or (delay := self._delay(pool, found[0], found[2], now)) > lead:
                continue
            ticket, urgency, _ = found
            mine = (not ticket.click, max(pool.passed, self._passed), ticket.number)
            if rank is None or mine < rank:
                chosen, rank = (pool, ticket, urgency, delay), mine
        if chosen is None or (overall := self._overall_delay(chosen[1], now)) > lead:
            return None
        return (*chosen[:3], max(chosen[3], overall))

    def _full(self, kind: Kind) -> bool:
        return self._free_running >= FREE_AT_ONCE if kind == "free" else self._running >= AT_ONCE

    def _delay(self, pool: Pool, ticket: Ticket, hold: float, now: float) -> float:
        pause = max(hold, self.paused_until(pool.place) - now)
        if pool.allowance is None:
            return pause
        return max(pause, pool.allowance.wait(now, ticket.nature.weight, click=ticket.click))

    def _overall_delay(self, ticket: Ticket, now: float) -> float:
        if ticket.nature.kind not in ("spend", "other"):
            return 0.0
        return self._overall.wait(now, ticket.nature.weight, click=ticket.click)

    def _holding(self, ticket: Ticket) -> tuple[Allowance, ...]:
        held, ticket.held = ticket.held, False
        return self._pool(ticket.place).limits if held else ()

    def _count(self, ticket: Ticket, by: int) -> None:
        if ticket.nature.kind == "free":
            self._free_running += by
        else:
            self._running += by
        if ticket.nature.stream == "upload":
            self._uploads += by

    def _pool(self, place: Place) -> Pool:
        pool = self._pools.get(place)
        if pool is None:
            overall = self._overall if place[0] in ("spend", "other") else None
            pool = self._pools[place] = Pool(place, self._new_allowance(place), overall)
        return pool

    def _new_allowance(self, place: Place) -> Allowance | None:
        kind, chat_id = place
        if kind == "typing":
            return Allowance(self.limits.typing)
        if kind != "spend" or chat_id is None:
            return None
        if chat_id > 0:
            allowance = Allowance(self.limits.private, burst=self.limits.burst)
        else:
            allowance = Allowance(self.limits.group, bounds_progress=True)
        if self._unsure_since is not None:
            allowance.spend_all(self._unsure_since)
        return allowance

    def sweep(self, now: float) -> None:
        """Forget chats, followers and pauses that nothing is known of any more."""
        self._paused = {place: until for place, until in self._paused.items() if until > now}
        for place, pool in list(self._pools.items()):
            if not pool.waiting and not pool.running:
                pool.owners.clear()
                if pool.allowance is None or pool.allowance.idle(now):
                    del self._pools[place]


def _takes_place(newer: Ticket, older: Ticket) -> bool:
    return not newer.method.lower().startswith("editmessage") or replaces(newer.method, older.method)


def _pausing(place: Place) -> Place:
    """A chat's pause is one for all that counts in it, or overall."""
    kind, chat_id = place
    return ("spend", chat_id) if kind == "other" and chat_id is not None else place
