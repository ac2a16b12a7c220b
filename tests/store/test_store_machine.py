"""The journal against a model of dictionaries, with crashes and successors at any moment."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from telegram_bus.core.bindings import Binding, Gone
from telegram_bus.store import Collision, New, NewUpdate, Outcome, Repeat, Unknown, open_store
from tests.effort import examples
from tests.store.rig import StoredMachine

HOUR = 3_600_000
OWNERS = st.sampled_from(["a", "b", None])


class JournalMachine(StoredMachine):
    """`waiting`, `aside`, `seen`, `bindings`, `owners` and `calls` are what the journal should hold."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_700_000_000_000
        self.epoch = 0
        self.offset = 0
        self.seen: dict[int, int] = {}
        self.waiting: dict[int, list[Any]] = {}
        self.settled: dict[int, int] = {}
        self.aside: dict[int, tuple[int, list[Any]]] = {}
        self.bindings: dict[str, tuple[int, int | None]] = {}
        self.owners: dict[tuple[int, int], tuple[str, int]] = {}
        self.calls: dict[tuple[str, str], list[Any]] = {}
        self.open()

    def open(self) -> None:
        self.store = self.hold(open_store(self.path, holder="machine"))
        self.epoch += 1
        assert self.store.epoch == self.epoch
        assert self.store.notice is None

    @rule(numbers=st.lists(st.integers(0, 12), max_size=4), owner=OWNERS, next_offset=st.integers(0, 20))
    def admit(self, numbers: list[int], owner: str | None, next_offset: int) -> None:
        batch = [NewUpdate(update_id=n, kind="other", body=b"%d" % n, owner_key=owner) for n in numbers]
        admitted = self.loop.run(self.store.admit_batch, batch, next_offset, self.now)
        expected = [n for n in dict.fromkeys(numbers) if n not in self.seen]
        assert [stored.update_id for stored in admitted] == expected
        for stored in admitted:
            assert stored.seq > max([0, *self.waiting, *self.settled, *self.aside])
            self.seen[stored.update_id] = self.now
            self.waiting[stored.seq] = [stored.update_id, owner, 0, self.now]
        self.offset = next_offset

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), outcome=st.sampled_from(["accepted", "rejected", "answered", "dropped"]))
    def settle(self, data: st.DataObject, outcome: Outcome) -> None:
        seq = data.draw(st.sampled_from(sorted(self.waiting)))
        assert self.loop.run(self.store.settle, seq, outcome, self.now)
        row = self.waiting.pop(seq)
        if outcome == "rejected":
            self.aside[seq] = (self.now, row)
        else:
            self.settled[seq] = self.now

    @rule(owner=st.sampled_from("ab"), hours=st.sampled_from([0, 24]))
    def expire(self, owner: str, hours: int) -> None:
        before = self.now - hours * HOUR + 1
        gone = [seq for seq, row in self.waiting.items() if row[1] == owner and row[3] < before]
        assert sorted(self.loop.run(self.store.expire, owner, before, self.now, "away")) == sorted(gone)
        for seq in gone:
            self.aside[seq] = (self.now, self.waiting.pop(seq))

    @precondition(lambda self: self.aside or self.waiting)
    @rule(data=st.data(), again=st.booleans())
    def look_after(self, data: st.DataObject, again: bool) -> None:
        seq = data.draw(st.sampled_from(sorted([*self.aside, *self.waiting])))
        _, row = self.aside.get(seq, (0, None))
        if again:
            retried = self.loop.run(self.store.retry, seq)
            assert (retried is not None) == (row is not None and row[1] is not None)
            if retried is not None and row is not None:
                del self.aside[seq]
                self.waiting[seq] = [row[0], row[1], 0, row[3]]
        else:
            dropped = self.loop.run(self.store.drop, seq, self.now)
            assert dropped is not None
            assert (dropped.outcome is None) == (seq in self.waiting)
            self.aside.pop(seq, None)
            self.waiting.pop(seq, None)
            self.settled[seq] = self.now

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), owner=OWNERS)
    def assign_and_attempt(self, data: st.DataObject, owner: str | None) -> None:
        seq = data.draw(st.sampled_from(sorted(self.waiting)))
        assert self.loop.run(self.store.assign, seq, owner)
        self.waiting[seq][1] = owner
        self.waiting[seq][2] += 1
        assert self.loop.run(self.store.note_attempt, seq) == self.waiting[seq][2]

    @rule(key=st.sampled_from("abc"), thread=st.integers(2, 4))
    def bind(self, key: str, thread: int) -> None:
        self.loop.run(self.store.note_threads, [Binding(key, 1, thread, key, self.now)])
        self.bindings = {other: to for other, to in self.bindings.items() if to != (1, thread)}
        self.bindings[key] = (1, thread)

    @rule(key=st.sampled_from("abc"))
    def unbind(self, key: str) -> None:
        self.loop.run(self.store.note_threads, [Gone(Binding(key, 1, 2, key, self.now))])
        self.bindings.pop(key, None)

    @rule(key=st.sampled_from("ab"), message=st.integers(1, 5))
    def record(self, key: str, message: int) -> None:
        self.loop.run(self.store.record_messages, key, [(1, message, None)], self.now)
        self.owners[1, message] = (key, self.now)

    @rule(key=st.sampled_from("ab"), request=st.sampled_from(["r", "s"]), digest=st.sampled_from("de"))
    def claim(self, key: str, request: str, digest: str) -> None:
        claim = self.loop.run(self.store.claim_call, key, request, digest, self.now)
        known = self.calls.setdefault((key, request), [digest, None, self.now, True])
        if known[3]:
            known[3] = False
            assert claim == New()
        elif known[0] != digest:
            assert claim == Collision()
        else:
            assert claim == (Unknown() if known[1] is None else Repeat(known[1]))

    @precondition(lambda self: self.calls)
    @rule(data=st.data(), answer=st.sampled_from([b"1", b"2"]))
    def settle_call(self, data: st.DataObject, answer: bytes) -> None:
        call = data.draw(st.sampled_from(sorted(self.calls)))
        self.loop.run(self.store.settle_call, *call, answer, self.now)
        self.calls[call][1] = answer

    @rule(hours=st.sampled_from([1, 25, 49, 200]))
    def time_passes(self, hours: int) -> None:
        self.now += hours * HOUR
        self.loop.run(self.store.purge, self.now)
        self.settled = {seq: ms for seq, ms in self.settled.items() if ms >= self.now - 24 * HOUR}
        self.aside = {seq: one for seq, one in self.aside.items() if one[0] >= self.now - 7 * 24 * HOUR}
        self.seen = {number: ms for number, ms in self.seen.items() if ms >= self.now - 48 * HOUR}
        self.calls = {call: row for call, row in self.calls.items() if row[2] >= self.now - 48 * HOUR}

    @invariant()
    def holds_what_it_should(self) -> None:
        seen = self.loop.run(self._observe)
        assert seen["offset"] == self.offset
        for owner in ("a", "b", None):
            expected = [(seq, row[0], row[2]) for seq, row in sorted(self.waiting.items()) if row[1] == owner]
            assert [(found.seq, found.update_id, found.attempts) for found in seen[f"pending {owner}"]] == expected
        assert {bound.key: (bound.chat_id, bound.thread_id) for bound in seen["threads"]} == self.bindings
        for message in range(1, 6):
            known = self.owners.get((1, message))
            assert seen[f"owner {message}"] == (known[0] if known else None)
        counts = seen["counts"]
        assert counts.waiting == len(self.waiting)
        assert counts.settled == len(self.settled) + len(self.aside)
        assert counts.aside == len(self.aside)
        assert counts.calls == len(self.calls)

    async def _observe(self) -> dict[str, Any]:
        """Ask for everything at once, so that it takes one transaction."""
        seen: dict[str, Any] = {}

        async def ask(name: str, question: Callable[..., Awaitable[Any]], *args: Any) -> None:
            seen[name] = await question(*args)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "offset", self.store.offset)
            nursery.start_soon(ask, "threads", self.store.threads_kept)
            nursery.start_soon(ask, "counts", self.store.counts)
            for owner in ("a", "b", None):
                nursery.start_soon(ask, f"pending {owner}", self.store.pending, owner, 1000)
            for message in range(1, 6):
                nursery.start_soon(ask, f"owner {message}", self.store.owner_of, 1, message)
        return seen


JournalMachine.TestCase.settings = settings(max_examples=examples(25), stateful_step_count=20, deadline=None)
test_the_journal_does_what_its_model_does = JournalMachine.TestCase
