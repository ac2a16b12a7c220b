"""Owners that are away: people are told once that something is kept for them, and what waits too long expires."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, Literal

import trio
from attrs import define, evolve, field

from telegram_bus.core import notices as texts
from telegram_bus.core.codec import loads
from telegram_bus.core.errors import StateError
from telegram_bus.core.updates import describe
from telegram_bus.roles.deliveries import Deliveries, Members
from telegram_bus.roles.notices import Notices
from telegram_bus.roles.threads import Threads
from telegram_bus.store import Absence, Store, StoredUpdate

__all__ = ["Absences"]

log = logging.getLogger(__name__)

GRACE: Final = 3.0
"""Seconds before people are told: a follower that is restarted, or finds the next leader, is back by then."""

RETURN: Final = 6.0
"""Seconds from the moment at which a leader can be found: by then those who were served by the one before are back,
who ask for it each 1.5 s at least. As long as they keep coming it is `GRACE` after the last of them."""

EXPIRY_EVERY: Final = 60.0

SAID_WITHIN_MS: Final = 24 * 3600 * 1000
"""What was set aside longer ago was said; names of what was said are known for twice that."""

SAID_AFTER: Final = 2.0  # seconds: followers, and what waits for them, come first
MOST_ASIDE: Final = 10_000
"""Updates set aside that a new leader looks at."""

_Event = tuple[Literal["left", "came", "kept"], str, int]
"""What happened to whom, and how many updates waited for it at that moment."""


@define(kw_only=True, eq=False)
class Absences:
    """Who is away since when, in memory and in the store. `expire` is in seconds, None: nothing ever expires."""

    store: Store = field(repr=False)
    threads: Threads = field(repr=False)
    members: Members = field(repr=False)
    deliveries: Deliveries = field(repr=False)
    notices: Notices = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    expire: float | None = None
    _away: dict[str, Absence] = field(factory=dict)
    _oldest: dict[str, int] = field(factory=dict)  # of those that are told to be away: what waits since when (ms)
    _here: frozenset[str] = frozenset()
    _looking: set[str] = field(factory=set)
    _opened: trio.Event = field(factory=trio.Event)
    _back_by: float = 0.0
    _channel: tuple[trio.MemorySendChannel[_Event], trio.MemoryReceiveChannel[_Event]] = field(
        factory=lambda: trio.open_memory_channel[_Event](math.inf)  # one for each change of a follower's presence
    )

    def since(self, key: str) -> int | None:
        """Since when a follower is away (epoch, ms); None where it is here, or was never seen to leave."""
        absence = self._away.get(key)
        return absence.since_ms if absence is not None else None

    def note_members(self, keys: Iterable[str]) -> None:
        """These followers are here now, and no others; to be told before what waits for them is delivered."""
        here = frozenset(keys)
        if here - self._here and (now := trio.current_time()) < self._back_by:
            self._back_by = max(self._back_by, now + GRACE)
        for key in here - self._here:
            self._channel[0].send_nowait(("came", key, self.deliveries.waiting(key)))
        for key in self._here - here:
            self._channel[0].send_nowait(("left", key, self.deliveries.waiting(key)))
        self._here = here

    def note_open(self) -> None:
        """This leader can be found from now on: the followers of the one before begin to come back."""
        self._back_by = trio.current_time() + RETURN
        self._opened.set()

    def note_kept(self, keys: Iterable[str]) -> None:
        """Something was stored for these owners, here or not."""
        for key in keys:
            if key not in self._looking and self.members.by_key(key) is None:
                self._looking.add(key)
                self._channel[0].send_nowait(("kept", key, 1))

    def set_aside(self, update: StoredUpdate, reason: str, settled_ms: int) -> None:
        """Tell people, once, that an update was set aside at that time."""
        key = update.owner_key or ""
        message_id = describe(loads(update.body)).message_id
        text = texts.set_aside(self.threads.name_of(key), reason)
        self.notices.say(text, self._thread(key), message_id, name=f"aside:{update.seq}:{settled_ms}")

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep track until cancelled; behind `load`, and when deliveries know what waits."""
        async with trio.open_nursery() as nursery:
            task_status.started()
            self.note_kept(self.deliveries.owners())
            nursery.start_soon(self._say_again)
            nursery.start_soon(self._keep_expiring)
            async for event, key, waiting in self._channel[1]:
                if event == "kept":
                    nursery.start_soon(self._look, key)
                    continue
                try:
                    await (self._came(key, waiting) if event == "came" else self._left(key))
                except StateError as error:  # a full disk: it costs a notice
                    log.warning("not noted that %s %s: %s", key, event, error)

    async def load(self) -> None:
        """Read who was away when the last leader looked."""
        try:
            self._away = {absence.key: absence for absence in await self.store.absences()}
            for absence in self._away.values():
                if absence.told:
                    await self._note_oldest(absence.key)
        except StateError as error:
            log.warning("who is away since when is not known: %s", error)

    async def _left(self, key: str) -> None:
        self._away[key] = Absence(key=key, since_ms=self.now_ms())
        await self.store.note_absence(self._away[key])
        if self.deliveries.waiting(key):
            self.note_kept([key])

    async def _came(self, key: str, waiting: int) -> None:
        absence, oldest_ms = self._away.pop(key, None), self._oldest.pop(key, None)
        if absence is None:
            return
        if waiting and oldest_ms is not None:
            oldest = (self.now_ms() - oldest_ms) / 1000
            self.notices.say(texts.back(self.threads.name_of(key), waiting, oldest), self._thread(key))
        await self.store.note_presence(key)

    async def _note_oldest(self, key: str) -> None:
        if waiting := await self.store.pending(key, 1):
            self._oldest[key] = waiting[0].admitted_ms

    async def _look(self, key: str) -> None:
        """Tell people, unless the owner comes in time or they know."""
        await trio.sleep(GRACE)
        if key not in self._away:  # nobody has seen it leave, so it may be on its way from the leader before
            await self._opened.wait()
            while trio.current_time() < self._back_by:  # noqa: ASYNC110 - it may be put off meanwhile
                await trio.sleep_until(self._back_by)
        self._looking.discard(key)
        if self.members.by_key(key) is not None or not self.deliveries.waiting(key):
            return
        absence = self._away.get(key)
        if absence is not None and absence.told:
            return
        now = self.now_ms()
        since = _clock(absence.since_ms, now) if absence is not None else None
        # told before it is said: rather not at all than twice
        self._away[key] = evolve(absence or Absence(key=key, since_ms=now), told=True)
        try:
            await self.store.note_absence(self._away[key])
            await self._note_oldest(key)
        except StateError as error:
            log.warning("the next leader may say again that %s is away: %s", key, error)
        self.notices.say(texts.kept(self.threads.name_of(key), since), self._thread(key))

    async def _keep_expiring(self) -> None:
        if self.expire is None:
            return
        while True:
            await trio.sleep(min(EXPIRY_EVERY, self.expire / 4))
            try:
                await self._expire(self.expire)
            except StateError as error:
                log.warning("what has waited too long was not set aside: %s", error)

    async def _expire(self, seconds: float) -> None:
        now_ms = self.now_ms()
        for key in self.deliveries.owners():
            gone = await self.deliveries.expire(key, now_ms - round(seconds * 1000), now_ms, f"{key} was away")
            if gone:
                self._say_expired(key, gone, seconds, now_ms)

    def _say_expired(self, key: str, count: int, seconds: float, settled_ms: int) -> None:
        text = texts.expired(self.threads.name_of(key), count, seconds)
        self.notices.say(text, self._thread(key), name=f"expired:{key}:{settled_ms}")

    async def _say_again(self) -> None:
        """What earlier leaders set aside and perhaps could not say any more; what was said is known by its name."""
        await self._opened.wait()  # a takeover has no time for this
        await trio.sleep(SAID_AFTER)
        since_ms = self.now_ms() - SAID_WITHIN_MS
        try:
            aside = await self.store.listed(aside=True, limit=MOST_ASIDE, since_ms=since_ms)
        except StateError as error:
            log.warning("whether all was said that was set aside is not known: %s", error)
            return
        expired = Counter[tuple[str, int]]()
        for one in aside:
            settled_ms = one.settled_ms or 0
            if one.outcome == "expired":
                expired[one.update.owner_key or "", settled_ms] += 1
            else:
                self.set_aside(one.update, one.reason or "", settled_ms)
        for (key, settled_ms), count in expired.items():
            self._say_expired(key, count, self.expire or 0.0, settled_ms)

    def _thread(self, key: str) -> int | None:
        """Where people are told of it; None: in the main chat, since no thread of its is there."""
        binding = self.threads.of_key(key)
        return binding.thread_id if binding is not None and binding.gone_ms is None else None


def _clock(since_ms: int, now_ms: int) -> str:
    """A point in the past as people say it, in the time of this machine: with its date if that is another one."""
    since, now = time.localtime(since_ms / 1000), time.localtime(now_ms / 1000)
    return time.strftime("%H:%M" if since[:3] == now[:3] else "%Y-%m-%d %H:%M", since)
