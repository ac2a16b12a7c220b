"""The journal against a model of dictionaries, with crashes and successors at any moment."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

import trio
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from telegram_bus.store import Collision, New, NewUpdate, Outcome, Repeat, Store, Unknown, open_store

T = TypeVar("T")
HOUR = 3_600_000
OWNERS = st.sampled_from(["a", "b", None])


class Loop:
    """A Trio loop in a thread, so that synchronous rules can use one open store."""

    def __init__(self) -> None:
        self._ready = Event()
        self._thread = Thread(target=trio.run, args=(self._main,), daemon=True)
        self._thread.start()
        self._ready.wait()

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._stop = trio.Event()
        self._ready.set()
        await self._stop.wait()

    def run(self, afn: Callable[..., Awaitable[T]], *args: Any) -> T:
        return trio.from_thread.run(afn, *args, trio_token=self._token)

    def stop(self) -> None:
        trio.from_thread.run_sync(self._stop.set, trio_token=self._token)
        self._thread.join()


class JournalMachine(RuleBasedStateMachine):
    """`waiting`, `seen`, `bindings`, `owners` and `calls` are what the journal should hold."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="telegram-bus-test-"))
        self.path = self.directory / "0.sqlite3"
        self.loop = Loop()
        self.now = 1_700_000_000_000
        self.epoch = 0
        self.offset = 0
        self.seen: dict[int, int] = {}
        self.waiting: dict[int, list[Any]] = {}
        self.settled: dict[int, int] = {}
        self.bindings: dict[str, tuple[int, int | None]] = {}
        self.owners: dict[tuple[int, int], tuple[str, int]] = {}
        self.calls: dict[tuple[str, str], list[Any]] = {}
        self.open()

    def open(self) -> None:
        self.loop.run(self._open)
        self.epoch += 1
        assert self.store.epoch == self.epoch
        assert self.store.notice is None

    async def _open(self) -> None:
        # The store's context is entered and left in a task of its own: its nursery belongs to one task.
        opened, self.leave = trio.Event(), trio.Event()
        self.left = trio.Event()
        trio.lowlevel.spawn_system_task(self._hold, opened)
        await opened.wait()

    async def _hold(self, opened: trio.Event) -> None:
        async with AsyncExitStack() as stack:
            self.store: Store = await stack.enter_async_context(open_store(self.path, holder="machine"))
            opened.set()
            await self.leave.wait()
        self.left.set()

    async def _close(self) -> None:
        self.leave.set()
        await self.left.wait()

    @rule(numbers=st.lists(st.integers(0, 12), max_size=4), owner=OWNERS, next_offset=st.integers(0, 20))
    def admit(self, numbers: list[int], owner: str | None, next_offset: int) -> None:
        batch = [NewUpdate(update_id=n, kind="other", body=b"%d" % n, owner_key=owner) for n in numbers]
        admitted = self.loop.run(self.store.admit_batch, batch, next_offset, self.now)
        expected = [n for n in dict.fromkeys(numbers) if n not in self.seen]
        assert [stored.update_id for stored in admitted] == expected
        for stored in admitted:
            assert stored.seq > max([0, *self.waiting, *self.settled])
            self.seen[stored.update_id] = self.now
            self.waiting[stored.seq] = [stored.update_id, owner, 0]
        self.offset = next_offset

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), outcome=st.sampled_from(["accepted", "rejected", "answered", "dropped"]))
    def settle(self, data: st.DataObject, outcome: Outcome) -> None:
        seq = data.draw(st.sampled_from(sorted(self.waiting)))
        assert self.loop.run(self.store.settle, seq, outcome, self.now)
        del self.waiting[seq]
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
        self.loop.run(self.store.intend_thread, key, 1, key, self.now)
        self.bindings[key] = (1, None)
        if thread == 4:  # the topic was never created
            return
        self.loop.run(self.store.bind_thread, key, 1, thread, key, self.now)
        self.bindings = {other: to for other, to in self.bindings.items() if to != (1, thread)}
        self.bindings[key] = (1, thread)

    @rule(key=st.sampled_from("abc"))
    def unbind(self, key: str) -> None:
        assert self.loop.run(self.store.unbind, key) == (self.bindings.pop(key, None) is not None)

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

    @rule(hours=st.sampled_from([1, 25, 49]))
    def time_passes(self, hours: int) -> None:
        self.now += hours * HOUR
        self.loop.run(self.store.purge, self.now)
        self.settled = {seq: ms for seq, ms in self.settled.items() if ms >= self.now - 24 * HOUR}
        self.seen = {number: ms for number, ms in self.seen.items() if ms >= self.now - 48 * HOUR}
        self.calls = {call: row for call, row in self.calls.items() if row[2] >= self.now - 48 * HOUR}

    @rule()
    def restart(self) -> None:
        self.loop.run(self._close)
        self.open()

    @rule()
    def crash(self) -> None:
        """What a kill leaves: the file and its log as they are, no checkpoint, no farewell."""
        survivor = self.directory / f"{self.epoch}.sqlite3"
        shutil.copyfile(self.path, survivor)
        log = Path(f"{self.path}-wal")
        if log.exists():
            shutil.copyfile(log, f"{survivor}-wal")
        self.loop.run(self._close)
        self.path = survivor
        self.open()

    @invariant()
    def holds_what_it_should(self) -> None:
        assert self.loop.run(self.store.offset) == self.offset
        for owner in ("a", "b", None):
            found = self.loop.run(self.store.pending, owner, 1000)
            expected = [(seq, row[0], row[2]) for seq, row in sorted(self.waiting.items()) if row[1] == owner]
            assert [(stored.seq, stored.update_id, stored.attempts) for stored in found] == expected
        bound = self.loop.run(self.store.bindings)
        assert {binding.key: (binding.chat_id, binding.thread_id) for binding in bound} == self.bindings
        for message in range(1, 6):
            known = self.owners.get((1, message))
            assert self.loop.run(self.store.owner_of, 1, message) == (known[0] if known else None)
        counts = self.loop.run(self.store.counts)
        assert (counts.waiting, counts.settled, counts.calls) == (
            len(self.waiting),
            len(self.settled),
            len(self.calls),
        )

    def teardown(self) -> None:
        self.loop.run(self._close)
        self.loop.stop()
        shutil.rmtree(self.directory)


JournalMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
test_the_journal_does_what_its_model_does = JournalMachine.TestCase
