"""Giving work to another follower: frozen here before it is offered, done here once the leader has it for the other."""

from __future__ import annotations

import logging
import math
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, NamedTuple

import trio
from attrs import define, field

from telegram_bus import crash
from telegram_bus.core.codec import loads
from telegram_bus.core.errors import BusError, RequestRefused
from telegram_bus.core.extensions import HandedPart, UpdateHand
from telegram_bus.core.handing import UPDATE_KINDS, unmarked
from telegram_bus.roles.member import Member
from telegram_bus.store.inbox import Frozen

__all__ = ["Handing", "Recipient"]

log = logging.getLogger(__name__)

TOKEN_BITS: Final = 42
NOTICE: Final = 10.0
"""Seconds that the line in the thread may take; the work has gone over by then and nobody waits for that line."""


class Recipient(NamedTuple):
    """Who has the work now; `present` is whether that follower is here, else it gets the work when it returns."""

    key: str
    name: str
    present: bool


@define(eq=False)
class _Job:
    frozen: Frozen
    callers: int = 0
    outcome: Recipient | BusError | None = None
    over: trio.Event = field(factory=trio.Event)


@define(kw_only=True, eq=False)
class Handing:
    """The work that a follower is giving away; `say(text, name)` sends a message into its thread, once by that name."""

    member: Member
    say: Callable[[str, str], Awaitable[Any]]
    _jobs: dict[str, _Job] = field(factory=dict)
    _queue: tuple[trio.MemorySendChannel[_Job], trio.MemoryReceiveChannel[_Job]] = field(
        factory=lambda: trio.open_memory_channel[_Job](math.inf)  # each is an update that the program holds
    )

    async def run(self) -> None:
        """Carry through what is being given away, until cancelled; first what an earlier process began."""
        for frozen in await self.member.inbox.frozen():
            if frozen.item not in self._jobs:  # else the program is giving it away already
                self._begin(frozen)
        async with trio.open_nursery() as nursery:
            async for job in self._queue[1]:
                nursery.start_soon(self._carry_through, job)

    async def give(self, item: str, to: str, note: str | None) -> Recipient:
        """Give the item away; a caller that is cancelled after the first moment does not take it back.

        Raises RequestRefused, and then the work is still the caller's; ValueError where it is done already.
        """
        job = self._jobs.get(item) or await self._freeze(item, to, note)
        job.callers += 1
        try:
            await job.over.wait()
        finally:
            job.callers -= 1
        if isinstance(job.outcome, Recipient):
            return job.outcome
        assert job.outcome is not None
        raise job.outcome

    async def _freeze(self, item: str, to: str, note: str | None) -> _Job:
        with trio.CancelScope(shield=True):  # what is frozen is carried through, whoever still waits for it
            frozen = await self.member.inbox.freeze(Frozen(item, to, secrets.randbits(TOKEN_BITS), note))
        if frozen is None:
            raise ValueError("this update is done; there is nothing to give away")
        crash.point("after-freeze")
        return self._jobs.get(item) or self._begin(frozen)

    def _begin(self, frozen: Frozen) -> _Job:
        job = self._jobs[frozen.item] = _Job(frozen)
        self._queue[0].send_nowait(job)
        return job

    async def _carry_through(self, job: _Job) -> None:
        frozen = job.frozen
        try:
            job.outcome = await self._offer(job)
        except BusError as fault:  # it stays frozen: the next process of this follower goes on with it
            log.error("whether %s has the work that was given to it will be asked again: %s", frozen.recipient, fault)  # noqa: TRY400
            job.outcome = fault
        del self._jobs[frozen.item]
        job.over.set()

    async def _offer(self, job: _Job) -> Recipient | RequestRefused:
        """Who has the work now, or why it is ours again; raises what leaves that open, a full disk too."""
        frozen, inbox = job.frozen, self.member.inbox
        parts = await inbox.item(frozen.item)
        handed = tuple(HandedPart(kind=UPDATE_KINDS[part.kind], body=unmarked(loads(part.body))) for part in parts)
        try:
            ack = await self.member.ask(
                lambda fields: UpdateHand(
                    **fields, to=frozen.recipient, token=frozen.token, parts=handed, note=frozen.note
                )
            )
        except RequestRefused as refused:
            await inbox.thaw(frozen.item)
            if not job.callers:
                log.warning("work could not be given to %s, and is ours again: %s", frozen.recipient, refused)
                self.member.unread.put_back(parts)
            return refused
        recipient = Recipient(str(ack.result["key"]), str(ack.result["name"]), bool(ack.result["present"]))
        crash.point("before-handed")
        await self._tell(frozen, recipient)
        await inbox.done(frozen.item)
        return recipient

    async def _tell(self, frozen: Frozen, to: Recipient) -> None:
        """One line in the thread that the work was asked for in."""
        away = "" if to.present else ", who is away and gets it on return"
        with trio.move_on_after(NOTICE), suppress(BusError):
            await self.say(f"Handed over to {to.name}{away}.", f"handed:{frozen.token}")
