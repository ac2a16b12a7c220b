"""Messages that nobody owns against people who press anything at any time, and leaders that come and go."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from telegram_bus.store import NewUpdate, journal, lobby
from tests.effort import examples
from tests.fakes import memory_store

CHAT = 5
places = st.sampled_from([0, 77, 78])
keys = st.sampled_from(["nora", "otto"])


class Choosers(RuleBasedStateMachine):
    """The statements against a model: what waits where, in which question, and what became of each message."""

    def __init__(self) -> None:
        super().__init__()
        _, commits = memory_store()
        self.db = commits.db
        self.epoch = 1
        self.number = 0
        self.message = 1_000
        self.waits: dict[int, list[int]] = {0: [], 77: [], 78: []}
        self.owner: dict[int, str | None] = {}  # None: ignored
        self.question: dict[int, int | None] = {}  # the open question's message; None: not known whether it is there
        self.open: dict[int, str] = {}  # place to "open" or "later"
        self.asked_by: dict[int, int] = {}

    @rule(place=places)
    def arrives(self, place: int) -> None:
        """A message comes, and people are asked where they are not."""
        self.number += 1
        update = NewUpdate(
            update_id=self.number, kind="message", body=b"{}", chat_id=CHAT, thread_id=place or None, message_id=1
        )
        (stored,) = journal.admit_batch(self.db, [update], None, 1, ())
        ask, waiting = lobby.hold(self.db, stored.seq, (CHAT, place), self.epoch, 1)
        self.waits[place].append(stored.seq)
        known = self.open.get(place) == "open" and (
            self.question.get(place) is not None or self.asked_by[place] == self.epoch
        )
        assert ask == (not known)
        assert waiting == len(self.waits[place])
        assert not lobby.hold(self.db, stored.seq, (CHAT, place), self.epoch, 1)[0]  # it is seen to once more
        if ask:
            self.open[place], self.question[place], self.asked_by[place] = "open", None, self.epoch

    @rule(place=places, sent=st.sampled_from(["sent", "refused", "unknown"]))
    def is_asked(self, place: int, sent: str) -> None:
        """Telegram answered the question's sendMessage."""
        if self.open.get(place) != "open" or self.question.get(place) is not None or sent == "unknown":
            return
        self.message += 1
        lobby.asked(self.db, (CHAT, place), self.message if sent == "sent" else None)
        if sent == "sent":
            self.question[place] = self.message
        else:
            self.open[place] = "later"

    @rule()
    def another_leads(self) -> None:
        """It asks where the one before may not have."""
        self.epoch += 1
        for one in lobby.choosers(self.db):
            if one.state == "open" and one.message_id is None:
                assert lobby.hold(self.db, -1, (CHAT, one.place), self.epoch, 1)[0]
                self.asked_by[one.place] = self.epoch

    @rule(place=places, data=st.data(), key=keys, what=st.sampled_from(["give", "ignore", "later"]))
    def is_pressed(self, place: int, data: st.DataObject, key: str, what: str) -> None:
        """A button of the question that is shown, or of any that was."""
        shown = self.question.get(place)
        message = data.draw(st.sampled_from([shown or self.message + 1, *range(1_000, self.message + 1)][:12]))
        counts = place in self.open and (message == shown if shown is not None else message > self.message)
        done: Any
        match what:
            case "give":
                done = lobby.give(self.db, (CHAT, place), key, message)
                gone = None if done is None else [update.seq for update in done]
            case "ignore":
                done = lobby.ignore(self.db, (CHAT, place), message, 1)
                gone = None if done is None else list(self.waits[place])
            case _:
                done = lobby.later(self.db, (CHAT, place), message)
                gone = None
        if shown is None and not counts and done is not None:
            return self._end(place, what, key)  # a question that may be there, by an id that was not used yet
        assert (done is not None) == counts
        if done is None:
            return None
        if gone is not None:
            assert gone == self.waits[place]
        return self._end(place, what, key)

    def _end(self, place: int, what: str, key: str) -> None:
        if what == "later":
            self.open[place] = "later"
            return
        for seq in self.waits[place]:
            assert seq not in self.owner
            self.owner[seq] = key if what == "give" else None
        self.waits[place] = []
        del self.open[place]
        self.question.pop(place, None)

    @rule(place=st.sampled_from([77, 78]), key=keys)
    @precondition(lambda self: any(self.waits.values()))
    def gets_an_owner(self, place: int, key: str) -> None:
        """By whatever way."""
        given = lobby.bound(self.db, (CHAT, place), key)
        assert [update.seq for update in given] == self.waits[place]
        for seq in self.waits[place]:
            self.owner[seq] = key
        self.waits[place] = []
        self.open.pop(place, None)
        self.question.pop(place, None)

    @rule()
    def time_passes(self) -> None:
        """Nothing that waits is ever purged."""
        lobby.purge(self.db, 10**9, 0)

    @invariant()
    def nothing_is_lost_or_given_twice(self) -> None:
        rows = self.db.execute("SELECT seq, owner_key, outcome FROM updates").fetchall()
        for seq, owner, outcome in rows:
            waiting = any(seq in waits for waits in self.waits.values())
            assert waiting != (seq in self.owner)
            assert (owner, outcome) == (self.owner.get(seq), "dropped" if self.owner.get(seq, "") is None else None)
        held = {row[0] for row in self.db.execute("SELECT seq FROM held")}
        assert held == {seq for waits in self.waits.values() for seq in waits}
        assert lobby.unattended(self.db, 10) == []


TestChoosers = Choosers.TestCase
TestChoosers.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
