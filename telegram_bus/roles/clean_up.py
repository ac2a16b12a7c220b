"""Closing and deleting threads behind agents that left: by an intent in the store, and asked again each time."""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable, Iterable
from typing import Final, Literal

import trio
from attrs import define, field

from telegram_bus import crash, host
from telegram_bus.core.bindings import CleanUp, How, verdict_of
from telegram_bus.core.errors import ApiError, BusError, LeadershipLost, RequestRefused, SettingsError, StateError
from telegram_bus.core.registry import Member
from telegram_bus.home import Profile
from telegram_bus.roles.deliveries import Members
from telegram_bus.roles.threads import Threads
from telegram_bus.store.told import SILENT

__all__ = ["GRACE", "CleanUpPolicy", "CleanUps"]

log = logging.getLogger(__name__)

CleanUpPolicy = Literal["keep", "close", "delete"]

GRACE: Final = 10.0
"""Seconds from an agent's leaving to the end of its thread: one that is only restarted is back by then."""

AGAIN: Final = 15.0
LOOK_AFTER: Final = 600.0
"""Seconds from a leader's beginning until it looks who died while nobody led: whatever starts with the machine, or is
started anew by hand, is back by then."""

REPLAY: Final = 5.0
"""Seconds that a new leader takes at most for what the last one left undone, before anybody may register with it."""


class _Stays(RequestRefused):
    """The call must not be made: the thread stays, for now ("wait") or for good ("cancel")."""

    def __init__(self, verdict: Literal["wait", "cancel"]) -> None:
        super().__init__(f"the thread is not cleaned up ({verdict}): its agent is back, may be alive, or has messages")
        self.verdict = verdict


@define(kw_only=True, eq=False)
class CleanUps:
    """The clean-up of one term. `policy` is what happens behind an agent that leaves; `dead`: behind a dead one too."""

    threads: Threads
    members: Members = field(repr=False)
    waiting: Callable[[str], int] = field(repr=False)
    profile: Profile = field(repr=False)
    leading: Callable[[], bool] = field(default=lambda: True, repr=False)
    policy: CleanUpPolicy = "keep"
    dead: bool = False
    _due: dict[int, float] = field(factory=dict)  # when a thread's turn is, at the earliest
    _suspects: dict[str, Member | None] = field(factory=dict)  # who may have died; what was known of it
    _silent: set[str] = field(factory=set)  # whose mark is in the store
    _at_work: set[int] = field(factory=set)  # the threads that somebody sees to at this moment

    # -- wishes

    async def left(self, member: Member) -> None:
        """An agent left of its own will: what shall become of its thread is stored before its farewell is answered."""
        await self._forget_silent(member.key)
        if self.policy != "keep":
            await self.wish(member.key, self.policy, "it left")

    async def fell_silent(self, member: Member) -> None:
        """An agent is not heard any more; only its proven death, and only where that is wanted, takes its thread.

        One that is frozen, say, may die later: `watch_for_dead` looks again, under the next leader too.
        """
        if self.policy != "keep" and self.dead:
            self._suspects[member.key] = member
            await self._look_for_dead([member.key])
            if member.key in self._suspects and member.key not in self._silent:
                self._silent.add(member.key)
                await self.threads.store.told.tell(SILENT + member.key, "1")

    async def wish(self, key: str, how: How, why: str) -> bool:
        """Store that the key's thread shall be closed or deleted; False where it is not to be."""
        changes = self.threads.book.intend(key, how, why, self.threads.now_ms())
        await self.threads.note(changes)
        if changes:
            crash.point("after-intend-clean-up")
            log.info("%s: %s; its thread will be %sd", key, why, how)
        return bool(changes)

    async def wish_old(self, key: str, thread_id: int, why: str) -> None:
        """Store that a thread which its agent left for another one shall be deleted."""
        await self.threads.note(self.threads.book.intend_old(key, thread_id, why, self.threads.now_ms()))
        self._due[thread_id] = trio.current_time()

    # -- what is known of owners

    def may_live(self, key: str) -> bool:
        """Whether a process may have the key: its `inbox.lock` is the proof (protocol section 3), whatever its pid.

        One that has none, of another program, said by itself that it left.
        """
        try:
            return _is_held(os.fspath(self.profile.inbox_lock(key))) is not False
        except SettingsError:
            return False

    def is_dead(self, member: Member) -> bool:
        """Whether exactly this process is proven to be dead."""
        try:
            held = _is_held(os.fspath(self.profile.inbox_lock(member.key)))
        except SettingsError:
            held = False
        if held is None:  # it cannot be told
            return False
        said = member.registration
        pid = said.pid if isinstance(said.pid, int) else 0
        by_lock = not held and self._has_lock(member.key)
        return by_lock or (not held and host.process_state(pid, said.process_birth_id) == "dead")

    def _has_lock(self, key: str) -> bool:
        try:
            return self.profile.inbox_lock(key).exists()
        except SettingsError:
            return False

    # -- deeds

    async def replay(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Carry out what the last leader left undone; started when that is done, or in the midst of it after 5 s."""
        started = False

        def start() -> None:
            nonlocal started
            if not started:
                started = True
                task_status.started()

        async def start_in_time() -> None:
            await trio.sleep(REPLAY)
            start()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(start_in_time)
            for row in tuple(self.threads.book.clean_ups.values()):
                await self.carry_out(row)
            start()
            nursery.cancel_scope.cancel("all of it was tried")

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Carry out what is due, one after another, until cancelled."""
        task_status.started()
        seen: trio.Event | None = None
        while True:
            with trio.move_on_at(min(self._due.values(), default=float("inf"))):
                _, seen = await self.threads.changed.wait_news(seen)  # also of what is wanted while one is carried out
            rows = self.threads.book.clean_ups
            self._due = {thread: when for thread, when in self._due.items() if thread in rows}
            for thread_id in rows:
                self._due.setdefault(thread_id, trio.current_time() + GRACE)
            for row in tuple(rows.values()):
                if self._due.get(row.thread_id, float("inf")) <= trio.current_time():
                    self._due[row.thread_id] = trio.current_time() + AGAIN
                    await self.carry_out(row)

    async def watch_for_dead(self, seen_leaving: Callable[[str], bool]) -> None:
        """Where that is wanted, find out who died while it was silent, or while nobody led, until cancelled.

        Whoever was `seen_leaving` by some leader was judged then: its thread stays, unless it had fallen silent and
        nothing was proven.
        """
        wanted = self.policy != "keep" and self.dead
        await self._recall_silent(keep=wanted)
        if not wanted:
            return
        look_at = trio.current_time() + LOOK_AFTER
        while True:
            await trio.sleep(AGAIN)
            if trio.current_time() >= look_at:
                look_at = float("inf")
                known = [one.key for one in self.threads.all()]
                absent = [key for key in known if key in self._silent or not seen_leaving(key)]
                self._suspects = dict.fromkeys(absent) | self._suspects
            try:
                await self._look_for_dead(list(self._suspects))
            except StateError as error:
                log.warning("who has died is looked for later: %s", error)

    async def _look_for_dead(self, keys: Iterable[str]) -> None:
        assert self.policy != "keep"
        for key in keys:
            if key not in self._suspects:
                continue
            if self.members.by_key(key) is None:
                if self.waiting(key) or not self._has_died(key, self._suspects[key]):
                    continue
                await self.wish(key, self.policy, "its process died")
            self._suspects.pop(key, None)  # dead, or back, and speaks for itself
            await self._forget_silent(key)

    async def _recall_silent(self, *, keep: bool) -> None:
        """Learn who fell silent under earlier leaders; without `keep` that is forgotten: nobody wants to know."""
        try:
            found = {what.removeprefix(SILENT) for what in await self.threads.store.told.recall(SILENT)}
            self._silent |= found
            for key in () if keep else found:
                await self._forget_silent(key)
        except StateError as error:
            log.warning("who fell silent under earlier leaders is not known: %s", error)

    async def _forget_silent(self, key: str) -> None:
        if key in self._silent:
            self._silent.discard(key)
            await self.threads.store.told.forget(SILENT + key)

    def _has_died(self, key: str, member: Member | None) -> bool:
        """Of whom no leader's memory has anything only a free lock proves it."""
        return self.is_dead(member) if member is not None else self._has_lock(key) and not self.may_live(key)

    async def carry_out(self, row: CleanUp) -> Literal["done", "stays", "later"]:
        """Close or delete one thread, if that is still to be, and nobody is at it."""
        if row.thread_id in self._at_work:
            return "later"
        self._at_work.add(row.thread_id)
        try:
            return await self._carry_out(row)
        except StateError as error:
            log.warning("thread %d of %s is cleaned up later: %s", row.thread_id, row.key, error)
            return "later"
        finally:
            self._at_work.discard(row.thread_id)

    async def _carry_out(self, row: CleanUp) -> Literal["done", "stays", "later"]:
        method = "deleteForumTopic" if row.how == "delete" else "closeForumTopic"
        place = {"chat_id": row.chat_id, "message_thread_id": row.thread_id}
        ended = trio.Event()

        async def ask_again() -> None:
            """Right before the call: from here on its owner waits until it has ended, if it comes back."""
            await self._check(row)
            if not await self.threads.store.holds_clean_up(row):  # also: is the epoch still ours?
                raise _Stays("cancel")
            await self._check(row)
            self.threads.cleaning[row.key] = ended
            crash.point("before-clean-up")

        try:
            with trio.CancelScope(shield=True):  # bounded by the sender; what it did must be noted
                try:
                    await self.threads.call(method, place, row.chat_id, before=ask_again)
                except _Stays as stays:
                    return await self._stay(row, stays.verdict)
                except ApiError as error:
                    if not self._had_ended(row, error):
                        return await self._refused(row, error)
                except LeadershipLost:
                    raise
                except BusError as error:
                    log.warning("thread %d of %s is cleaned up later: %s", row.thread_id, row.key, error)
                    return "later"
                crash.point("after-clean-up")
                await self.threads.note(self.threads.book.cleaned(row.thread_id))
        finally:
            if self.threads.cleaning.get(row.key) is ended:
                del self.threads.cleaning[row.key]
            ended.set()
        log.info("thread %d of %s was %sd: %s", row.thread_id, row.key, row.how, row.why)
        return "done"

    async def _check(self, row: CleanUp) -> None:
        if not self.leading():
            raise LeadershipLost("this process is not the leader any more; the thread stays")
        verdict = self.threads.book.may_clean(
            row.thread_id,
            here=self.members.by_key(row.key) is not None,
            alive=self.may_live(row.key),
            waiting=self.waiting(row.key),
        )
        if verdict != "go":
            raise _Stays(verdict)

    async def _stay(self, row: CleanUp, verdict: Literal["wait", "cancel"]) -> Literal["stays", "later"]:
        if verdict == "wait":
            return "later"
        await self.threads.note(self.threads.book.cancelled(row.thread_id))
        log.info("thread %d of %s stays: it is in use, or something waits for it", row.thread_id, row.key)
        return "stays"

    async def _refused(self, row: CleanUp, error: ApiError) -> Literal["stays"]:
        await self.threads.note(self.threads.book.cancelled(row.thread_id))
        self.threads.say(f"The thread of {row.key}, which has left, could not be {row.how}d: {error.description}")
        return "stays"

    def _had_ended(self, row: CleanUp, error: ApiError) -> bool:
        """Whether the refusal says that there is nothing to be done (any more)."""
        verdict = verdict_of(error.description)
        return verdict == "gone" or (row.how == "close" and verdict == "there")


def _is_held(path: str) -> bool | None:
    """Whether somebody holds the lock file; False also where there is none, None where it cannot be told.

    It is held by us for no longer than it takes to ask, so that nobody finds it taken who comes at this moment.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return False
