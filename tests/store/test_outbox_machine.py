"""The outbox in the store against a model, with crashes and successors at any moment."""

from __future__ import annotations

from typing import Any

from attrs import define
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from telegram_bus.store import Claim, Collision, New, Repeat, Unknown, open_store
from telegram_bus.store.outbox import LEADER
from tests.effort import examples
from tests.store.rig import StoredMachine

HOUR = 3_600_000
PLACES = st.tuples(st.sampled_from("ab"), st.sampled_from("rs"))
NOTICE = ("sendMessage", b'{"notice":1}')


@define
class Kept:
    """What the store should hold of a call; `order` is its place among all that were ever begun."""

    digest: str
    state: str
    since: int
    order: int
    body: bytes | None
    answer: bytes | None = None
    tries: int = 0
    told: bool = False


class OutboxMachine(StoredMachine):
    """`calls` is what the outbox should hold; `seqs` are the numbers under which the store shows them."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_700_000_000_000
        self.epoch = self.begun = 0
        self.calls: dict[tuple[str, str], Kept] = {}
        self.parked: dict[int, str] = {}
        self.open()

    def open(self) -> None:
        """The next leader: what its predecessor had claimed is unknown from then on, told of unless it was a notice."""
        self.store = self.hold(open_store(self.path, holder="machine"))
        self.epoch += 1
        for place, call in self.calls.items():
            if call.state == "claimed":
                call.state, call.told = "unknown", place[0] == LEADER
        found = self.loop.run(self.store.begin_calls, 100)
        assert found.parked == self.parked
        assert [row.seq for row in found.unknown] == sorted((row.seq for row in found.unknown), reverse=True)
        assert {(row.key, row.request_id) for row in found.unknown} == {
            place for place, call in self.calls.items() if call.state == "unknown"
        }
        assert sorted(found.keys) == sorted({key for (key, _), call in self.calls.items() if call.state == "accepted"})

    def known(self, place: tuple[str, str], digest: str) -> Claim:
        call = self.calls.get(place)
        if call is None:
            return New()
        if call.digest != digest:
            return Collision()
        if call.answer is not None:
            return Repeat(call.answer)
        return New() if call.state == "accepted" else Unknown()

    @rule(place=PLACES, digest=st.sampled_from("dde"), claimed=st.booleans(), body=st.sampled_from([b"1", b"2", None]))
    def begin(self, place: tuple[str, str], digest: str, claimed: bool, body: bytes | None) -> None:
        expected = self.known(place, digest)
        assert self.loop.run(self.store.known_call, *place, digest) == expected
        ask = self.store.claim_call if claimed else self.store.accept_call
        assert self.loop.run(ask, *place, digest, self.now, ("sendMessage", body)) == expected
        if isinstance(expected, New):
            state = "claimed" if claimed else "accepted"
            if place in self.calls:
                self.calls[place].state, self.calls[place].body = state, body
            else:
                self.calls[place] = Kept(digest, state, self.now, self.next(), body)

    def next(self) -> int:
        self.begun += 1
        return self.begun

    @precondition(lambda self: self.calls)
    @rule(data=st.data(), answer=st.sampled_from([b"1", b"2"]))
    def settle(self, data: st.DataObject, answer: bytes) -> None:
        place = data.draw(st.sampled_from(sorted(self.calls)))
        self.loop.run(self.store.settle_call, *place, answer, self.now)
        call = self.calls[place]
        call.state, call.answer, call.body = "settled", answer, None

    @rule(place=PLACES, body=st.sampled_from([None, b"3"]))
    def release(self, place: tuple[str, str], body: bytes | None) -> None:
        call = self.calls.get(place)
        fits = call is not None and call.state in ("claimed", "accepted")
        assert self.loop.run(self.store.release_call, *place, body) == fits
        if call is not None and fits:
            call.state, call.body = "accepted", call.body if body is None else body

    @rule(place=PLACES)
    def withdraw(self, place: tuple[str, str]) -> None:
        call = self.calls.get(place)
        fits = call is not None and call.state in ("claimed", "accepted")
        assert self.loop.run(self.store.withdraw_call, *place) == fits
        if fits:
            del self.calls[place]

    @rule(place=PLACES)
    def doubt(self, place: tuple[str, str]) -> None:
        call = self.calls.get(place)
        row = self.loop.run(self.store.doubt_call, *place)
        assert (row is not None) == (call is not None and call.state == "claimed")
        if call is not None and row is not None:
            assert (row.key, row.request_id, row.body, row.tries) == (*place, call.body, call.tries)
            call.state, call.told = "unknown", False

    @rule(with_notice=st.booleans())
    def tell(self, with_notice: bool) -> None:
        """Each unknown call is told of once; the notice is accepted in the same moment."""
        for row in self.loop.run(self.store.untold_calls, 10):
            place = (row.key, row.request_id)
            name = f"doubt:{row.seq}.{row.tries}"
            notice = (name, "n", *NOTICE) if with_notice else None
            accepted = self.loop.run(self.store.tell_doubt, row.seq, notice, self.now)
            assert not self.calls[place].told
            self.calls[place].told = True
            assert self.loop.run(self.store.tell_doubt, row.seq, (name, "n", *NOTICE), self.now) is None
            if notice is not None:
                assert accepted is not None
                assert (accepted.key, accepted.request_id, accepted.body) == (LEADER, name, NOTICE[1])
                self.calls[LEADER, name] = Kept("n", "accepted", self.now, self.next(), NOTICE[1])
            else:
                assert accepted is None

    @rule(data=st.data(), off=st.sampled_from([0, 0, 0, 1]))
    def press(self, data: st.DataObject, off: int) -> None:
        """Once for each number of tries, however often it is pressed."""
        unknown = self.look("SELECT seq, key, request_id, tries, body FROM calls WHERE state = 'unknown' ORDER BY seq")
        if not unknown:
            return
        seq, key, name, tries, body = data.draw(st.sampled_from(unknown))
        call = self.calls[key, name]
        assert (tries, body) == (call.tries, call.body)
        again = self.loop.run(self.store.send_again, seq, tries + off, self.now)
        assert (again is not None) == (call.body is not None and not off)
        if again is not None:
            assert again.tries == call.tries + 1
            assert self.loop.run(self.store.send_again, seq, tries, self.now) is None
            call.state, call.tries, call.since = "accepted", call.tries + 1, self.now

    @rule(chat=st.integers(1, 2), why=st.sampled_from(["blocked", "kicked", None]))
    def park(self, chat: int, why: str | None) -> None:
        if why is None:
            assert self.loop.run(self.store.unpark, chat) == (self.parked.pop(chat, None) is not None)
        else:
            self.loop.run(self.store.park, chat, why, self.now)
            self.parked[chat] = why

    @rule(hours=st.sampled_from([1, 25, 49]))
    def time_passes(self, hours: int) -> None:
        """What is to be sent is never forgotten; everything else is after 48 h."""
        self.now += hours * HOUR
        self.loop.run(self.store.purge, self.now)
        limit = self.now - 48 * HOUR
        self.calls = {p: call for p, call in self.calls.items() if call.since >= limit or call.state == "accepted"}

    @invariant()
    def holds_what_it_should(self) -> None:
        counted = self.look("SELECT key, state, count(*) FROM calls WHERE state != 'settled' GROUP BY key, state")
        expected: dict[tuple[str, str], int] = {}
        for (key, _), call in self.calls.items():
            if call.state != "settled":
                expected[key, call.state] = expected.get((key, call.state), 0) + 1
        assert {(key, state): count for key, state, count in counted} == expected
        for key in ("a", "b", LEADER):
            rows = self.loop.run(self.store.accepted_calls, key, 0, 100)
            assert [(row.request_id, row.body) for row in rows] == self.accepted(key)
        untold = self.loop.run(self.store.untold_calls, 100)
        assert {(row.key, row.request_id) for row in untold} == {
            place for place, call in self.calls.items() if call.state == "unknown" and not call.told
        }
        assert dict(self.look("SELECT chat_id, why FROM parked")) == self.parked

    def look(self, query: str) -> list[Any]:
        """What stands in the database, beside all methods of the store."""
        rows: list[Any] = self.loop.run(self.store._commits.run, lambda db: db.execute(query).fetchall())
        return rows

    def accepted(self, key: str) -> list[tuple[str, Any]]:
        mine = [(call.order, name, call.body) for (k, name), call in self.calls.items() if k == key]
        return [(name, body) for _, name, body in sorted(mine) if self.calls[key, name].state == "accepted"]


OutboxMachine.TestCase.settings = settings(max_examples=examples(25), stateful_step_count=25, deadline=None)
test_the_outbox_does_what_its_model_does = OutboxMachine.TestCase
