"""Everything that leaves for Telegram: when its turn has come in the one budget, in tasks that no requester can cut."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import trio

from telegram_bus.botapi.making import Making
from telegram_bus.botapi.parked import pause_of, queue_of
from telegram_bus.botapi.places import QUEUED, Places
from telegram_bus.botapi.requests import After, Before, CallApi, Failed, Memory, Outcome, Request, Sent
from telegram_bus.botapi.uploads import Upload
from telegram_bus.core.budget import Ticket
from telegram_bus.core.errors import BusError, NotSent
from telegram_bus.core.meters import DEFAULT_LIMITS, Limits
from telegram_bus.core.urgency import Urgency, nature_of

__all__ = ["LONGEST_WAIT", "QUEUED", "CallApi", "Failed", "Memory", "Outcome", "Sender", "Sent"]

LONGEST_WAIT: Final = 20.0
"""A call that would wait longer is refused, so that its requester can decide (protocol section 5)."""

STORING_SECONDS: Final = 5.0
"""How long an outcome may take to be stored; a disk that hangs must not hold up the end."""

LEAD: Final = 0.02
"""Seconds before its turn in which a call is claimed: what a commit takes is not taken from its window."""

SWEEP_SECONDS: Final = 30.0
"""How often what is not needed any more is forgotten."""

log = logging.getLogger(__name__)


class Sender(Making):
    """Makes calls when the budget gives them their turn; `run` does the work.

    `repeatable` says of a method whether it may be made again when its answer was lost. `memory` keeps for a successor
    what counts. `report` is given a text for people after a long pause.
    """

    def __init__(
        self,
        api: CallApi,
        *,
        repeatable: Callable[[str], bool],
        jitter: Callable[[], float] = random.random,
        limits: Limits = DEFAULT_LIMITS,
        memory: Memory | None = None,
        report: Callable[[str], None] = log.info,
    ) -> None:
        super().__init__(api, repeatable, jitter, limits, memory, report)
        self._bell = trio.Event()
        self._places = Places()
        self._impatient: set[Request] = set()
        self._launched = trio.open_memory_channel[Request](math.inf)  # as many as the budget lets go
        self._workers = self._busy = 0
        self._outstanding = 0
        self._idle: trio.Event | None = None  # while somebody waits for it
        self._closed: str | None = None
        self.bar: Callable[[str, int | None], None] = lambda _method, _chat: None
        """Raises RequestRefused for a chat that nothing can be sent to."""

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Make the calls until cancelled; what then waits fails as not sent, what is under way as unknown."""
        sweep_at = trio.current_time() + SWEEP_SECONDS
        try:
            async with trio.open_nursery() as nursery:
                task_status.started()
                while True:
                    bell, now = self._bell, trio.current_time()
                    self._launch(now)
                    while self._workers < self._busy:
                        self._workers += 1
                        nursery.start_soon(self._work)
                    overdue = [one for one in self._impatient if one.deadline <= now]
                    for request in overdue:
                        self._withdraw(request, request.too_long(LONGEST_WAIT), nursery)
                    if now >= sweep_at:
                        sweep_at = now + SWEEP_SECONDS
                        self._sweep(now)
                    first = min((one.deadline for one in self._impatient), default=math.inf)
                    wake = min(self.budget.wake(now, LEAD), first, sweep_at, self.parked.check(now))
                    with trio.CancelScope(deadline=wake):
                        await bell.wait()
                    for request, outcome in self._turned_away() if bell.is_set() else ():
                        self._withdraw(request, outcome, nursery)
        finally:
            self._closed = "the leader has stopped"
            left: list[Request] = [ticket.load for ticket in self.budget.waiting()]
            with suppress(trio.WouldBlock):
                while True:
                    left.append(self._launched[1].receive_nowait())
            for request in left:
                self.budget.take_back(request.ticket)
                self._leave_queue(request)
                await self._end(request, request.not_sent(self._closed))

    async def call(  # noqa: PLR0913 - the one way out for everybody
        self,
        method: str,
        params: Mapping[str, Any],
        chat_id: int | None = None,
        *,
        before: Before | None = None,
        release: Before | None = None,
        after: After | None = None,
        files: tuple[Upload, ...] = (),
        owner: str = "",
        urgency: str | None = None,
        patient: bool = False,
    ) -> Any:
        """Queue the call and return Telegram's result.

        `owner` is the follower's key (empty: the leader's own call); followers take turns, and the calls of one into a
        chat keep their order, but for edits, answers to clicks and uploads, which wait for their like only. `urgency`
        is "click", "final" or "progress" (None: as the method says). Of edits of one message that wait only the newest
        is made, and all who wait get its result; one that changes nothing is not made.

        Cancelled while it waits for a place in the queue, nothing is sent; cancelled later, the call is made
        all the same. `after` is told the outcome in any case, shielded, before the next call of its kind: what must be
        stored of it does not depend on who still waits. A BusError of `after` becomes the caller's. `before` is called
        once, when it is the call's turn: what it raises (a BusError) becomes of the call, which is then not made. With
        `release`, that is called when the call was surely not made (429, no network), and `before` again at the next
        try. The descriptors of `files` have to stay open until `after` is told.

        Raises ApiError; RequestRefused (code None) for a wait of more than 20 s, with the time in its message, which a
        `patient` call is not refused for unless it only shows progress; NotSent: surely not carried out; CommitUnknown:
        perhaps carried out, must not be repeated; AnswerLost.
        """
        nature = nature_of(method, params, hint=urgency, upload=bool(files))
        ticket = Ticket(nature, method, chat_id, owner)
        request = ticket.load = Request(ticket, params, patient, math.inf, after, before, release, files)
        self._outstanding += 1
        try:
            self._check(ticket, patient=patient)
            waited = await self._places.take(owner)
            request.has_place = True
            if waited:
                self._check(ticket, patient=patient)
        except BusError as refusal:
            self._leave_queue(request)
            await self._end(request, Failed(refusal))
            raise
        except BaseException:
            await self._end(request, request.not_sent("its requester gave up"))
            raise
        self._put(request)
        await request.finished.wait()
        match request.outcome:
            case Sent(result):
                return result
            case Failed(fault):
                raise fault
        raise AssertionError("finished without an outcome")

    def check(
        self, method: str, chat_id: int | None, *, owner: str = "", urgency: str | None = None, patient: bool = False
    ) -> None:
        """Ask before a call is claimed: raises RequestRefused when it would wait too long, NotSent after the end."""
        self._check(Ticket(nature_of(method, {}, hint=urgency), method, chat_id, owner), patient=patient)

    async def drain(self) -> None:
        """Take no more calls and return when the last one has ended; the caller bounds the time."""
        self._closed = self._closed or "the leader is stopping"
        while self._outstanding:
            self._idle = self._idle or trio.Event()
            await self._idle.wait()

    def queue(self, owner: str) -> dict[str, Any]:
        """What waits of a follower's calls, for itself: see `x.send.queue` in docs/protocol.md."""
        return queue_of(self.budget, owner, QUEUED, trio.current_time())

    def pause(self) -> str | None:
        """What Telegram wants a pause of and for how long, for people; None: it does not."""
        return pause_of(self.budget, trio.current_time())

    # -- the queue

    def _check(self, ticket: Ticket, *, patient: bool) -> None:
        if self._closed:
            raise NotSent(f"{ticket.method} was not sent: {self._closed}")
        self.bar(ticket.method, ticket.chat_id)
        if not patient and ticket.nature.kind != "typing":
            wait = self.budget.estimate(ticket, trio.current_time())
            if wait > LONGEST_WAIT:
                raise Request(ticket, {}, patient).too_long(wait).fault

    def _put(self, request: Request) -> None:
        now = trio.current_time()
        older = self.budget.put(request.ticket)
        if older is not None:
            self._leave_queue(older.load)
            request.absorbed = [*older.load.absorbed, older.load]
            older.load.absorbed = []
        if not request.patient and request.ticket.nature.kind != "free":
            request.deadline = now + LONGEST_WAIT
            self._impatient.add(request)
        if self._busy < self._workers:  # without a way round, where nobody is before it
            self._launch(now)
        self._ring()

    def _launch(self, now: float) -> None:
        """Give to the workers what may start."""
        for ticket in self.budget.next(now, LEAD):
            self._leave_queue(ticket.load)
            self._busy += 1
            self._launched[0].send_nowait(ticket.load)

    def _ring(self) -> None:
        """Have `run` look when something that waits may start, and give work to more tasks where there are too few."""
        if self.budget.queued or self._busy > self._workers:
            self._bell.set()

    def _go_on(self) -> None:
        """Something ended: if anything waits, its turn may have come."""
        if self.budget.queued:
            self._launch(trio.current_time())
            self._ring()

    def _leave_queue(self, request: Request) -> None:
        self._impatient.discard(request)
        if request.has_place:
            request.has_place = False
            self._places.give_back(request.ticket.owner)

    def _turned_away(self) -> list[tuple[Request, Outcome]]:
        """What does not wait out a long pause: it is stale then, or its requester has no patience."""
        self._bell = trio.Event()
        now = trio.current_time()
        if not self.budget.pauses(now):
            return []
        away: list[tuple[Request, Outcome]] = []
        for ticket in self.budget.waiting():
            wait = self.budget.paused_until(ticket.place) - now
            request: Request = ticket.load
            outcome = request.after_pause(wait, now, LONGEST_WAIT)
            if outcome is not None:
                away.append((request, outcome))
                self.parked.dropped += request.patient and ticket.nature.urgency is Urgency.PROGRESS
        return away

    def _withdraw(self, request: Request, outcome: Outcome, nursery: trio.Nursery) -> None:
        if self.budget.take_back(request.ticket):
            self._leave_queue(request)
            nursery.start_soon(self._end, request, outcome)

    def _sweep(self, now: float) -> None:
        self.budget.sweep(now)
        self._places.sweep()

    # -- one call

    async def _work(self) -> None:
        """Make one call after another; there are as many of these tasks as calls were under way at once."""
        async for request in self._launched[1]:
            try:
                await self._make(request)
            finally:
                self._busy -= 1

    async def _make(self, request: Request) -> None:
        """Make the call, have its outcome stored, tell whoever waits; unless it has to wait once more."""
        outcome: Outcome | None = None
        again = False
        try:
            outcome = await self._attempt(request)
            again = outcome is None
        except BusError as fault:
            outcome = Failed(fault)
        except Exception:  # a mistake over one call must not end everybody's
            log.exception("%s could not be made", request.method)
            outcome = request.broken()
        finally:
            if not again:
                self.budget.end(request.ticket, trio.current_time())
                self._go_on()
                self._forget(request)
                outcome = outcome or request.interrupted()
                self._shown.note(request, outcome)
                try:
                    await self._end(request, outcome)
                finally:
                    self.budget.leave(request.ticket)
                    self._go_on()

    def _again(self, request: Request) -> None:
        self.budget.again(request.ticket)
        if not request.patient:
            self._impatient.add(request)
        self._bell.set()

    async def _end(self, request: Request, outcome: Outcome) -> None:
        """Have the outcome stored, then tell it; this happens also where everything is being cancelled."""
        for one in request.absorbed:
            await self._end(one, outcome)
        if request.after is not None:
            try:
                with trio.move_on_after(STORING_SECONDS, shield=True) as scope:
                    await request.after(outcome)
                if scope.cancelled_caught:
                    log.error("the outcome of %s could not be stored in %g s", request.method, STORING_SECONDS)
            except BusError as fault:
                outcome = Failed(fault)
            except Exception:  # a mistake over one call's outcome must not end everybody's
                log.exception("the outcome of %s could not be stored", request.method)
        request.finish(outcome)
        self._outstanding -= 1
        if self._idle is not None:
            self._idle.set()
            self._idle = None
