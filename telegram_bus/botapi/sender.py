"""Everything that leaves for Telegram: one call at a time in each chat, made in tasks that no requester can cut."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

import trio
from attrs import define, field, frozen

from telegram_bus.botapi.polling import RETRY_SECONDS, backoff
from telegram_bus.botapi.uploads import Upload, seconds_for
from telegram_bus.core.errors import AnswerLost, ApiError, BusError, CommitUnknown, NotSent, RequestRefused

__all__ = ["CallApi", "Failed", "Outcome", "Sender", "Sent"]

QUEUED: Final = 100
"""Calls that wait in one chat; whoever asks for more waits for a place."""

CHATLESS: Final = 8
"""Calls without a chat (answers to buttons, getMe) that run at once."""

IDLE_SECONDS: Final = 60.0
"""A chat's task ends after that."""

LONGEST_WAIT: Final = 20.0
"""A call that would wait longer is refused, so that its requester can decide (protocol section 5)."""

UNSENT_TRIES: Final = 5
LOST_TRIES: Final = 3
CALL_SECONDS: Final = 120.0
"""However slowly an answer trickles in, the chat behind it goes on after that."""


STORING_SECONDS: Final = 5.0
"""How long an outcome may take to be stored; a disk that hangs must not hold up the end."""

log = logging.getLogger(__name__)


class CallApi(Protocol):
    """What the sender needs of `BotApi`."""

    async def call(
        self, method: str, params: Mapping[str, Any] | None = None, *, files: tuple[Upload, ...] = ()
    ) -> Any:
        """Make the call; raises ApiError, NotSent, AnswerLost."""


@frozen
class Sent:
    """Telegram carried the call out."""

    result: Any


@frozen
class Failed:
    """It did not, or nobody knows (CommitUnknown)."""

    fault: BusError


Outcome = Sent | Failed

After = Callable[[Outcome], Awaitable[None]]
Before = Callable[[], Awaitable[None]]


@define(eq=False)
class _Request:
    method: str
    params: Mapping[str, Any]
    chat_id: int | None
    after: After | None
    before: Before | None = None
    files: tuple[Upload, ...] = ()
    patient: bool = False
    on_the_way: bool = False
    outcome: Outcome | None = None
    finished: trio.Event = field(factory=trio.Event)

    def finish(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.finished.set()


@define(eq=False)
class _Lane:
    """The queue of one chat (None: of the calls without one), or of its uploads, behind which nobody else waits."""

    place: tuple[int | None, bool]
    push: trio.MemorySendChannel[_Request]
    pull: trio.MemoryReceiveChannel[_Request]

    @property
    def empty(self) -> bool:
        statistics = self.pull.statistics()
        return not statistics.current_buffer_used and not statistics.tasks_waiting_send


class Sender:
    """Calls in the order in which they were asked for, chat by chat; `run` does the work.

    `repeatable` says of a method whether it may be made again when its answer was lost.
    """

    def __init__(
        self, api: CallApi, *, repeatable: Callable[[str], bool], jitter: Callable[[], float] = random.random
    ) -> None:
        self._api = api
        self._repeatable = repeatable
        self._jitter = jitter
        self._lanes: dict[tuple[int | None, bool], _Lane] = {}
        self._announce, self._announced = trio.open_memory_channel[_Lane](math.inf)
        self._paused_until: dict[int | None, float] = {}
        self._outstanding = 0
        self._idle = trio.Event()
        self._closed: str | None = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Make the calls until cancelled; what then waits fails as not sent, what is under way as unknown."""
        chatless = self._lane(None)
        try:
            async with trio.open_nursery() as nursery:
                for _ in range(CHATLESS):
                    nursery.start_soon(self._serve, chatless)
                task_status.started()
                async for lane in self._announced:
                    if lane is not chatless:
                        nursery.start_soon(self._serve, lane)
        finally:
            self._closed = "the leader has stopped"
            for lane in self._lanes.values():
                await self._give_up(lane)

    async def call(
        self,
        method: str,
        params: Mapping[str, Any],
        chat_id: int | None = None,
        *,
        before: Before | None = None,
        after: After | None = None,
        files: tuple[Upload, ...] = (),
        owner: str = "",  # noqa: ARG002 - for the budget, which is being built
        urgency: str | None = None,  # noqa: ARG002
        patient: bool = False,
    ) -> Any:
        """Queue the call behind those of its chat and return Telegram's result.

        `owner` is the follower's key (empty: the leader's own call), `urgency` is "click", "final" or "progress" (None:
        as the method says). A `patient` call is never refused for a long wait.

        Calls with `files` queue behind each other only: an upload takes minutes where the line is slow. Their
        descriptors have to stay open until `after` is told.

        Cancelled while it waits for a place in the queue, nothing is sent; cancelled later, the call is made
        all the same. `after` is told the outcome in any case, shielded, before the chat's next call: what must be
        stored of it does not depend on who still waits. A BusError of `after` becomes the caller's. `before` is called
        once, when it is the call's turn: what it raises (a BusError) becomes of the call, which is then not made.

        Raises ApiError; RequestRefused (code None) for a wait of more than 20 s, with the time in its message, and
        NotSent: surely not carried out; CommitUnknown: perhaps carried out, must not be repeated; AnswerLost.
        """
        request = _Request(method, params, chat_id, after, before, files, patient)
        self._outstanding += 1
        try:
            self.check(method, chat_id, patient=patient)
            await self._lane(chat_id, uploads=bool(files)).push.send(request)
        except BusError as refusal:
            await self._end(request, Failed(refusal))
            raise
        except BaseException:
            await self._end(request, Failed(NotSent(f"{method} was not sent: its requester gave up")))
            raise
        await request.finished.wait()
        match request.outcome:
            case Sent(result):
                return result
            case Failed(fault):
                raise fault
        raise AssertionError("finished without an outcome")

    def check(self, method: str, chat_id: int | None, *, owner: str = "", patient: bool = False) -> None:  # noqa: ARG002
        """Ask before a call is claimed: raises RequestRefused when it would wait too long, NotSent after the end."""
        if self._closed:
            raise NotSent(f"{method} was not sent: {self._closed}")
        wait = self._paused_until.get(chat_id, 0.0) - trio.current_time()
        if wait > LONGEST_WAIT and not patient:
            raise _too_long(method, wait)

    async def drain(self) -> None:
        """Take no more calls and return when the last one has ended; the caller bounds the time."""
        self._closed = self._closed or "the leader is stopping"
        while self._outstanding:
            await self._idle.wait()

    def _lane(self, chat_id: int | None, *, uploads: bool = False) -> _Lane:
        place = (chat_id, uploads)
        lane = self._lanes.get(place)
        if lane is None:
            lane = self._lanes[place] = _Lane(place, *trio.open_memory_channel[_Request](QUEUED))
            self._announce.send_nowait(lane)
        return lane

    async def _serve(self, lane: _Lane) -> None:
        while True:
            request = None
            with trio.move_on_after(IDLE_SECONDS):
                request = await lane.pull.receive()
            if request is not None:
                await self._make(request)
            elif lane.empty and lane.place[0] is not None:  # no checkpoint from here on: nobody can queue meanwhile
                del self._lanes[lane.place]
                return

    async def _make(self, request: _Request) -> None:
        """Make the call, have its outcome stored, tell whoever waits."""
        outcome: Outcome | None = None
        try:
            outcome = Sent(await self._attempt(request))
        except BusError as fault:
            outcome = Failed(fault)
        finally:
            await self._end(request, outcome or Failed(_interrupted(request)))

    async def _attempt(self, request: _Request) -> Any:
        unsent = lost = 0
        began = trio.current_time()
        while True:
            await self._wait_turn(request, began)
            if request.before is not None:
                before, request.before = request.before, None
                await before()
            try:
                return await self._call_once(request)
            except ApiError as fault:
                if fault.code != 429:
                    raise
                pause = RETRY_SECONDS if fault.retry_after is None else fault.retry_after
                self._paused_until[request.chat_id] = trio.current_time() + pause
                continue
            except NotSent:
                unsent += 1
                if unsent == UNSENT_TRIES:
                    raise
            except AnswerLost as fault:
                if not self._repeatable(request.method):
                    raise _unknown(request.method, str(fault)) from fault
                lost += 1
                if lost == LOST_TRIES:
                    raise
            await trio.sleep(backoff(unsent + lost - 1, self._jitter()))

    async def _call_once(self, request: _Request) -> Any:
        request.on_the_way = True
        seconds = CALL_SECONDS + seconds_for(sum(one.size for one in request.files))
        try:
            with trio.move_on_after(seconds):
                if request.files:
                    return await self._api.call(request.method, request.params, files=request.files)
                return await self._api.call(request.method, request.params)
        except (ApiError, NotSent, RequestRefused):
            request.on_the_way = False
            raise
        raise AnswerLost(f"{request.method}: no answer in {seconds:g} s")

    async def _wait_turn(self, request: _Request, began: float) -> None:
        """Wait until the chat may be written to; the budget of all calls (issue 5) will be asked here.

        A call that Telegram refused with 429 was not carried out, so waiting and repeating is safe.
        """
        until = self._paused_until.get(request.chat_id)
        if until is None:
            return
        now = trio.current_time()
        if not request.patient and (until - now > LONGEST_WAIT or until - began > 3 * LONGEST_WAIT):
            raise _too_long(request.method, until - now)
        await trio.sleep_until(until)
        if self._paused_until.get(request.chat_id) == until:
            del self._paused_until[request.chat_id]

    async def _end(self, request: _Request, outcome: Outcome) -> None:
        """Have the outcome stored, then tell it; this happens also where everything is being cancelled."""
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
        self._idle.set()
        self._idle = trio.Event()

    async def _give_up(self, lane: _Lane) -> None:
        while True:
            try:
                request = lane.pull.receive_nowait()
            except trio.WouldBlock:
                return
            await self._end(request, Failed(NotSent(f"{request.method} was not sent: {self._closed}")))


def _too_long(method: str, wait: float) -> RequestRefused:
    return RequestRefused(f"{method} would have to wait {wait:.0f} s for Telegram's limits; ask again after that")


def _interrupted(request: _Request) -> BusError:
    """What to tell of a call that ended with `Sender.run`."""
    why = "the leader stopped before it was answered"
    return _unknown(request.method, why) if request.on_the_way else NotSent(f"{request.method} was not sent: {why}")


def _unknown(method: str, why: str) -> CommitUnknown:
    return CommitUnknown(f"nobody knows whether {method} was carried out, and it is not repeated: {why}")
