"""The book of threads with the statements that store it, against people, Telegram and kills in any order."""

from __future__ import annotations

import sqlite3
from typing import Literal

from attrs import define, field
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from telegram_bus.core.bindings import Binding, Changes, How
from telegram_bus.core.book import LOOKED_FOR, Adopted, Book, Given, Make, Wait
from telegram_bus.core.threads import clean_name
from telegram_bus.store import bindings
from telegram_bus.store.schema import JOURNAL
from tests.effort import examples

CHAT = -100
BOT = 1
KEYS = st.sampled_from("ab")

Fate = Literal["answered", "lost", "lost and not made", "refused", "killed before", "killed after", "told first"]
FATES: st.SearchStrategy[Fate] = st.sampled_from(
    [
        "answered",
        "answered",
        "lost",
        "lost",
        "lost and not made",
        "refused",
        "killed before",
        "killed after",
        "told first",
    ]
)


@define
class Telegram:
    """The chat as it really is: `topics` by id; `news` are the service messages that no poll has brought yet."""

    topics: dict[int, str] = field(factory=dict)
    made_for: dict[int, str] = field(factory=dict)
    news: list[tuple[int, str]] = field(factory=list)
    next_id: int = 2

    def create(self, key: str, name: str) -> int:
        thread, self.next_id = self.next_id, self.next_id + 1
        self.topics[thread], self.made_for[thread] = name, key
        self.news.append((thread, name))
        return thread


class ThreadsMachine(RuleBasedStateMachine):
    """`here` are the followers that are registered, with their processes; `alive` the keys whose process lives."""

    def __init__(self) -> None:
        super().__init__()
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        self.db.executescript("".join(JOURNAL.steps))
        self.telegram = Telegram()
        self.book = Book(CHAT)
        self.here: dict[str, str] = {}
        self.alive: set[str] = set()
        self.runs = 0
        self.now = 1_000
        self.known: set[int] = set()  # topics that were bound once, so that they are no stray ones

    def commit(self, changes: Changes) -> None:
        self.now += 1
        self.db.execute("BEGIN")
        bindings.note(self.db, changes)
        self.db.execute("COMMIT")
        self.known |= {one.thread_id for one in bindings.kept(self.db) if isinstance(one, Binding)}

    # -- followers

    @initialize()
    def two_are_here(self) -> None:
        for key in "ab":
            self.comes(key, True, None, "answered")

    @rule(key=KEYS, anew=st.booleans(), wanted=st.sampled_from(["Nora", "nora", None]), fate=FATES)
    def comes(self, key: str, anew: bool, wanted: str | None, fate: Fate) -> None:
        self.runs += 1
        holder = self.here.get(key) if not anew else None
        holder = holder or f"{key}:{self.runs}"
        step, changes = self.book.register(key, holder=holder, thread_id=None, wanted=wanted, now_ms=self.now)
        self.commit(changes)
        self.alive.add(key)
        match step:
            case Given(binding=binding):
                assert binding.thread_id not in self.book.clean_ups
                self.here[key] = holder
            case Wait(creation=creation):
                assert creation.key == key
            case Make(name=name):
                assert name.casefold() not in {other.casefold() for other in self.book.names(key)}
                self.create(key, name, holder, fate)
            case Adopted():
                raise AssertionError("it named no thread")

    @rule(key=KEYS, fate=FATES)
    def says_something(self, key: str, fate: Fate) -> None:
        if key not in self.here:
            return
        before = self.book.bindings.get(key)
        try:
            step = self.book.remake(key)
        except PermissionError:
            assert before is not None
            assert before.remade_ms is not None
            return
        if isinstance(step, Make):
            assert before is not None
            assert before.gone_ms is not None
            self.create(key, step.name, self.here[key], fate)

    def create(self, key: str, name: str, holder: str, fate: Fate) -> None:
        """createForumTopic: no other one for this key may be under way, or made and not known."""
        mine = {thread for thread, owner in self.telegram.made_for.items() if owner == key}
        assert mine <= self.known
        self.book.reserve(key, name)
        self.commit(self.book.begin(key, name, holder=holder, now_ms=self.now))
        if fate == "killed before":
            return self.killed()
        if fate == "refused":
            return self.commit(self.book.not_made(key))
        if fate == "lost and not made":
            return self.book.lost(key)
        thread = self.telegram.create(key, name)
        if fate == "killed after":
            return self.killed()
        if fate == "lost":
            return self.book.lost(key)
        if fate == "told first":
            while self.telegram.news:
                self.poll()
        self.commit(self.book.made(key, thread, self.now))
        assert self.book.owner(thread) == key
        if key in self.book.bindings:
            self.here[key] = holder
        return None

    @precondition(lambda self: self.here)
    @rule(key=KEYS, dies=st.sampled_from([True, True, False]), how=st.sampled_from(["delete", "delete", "close", None]))
    def leaves(self, key: str, dies: bool, how: How | None) -> None:
        if key not in self.here:
            return
        if how is not None:
            self.commit(self.book.intend(key, how, "it left", self.now))
        del self.here[key]
        if dies:
            self.alive.discard(key)

    @rule(key=KEYS)
    def dies(self, key: str) -> None:
        self.alive.discard(key)
        self.here.pop(key, None)

    # -- Telegram

    @precondition(lambda self: self.telegram.news)
    @rule()
    def poll(self) -> None:
        thread, name = self.telegram.news.pop(0)
        message = {
            "message_thread_id": thread,
            "is_topic_message": True,
            "chat": {"id": CHAT},
            "from": {"id": BOT},
            "forum_topic_created": {"name": name},
        }
        self.commit(self.book.heard(message, BOT, self.now))

    @precondition(lambda self: not self.telegram.news)
    @rule(seconds=st.sampled_from([1.0, LOOKED_FOR]))
    def polls_bring_nothing(self, seconds: float) -> None:
        for creation in self.book.polled(seconds):
            assert creation.key in self.book.creations
            self.commit(self.book.not_made(creation.key))

    def heard_of_known(self) -> None:
        """What Telegram says of a thread that had an owner comes within milliseconds, and people take longer."""
        self.telegram.news = [one for one in self.telegram.news if one[0] not in self.known]

    # -- people

    def tell(self, thread: int, what: dict[str, object]) -> None:
        message = {
            "message_thread_id": thread,
            "is_topic_message": True,
            "chat": {"id": CHAT},
            "from": {"id": 7},
            **what,
        }
        self.commit(self.book.heard(message, BOT, self.now))

    @precondition(lambda self: self.telegram.topics)
    @rule(data=st.data(), name=st.sampled_from(["Nora", "Mine", " "]))
    def a_person_renames(self, data: st.DataObject, name: str) -> None:
        thread = data.draw(st.sampled_from(sorted(self.telegram.topics)))
        if clean_name(name):
            self.telegram.topics[thread] = name
        self.tell(thread, {"forum_topic_edited": {"name": name}})
        if (key := self.book.owner(thread)) is not None and clean_name(name):
            assert self.book.bindings[key].name == name
            assert self.book.bindings[key].by_person

    @precondition(lambda self: self.telegram.topics)
    @rule(data=st.data(), closes=st.booleans())
    def a_person_closes_or_opens(self, data: st.DataObject, closes: bool) -> None:
        thread = data.draw(st.sampled_from(sorted(self.telegram.topics)))
        self.tell(thread, {"forum_topic_closed" if closes else "forum_topic_reopened": {}})

    @precondition(lambda self: self.telegram.topics)
    @rule(data=st.data(), noticed=st.booleans())
    def a_person_deletes(self, data: st.DataObject, noticed: bool) -> None:
        thread = data.draw(st.sampled_from(sorted(self.telegram.topics)))
        self.heard_of_known()
        del self.telegram.topics[thread]
        if noticed:
            self.commit(self.book.parked(thread, self.now))

    @precondition(lambda self: len(self.telegram.topics) > 1)
    @rule(data=st.data(), key=KEYS, removes=st.booleans())
    def a_person_binds(self, data: st.DataObject, key: str, removes: bool) -> None:
        thread = data.draw(st.sampled_from(sorted(self.telegram.topics)))
        before, holder = self.book.bindings.get(key), self.here.get(key)
        if key in self.book.creations:
            return
        self.heard_of_known()
        loser = self.book.owner(thread)
        self.commit(self.book.bind(key, thread, "Bound", holder=holder, now_ms=self.now))
        if loser is not None and loser != key:
            self.here.pop(loser, None)
        if removes and before is not None and before.thread_id is not None and before.thread_id != thread:
            self.commit(self.book.intend_old(key, before.thread_id, "it has another", self.now))
        assert self.book.owner(thread) == key

    @rule(key=KEYS)
    def a_person_unbinds(self, key: str) -> None:
        if key in self.book.creations:
            return
        self.heard_of_known()
        self.commit(self.book.unbind(key))
        self.here.pop(key, None)

    # -- cleaning up

    @precondition(lambda self: self.book.clean_ups)
    @rule(
        data=st.data(),
        waiting=st.sampled_from([False, False, True]),
        killed=st.sampled_from(["no", "no", "before", "after"]),
    )
    def cleans_up(self, data: st.DataObject, waiting: bool, killed: str) -> None:
        thread = data.draw(st.sampled_from(sorted(self.book.clean_ups)))
        row = self.book.clean_ups[thread]
        here, owner = row.key in self.here, self.book.owner(thread)
        verdict = self.book.may_clean(thread, here=here, alive=row.key in self.alive, waiting=int(waiting))
        if verdict == "cancel":
            return self.commit(self.book.cancelled(thread))
        if verdict == "wait":
            return None
        assert bindings.holds(self.db, row)  # nothing is deleted without an intent
        assert owner is None or (owner == row.key and not here and not waiting and row.key not in self.alive)
        if killed == "before":
            return self.killed()
        if row.how == "delete":
            self.telegram.topics.pop(thread, None)
        if killed == "after":
            return self.killed()
        self.commit(self.book.cleaned(thread))
        assert not bindings.holds(self.db, row)  # no intent survives its confirmation
        assert thread not in self.book.clean_ups
        return None

    @rule()
    def killed(self) -> None:
        """A new leader knows what the store holds, and nobody is registered with it.

        Of threads that had an owner the service message was long polled.
        """
        self.heard_of_known()
        self.book = Book(CHAT, bindings.kept(self.db))
        self.here.clear()

    @invariant()
    def the_store_holds_what_the_book_says(self) -> None:
        stored = Book(CHAT, bindings.kept(self.db))
        assert stored.bindings == self.book.bindings
        assert stored.creations == self.book.creations
        assert stored.clean_ups == self.book.clean_ups

    @invariant()
    def a_thread_has_one_owner_and_an_owner_one_thread(self) -> None:
        rows = [one for one in bindings.kept(self.db) if isinstance(one, Binding)]
        assert len({row.key for row in rows}) == len(rows)
        assert len({row.thread_id for row in rows}) == len(rows)
        assert {row.thread_id: row.key for row in rows} == {
            row.thread_id: self.book.owner(row.thread_id) for row in rows if row.thread_id is not None
        }

    def teardown(self) -> None:
        self.db.close()


ThreadsMachine.TestCase.settings = settings(max_examples=examples(50), stateful_step_count=40, deadline=None)
test_threads_stay_tidy_whatever_happens = ThreadsMachine.TestCase
