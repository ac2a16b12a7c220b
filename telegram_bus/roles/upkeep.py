"""What a leader looks after while it leads: who is here, that it can be found, what is out of date, its spare."""

from __future__ import annotations

import logging
from typing import Final

import trio
from attrs import define

from telegram_bus.core.errors import StateError
from telegram_bus.core.registry import Member
from telegram_bus.core.values import ProtocolIdentity
from telegram_bus.roles.absences import Absences
from telegram_bus.roles.clean_up import CleanUps
from telegram_bus.roles.lease import Lease
from telegram_bus.roles.record import read_leader
from telegram_bus.roles.requests import Requests
from telegram_bus.roles.settings import Settings, store_settings
from telegram_bus.roles.standby import keep_spare
from telegram_bus.roles.term import Term, now_ms
from telegram_bus.wire.endpoint import Endpoint

__all__ = ["PRUNE_EVERY", "Upkeep"]

log = logging.getLogger(__name__)

MISSED_FOR: Final = 60.0
"""Seconds after the last follower was here in which a leader that was told to end (or was frozen) is missed."""

PRUNE_EVERY: Final = 1.0  # protocol section 10

AWAY_MS: Final = 3_000
"""Where the second between two looks at who fell silent took so long, the machine slept, or we were stopped: whoever
spoke meanwhile waits to be heard."""

PURGE_AFTER: Final = 5.0
"""Seconds of a term that belong to those who come back, and to what waits for them."""
PURGE_EVERY: Final = 3_600.0


@define(kw_only=True, eq=False)
class Upkeep:
    """The regular tasks of a term; each runs until it is cancelled."""

    term: Term
    lease: Lease
    identity: ProtocolIdentity
    endpoint: Endpoint
    settings: Settings
    requests: Requests
    clean_ups: CleanUps
    absences: Absences
    _used_at: float = -MISSED_FOR
    _unstored: bool = False

    @property
    def missed(self) -> bool:
        """Whether followers were here until a moment ago, so that they want a successor."""
        return trio.current_time() - self._used_at < MISSED_FOR

    def store_settings(self, settings: Settings) -> None:
        """Store what a successor works with, now or as soon as the disk lets us."""
        self.settings = settings
        try:
            store_settings(self.lease.profile, settings)
        except StateError as error:
            if not self._unstored:
                log.warning("a successor would not know the settings, which are stored later: %s", error)
            self._unstored = True
        else:
            self._unstored = False

    async def prune(self) -> None:
        """Once a second: let go of followers that fell silent, and keep the endpoint where it can be found."""
        looked_ms = now_ms()
        while True:
            await trio.sleep(PRUNE_EVERY)
            if len(self.term.registry):
                self._used_at = trio.current_time()
            before, looked_ms = looked_ms, now_ms()
            for member in self.requests.prune() if looked_ms - before < AWAY_MS else ():
                log.warning("%s has not been heard for more than 5 s; its thread stays its own", member.key)
                await self._clean_up(member)
            self.lease.check()
            if self._unstored:
                self.store_settings(self.settings)
            try:
                await self._stay_findable()
            except StateError as error:  # a full disk: those who are here need nothing of it
                log.warning("followers that come now may not find this leader: %s", error)

    async def follow_members(self) -> None:
        """When members come or go: wake what waits for them, close what led to them."""
        revision = 0
        while True:
            revision = await self.requests.wait_changed(revision)
            members = list(self.term.registry)
            self.term.keyboards.note_members(members)
            self.absences.note_members(member.key for member in members)
            self.term.links.keep_only(m.registration.bus_socket_path for m in members if m.registration.bus_socket_path)
            self.term.deliveries.wake(member.key for member in members)

    async def purge(self) -> None:
        """Once an hour: delete what has outlived its purpose."""
        await trio.sleep(PURGE_AFTER)
        while True:
            try:
                await self.term.store.purge(now_ms(), self.settings.keep)
                await self.term.keyboards.forget_gone()
            except StateError as error:  # a full disk, say: the next time does
                log.warning("what is out of date was not deleted: %s", error)
            await trio.sleep(PURGE_EVERY)

    async def watch_for_dead(self) -> None:
        """Where threads of the dead are cleaned up: find who died unnoticed."""
        await self.clean_ups.watch_for_dead(lambda key: self.absences.since(key) is not None)

    async def keep_spare(self) -> None:
        """As long as followers are here: have somebody ready who leads after us."""
        await keep_spare(self.lease.profile, self.settings, wanted=lambda: len(self.term.registry) > 0)

    async def _clean_up(self, member: Member) -> None:
        try:
            await self.clean_ups.fell_silent(member)
        except StateError as error:
            log.warning("the thread of %s stays: %s", member.key, error)

    async def _stay_findable(self) -> None:
        if self.endpoint.ensure_published():
            log.warning("%s had been removed; published it again", self.endpoint.public)
        record = read_leader(self.lease.profile)
        if record is None or record.instance != self.lease.instance:
            await self.lease.publish_record(self.endpoint.public, self.identity)
            log.warning("%s had been removed or changed; wrote it again", self.lease.profile.leader_json)
