"""What people may do to threads by hand: show, rename, bind, unbind, prove and clean them up."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import trio
from attrs import frozen

from telegram_bus.core.bindings import Binding, How, verdict_of
from telegram_bus.core.envelopes import Target
from telegram_bus.core.errors import ApiError, RequestRefused
from telegram_bus.core.extensions import OperatorThreads
from telegram_bus.core.lobby import thread_link
from telegram_bus.core.registry import Registry
from telegram_bus.core.threads import clean_name, thread_name
from telegram_bus.roles.clean_up import CleanUps
from telegram_bus.roles.threads import Threads
from telegram_bus.roles.visibility import Visibility

__all__ = ["AT_ONCE", "ThreadCare"]

AT_ONCE: Final = 20.0
"""Seconds of work for one request: who asked is answered what was not done by then, and may ask for the rest."""


@frozen(kw_only=True)
class ThreadCare:
    """The hands. `move` tells a follower that is here of its new thread, `reseat` has one register again."""

    threads: Threads
    visibility: Visibility
    clean_ups: CleanUps
    registry: Registry
    waiting: Callable[[str], int]
    move: Callable[[str, Binding], Awaitable[None]]
    reseat: Callable[[str], None]

    async def operate(self, request: OperatorThreads) -> dict[str, Any]:
        """Do it and say what came of it (docs/protocol.md). Raises RequestRefused, StateError, and what a call does."""
        keys = request.keys or ()
        match request.action:
            case "list":
                return self.listed()
            case "rename":
                return _about(await self.rename(_one(keys), request.name or ""))
            case "bind":
                return _about(await self.give(_one(keys), _thread(request), remove_old=False))
            case "unbind":
                return _about(await self.unbind(_one(keys)))
            case "sync":
                return await self.sync(keys)
            case "clean":
                return await self.clean(keys, request.how, dry_run=bool(request.dry_run))
            case _:
                raise RequestRefused(f"this leader does not know what {request.action!r} is to do with threads")

    def listed(self) -> dict[str, Any]:
        """All that is known of threads; times are milliseconds since 1970."""
        book = self.threads.book
        return {
            "chat_id": self.threads.chat_id,
            "outage": self.threads.outage,
            "threads": [self._shown(binding) for binding in self.threads.all()],
            "making": [
                {"key": one.key, "name": one.name, "since_ms": one.begun_ms, "looked_for": _looked_for(self, one.key)}
                for one in book.creations.values()
            ],
            "clean_ups": [
                {"key": one.key, "thread_id": one.thread_id, "how": one.how, "why": one.why, "since_ms": one.since_ms}
                for one in book.clean_ups.values()
            ],
        }

    async def rename(self, key: str, wanted: str) -> Binding:
        """Give a thread another name, which stays as one that a person gave in the chat does."""
        binding, name = self._known(key), clean_name(wanted)
        if not name:
            raise RequestRefused("a thread needs a name: telegram-bus threads rename KEY NAME")
        if name.casefold() in {other.casefold() for other in self.threads.book.names(key)}:
            raise RequestRefused(f"another thread is called {name!r}; give this one a name of its own")
        place = {"chat_id": binding.chat_id, "message_thread_id": binding.thread_id, "name": name}
        try:
            await self.threads.call("editForumTopic", place, binding.chat_id)
        except ApiError as error:
            if verdict_of(error.description) != "there":
                raise
        await self.threads.note(self.threads.book.renamed(binding.thread_id, name, by_person=True))
        return self._known(key)

    async def give(self, key: str, thread_id: int, *, remove_old: bool = True) -> Binding:
        """Give a thread to a follower, in the place of its present one, which is then deleted if so wanted.

        It is proven to be there, and called as its new owner's was, by an edit of its name. Whoever had it has none.
        """
        book, now = self.threads.book, self.threads.now_ms()
        before, member = self.threads.of_key(key), self.registry.by_key(key)
        if before is not None and before.thread_id == thread_id:
            await self.threads.note([])  # what a full disk did not take when this was asked for before
            return await self._seat(before)
        if before is None and member is None:
            raise RequestRefused(f"no follower {key!r} is known; telegram-bus threads list shows them all")
        said = member.registration.thread_name if member is not None else None
        name = before.name if before is not None else thread_name(said, key, book.names(key))
        verdict = await self.visibility.prove(Binding(key, self.threads.chat_id, thread_id, name, now))
        if verdict != "there":
            gone = f"there is no thread {thread_id} in chat {self.threads.chat_id}"
            raise RequestRefused(gone if verdict == "gone" else f"whether {gone} is not known: try again later")
        before, member = self.threads.of_key(key), self.registry.by_key(key)  # as it is by now
        holder = member.instance_id if member is not None else None
        changes = book.bind(key, thread_id, name, holder=holder, now_ms=now)
        binding = book.bindings[key]
        await self.threads.note(changes)
        if remove_old and before is not None and before.gone_ms is None and before.thread_id != thread_id:
            await self.clean_ups.wish_old(key, before.thread_id, f"{key} has thread {thread_id} now")
        return await self._seat(binding)

    async def unbind(self, key: str) -> Binding:
        """Forget whose a thread is; it stays in the chat. Its follower gets another one, at once if it is here."""
        binding = self._known(key)
        changes = self.threads.book.unbind(key)
        self.reseat(key)
        await self.threads.note(changes)
        return binding

    async def sync(self, keys: Sequence[str]) -> dict[str, Any]:
        """Prove that the threads are there, one after another, within the budget; what time did not allow is `left`."""
        left = [binding.key for binding in map(self._known, keys)] or [binding.key for binding in self.threads.all()]
        found: dict[str, list[str]] = {"there": [], "gone": [], "unknown": []}
        with trio.move_on_after(AT_ONCE):
            for key in list(left):
                binding = self.threads.of_key(key)
                if binding is not None:  # else it was cleaned up or given away meanwhile
                    found[await self.visibility.look(binding)].append(key)
                left.remove(key)
        return {**found, "left": left}

    async def clean(self, keys: Sequence[str], how: str | None, *, dry_run: bool) -> dict[str, Any]:
        """Close or delete the threads of followers that are proven to be gone (all of them, or these)."""
        way: How
        match how or self.clean_ups.policy:
            case "close" | "delete" as named:
                way = named
            case _:
                raise RequestRefused("say what shall become of the threads: --how close, or --how delete")
        chosen, kept = [], {}
        for binding in [self._known(key) for key in keys] if keys else self.threads.all():
            why = self._in_use(binding, way)
            if why is None:
                chosen.append(binding)
            else:
                kept[binding.key] = why
        done: list[str] = []
        left = [binding.key for binding in chosen]
        if not dry_run:
            for binding in chosen:
                await self.clean_ups.wish(binding.key, way, "an operator wants it")
            with trio.move_on_after(AT_ONCE):
                for binding in chosen:
                    row = self.threads.book.clean_ups.get(binding.thread_id)
                    if row is not None and await self.clean_ups.carry_out(row) == "done":
                        done.append(binding.key)
                        left.remove(binding.key)
        return {"how": way, "done": done, "left": left, "kept": kept}

    # --

    async def _seat(self, binding: Binding) -> Binding:
        """Who is here with the thread of another registers again; its owner is told, if it has not got it yet."""
        there = self.registry.by_target(Target(chat_id=binding.chat_id, thread_id=binding.thread_id))
        if there is not None and there.key != binding.key:
            self.reseat(there.key)
        await self.move(binding.key, binding)
        return binding

    def _known(self, key: str) -> Binding:
        binding = self.threads.of_key(key)
        if binding is None:
            raise RequestRefused(f"no follower {key!r} has a thread; telegram-bus threads list shows those that do")
        return binding

    def _in_use(self, binding: Binding, how: How) -> str | None:
        """Why a thread is not to be cleaned up; None where nothing stands against it."""
        if self.registry.by_key(binding.key) is not None:
            return "it is here"
        if self.waiting(binding.key):
            return "messages wait for it"
        if self.clean_ups.may_live(binding.key):
            return "its process lives"
        if how == "close" and self.threads.chat_id > 0:
            return "no thread of a private chat can be closed"
        return "it is closed" if how == "close" and binding.closed else None

    def _shown(self, binding: Binding) -> dict[str, Any]:
        here = self.registry.by_key(binding.key) is not None
        state = "deleted" if binding.gone_ms is not None else "closed" if binding.closed else "open"
        return {
            "key": binding.key,
            "name": binding.name,
            "chat_id": binding.chat_id,
            "thread_id": binding.thread_id,
            "link": thread_link(binding.chat_id, binding.thread_id),
            "state": state,
            "here": here,
            "named_by_person": binding.by_person,
            "waiting": self.waiting(binding.key),
            "since_ms": binding.since_ms,
        }


def _looked_for(care: ThreadCare, key: str) -> float:
    return care.threads.book.still_looked_for(key)


def _about(binding: Binding) -> dict[str, Any]:
    return {"key": binding.key, "name": binding.name, "thread_id": binding.thread_id}


def _one(keys: Sequence[str]) -> str:
    if len(keys) != 1:
        raise RequestRefused("name exactly one follower, by its key")
    return keys[0]


def _thread(request: OperatorThreads) -> int:
    if request.thread_id is None or request.thread_id <= 1:
        raise RequestRefused("name the thread by its id, a number above 1")
    return request.thread_id
