"""Whether threads are still there: proven when a send says otherwise, and never for all of them at once."""

from __future__ import annotations

import logging
import math
from contextlib import suppress
from typing import Final

import trio
from attrs import define, field

from telegram_bus import crash
from telegram_bus.core.bindings import Binding, Verdict, verdict_of
from telegram_bus.core.errors import ApiError, BusError, LeadershipLost, StateError
from telegram_bus.roles.threads import Missing, Threads

__all__ = ["MANY", "WINDOW", "Visibility"]

log = logging.getLogger(__name__)

MANY: Final = 3
"""Threads that are gone at once: no person deletes so many in a minute, and Telegram has lost them before (scenario 59,
bot-api T5). Until that is settled bindings stay and nothing is sent."""

WINDOW: Final = 60.0
LOOK_AGAIN: Final = 30.0
LONGEST_PAUSE: Final = 300.0
OUTAGE_LIMIT: Final = 3_600.0
"""After an hour people really have deleted them."""

SURE_AFTER: Final = 2
"""Looks at which other threads are there, and the missing ones are not, before those count as deleted."""


@define(kw_only=True, eq=False)
class Visibility:
    """Judges what is reported of threads: one after another, so that there is no wave of calls."""

    threads: Threads
    _found: dict[int, float] = field(factory=dict)  # threads that were found to be gone, and when
    _refused: dict[int, float] = field(factory=dict)  # threads that are there and take no messages, and since when
    _pause: float = LOOK_AGAIN
    _paused_at: float = -math.inf

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Judge reports until cancelled."""
        task_status.started()
        async for thread_id, how in self.threads.reports[1]:
            try:
                await self.judge(thread_id, how)
            except LeadershipLost:
                raise
            except BusError as error:  # it is reported again when something is sent again
                log.warning("what became of thread %d is not known: %s", thread_id, error)

    async def prove(self, binding: Binding) -> Verdict:
        """Whether the thread is there, by an edit to the name that it has (bot-api, "What follows for the design").

        A chat action proves nothing. "unknown": keep it, make no other.
        """
        place = {"chat_id": binding.chat_id, "message_thread_id": binding.thread_id, "name": binding.name}
        try:
            await self.threads.call("editForumTopic", place, binding.chat_id)
        except ApiError as error:
            return verdict_of(error.description)
        except (LeadershipLost, StateError):
            raise
        except BusError:
            return "unknown"
        return "there"

    async def judge(self, thread_id: int, how: Missing) -> None:
        """Find out what a report means, and note it."""
        book = self.threads.book
        binding = self._bound(thread_id)
        if binding is None:
            return
        if how == "closed":
            await self.threads.note(book.closed(thread_id, closed=True))
            return
        if binding.gone_ms is not None:
            return
        verdict, now = await self.prove(binding), trio.current_time()
        if verdict == "there":
            await self._note_refused(thread_id, now)
        if verdict != "gone":
            return
        self._found = {one: when for one, when in self._found.items() if now - when < WINDOW}
        self._found[thread_id] = now
        await self._look_around()
        if len(self._found) >= MANY:
            await self._sit_out()
        else:
            await self._park(list(self._found))

    async def look(self, binding: Binding) -> Verdict:
        """Prove a thread because somebody asks for it, and note what comes of it."""
        verdict = await self.prove(binding)
        if verdict == "there":
            await self.threads.note(self.threads.book.seen(binding.thread_id))
        elif verdict == "gone":
            await self._park([binding.thread_id])
        return verdict

    # --

    def _bound(self, thread_id: int) -> Binding | None:
        key = self.threads.book.owner(thread_id)
        return None if key is None else self.threads.book.bindings[key]

    def _others(self) -> list[Binding]:
        """Threads that are thought to be there, the newest first: the most likely ones to be in use."""
        there = [one for one in self.threads.all() if one.gone_ms is None and one.thread_id not in self._found]
        return sorted(there, key=lambda one: -one.since_ms)

    async def _note_refused(self, thread_id: int, now: float) -> None:
        """A thread is there and takes no messages: many of them are an outage too, whose end only sending shows."""
        self._refused = {one: when for one, when in self._refused.items() if now - when < WINDOW}
        self._refused[thread_id] = now
        if len(self._refused) < MANY:
            return
        again = now - self._paused_at < self._pause + WINDOW
        self._pause = min(self._pause * 2, LONGEST_PAUSE) if again else LOOK_AGAIN
        self._refused.clear()
        self.threads.note_outage(f"Telegram refuses messages for {MANY} and more threads that are there")
        log.warning("%s; nothing is sent into threads for %.0f s", self.threads.outage, self._pause)
        try:
            await trio.sleep(self._pause)
        finally:
            self._end_outage()
            self._paused_at = trio.current_time()

    def _end_outage(self) -> None:
        """What was reported meanwhile says nothing of the time from here on."""
        self.threads.note_outage(None)
        self._found.clear()
        with suppress(trio.WouldBlock):
            while True:
                self.threads.reports[1].receive_nowait()

    async def _look_around(self) -> None:
        """Whether other threads are gone too: as few looks as will tell."""
        for other in self._others()[:MANY]:
            if len(self._found) >= MANY:
                return
            verdict = await self.prove(other)
            if verdict == "there":
                return
            if verdict == "gone":
                self._found[other.thread_id] = trio.current_time()

    async def _park(self, gone: list[int]) -> None:
        for thread_id in gone:
            binding = self._bound(thread_id)
            if binding is None or binding.gone_ms is not None:
                continue
            await self.threads.note(self.threads.book.parked(thread_id, self.threads.now_ms()))
            crash.point("after-park-thread")
            log.warning("the thread %s (%d) was deleted", binding.name, thread_id)
            self.threads.say(_what_follows(binding))

    async def _sit_out(self) -> None:
        """Many threads are gone at once: send nothing, change nothing, until it is clear what that was."""
        threads, began = self.threads, trio.current_time()
        missing = list(self._found)
        for thread_id in missing:  # those that were parked within the last minute are part of it
            await threads.note(threads.book.seen(thread_id))
        threads.note_outage(f"Telegram says that {len(missing)} threads of chat {threads.chat_id} are gone at once")
        log.warning("%s; their agents keep them, and nothing is sent until that is clear", threads.outage)
        try:
            await self._wait_clear(missing, began)
        finally:
            self._end_outage()
        log.warning("the threads of chat %d can be judged again", threads.chat_id)
        for thread_id in missing:
            binding = self._bound(thread_id)
            if binding is not None and await self.prove(binding) == "gone":
                await self._park([thread_id])

    async def _wait_clear(self, missing: list[int], began: float) -> None:
        pause, sure = LOOK_AGAIN, 0
        while sure < SURE_AFTER and trio.current_time() - began < OUTAGE_LIMIT:
            await trio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
            left = [binding for thread_id in missing if (binding := self._bound(thread_id)) is not None]
            if not left or await self.prove(left[0]) == "there":
                return
            others = self._others()
            sure = sure + 1 if others and await self.prove(others[0]) == "there" else 0


def _what_follows(binding: Binding) -> str:
    if binding.remade_ms is None:
        return f"The thread of {binding.name} was deleted. {binding.name} gets another with the next thing it says."
    return (
        f"The thread of {binding.name} was deleted again. Nothing more comes from it until it is started anew, or "
        f"until it is given another thread: telegram-bus threads unbind {binding.key}"
    )
