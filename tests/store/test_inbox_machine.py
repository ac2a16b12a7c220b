"""The inbox against a model of two dictionaries, with crashes at any moment."""

from __future__ import annotations

from functools import partial

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from telegram_bus.store import open_inbox
from tests.effort import examples
from tests.store.rig import StoredMachine

HOUR = 3600.0
IDS = st.sampled_from("abcdef")


class InboxMachine(StoredMachine):
    """`waiting`: bodies in order of arrival, with the items that they are parts of; `done`: when ids were finished."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_700_000_000.0
        self.waiting: dict[str, tuple[bytes, str | None]] = {}
        self.done: dict[str, float] = {}
        self.open()

    def open(self) -> None:
        self.inbox = self.hold(open_inbox(self.path, clock=lambda: self.now))
        assert self.inbox.notice is None

    @rule(delivery=IDS, body=st.binary(max_size=8), part=st.booleans(), data=st.data())
    def arrives(self, delivery: str, body: bytes, part: bool, data: st.DataObject) -> None:
        heads = [head for head, (_, of) in self.waiting.items() if of is None and head != delivery]
        item = data.draw(st.sampled_from(heads), "item") if part and heads else None
        append = partial(self.inbox.append, item=item, album="x" if part else None)
        new = self.loop.run(append, delivery, "leader.forwardMessage", 1, body)
        assert new == (delivery not in self.waiting and delivery not in self.done)
        if new:
            self.waiting[delivery] = (body, item)

    @rule(delivery=IDS, edit=IDS, body=st.binary(max_size=8))
    def is_edited(self, delivery: str, edit: str, body: bytes) -> None:
        if edit == delivery:
            return
        new = self.loop.run(partial(self.inbox.amend, by=edit, source_update_id=2, late=b"late"), delivery, body)
        assert new == (edit not in self.waiting and edit not in self.done)
        if new and delivery in self.waiting:
            self.finished([edit])
            self.waiting[delivery] = (body, self.waiting[delivery][1])
        elif new:
            self.waiting[edit] = (b"late", None)

    @rule(delivery=IDS)
    def finishes(self, delivery: str) -> None:
        self.loop.run(self.inbox.done, delivery)
        gone = [name for name, (_, item) in self.waiting.items() if delivery in (name, item)]
        for name in gone:
            del self.waiting[name]
        self.finished(gone)

    def finished(self, gone: list[str]) -> None:
        self.done |= dict.fromkeys(gone, self.now)
        self.done = {name: since for name, since in self.done.items() if since >= self.now - 48 * HOUR}

    @rule(hours=st.sampled_from([1, 30]))
    def time_passes(self, hours: int) -> None:
        self.now += hours * HOUR

    @invariant()
    def holds_what_it_should(self) -> None:
        found = self.loop.run(self.inbox.pending)
        assert {one.delivery_id: (one.body, one.item) for one in found} == self.waiting
        assert [one.delivery_id for one in found] == list(self.waiting)


InboxMachine.TestCase.settings = settings(max_examples=examples(20), stateful_step_count=20, deadline=None)
test_the_inbox_does_what_its_model_does = InboxMachine.TestCase
