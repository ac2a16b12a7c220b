"""The ledger against a simple model, and its bounds."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from telegram_bus.core.envelopes import Ack
from telegram_bus.core.ledger import Bounds, Collision, Full, Ledger, New, Repeat
from tests.effort import examples


def ack(name: str = "1") -> Ack:
    """An answer."""
    return Ack(request_id=name, ok=True)


def test_a_request_is_new_once_then_running_then_answered() -> None:
    """And another body under its id is a collision at each stage."""
    ledger = Ledger()
    assert ledger.begin("s", "1", "body") == New()
    assert ledger.begin("s", "1", "body") == Repeat(answer=None)
    assert ledger.begin("s", "1", "other") == Collision()
    ledger.settle("s", "1", ack(), 10)
    assert ledger.begin("s", "1", "body") == Repeat(answer=ack())
    assert ledger.begin("s", "1", "other") == Collision()


def test_the_same_id_of_another_sender_is_another_request() -> None:
    """Senders do not share ids."""
    ledger = Ledger()
    assert ledger.begin("s", "1", "body") == New()
    assert ledger.begin("t", "1", "other") == New()


def test_looking_changes_nothing() -> None:
    """A request that was only looked at is still new."""
    ledger = Ledger()
    assert ledger.look("s", "1", "body") == New()
    assert ledger.begin("s", "1", "other") == New()


def test_64_requests_may_be_in_flight_for_a_sender() -> None:
    """The next one is refused until one has its answer; other senders do not care."""
    ledger = Ledger()
    for number in range(64):
        assert ledger.begin("s", str(number), "") == New()
    assert ledger.begin("s", "64", "") == Full()
    assert ledger.begin("t", "64", "") == New()
    assert ledger.begin("s", "0", "") == Repeat(answer=None)
    ledger.settle("s", "0", ack(), 0)
    assert ledger.begin("s", "64", "") == New()


def test_an_abandoned_request_is_new_again() -> None:
    """What was cut off may be done when it comes again."""
    ledger = Ledger()
    ledger.begin("s", "1", "body")
    ledger.abandon("s", "1")
    assert ledger.begin("s", "1", "other") == New()


def test_256_answers_are_kept_for_a_sender() -> None:
    """The oldest is forgotten first."""
    ledger = Ledger()
    for number in range(257):
        ledger.begin("s", str(number), "")
        ledger.settle("s", str(number), ack(), 0)
    assert ledger.look("s", "0", "") == New()
    assert ledger.look("s", "1", "") == Repeat(answer=ack())


def test_the_newest_answer_is_kept_whatever_its_size() -> None:
    """A lost answer can be asked for again; older ones make room."""
    ledger = Ledger()
    for number, size in (("1", 100), ("2", 100_000_000)):
        ledger.begin("s", number, "")
        ledger.settle("s", number, ack(number), size)
    assert ledger.look("s", "1", "") == New()
    assert ledger.look("s", "2", "") == Repeat(answer=ack("2"))
    ledger.begin("t", "3", "")
    ledger.settle("t", "3", ack("3"), 100)
    assert ledger.look("s", "2", "") == New()
    assert ledger.size < 2_000


def test_senders_without_a_request_in_flight_are_forgotten_beyond_the_bound() -> None:
    """A stranger who invents senders does not fill the memory, nor push out those who wait."""
    ledger = Ledger(Bounds(senders=3))
    ledger.begin("waits", "1", "")
    for number in range(10):
        ledger.begin(number, "1", "")
        ledger.settle(number, "1", ack(), 1_000)
    assert ledger.look("waits", "1", "") == Repeat(answer=None)
    assert [number for number in range(10) if ledger.look(number, "1", "") != New()] == [8, 9]
    assert ledger.size < 4_000


SMALL = Bounds(in_flight=2, settled=2, sender_bytes=10**9, total_bytes=10**9, senders=100)


class LedgerMachine(RuleBasedStateMachine):
    """The ledger against two dictionaries a sender."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(SMALL)
        self.in_flight: dict[tuple[str, str], int] = {}
        self.settled: dict[tuple[str, str], tuple[int, Ack]] = {}

    @rule(sender=st.sampled_from("st"), request=st.sampled_from("1234"), body=st.integers(0, 1))
    def begin(self, sender: str, request: str, body: int) -> None:
        """A request comes, new or again."""
        place = (sender, request)
        expected: object = New()
        if place in self.settled:
            known, answer = self.settled[place]
            expected = Repeat(answer=answer) if known == body else Collision()
        elif place in self.in_flight:
            expected = Repeat(answer=None) if self.in_flight[place] == body else Collision()
        elif sum(one == sender for one, _ in self.in_flight) >= SMALL.in_flight:
            expected = Full()
        else:
            self.in_flight[place] = body
        assert self.ledger.look(sender, request, body) == expected
        assert self.ledger.begin(sender, request, body) == expected

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data(), size=st.integers(0, 9))
    def settle(self, data: st.DataObject, size: int) -> None:
        """A request in flight gets its answer."""
        sender, request = place = data.draw(st.sampled_from(sorted(self.in_flight)))
        answer = ack(request)
        self.ledger.settle(sender, request, answer, size)
        self.settled[place] = (self.in_flight.pop(place), answer)
        mine = [one for one in self.settled if one[0] == sender]
        if len(mine) > SMALL.settled:
            del self.settled[mine[0]]

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def abandon(self, data: st.DataObject) -> None:
        """A request in flight is cut off."""
        sender, request = place = data.draw(st.sampled_from(sorted(self.in_flight)))
        self.ledger.abandon(sender, request)
        del self.in_flight[place]

    @invariant()
    def counts_its_bytes(self) -> None:
        """The size is that of what is kept: between the overhead and the overhead with the largest answers."""
        kept = len(self.settled)
        assert 600 * kept <= self.ledger.size <= 609 * kept


LedgerMachine.TestCase.settings = settings(max_examples=examples(50), stateful_step_count=30)
TestLedgerMachine = LedgerMachine.TestCase
