"""The world in motion: one clock, the record, and whoever waits for something to happen."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import attrs
import trio

from telegram_bus.sandbox import kinds, methods
from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.faults import Faults, Order
from telegram_bus.sandbox.flood import Excess, Flood
from telegram_bus.sandbox.gate import Gate
from telegram_bus.sandbox.methods.settings import stick_allowed_updates
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_polls import WEBHOOK_ACTIVE, Conflict, Delivered, Outcome, Waiting
from telegram_bus.sandbox.model_types import Json
from telegram_bus.sandbox.record import Entry, Record
from telegram_bus.sandbox.refusal import Refusal

__all__ = ["Engine", "Poll"]

MAX_WAIT = 50  # seconds, U1

T = TypeVar("T")


@attrs.define(eq=False)
class Poll:
    """A poll that waits; `outcome` is there once `over` is set."""

    waiting: Waiting
    over: trio.Event = attrs.field(factory=trio.Event)
    outcome: Outcome | None = None


class Engine:
    """Lets things happen in a world, one after the other, and wakes those who wait for them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.record = Record()
        self.flood = Flood()
        self.faults = Faults()
        self.gate = Gate()
        self.instance = secrets.token_hex(4)  # tells a page that it talks to another sandbox than before
        self._zero = time.time() - time.monotonic()
        self._polls: dict[int, Poll] = {}
        self._bell = trio.Event()
        self._heard = (world.changes.last, 0)

    def now(self) -> float:
        """Seconds since 1970 that never run backwards."""
        return self._zero + time.monotonic()

    def act(self, doing: Callable[[float], T]) -> T:
        """Let something happen now; all who wait for its effects are woken, also when it raises."""
        try:
            return doing(self.now())
        finally:
            self.settle()

    def judge(self, entry: Entry, args: Args) -> Excess | None:
        """Whether a call exceeds a flood limit."""
        name = entry.method.lower()
        if not self.flood.limits.on or not kinds.spends(name):
            return None
        chat_id, weight = self._chat_id(args), kinds.weight(name, args)
        excess = self.flood.judge(chat_id, weight, self.now(), uploaded=args.uploaded(), sends=kinds.is_send(name))
        if excess is not None:
            self.record.struck(entry, flood=excess.limit)
            self.world.changes.add("flood", flood=self.flood.state())
        return excess

    @contextmanager
    def under_way(self, entry: Entry, args: Args) -> Iterator[None]:
        """While a call has no answer yet: the messages that it sends count for flood control (M17)."""
        name, chat_id = entry.method.lower(), self._chat_id(args)
        messages = kinds.weight(name, args) if chat_id and kinds.is_send(name) else 0
        self.flood.begin(chat_id, messages)
        try:
            yield
        finally:
            self.flood.end(chat_id, messages)

    def strike(self, entry: Entry, args: Args) -> Order | None:
        """The fault that a call meets, if one was ordered."""
        now = self.now()
        struck = self.faults.strike(entry.method, args, now)
        if struck is None:
            return None
        number, order = struck
        self.record.struck(entry, fault={"id": number, "does": order.does})
        self.world.changes.add("faults", faults=self.faults.state(now))
        self.settle()
        return order

    def call(self, method: str, args: Args) -> Any:
        """Carry out a Bot API method other than getUpdates; raises `Refusal`."""
        return self.act(lambda now: methods.call(self.world, method, args, now))

    def ask(self, args: Args) -> list[Json] | Conflict | Poll:
        """Answer getUpdates at once, or give the poll that has to wait."""
        return self.act(lambda now: self._ask(args, now))

    async def wait_poll(self, poll: Poll) -> list[Json]:
        """The updates of a poll that waits; raises `Refusal` when another poll or a webhook ended it."""
        with trio.move_on_after(poll.waiting.until - self.now()):
            await poll.over.wait()
        if poll.outcome is None:
            self.world.polls.wake(poll.waiting.until)
            self.settle()
        match poll.outcome:
            case Delivered(updates):
                return updates
            case Conflict() as conflict:
                await self.refuse(conflict)
        raise AssertionError("a poll whose time is over has an outcome")

    async def refuse(self, conflict: Conflict) -> None:
        """Raise a conflict when it is due."""
        await trio.sleep(conflict.after)
        raise Refusal(409, conflict.description)

    def settle(self) -> None:
        """Wake those whose poll ended and, when anything changed, those who follow the world or the record."""
        for ticket, outcome in self.world.polls.ended():
            # Nobody is there any more for a poll whose client hung up (U16).
            if (poll := self._polls.pop(ticket, None)) is not None:
                poll.outcome = outcome
                poll.over.set()
        state = (self.world.changes.last, self.record.version)
        if state != self._heard:
            self._heard = state
            self._bell.set()
            self._bell = trio.Event()

    def forget(self, poll: Poll) -> None:
        """Nobody waits for this poll any more; the world is not told (U16)."""
        self._polls.pop(poll.waiting.ticket, None)

    async def wait_change(self) -> None:
        """Wait until the world or the record changes."""
        await self._bell.wait()

    def _chat_id(self, args: Args) -> int:
        chat_id = args.integer("chat_id")
        return chat_id if chat_id in self.world.chats else 0

    def _ask(self, args: Args, now: float) -> list[Json] | Conflict | Poll:
        world = self.world
        if world.webhook:
            return world.polls.conflict(WEBHOOK_ACTIVE, now)
        stick_allowed_updates(world, args)
        limit = args.clamped("limit", 100, 1, 100)
        seconds = args.clamped("timeout", 0, 0, MAX_WAIT)
        answer = world.polls.ask(args.integer("offset"), limit, seconds, now)
        if isinstance(answer, Delivered):
            return answer.updates
        poll = self._polls[answer.ticket] = Poll(answer)
        return poll
