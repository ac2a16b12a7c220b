"""One call on its way to Telegram: claimed at its turn, made, and made again where that is harmless."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import trio

from telegram_bus import crash
from telegram_bus.botapi.parked import Parked
from telegram_bus.botapi.polling import RETRY_SECONDS, backoff
from telegram_bus.botapi.requests import CallApi, Memory, Outcome, Request, Sent, Shown
from telegram_bus.botapi.uploads import seconds_for
from telegram_bus.core.budget import Budget
from telegram_bus.core.errors import AnswerLost, ApiError, NotSent, RequestRefused, StateError
from telegram_bus.core.meters import Limits
from telegram_bus.core.urgency import unchanged

__all__ = ["Making"]

UNSENT_TRIES: Final = 5
LOST_TRIES: Final = 3
CALL_SECONDS: Final = 120.0
"""However slowly an answer trickles in, what waits behind it goes on after that."""

NOTING_SECONDS: Final = 0.25
"""How long a call that needs no claim waits until its start is on the disk."""

log = logging.getLogger(__name__)


class Making(ABC):
    """The part of a sender that makes calls; arguments as of `Sender`."""

    def __init__(
        self,
        api: CallApi,
        repeatable: Callable[[str], bool],
        jitter: Callable[[], float],
        limits: Limits,
        memory: Memory | None,
        report: Callable[[str], None],
    ) -> None:
        self.budget = Budget(limits)
        self.parked = Parked(report)
        self._api, self._repeatable, self._jitter, self._memory = api, repeatable, jitter, memory
        self._shown = Shown()
        self._numbers = 0

    @abstractmethod
    def _again(self, request: Request) -> None:
        """It waits again, before all others of its stream."""

    async def _attempt(self, request: Request) -> Outcome | None:
        """What came of it; None: it waits again."""
        ticket, unsent = request.ticket, 0
        if (same := self._shown.same(request)) is not None:
            self.budget.drop(ticket)
            return same
        await self._begin(request)
        if await self._wait_turn(request):
            return None
        while True:
            try:
                return Sent(await self._call_once(request))
            except ApiError as fault:
                if unchanged(request.method, fault.description):
                    return Sent(True)
                if fault.code != 429:
                    raise
                await self._pause(request, fault.retry_after or RETRY_SECONDS)
                return None
            except NotSent:
                unsent += 1
                if unsent == UNSENT_TRIES:
                    self.budget.drop(ticket)
                    raise
                await self._unclaim(request)
                await trio.sleep(backoff(unsent + request.lost - 1, self._jitter()))
                await self._claim(request)
            except AnswerLost as fault:
                if not self._repeatable(request.method):
                    raise request.unknown(str(fault)) from fault
                request.lost += 1
                if request.lost == LOST_TRIES:
                    raise
                await trio.sleep(backoff(unsent + request.lost - 1, self._jitter()))
                self.budget.end(ticket, trio.current_time())  # it counts twice: it may have arrived
                self._again(request)
                return None

    async def _begin(self, request: Request) -> None:
        """Note for a successor that the call leaves, and claim it; where that fails it does not leave."""
        ticket = request.ticket
        counts = self._memory is not None and ticket.nature.kind == "spend"
        if counts and self._memory is not None:
            self._numbers += 2
            request.number = self._numbers + ticket.progress
            self._memory.started(request.number, ticket.chat_id, ticket.nature.weight)
        if request.before is not None and not request.claimed:
            await self._claim(request)  # which commits that, too
        elif counts and self._memory is not None:
            with trio.move_on_after(NOTING_SECONDS), suppress(StateError):  # a full disk: people must hear of it
                await self._memory.flush()

    async def _wait_turn(self, request: Request) -> bool:
        """Wait for the moment; True where Telegram has asked for a pause meanwhile, so that it waits again."""
        ticket = request.ticket
        if ticket.start_at > trio.current_time():
            await trio.sleep_until(ticket.start_at)
        if self.budget.paused_until(ticket.place) <= trio.current_time():
            return False
        self.budget.drop(ticket)
        await self._back(request)
        return True

    async def _claim(self, request: Request) -> None:
        if request.before is not None and not request.claimed:
            try:
                await request.before()
            except BaseException:
                self.budget.drop(request.ticket)
                raise
            request.claimed = True

    async def _unclaim(self, request: Request) -> None:
        """The call was surely not made: should the leader die before its next try, there is no doubt about that."""
        if request.release is not None and request.claimed:
            await request.release()
            request.claimed = False

    async def _call_once(self, request: Request) -> Any:
        request.on_the_way = True
        seconds = CALL_SECONDS + seconds_for(sum(one.size for one in request.files))
        try:
            with trio.move_on_after(seconds):
                crash.point("before-call")
                if request.files:
                    result = await self._api.call(request.method, request.params, files=request.files)
                else:
                    result = await self._api.call(request.method, request.params)
                crash.point("after-call")
                return result
        except (ApiError, NotSent, RequestRefused):
            request.on_the_way = False
            raise
        raise AnswerLost(f"{request.method}: no answer in {seconds:g} s")

    async def _pause(self, request: Request, seconds: float) -> None:
        """Telegram wants a pause (429): the call was not made, and what that concerns waits."""
        now = trio.current_time()
        until = self.budget.refuse(request.ticket, seconds, now)
        self.parked.note(now, until)
        log.warning("Telegram wants a pause of %g s (%s)", seconds, request.method)
        if self._memory is not None:
            pauses = {chat: end for kind, chat, end in self.budget.pauses(now) if kind == "spend"}
            self._memory.changed(pauses, self.budget.levels, now)
        await self._back(request)

    async def _back(self, request: Request) -> None:
        """It surely was not made, and waits again."""
        self._forget(request)
        await self._unclaim(request)
        self._again(request)

    def _forget(self, request: Request) -> None:
        if self._memory is not None and request.number:
            self._memory.ended(request.number)
            request.number = 0
