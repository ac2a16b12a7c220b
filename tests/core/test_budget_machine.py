"""The budget against an oracle that counts as Telegram does, with any delay on the way, refusals and clicks."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from telegram_bus.core.budget import Budget, Ticket
from telegram_bus.core.meters import Limits, Rate
from telegram_bus.core.urgency import nature_of
from tests.effort import examples

LIMITS = Limits(Rate(6, 1.0), Rate(1, 1.0), 3, Rate(5, 10.0), Rate(3, 1.0))
GROUPS, PERSON = (-1, -2), 7
METHODS = ("sendMessage", "sendMessage", "editMessageText", "deleteMessage", "sendMediaGroup", "sendChatAction")
LEAD = 0.25
SLACK = 1e-6


class Server:
    """Counts arrivals by chat; what it refused it does not count."""

    def __init__(self) -> None:
        self.arrived: list[tuple[float, int | None, int]] = []

    def take(self, at: float, chat: int | None, weight: int) -> None:
        self.arrived.append((at, chat, weight))

    def check(self) -> None:
        arrived = sorted(self.arrived)
        self._window([(at, weight) for at, _, weight in arrived], LIMITS.overall)
        for group in GROUPS:
            self._window([(at, weight) for at, chat, weight in arrived if chat == group], LIMITS.group)
        full_at = -math.inf
        for at, chat, weight in arrived:
            if chat == PERSON:
                full_at = max(full_at, at) + weight * LIMITS.private.seconds
                assert full_at - at <= max(LIMITS.burst, weight) * LIMITS.private.seconds + SLACK

    @staticmethod
    def _window(arrived: list[tuple[float, int]], rate: Rate) -> None:
        for index, (first, own) in enumerate(arrived):
            inside = [weight for at, weight in arrived[index:] if at < first + rate.seconds - SLACK]
            assert sum(inside) <= rate.most or len(inside) == 1 < own  # what is too big alone goes alone


class Sending(RuleBasedStateMachine):
    """Calls come, start when the budget says so, arrive some time before their answer, are refused now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.budget = Budget(LIMITS)
        self.server = Server()
        self.waiting: list[Ticket] = []
        self.running: list[tuple[Ticket, float]] = []
        self.numbers = 0
        self.streams: dict[tuple[Any, ...], list[int]] = {}

    @rule(
        owner=st.sampled_from("abc"),
        chat=st.sampled_from([*GROUPS, PERSON]),
        method=st.sampled_from(METHODS),
        hint=st.sampled_from([None, None, "final", "progress", "click"]),
        message=st.integers(1, 3),
        album=st.integers(1, 4),
    )
    def ask(self, owner: str, chat: int, method: str, hint: str | None, message: int, album: int) -> None:
        params: dict[str, Any] = {"message_id": message, "media": [{}] * album, "action": "typing"}
        self.numbers += 1
        made = Ticket(nature_of(method, params, hint=hint), method, chat, owner, self.numbers)
        older = self.budget.put(made)
        if older is not None:
            assert older.nature.key == made.nature.key
            assert older.owner == owner
            self.waiting.remove(older)
        self.waiting.append(made)
        self.start()

    @rule(seconds=st.sampled_from([0.01, 0.3, 1.0, 1.0, 4.0, 11.0]))
    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        while (wake := self.budget.wake(self.now, LEAD)) <= until:
            self.now = max(self.now, wake)
            self.start()
        self.now = until
        self.start()

    @precondition(lambda self: self.running)
    @rule(data=st.data(), share=st.floats(0, 1))
    def answer(self, data: st.DataObject, share: float) -> None:
        one, began = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        self.now = max(self.now, began)
        self.arrive(one, began + (self.now - began) * share)
        self.budget.end(one, self.now)
        self.budget.leave(one)
        self.start()

    @precondition(lambda self: self.running)
    @rule(data=st.data(), share=st.floats(0, 1))
    def lose(self, data: st.DataObject, share: float) -> None:
        """The answer is lost, and the call is made once more."""
        one, began = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        self.now = max(self.now, began)
        self.arrive(one, began + (self.now - began) * share)
        self.budget.end(one, self.now)
        self.budget.again(one)
        self.waiting.append(one)
        self.start()

    @precondition(lambda self: self.running)
    @rule(data=st.data(), seconds=st.integers(1, 15))
    def refuse(self, data: st.DataObject, seconds: int) -> None:
        one, _ = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        until = self.budget.refuse(one, float(seconds), self.now)
        assert until >= self.now + seconds
        self.budget.again(one)
        self.waiting.append(one)
        self.start()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        one = self.waiting.pop(data.draw(st.integers(0, len(self.waiting) - 1)))
        assert self.budget.take_back(one)
        self.start()

    @rule()
    def sweep(self) -> None:
        self.budget.sweep(self.now)

    def start(self) -> None:
        for one in self.budget.next(self.now, LEAD):
            assert self.now <= one.start_at <= self.now + LEAD
            assert self.budget.paused_until(one.place) <= one.start_at
            self.waiting.remove(one)
            self.running.append((one, one.start_at))

    def arrive(self, one: Ticket, at: float) -> None:
        if one.nature.kind == "spend":
            self.server.take(at, one.chat_id, one.nature.weight)

    @invariant()
    def it_knows_what_waits(self) -> None:
        assert set(self.budget.waiting()) == set(self.waiting)

    @invariant()
    def one_call_of_a_stream_runs_and_the_others_are_in_order(self) -> None:
        places = [(one.owner, one.place, one.nature.stream) for one, _ in self.running]
        assert len(places) == len(set(places))

    @invariant()
    def the_server_counts_no_more_than_it_allows(self) -> None:
        self.server.check()

    def teardown(self) -> None:
        """Nobody starves: once answers come, everything that waits is sent."""
        patience = 10_000
        while self.waiting or self.running:
            for one, began in self.running:
                self.now = max(self.now, began)
                self.arrive(one, began)
                self.budget.end(one, self.now)
                self.budget.leave(one)
            self.running = []
            self.start()
            if self.waiting and not self.running:
                assert self.now < self.budget.wake(self.now, LEAD) < math.inf
                self.now = self.budget.wake(self.now, LEAD)
                self.start()
            patience -= 1
            assert patience
        self.server.check()


TestSending = Sending.TestCase
TestSending.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
