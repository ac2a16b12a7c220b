"""Whatever people, the bot and polls do: ids grow, nothing confirmed comes back, nothing unconfirmed is lost."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from telegram_bus.sandbox import model_doings as doings
from telegram_bus.sandbox.model_polls import Delivered, Waiting
from telegram_bus.sandbox.refusal import Refusal
from tests.effort import examples
from tests.sandbox.talk import Talk


class Conversation(RuleBasedStateMachine):
    """The model: the list of all updates ever queued, and up to where they were confirmed."""

    @initialize(seed=st.integers(0, 1000))
    def begin(self, seed: int) -> None:
        self.talk = Talk(seed)
        self.world = self.talk.world
        self.start = self.world.queue.tail
        self.expected: list[int] = []
        self.confirmed = 0
        self.waiting: Waiting | None = None
        self.topics: list[int] = []
        self.said: list[int] = []
        self.sent: list[int] = []

    @rule(seconds=st.floats(0, 5))
    def time_passes(self, seconds: float) -> None:
        self.talk.now += seconds
        self.world.polls.wake(self.talk.now)
        self.follow(new=0)

    @rule(data=st.data())
    def somebody_writes(self, data: st.DataObject) -> None:
        thread = data.draw(st.sampled_from([0, *self.topics]))
        self.said.append(self.talk.say(thread_id=thread)["message_id"])
        self.follow(new=1)

    @rule(data=st.data())
    def somebody_edits(self, data: st.DataObject) -> None:
        if self.said:
            message = data.draw(st.sampled_from(self.said))
            text = f"edit {len(self.expected)}"
            doings.edit(self.world, self.talk.private, self.talk.owner, message, text, self.talk.now)
            self.follow(new=1)

    @rule(data=st.data())
    def somebody_presses(self, data: st.DataObject) -> None:
        if self.sent:
            message = data.draw(st.sampled_from(self.sent))
            doings.press(self.world, self.talk.private, self.talk.owner, message, "a", self.talk.now)
            self.follow(new=1)

    @rule()
    def the_bot_makes_a_topic(self) -> None:
        self.topics.append(self.talk.topic())
        self.follow(new=1)

    @rule(data=st.data())
    def a_topic_is_deleted(self, data: st.DataObject) -> None:
        if self.topics:
            thread = data.draw(st.sampled_from(self.topics))
            doings.delete_topic(self.world, self.talk.private, thread, self.talk.now)
            self.topics.remove(thread)
            left = set(self.talk.private.messages)
            self.said = [item for item in self.said if item in left]
            self.sent = [item for item in self.sent if item in left]
            self.follow(new=0)

    @rule(data=st.data())
    def the_bot_sends(self, data: st.DataObject) -> None:
        thread = data.draw(st.sampled_from([0, 999, *self.topics]))
        keyboard = {"inline_keyboard": [[{"text": "A", "callback_data": "a"}]]}
        try:
            sent = self.talk.send(message_thread_id=thread, reply_markup=keyboard)
        except Refusal:
            assert thread == 999
        else:
            self.sent.append(sent["message_id"])
        self.follow(new=0)

    @rule(behind=st.integers(-3, 14), limit=st.integers(1, 5), seconds=st.integers(0, 9))
    def somebody_polls(self, behind: int, limit: int, seconds: int) -> None:
        """`behind` the tail, so that offsets lie before, within and after what waits."""
        offset = max(0, self.world.queue.tail - behind)
        was_waiting = self.waiting
        answer = self.world.polls.ask(offset, limit, seconds, self.talk.now)
        pending = [item for item in self.expected if item >= self.confirmed]
        head = pending[0] if pending else self.world.queue.tail
        if offset > head and offset <= self.world.queue.tail + 10:
            self.confirmed = max(self.confirmed, min(offset, self.world.queue.tail))
        if isinstance(answer, Delivered):
            self.check(answer, limit)
            self.follow(new=0)
            assert self.waiting == was_waiting or self.waiting is None
        else:
            assert [item for item in self.expected if item >= self.confirmed] == []
            self.follow(new=0)
            self.waiting = answer

    def check(self, answer: Delivered, limit: int) -> None:
        ids = [update["update_id"] for update in answer.updates]
        pending = [item for item in self.expected if item >= self.confirmed]
        assert ids == pending[: len(ids)]
        assert len(ids) <= limit
        assert bool(ids) == bool(pending)

    def follow(self, *, new: int) -> None:
        """Note the updates that were queued, and what the waiting poll got."""
        known = self.expected[-1] + 1 if self.expected else self.start
        self.expected += range(known, known + new)
        tail = known + new
        if new and self.waiting is not None and self.waiting.offset <= tail + 10:
            # Who waits with an offset of the near future has confirmed what comes before it.
            self.confirmed = max(self.confirmed, min(self.waiting.offset, tail))
        for ticket, outcome in self.world.polls.ended():
            assert self.waiting is not None
            assert ticket == self.waiting.ticket
            if isinstance(outcome, Delivered) and outcome.updates:
                self.check(outcome, self.waiting.limit)
            self.waiting = None

    @invariant()
    def the_queue_holds_exactly_what_is_unconfirmed(self) -> None:
        if not hasattr(self, "world"):
            return
        queued: list[dict[str, Any]] = self.world.queue.take(0, 10_000, self.talk.now)
        assert [item["update_id"] for item in queued] == [item for item in self.expected if item >= self.confirmed]
        assert self.world.queue.tail == self.start + len(self.expected)

    @invariant()
    def message_ids_grow(self) -> None:
        if hasattr(self, "world"):
            for chat in self.world.chats.values():
                ids = list(chat.messages)
                assert ids == sorted(ids)
                assert all(2 <= item < chat.next_id for item in ids)


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=examples(100), stateful_step_count=30, deadline=None)
