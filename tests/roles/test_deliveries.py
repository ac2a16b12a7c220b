"""Updates on their way to their owners: each settled as protocol section 6 says, in order, and none lost or doubled."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import attrs
import orjson
import pytest
import trio
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.core.envelopes import ABSENT, Ack, AckError, Forward, ForwardCallback, ForwardMessage
from telegram_bus.core.errors import AnswerLost, InvalidEnvelope, LeadershipLost, NotSent, StateError, single_fault
from telegram_bus.core.identity import delivery_id
from telegram_bus.core.receiving import receipt
from telegram_bus.core.registry import Member, Registry
from telegram_bus.roles import deliveries as deliveries_module
from telegram_bus.roles.deliveries import FIRST_PAUSE, LONGEST_PAUSE, RECEIPT_LIMIT, REFUSALS, Deliveries
from telegram_bus.store import NewUpdate, StoredUpdate
from tests.effort import examples
from tests.fakes import CHAT, SECRET, InlineCommits, admit, memory_store, message

Answer = Callable[[Forward], "Ack | Awaitable[Ack]"]


def accept(envelope: Forward) -> Ack:
    return Ack(request_id=envelope.request_id, ok=True, result=receipt(envelope.delivery))


@define(eq=False)
class Rig:
    """Deliveries over a store in memory, with followers that answer as `answers` says."""

    connection: sqlite3.Connection | None = None
    answers: dict[str, Answer] = field(factory=dict)
    sent: list[tuple[str, int]] = field(factory=list)
    envelopes: list[Forward] = field(factory=list)
    registry: Registry = field(factory=Registry)
    commits: InlineCommits = field(init=False)
    deliveries: Deliveries = field(init=False)

    def __attrs_post_init__(self) -> None:
        store, self.commits = memory_store(self.connection)
        self.deliveries = Deliveries(
            store=store, members=self.registry, forward=self.forward, secret=SECRET, now_ms=lambda: 5
        )

    async def forward(self, member: Member, envelope: Forward) -> Ack:
        await trio.lowlevel.checkpoint()
        self.sent.append((member.key, envelope.delivery.source_update_id))
        self.envelopes.append(envelope)
        answer = self.answers.get(member.key, accept)(envelope)
        return answer if isinstance(answer, Ack) else await answer

    def come(self, key: str, generation: str = "g1") -> None:
        """A follower registers (again), as the leader tells the deliveries."""
        admit(self.registry, key, generation=generation, instance=f"{key}:{generation}")
        self.deliveries.wake([key])

    def leave(self, key: str) -> None:
        member = self.registry.by_key(key)
        assert member is not None
        self.registry.remove(member)

    async def admit(self, key: str, *ids: int, kind: str = "message") -> list[StoredUpdate]:
        """Store updates of one owner."""
        new = [
            NewUpdate(update_id=one, kind=kind, body=orjson.dumps(_raw(one, kind)), owner_key=key, chat_id=CHAT)
            for one in ids
        ]
        return await self.deliveries.store.admit_batch(new, None, 1)

    async def put(self, key: str, *ids: int, kind: str = "message") -> None:
        """Store updates and hand them to the deliveries."""
        self.deliveries.put(await self.admit(key, *ids, kind=kind))

    def outcomes(self) -> dict[int, str | None]:
        """How each update ended."""
        return dict(self.commits.db.execute("SELECT update_id, outcome FROM updates ORDER BY seq").fetchall())

    def to(self, key: str) -> list[int]:
        """The ids that were sent to one owner, in order."""
        return [update for owner, update in self.sent if owner == key]


def _raw(update_id: int, kind: str) -> dict[str, Any]:
    if kind == "message":
        return message(update_id)
    return {"update_id": update_id, kind: {"id": "q", "message_id": 4}}


@asynccontextmanager
async def running(rig: Rig) -> AsyncIterator[Rig]:
    async with trio.open_nursery() as nursery:
        await nursery.start(rig.deliveries.run)
        yield rig
        nursery.cancel_scope.cancel("the test is over")


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running(Rig()) as rig:
        yield rig


async def never(_: Forward) -> Ack:
    await trio.sleep_forever()
    raise AssertionError


def fail(fault: Exception) -> Answer:
    def answer(_: Forward) -> Ack:
        raise fault

    return answer


def _other_receipt(envelope: Forward) -> Ack:
    different = {**receipt(envelope.delivery), "sourceUpdateId": 99}
    return Ack(request_id=envelope.request_id, ok=True, result=different)


SETTLED: list[tuple[str, Answer, str]] = [
    ("a receipt equal to what was sent", accept, "accepted"),
    ("an answer to another request", lambda e: attrs.evolve(accept(e), request_id="other"), "rejected"),
    ("no receipt", lambda e: Ack(request_id=e.request_id, ok=True), "rejected"),
    ("null for a receipt", lambda e: Ack(request_id=e.request_id, ok=True, result=None), "rejected"),
    ("another receipt", _other_receipt, "rejected"),
    ("an envelope that cannot be written", fail(InvalidEnvelope("nested too deeply")), "rejected"),
]

RETRIED: list[tuple[str, Answer]] = [
    ("not sent", fail(NotSent("nobody listens"))),
    ("answer lost", fail(AnswerLost("it went"))),
    ("no ack", never),
    ("refused", lambda e: Ack(request_id=e.request_id, ok=False, message="later")),
    ("refused with a receipt", lambda e: attrs.evolve(accept(e), ok=False)),
]


@pytest.mark.parametrize(("answer", "outcome"), [row[1:] for row in SETTLED], ids=[row[0] for row in SETTLED])
async def test_an_answer_settles_the_update_for_good(rig: Rig, answer: Answer, outcome: str) -> None:
    """Accepted, or terminal: it is never sent again, and what waits behind it goes on."""
    rig.answers["a"] = answer
    rig.come("a")
    await rig.put("a", 1)
    await wait_all_tasks_blocked()
    rig.answers.clear()
    await rig.put("a", 2)
    await wait_all_tasks_blocked()
    assert rig.outcomes() == {1: outcome, 2: "accepted"}
    assert rig.to("a") == [1, 2]
    assert rig.deliveries.total_waiting() == 0


@pytest.mark.parametrize("answer", [row[1] for row in RETRIED], ids=[row[0] for row in RETRIED])
async def test_what_may_have_been_missed_is_repeated_under_the_same_id(
    rig: Rig, answer: Answer, autojump_clock: MockClock
) -> None:
    """Each time as a request of its own."""
    rig.answers["a"] = answer
    rig.come("a")
    await rig.put("a", 1, 2)
    await trio.sleep(RECEIPT_LIMIT + LONGEST_PAUSE)
    assert rig.outcomes() == {1: None, 2: None}
    assert rig.deliveries.waiting("a") == 2
    assert len(rig.sent) >= 2
    rig.answers.clear()
    await trio.sleep(RECEIPT_LIMIT + LONGEST_PAUSE)
    assert rig.outcomes() == {1: "accepted", 2: "accepted"}
    first = [envelope for envelope in rig.envelopes if envelope.delivery.source_update_id == 1]
    assert {one.delivery.delivery_id for one in first} == {delivery_id("leader.forwardMessage", "a", 1)}
    assert len({one.request_id for one in rig.envelopes}) == len(rig.envelopes)
    assert rig.to("a") == [1] * len(first) + [2]


async def test_pauses_grow_between_attempts_and_a_registration_ends_one(rig: Rig, autojump_clock: MockClock) -> None:
    """From a tenth of a second to ten seconds."""
    times: list[float] = []

    def refuse(envelope: Forward) -> Ack:
        times.append(trio.current_time())
        return Ack(request_id=envelope.request_id, ok=False)

    rig.answers["a"] = refuse
    rig.come("a")
    await rig.put("a", 1)
    await trio.sleep(60)
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses[0] == pytest.approx(FIRST_PAUSE)
    assert pauses == pytest.approx(sorted(pauses))
    assert pauses[-1] == pytest.approx(LONGEST_PAUSE)
    rig.answers.clear()
    began = trio.current_time()
    rig.come("a", "g2")
    await wait_all_tasks_blocked()
    assert rig.outcomes() == {1: "accepted"}
    assert trio.current_time() == began


async def test_nobody_there_keeps_the_update_until_its_owner_registers(rig: Rig) -> None:
    """No live generation is no attempt."""
    await rig.put("a", 1)
    await wait_all_tasks_blocked()
    assert rig.sent == []
    assert rig.deliveries.waiting("a") == 1
    rig.deliveries.wake(["nobody"])
    rig.come("a")
    await wait_all_tasks_blocked()
    assert rig.outcomes() == {1: "accepted"}


async def test_a_retry_goes_to_the_registration_of_that_moment(rig: Rig, autojump_clock: MockClock) -> None:
    """Instance and generation change, the delivery does not."""
    rig.answers["a"] = fail(NotSent("it restarts"))
    rig.come("a", "g1")
    await rig.put("a", 1)
    await wait_all_tasks_blocked()
    rig.leave("a")
    await trio.sleep(LONGEST_PAUSE * 2)
    tried = len(rig.envelopes)
    rig.answers.clear()
    rig.come("a", "g2")
    await wait_all_tasks_blocked()
    last = rig.envelopes[-1]
    assert len(rig.envelopes) == tried + 1
    assert (last.recipient_instance_id, last.recipient_registration_generation) == ("a:g2", "g2")
    assert last.delivery == rig.envelopes[0].delivery
    assert last.auth == SECRET
    assert rig.outcomes() == {1: "accepted"}


async def test_each_owner_gets_one_at_a_time_and_none_waits_for_another(rig: Rig) -> None:
    """The first of a slow owner is under way alone; the fast one has all of its own."""
    gate = trio.Event()

    async def slow(envelope: Forward) -> Ack:
        await gate.wait()
        return accept(envelope)

    rig.answers["slow"] = slow
    for key in ("slow", "fast"):
        rig.come(key)
    await rig.put("slow", 1, 2, 3)
    await rig.put("fast", 4, 5, 6)
    await wait_all_tasks_blocked()
    assert rig.to("slow") == [1]
    assert rig.to("fast") == [4, 5, 6]
    assert (rig.deliveries.waiting("slow"), rig.deliveries.waiting("fast")) == (3, 0)
    gate.set()
    await wait_all_tasks_blocked()
    assert rig.to("slow") == [1, 2, 3]
    assert set(rig.outcomes().values()) == {"accepted"}


async def test_what_memory_does_not_hold_comes_from_the_store_in_order(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is lost, doubled or overtaken, whether it waited in memory or not."""
    monkeypatch.setattr(deliveries_module, "IN_MEMORY", 4)
    for first in range(1, 31, 3):
        await rig.put("a", first, first + 1, first + 2)
    assert rig.deliveries.waiting("a") == 30
    assert len(rig.deliveries._boxes["a"].waiting) == 4
    rig.come("a")
    await wait_all_tasks_blocked()
    assert rig.to("a") == list(range(1, 31))
    await rig.put("a", 31)
    await wait_all_tasks_blocked()
    assert rig.to("a") == list(range(1, 32))
    assert rig.deliveries.total_waiting() == 0


@pytest.mark.parametrize("asked_first", ["the store for what waits", "the store to keep one more"])
@pytest.mark.parametrize("newest_first", [False, True])
async def test_an_update_that_arrives_while_the_store_is_read_is_delivered_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, asked_first: str, newest_first: bool
) -> None:
    """Both operations share a commit, and either may hear of it first (but before the next delivery has ended)."""
    monkeypatch.setattr(deliveries_module, "IN_MEMORY", 2)
    gate = trio.Event()

    async def gated(envelope: Forward) -> Ack:
        if envelope.delivery.source_update_id > 2:
            await gate.wait()
        return accept(envelope)

    async def read() -> None:
        rig.come("a")  # it takes what is in memory, and then the store is asked
        await wait_all_tasks_blocked()

    async def keep() -> None:
        nursery.start_soon(rig.put, "a", 4)
        await wait_all_tasks_blocked()

    rig.answers["a"] = gated
    await rig.put("a", 1, 2, 3)
    rig.commits.hold()
    async with trio.open_nursery() as nursery:
        for step in (read, keep) if asked_first.endswith("waits") else (keep, read):
            await step()
        await rig.commits.release(newest_first=newest_first)
        gate.set()
    await wait_all_tasks_blocked()
    assert rig.to("a") == [1, 2, 3, 4]
    assert rig.deliveries.waiting("a") == 0
    assert set(rig.outcomes().values()) == {"accepted"}


async def test_an_end_that_is_stored_while_the_store_is_read_is_not_delivered_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The read may have come before it in the same commit, and heard of it after."""
    monkeypatch.setattr(deliveries_module, "IN_MEMORY", 1)
    await rig.put("a", 1, 2, 3)
    rig.commits.hold()
    rig.come("a")
    await wait_all_tasks_blocked()
    assert rig.commits.held is not None
    rig.commits.held.reverse()  # the read first, then the end of update 1
    await rig.commits.release(newest_first=True)
    await wait_all_tasks_blocked()
    assert rig.to("a") == [1, 2, 3]
    assert rig.deliveries.waiting("a") == 0


async def test_a_new_leader_delivers_what_the_earlier_one_left(autojump_clock: MockClock) -> None:
    """Also what was accepted and whose end was lost with the process: again, under the same id."""
    first = Rig()
    async with running(first):
        first.come("a")
        await first.put("a", 1)
        await wait_all_tasks_blocked()
        first.commits.hold()  # from here on nothing is stored any more
        held = first.commits.held
        assert held is not None
        first.deliveries.put(await _admitted(first, "a", 2, 3))
        await wait_all_tasks_blocked()
        assert first.to("a") == [1, 2, 3]
    second = Rig(first.commits.db)
    second.come("a")
    async with running(second):
        await wait_all_tasks_blocked()
        assert second.to("a") == [2, 3]
        assert second.outcomes() == {1: "accepted", 2: "accepted", 3: "accepted"}
        assert [e.delivery for e in second.envelopes] == [e.delivery for e in first.envelopes[1:]]
        assert {e.request_id for e in second.envelopes}.isdisjoint(e.request_id for e in first.envelopes)


async def _admitted(rig: Rig, key: str, *ids: int) -> list[StoredUpdate]:
    """Store updates although commits are held."""
    held, rig.commits.held = rig.commits.held, None
    stored = await rig.admit(key, *ids)
    rig.commits.held = held
    return stored


async def test_an_update_that_was_nobodys_is_taken_over(rig: Rig) -> None:
    """With the key that it got."""
    (stored,) = await rig.admit("a", 1)
    rig.come("b")
    await rig.deliveries.store.assign(stored.seq, "b")
    rig.deliveries.take_over(stored, "b")
    await wait_all_tasks_blocked()
    assert rig.to("b") == [1]
    assert rig.envelopes[0].delivery.recipient_binding_key == "b"


async def test_each_kind_travels_in_its_envelope_and_is_marked(rig: Rig) -> None:
    """The marker is the update's id."""
    rig.come("a")
    await rig.put("a", 1)
    await rig.put("a", 2, kind="callback_query")
    await wait_all_tasks_blocked()
    said, pressed = rig.envelopes
    assert isinstance(said, ForwardMessage)
    assert said.message == {**message(1)["message"], "pi_telegram_source_update_id": 1}
    assert isinstance(pressed, ForwardCallback)
    assert pressed.query is not ABSENT
    assert pressed.query["pi_telegram_source_update_id"] == 2


@pytest.mark.parametrize(("key", "update_id", "kind"), [("", 1, "message"), ("a", 2**53, "message"), ("a", 1, "other")])
async def test_an_update_that_no_envelope_can_carry_is_terminal(rig: Rig, key: str, update_id: int, kind: str) -> None:
    """No binding key, no usable source id, no kind: nothing else stops for it."""
    for one in (key, "b"):
        rig.come(one)
    await rig.put(key, update_id, kind=kind)
    await rig.put("b", 5)
    await wait_all_tasks_blocked()
    assert rig.outcomes() == {update_id: "rejected", 5: "accepted"}
    assert rig.sent == [("b", 5)]


async def test_a_full_disk_delays_ends_and_loses_nothing(autojump_clock: MockClock) -> None:
    """The leader goes on delivering; what it could not note it notes later."""
    async with running(Rig()) as rig:
        rig.come("a")
        await rig.put("a", 1, 2)
        rig.commits.fault = StateError("the disk is full")
        await wait_all_tasks_blocked()
        assert rig.to("a") == [1, 2]
        assert rig.deliveries.waiting("a") == 2
        rig.commits.fault = None
        await trio.sleep(LONGEST_PAUSE * 2)
        assert rig.outcomes() == {1: "accepted", 2: "accepted"}
        assert rig.deliveries.waiting("a") == 0
        assert rig.to("a") == [1, 2]


async def test_a_lost_leadership_ends_the_deliveries() -> None:
    """It is not a fault of the disk."""
    rig = Rig()

    async def lead() -> None:
        async with running(rig):
            rig.come("a")
            await rig.put("a", 1)
            rig.commits.fault = LeadershipLost("another leads")
            await trio.sleep_forever()

    with pytest.raises(LeadershipLost), single_fault():
        await lead()


@define(eq=False)
class Model:
    """A follower that keeps what it accepted, as the protocol wants, and answers by a script."""

    script: list[str]
    journal: list[int] = field(factory=list)
    doubled: int = 0

    def __call__(self, envelope: Forward) -> Ack:
        step = self.script.pop() if self.script else "accept"
        update = envelope.delivery.source_update_id
        if step in ("accept", "lose") and update not in self.journal:
            self.journal.append(update)
        elif step in ("accept", "lose"):
            self.doubled += 1
        if step == "lose":
            raise AnswerLost("after it was kept")
        if step == "unsent":
            raise NotSent("it was not there")
        return accept(envelope) if step == "accept" else Ack(request_id=envelope.request_id, ok=False)


KEYS = ("a", "b", "c")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(KEYS), st.integers(1, 5)),
        st.tuples(st.just("come"), st.sampled_from(KEYS), st.just(0)),
        st.tuples(st.just("leave"), st.sampled_from(KEYS), st.just(0)),
        st.tuples(st.just("wait"), st.just(""), st.integers(0, 12)),
        st.tuples(st.just("kill"), st.just(""), st.just(0)),
    ),
    max_size=25,
)
SCRIPTS = st.lists(st.sampled_from(["accept", "lose", "unsent", "refuse"]), max_size=12)


@given(steps=STEPS, scripts=st.tuples(SCRIPTS, SCRIPTS, SCRIPTS))
@settings(max_examples=examples(150), deadline=None)
def test_whatever_happens_each_follower_ends_with_all_its_updates_in_order(
    steps: list[tuple[str, str, int]], scripts: tuple[list[str], ...]
) -> None:
    """Losses, refusals, departures and killed leaders: each update arrives once, and repeats come from losses only."""
    followers = {key: Model(list(script)) for key, script in zip(KEYS, scripts, strict=True)}
    losses = {key: script.count("lose") for key, script in zip(KEYS, scripts, strict=True)}
    given_to: dict[str, list[int]] = {key: [] for key in KEYS}
    kills = 0

    async def term(rig: Rig, todo: list[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
        async with running(rig):
            while todo:
                step, key, number = todo.pop(0)
                match step:
                    case "put":
                        begin = sum(map(len, given_to.values())) + 1
                        ids = range(begin, begin + number)
                        given_to[key].extend(ids)
                        await rig.put(key, *ids)
                    case "come":
                        rig.come(key, f"g{len(todo)}")
                    case "leave" if rig.registry.by_key(key) is not None:
                        rig.leave(key)
                    case "wait":
                        await trio.sleep(number)
                    case "kill":
                        return todo
            for key in KEYS:
                rig.come(key, "last")
            await trio.sleep(300)
            assert rig.deliveries.total_waiting() == 0
            assert set(rig.outcomes().values()) <= {"accepted"}
        return todo

    async def whole() -> None:
        nonlocal kills
        todo, connection, last = list(steps), None, False
        while not last:
            last = not any(step == "kill" for step, _, _ in todo)
            rig = Rig(connection)
            rig.answers.update(followers)
            todo = await term(rig, todo)
            connection = rig.commits.db
            kills += not last

    before, deliveries_module.IN_MEMORY = deliveries_module.IN_MEMORY, 3  # type: ignore[misc]
    try:
        trio.run(whole, clock=MockClock(autojump_threshold=0))
    finally:
        deliveries_module.IN_MEMORY = before  # type: ignore[misc]
    for key in KEYS:
        assert followers[key].journal == given_to[key]
        assert followers[key].doubled <= losses[key] + kills * 3 * len(KEYS)


async def test_what_an_owner_keeps_refusing_is_set_aside_and_the_next_one_has_its_turn(
    rig: Rig, autojump_clock: MockClock
) -> None:
    told: list[tuple[int, str]] = []
    rig.deliveries.aside = lambda update, reason, _: told.append((update.update_id, reason))

    def picky(envelope: Forward) -> Ack:
        if envelope.delivery.source_update_id == 1:
            return Ack(request_id=envelope.request_id, ok=False, message="no such thing")
        return accept(envelope)

    rig.answers["nora"] = picky
    rig.come("nora")
    await rig.put("nora", 1, 2)
    await trio.sleep(REFUSALS * LONGEST_PAUSE)
    assert rig.outcomes() == {1: "rejected", 2: "accepted"}
    assert rig.to("nora") == [1] * REFUSALS + [2]
    assert told == [(1, f"nora refused it {REFUSALS} times: no such thing")]
    assert rig.deliveries.total_waiting() == 0
    rig.answers["nora"] = accept
    assert await rig.deliveries.retry(1)
    await wait_all_tasks_blocked()
    assert rig.outcomes()[1] == "accepted"


@pytest.mark.parametrize("silent", [True, False])
async def test_absence_and_a_busy_owner_are_no_refusals(rig: Rig, autojump_clock: MockClock, silent: bool) -> None:
    def busy(envelope: Forward) -> Ack:
        if silent:
            raise AnswerLost("nothing came")
        error = AckError(code="ledger-overloaded")
        return Ack(request_id=envelope.request_id, ok=False, message="later", error=error)

    rig.answers["nora"] = busy
    rig.come("nora")
    await rig.put("nora", 1)
    await trio.sleep(10 * REFUSALS * LONGEST_PAUSE)
    assert rig.outcomes() == {1: None}
    rig.answers["nora"] = accept
    await trio.sleep(LONGEST_PAUSE)
    assert rig.outcomes() == {1: "accepted"}


async def test_what_waits_can_be_dropped_by_hand(rig: Rig) -> None:
    await rig.put("nora", 1, 2, 3)
    assert await rig.deliveries.drop(2)
    assert not await rig.deliveries.drop(2)
    assert rig.deliveries.waiting("nora") == 2
    rig.come("nora")
    await wait_all_tasks_blocked()
    assert rig.to("nora") == [1, 3]
    assert rig.deliveries.waiting("nora") == 0


async def test_what_is_dropped_on_its_way_is_not_tried_again(rig: Rig) -> None:
    gate = trio.Event()

    async def slow(envelope: Forward) -> Ack:
        await gate.wait()
        return Ack(request_id=envelope.request_id, ok=False)

    rig.answers["nora"] = slow
    rig.come("nora")
    await rig.put("nora", 1, 2)
    await wait_all_tasks_blocked()
    rig.answers["nora"] = accept
    assert await rig.deliveries.drop(1)
    gate.set()
    await wait_all_tasks_blocked()
    assert rig.outcomes() == {1: "dropped", 2: "accepted"}
    assert rig.deliveries.waiting("nora") == 0


@pytest.mark.parametrize("newest_first", [False, True])
async def test_what_is_dropped_while_the_store_is_read_is_neither_delivered_nor_counted_twice(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, newest_first: bool
) -> None:
    """The read came before it in the same commit; either may hear of it first (but before the next delivery)."""
    monkeypatch.setattr(deliveries_module, "IN_MEMORY", 2)
    gate = trio.Event()

    async def gated(envelope: Forward) -> Ack:
        if envelope.delivery.source_update_id > 2:
            await gate.wait()
        return accept(envelope)

    rig.answers["nora"] = gated
    await rig.put("nora", 1, 2, 3, 4)
    rig.commits.hold()
    async with trio.open_nursery() as nursery:
        rig.come("nora")  # it takes what is in memory, and then the store is asked
        await wait_all_tasks_blocked()
        nursery.start_soon(rig.deliveries.drop, 4)
        await wait_all_tasks_blocked()
        await rig.commits.release(newest_first=newest_first)
        gate.set()
    await wait_all_tasks_blocked()
    assert rig.to("nora") == [1, 2, 3]
    assert rig.deliveries.waiting("nora") == 0


@pytest.mark.parametrize("newest_first", [False, True])
async def test_what_is_dropped_at_the_moment_of_its_receipt_is_counted_once(rig: Rig, newest_first: bool) -> None:
    """Both ends share a commit: the first one holds, whoever hears of it first."""
    rig.come("nora")
    await rig.put("nora", 1)
    async with trio.open_nursery() as nursery:
        rig.commits.hold()
        nursery.start_soon(rig.deliveries.drop, 1)
        await wait_all_tasks_blocked()
        await rig.commits.release(newest_first=newest_first)
    await wait_all_tasks_blocked()
    assert rig.to("nora") == [1]
    assert rig.deliveries.waiting("nora") == 0


async def test_a_comment_is_announced_where_its_forward_waits_behind_it(rig: Rig) -> None:
    origin: dict[str, Any] = {"forward_origin": {"type": "hidden_user", "sender_user_name": "x", "date": 1}}
    raws = [message(1), message(2, text="see"), message(3, **origin), message(4, **origin), message(5), message(6)]
    new = [
        NewUpdate(update_id=raw["update_id"], kind="message", body=orjson.dumps(raw), owner_key="nora", chat_id=CHAT)
        for raw in raws
    ]
    rig.deliveries.put(await rig.deliveries.store.admit_batch(new, None, 1))
    rig.come("nora")
    await wait_all_tasks_blocked()
    positions = [one.forward_comment_batch_position for one in rig.envelopes if isinstance(one, ForwardMessage)]
    assert positions == [None, "comment", "forward", "forward", None, None]
