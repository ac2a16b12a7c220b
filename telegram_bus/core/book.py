"""All threads of a chat: what may happen to them, and what has to be stored before it does.

Everything here is synchronous: a `Book` is told what happened and changes itself; what it returns are the rows that
have to be on the disk before anybody acts on it (`Changes`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple

from telegram_bus.core.bindings import Binding, Changes, CleanUp, Creation, Gone, How
from telegram_bus.core.threads import clean_name, thread_name

__all__ = ["LOOKED_FOR", "Adopted", "Book", "Given", "Make", "Step", "Wait"]

LOOKED_FOR: Final = 120.0
"""Seconds of polling after which a creation whose answer was lost counts as not made: its service message, which
comes with the next poll (bot-api T14), would have come."""


class Given(NamedTuple):
    """The follower has this thread; `reopen`: it was closed, and its owner is back."""

    binding: Binding
    reopen: bool = False


class Adopted(NamedTuple):
    """The follower keeps the thread that it had from a leader whose store we do not have."""

    binding: Binding


class Wait(NamedTuple):
    """A thread was asked for and may be there: nothing else may be made meanwhile."""

    creation: Creation


class Make(NamedTuple):
    """The follower needs a thread of this name."""

    name: str


Step = Given | Adopted | Wait | Make


class Book:
    """All threads of one chat. Times are milliseconds of the wall clock, unless they are called seconds."""

    def __init__(self, chat_id: int, rows: Iterable[Binding | Creation | CleanUp] = ()) -> None:
        self.chat_id = chat_id
        self.bindings: dict[str, Binding] = {}
        self.creations: dict[str, Creation] = {}
        self.clean_ups: dict[int, CleanUp] = {}
        self.elsewhere: dict[str, Binding] = {}
        """Bindings of another chat, where the bot worked before: they bind nobody, and their owners get new threads."""
        self._by_thread: dict[int, str] = {}
        self._wanted: dict[str, str] = {}  # names of threads that wait for their turn to be made
        self._released: set[int] = set()  # threads that were taken from their owners: none comes back by being named
        self._under_way: set[str] = set()
        self._looked_for: dict[str, float] = {}
        self._told: dict[str, tuple[int, Creation]] = {}  # settled by a service message while the answer is to come
        for row in rows:
            if isinstance(row, CleanUp):
                self.clean_ups[row.thread_id] = row
            elif row.chat_id != chat_id:
                if isinstance(row, Binding):
                    self.elsewhere[row.key] = row
            elif isinstance(row, Creation):
                self.creations[row.key] = row
            else:
                self._enter(row)

    # -- what there is

    def owner(self, thread_id: int) -> str | None:
        """The key of the follower that has the thread."""
        return self._by_thread.get(thread_id)

    def names(self, but: str) -> set[str]:
        """The names that are taken: those of all threads but this key's."""
        rows: list[Binding | Creation] = [*self.bindings.values(), *self.creations.values()]
        wanted = (name for key, name in self._wanted.items() if key != but)
        return {row.name for row in rows if row.key != but}.union(wanted)

    def current(self, row: Binding | Creation | CleanUp | Gone) -> Binding | Creation | CleanUp | Gone:
        """The row as it is by now, for one whose storing failed: others may have been stored since."""
        match row:
            case Gone(row=gone):
                return self.current(gone)
            case Binding():
                return self.bindings.get(row.key) or Gone(row)
            case Creation():
                return self.creations.get(row.key) or Gone(row)
            case CleanUp():
                there = self.clean_ups.get(row.thread_id)
                return there if there is not None and there.chat_id == row.chat_id else Gone(row)

    # -- a follower comes

    def register(  # the facts of a registration
        self, key: str, *, holder: str, thread_id: int | None, wanted: str | None, now_ms: int
    ) -> tuple[Step, Changes]:
        """A follower comes, or comes again: `thread_id` is the one that it says it had, `wanted` the name it wants.

        What was to be cleaned up behind it stays. A thread that is gone is given all the same: the next output makes
        another (`remake`).
        """
        changes: Changes = []
        binding = self.bindings.get(key)
        if binding is not None:
            if binding.thread_id in self.clean_ups:
                changes.append(Gone(self.clean_ups.pop(binding.thread_id)))
            back = binding.holder != holder
            if back:
                binding = self._enter(binding._replace(holder=holder, remade_ms=None))
                changes.append(binding)
            reopen = binding.closed and back and binding.gone_ms is None and self.chat_id < 0  # bot-api T11
            return Given(binding, reopen), changes
        if (creation := self.creations.get(key)) is not None:
            return Wait(creation), changes
        name = thread_name(wanted, key, self.names(key))
        taken = (self._by_thread, self.clean_ups, self._released)
        if thread_id is not None and not any(thread_id in some for some in taken):
            binding = Binding(key, self.chat_id, thread_id, name, now_ms, holder)
            return Adopted(self._enter(binding)), [binding]
        return Make(name), changes

    # -- making a thread

    def reserve(self, key: str, name: str) -> None:
        """A thread of this name will be asked for when its turn comes: nobody else gets the name meanwhile."""
        self._wanted[key] = name

    def begin(self, key: str, name: str, *, holder: str | None, now_ms: int) -> Changes:
        """createForumTopic is about to be sent; nothing of it has left before these changes are on the disk.

        Raises ValueError where one was begun and is not settled.
        """
        if key in self.creations:
            raise ValueError(f"a thread for {key} was asked for already")
        self._wanted.pop(key, None)
        self.creations[key] = Creation(key, self.chat_id, name, now_ms, holder)
        self._under_way.add(key)
        return [self.creations[key]]

    def made(self, key: str, thread_id: int, now_ms: int) -> Changes:
        """Telegram answered that it made the thread.

        Nothing changes where that was known from its service message. Where that was another thread's (an older one
        of this name, which a person took from its owner), the answer holds: that one is nobody's again.
        """
        creation, told = self.creations.get(key), self._told.pop(key, None)
        if creation is not None:
            return self._bound(creation, thread_id, now_ms)
        binding = self.bindings.get(key)
        if told is None or binding is None or binding.thread_id != told[0] or told[0] == thread_id:
            return []
        changes = self._take(thread_id, key)
        name, holder = told[1].name, told[1].holder
        row = Binding(key, self.chat_id, thread_id, name, now_ms, holder, remade_ms=binding.remade_ms)
        changes.append(self._enter(row))
        self._released.add(told[0])
        return changes

    def _bound(self, creation: Creation, thread_id: int, now_ms: int) -> Changes:
        key, earlier = creation.key, self.bindings.get(creation.key)
        changes = self._settle(key)
        changes += self._take(thread_id, key)
        remade_ms = now_ms if earlier is not None and earlier.gone_ms is not None else None
        row = Binding(key, self.chat_id, thread_id, creation.name, now_ms, creation.holder, remade_ms=remade_ms)
        changes.append(self._enter(row))
        self.elsewhere.pop(key, None)
        return changes

    def not_made(self, key: str) -> Changes:
        """Telegram refused, or was surely not asked: a thread that it got by a service message is another one."""
        told, binding = self._told.pop(key, None), self.bindings.get(key)
        changes = self._settle(key)
        if told is not None and binding is not None and binding.thread_id == told[0]:
            changes.append(self._forget(binding))
        return changes

    def lost(self, key: str) -> None:
        """The answer will not come: from here on the service message is looked for."""
        self._under_way.discard(key)
        self._told.pop(key, None)

    def topic_created(self, thread_id: int, name: str, now_ms: int) -> Changes:
        """The service message of a thread that this bot made; the first of a name settles the creation of that name.

        Those of threads that have an owner, or had one, or that nobody waits for, change nothing.
        """
        if thread_id in self._by_thread or thread_id in self._released:
            return []
        sought = [one for one in self.creations.values() if clean_name(one.name) == clean_name(name)]
        if not sought:
            return []
        creation = min(sought, key=lambda one: one.begun_ms)
        if creation.key in self._under_way:
            self._told[creation.key] = (thread_id, creation)
        return self._bound(creation, thread_id, now_ms)

    def polled(self, seconds: float) -> list[Creation]:
        """Polling worked for so much longer; returns the creations that count as not made now (see `not_made`)."""
        overdue = []
        for key, creation in self.creations.items():
            if key not in self._under_way:
                self._looked_for[key] = self._looked_for.get(key, 0.0) + seconds
                if self._looked_for[key] >= LOOKED_FOR:
                    overdue.append(creation)
        return overdue

    def still_looked_for(self, key: str) -> float:
        """Seconds of polling until the key's creation counts as not made."""
        return LOOKED_FOR - self._looked_for.get(key, 0.0)

    # -- people's hands

    def heard(self, message: Mapping[str, Any], bot_id: int, now_ms: int) -> Changes:
        """A message of the chat: what it says of a thread if it is a service message, be it this bot's own."""
        thread_id, chat, sender = message.get("message_thread_id"), message.get("chat"), message.get("from")
        if type(thread_id) is not int or message.get("is_topic_message") is not True:
            return []
        if not isinstance(chat, dict) or chat.get("id") != self.chat_id:
            return []
        ours = isinstance(sender, dict) and sender.get("id") == bot_id
        if isinstance(created := message.get("forum_topic_created"), dict):
            name = created.get("name")
            return self.topic_created(thread_id, name, now_ms) if ours and isinstance(name, str) else []
        if isinstance(edited := message.get("forum_topic_edited"), dict):
            name = edited.get("name")
            return self.renamed(thread_id, name, by_person=not ours) if isinstance(name, str) else []
        if "forum_topic_closed" in message or "forum_topic_reopened" in message:
            return self.closed(thread_id, closed="forum_topic_closed" in message)
        return []

    def renamed(self, thread_id: int, name: str, *, by_person: bool) -> Changes:
        """The thread has another name now; one that a person gave stays a person's until a person gives another."""
        binding = self._of(thread_id)
        if binding is None or not clean_name(name):
            return []
        return self._change(binding, name=clean_name(name), by_person=by_person or binding.by_person)

    def closed(self, thread_id: int, *, closed: bool) -> Changes:
        """The thread was closed, or opened again."""
        binding = self._of(thread_id)
        return [] if binding is None else self._change(binding, closed=closed)

    def parked(self, thread_id: int, now_ms: int) -> Changes:
        """The thread was found to be gone: its binding stays, and is no place for anything."""
        binding = self._of(thread_id)
        return [] if binding is None or binding.gone_ms is not None else self._change(binding, gone_ms=now_ms)

    def seen(self, thread_id: int) -> Changes:
        """The thread was found to be there."""
        binding = self._of(thread_id)
        return [] if binding is None else self._change(binding, gone_ms=None)

    def remake(self, key: str) -> Step | None:
        """What the next output of a follower needs first: None where its thread is as it should be.

        Raises PermissionError where its thread was made anew before and deleted again: a person does not want it.
        """
        binding = self.bindings.get(key)
        if (creation := self.creations.get(key)) is not None:
            return Wait(creation)
        if binding is None or binding.gone_ms is None:
            return None
        if binding.remade_ms is not None:
            raise PermissionError(f"the thread of {binding.name} was deleted, made anew, and deleted again")
        return Make(binding.name)

    def bind(self, key: str, thread_id: int, name: str, *, holder: str | None, now_ms: int) -> Changes:
        """Give a thread to a follower; whoever had it has none from then on, and what was to be cleaned up stays."""
        self._told.pop(key, None)
        changes = self._settle(key)
        changes += self._take(thread_id, key)
        changes.append(self._enter(Binding(key, self.chat_id, thread_id, clean_name(name), now_ms, holder)))
        return changes

    def unbind(self, key: str) -> Changes:
        """Forget the follower's thread, and the wish for one; the thread itself stays in the chat."""
        self._told.pop(key, None)
        changes = self._settle(key)
        binding = self.bindings.get(key) or self.elsewhere.pop(key, None)
        if binding is not None:
            changes.append(self._forget(binding))
            if binding.thread_id in self.clean_ups:
                changes.append(Gone(self.clean_ups.pop(binding.thread_id)))
        return changes

    def migrate(self, chat_id: int) -> Changes:
        """The group became a supergroup: everything is that chat's now."""
        self.chat_id = chat_id
        rows: list[Binding | Creation | CleanUp] = [*self.bindings.values(), *self.creations.values()]
        rows += self.clean_ups.values()
        changes: Changes = [Gone(row) for row in self.clean_ups.values()]
        for row in rows:
            moved = row._replace(chat_id=chat_id)
            match moved:
                case Binding():
                    self._enter(moved)
                case Creation():
                    self.creations[moved.key] = moved
                case CleanUp():
                    self.clean_ups[moved.thread_id] = moved
            changes.append(moved)
        return changes

    # -- cleaning up

    def intend(self, key: str, how: How, why: str, now_ms: int) -> Changes:
        """The follower's thread shall be closed or deleted; nothing is changed where that is done or cannot be.

        In a private chat no thread can be closed (bot-api T11): there it is kept.
        """
        binding = self.bindings.get(key)
        if binding is None or binding.thread_id in self.clean_ups:
            return []
        if how == "close" and (self.chat_id > 0 or binding.closed or binding.gone_ms is not None):
            return []
        return [self._intend(binding.thread_id, key, how, why, now_ms)]

    def intend_old(self, key: str, thread_id: int, why: str, now_ms: int) -> Changes:
        """A thread that its follower left for another one shall be deleted."""
        if thread_id in self._by_thread or thread_id in self.clean_ups:
            return []
        return [self._intend(thread_id, key, "delete", why, now_ms)]

    def may_clean(self, thread_id: int, *, here: bool, alive: bool, waiting: int) -> Literal["go", "wait", "cancel"]:
        """Whether the thread may be closed or deleted now; to be asked before each call that does it.

        Of its owner: whether it is registered, whether its process may be alive, how much waits for it. A thread
        whose owner left it for another is nobody's, unless somebody has it by now.
        """
        clean_up = self.clean_ups.get(thread_id)
        if clean_up is None:
            return "cancel"
        owner = self._by_thread.get(thread_id)
        if owner is None:
            return "go"
        if owner != clean_up.key or here or waiting:
            return "cancel"
        return "wait" if alive else "go"

    def cleaned(self, thread_id: int) -> Changes:
        """It is done: with a deleted thread its binding ends."""
        clean_up = self.clean_ups.pop(thread_id, None)
        if clean_up is None:
            return []
        changes: Changes = [Gone(clean_up)]
        binding = self._of(thread_id)
        if binding is not None and binding.key == clean_up.key:
            changes += self._change(binding, closed=True) if clean_up.how == "close" else [self._forget(binding)]
        return changes

    def cancelled(self, thread_id: int) -> Changes:
        """It shall not be done any more."""
        clean_up = self.clean_ups.pop(thread_id, None)
        return [] if clean_up is None else [Gone(clean_up)]

    # --

    def _of(self, thread_id: int) -> Binding | None:
        key = self._by_thread.get(thread_id)
        return None if key is None else self.bindings[key]

    def _enter(self, binding: Binding) -> Binding:
        before = self.bindings.get(binding.key)
        if before is not None:
            self._by_thread.pop(before.thread_id, None)
            if before.by_person and before.name == binding.name:  # whatever thread it has: a person wants it called so
                binding = binding._replace(by_person=True)
        self.bindings[binding.key] = binding
        self._by_thread[binding.thread_id] = binding.key
        self._released.discard(binding.thread_id)
        return binding

    def _forget(self, binding: Binding) -> Gone:
        self.bindings.pop(binding.key, None)
        if self._by_thread.get(binding.thread_id) == binding.key:
            del self._by_thread[binding.thread_id]
            self._released.add(binding.thread_id)
        return Gone(binding)

    def _change(self, binding: Binding, **fields: object) -> Changes:
        changed = binding._replace(**fields)  # type: ignore[arg-type]
        return [] if changed == binding else [self._enter(changed)]

    def _take(self, thread_id: int, key: str) -> Changes:
        """End what anybody else has to do with the thread."""
        changes: Changes = []
        other = self._of(thread_id)
        if other is not None and other.key != key:
            changes.append(self._forget(other))
        if thread_id in self.clean_ups:
            changes.append(Gone(self.clean_ups.pop(thread_id)))
        return changes

    def _settle(self, key: str) -> Changes:
        self._wanted.pop(key, None)
        self._under_way.discard(key)
        self._looked_for.pop(key, None)
        creation = self.creations.pop(key, None)
        return [] if creation is None else [Gone(creation)]

    def _intend(self, thread_id: int, key: str, how: How, why: str, now_ms: int) -> CleanUp:
        row = self.clean_ups[thread_id] = CleanUp(self.chat_id, thread_id, key, how, why, now_ms)
        return row
