"""Being the leader: two locks held for life, a lease that is renewed, and a scope that ends when they are lost."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio

from telegram_bus.core.errors import BusError, LeadershipLost
from telegram_bus.home import Profile
from telegram_bus.locks import FileLock
from telegram_bus.roles.holder import DEFAULT_TIMES, Times
from telegram_bus.roles.lease import Lease
from telegram_bus.roles.locking import How, NotNeeded, Report, Standby, close_locks, take_locks
from telegram_bus.roles.settings import Settings

__all__ = ["hold_leadership"]

log = logging.getLogger(__name__)


@asynccontextmanager
async def hold_leadership(
    profile: Profile,
    settings: Settings,
    *,
    standby: bool | Standby = False,
    replace: bool = False,
    report: Report = log.info,
    times: Times = DEFAULT_TIMES,
    stop: trio.Event | None = None,
) -> AsyncIterator[Lease]:
    """Lead while the block runs. With `standby` wait for the locks as long as it takes, with `replace` ask the leader
    that runs to end first, else refuse where one leads.

    `report` gets lines for a person while this waits. A standby raises NotNeeded when it is of no use any more, as
    whoever waits does when `stop` is set. Raises LeadershipLost where another leads, and when the locks are lost (the
    block is cancelled then); StateError where the directories or locks cannot be had.
    """
    profile.ensure()
    how: How = "replace" if replace else "wait" if standby else "try"
    waiting = standby if isinstance(standby, Standby) else Standby()
    locks = await _unless_told(stop, lambda: take_locks(profile, settings, how, report, times, waiting))
    instance = f"leader:{os.getpid()}:{time.time_ns() // 1_000_000}:{os.urandom(4).hex()}"
    lease = Lease(profile, instance, time.time(), locks=locks)
    failure: Exception | None = None
    try:
        async with trio.open_nursery() as nursery:
            lease._scope = nursery.cancel_scope  # noqa: SLF001
            lease.renew()
            nursery.start_soon(_keep_renewing, lease, times.renew_every)
            try:
                yield lease
            except Exception as error:  # noqa: BLE001 - raised again below, out of the nursery's group
                failure = error
            nursery.cancel_scope.cancel("the term is over")
    finally:
        close_locks(locks)
    if lease.lost is not None:
        raise LeadershipLost(lease.lost) from failure
    if failure is not None:
        raise failure


async def _keep_renewing(lease: Lease, every: float) -> None:
    while True:
        await trio.sleep(every)
        try:
            lease.renew()
        except LeadershipLost:
            return  # the scope is cancelled, and hold_leadership raises it


async def _unless_told(
    stop: trio.Event | None, take: Callable[[], Awaitable[tuple[FileLock, ...]]]
) -> tuple[FileLock, ...]:
    """What `take` returns or raises; NotNeeded where `stop` was set before that."""
    if stop is None:
        return await take()
    taken: tuple[FileLock, ...] | BusError = NotNeeded("it was told to stop")
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_when, stop, nursery.cancel_scope)
            try:
                taken = await take()
            except BusError as fault:
                taken = fault  # raised below, out of the nursery's group
            nursery.cancel_scope.cancel("the wait is over")
    except BaseException:
        if isinstance(taken, tuple):
            close_locks(taken)
        raise
    if isinstance(taken, BusError):
        raise taken
    return taken


async def _cancel_when(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel("it was told to stop")
