"""The two locks of a leader: had at once, waited for, or taken over from one that ends or is frozen."""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Literal

import trio
from attrs import frozen

from telegram_bus.core.election import CannotTell, Frozen, Healthy, Judgement
from telegram_bus.core.errors import BusError, LeadershipLost, SettingsError, StateError
from telegram_bus.core.extensions import OperatorStop
from telegram_bus.home import Home, Profile, ensure_private_directory, read_secret, user_locks_dir
from telegram_bus.locks import FileLock
from telegram_bus.roles.bell import Bell
from telegram_bus.roles.holder import POLL, Times, answering_leader, describe, wait_ended, watch_holder
from telegram_bus.roles.record import ENDED, LeaderRecord, read_leader
from telegram_bus.roles.settings import Settings
from telegram_bus.wire.client import request_once

__all__ = ["How", "NotNeeded", "Report", "Standby", "bot_lock_path", "close_locks", "take_locks"]

log = logging.getLogger(__name__)

STANDBY_POLL: Final = POLL if not hasattr(os, "pidfd_open") else 1.0
"""Seconds between two tries of whoever waits for days; where a process can be waited for, its end rings at once."""

RING_ANEW: Final = 1.0
"""Seconds after which another look is taken at who holds the locks."""

Report = Callable[[str], None]


class NotNeeded(LeadershipLost):
    """Whoever waited for the locks shall not lead: a spare that is of no use, one that was told to end."""


How = Literal["try", "wait", "replace"]

Relevant = Callable[[], str | None]
"""Why nobody needs whoever waits for the locks any more; None: go on waiting."""


@frozen
class Standby:
    """How somebody stands by: the `bell` hangs meanwhile, and `lost` says when nobody needs it any more."""

    bell: Bell | None = None
    lost: Relevant = lambda: None


_Beside = Callable[[Profile], Awaitable[None]]
"""What runs while somebody waits for the locks that the leader of this profile holds."""


def bot_lock_path(settings: Settings) -> Path:
    """The lock that all homes and profiles of this user share for one bot at one Bot API server."""
    server = hashlib.sha256(settings.api_root.encode()).hexdigest()[:8]
    return user_locks_dir() / f"{settings.bot_id}-{server}.lock"


async def take_locks(
    profile: Profile, settings: Settings, how: How, report: Report, times: Times, standby: Standby
) -> tuple[FileLock, ...]:
    held = _try_locks(profile, settings)
    if isinstance(held, Profile):
        if how == "replace":
            held = await _replace(profile, settings, held, report, times)
        elif how == "wait":
            report(f"standing by; the bot is held by {describe(held)}")
            held = await _stand_by(profile, settings, held, report, times, standby)
        elif await answering_leader(held, times.probe) is None:
            # it starts, ends, or is frozen: all of which show soon
            with trio.move_on_after(times.lease + times.probe + times.farewell + times.patience) as limit:
                refused = partial(_cancel_when_answered, limit, times)
                held = await _wait_for_locks(profile, settings, held, report, times, beside=refused)
    if isinstance(held, Profile):
        if await answering_leader(held, times.probe) is None:
            path = _held_lock(profile, settings)
            raise LeadershipLost(
                f"the bot is held by {describe(held)}, which does not answer as a leader does: "
                f"whoever holds the lock {path} has to end (who that is says: lsof {path})"
            )
        there = "telegram-bus" if held.directory == profile.directory else f"telegram-bus {_options(held)}"
        raise LeadershipLost(
            f"the bot is held by {describe(held)}: end that leader with {there} stop, take its place with "
            "telegram-bus leader --replace, or wait with --standby"
        )
    return held


def _options(profile: Profile) -> str:
    """What leads a command to a profile that may be somewhere else."""
    import shlex  # noqa: PLC0415 - needed for this message only

    return shlex.join(["--home", str(profile.home.root), "--profile", profile.name])


async def _stand_by(
    profile: Profile, settings: Settings, holder: Profile, report: Report, times: Times, standby: Standby
) -> tuple[FileLock, ...]:
    """Wait for the locks, and let it be known that somebody waits; several may."""
    locks: tuple[FileLock, ...] | str | StateError = "it was not needed"
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_hold_standby_lock, profile, standby.bell)

            async def wait() -> None:
                nonlocal locks
                try:
                    locks = await _wait_for_locks(profile, settings, holder, report, times, every=STANDBY_POLL)
                except StateError as error:
                    locks = error
                nursery.cancel_scope.cancel("the wait is over")

            nursery.start_soon(wait)
            while (reason := standby.lost()) is None:  # noqa: ASYNC110 - other processes make it so
                await trio.sleep(RING_ANEW)
            locks = reason if isinstance(locks, str) else locks
            nursery.cancel_scope.cancel(reason)
    except BaseException:
        if isinstance(locks, tuple):
            close_locks(locks)
        raise
    if isinstance(locks, str):
        raise NotNeeded(locks)
    if isinstance(locks, StateError):
        raise locks
    return locks


async def _hold_standby_lock(profile: Profile, bell: Bell | None) -> None:
    while True:
        with suppress(StateError):
            lock = FileLock.try_lock(profile.standby_lock)
            if lock is not None:
                with lock:
                    while lock.is_intact():
                        if bell is not None:
                            with suppress(StateError):
                                bell.hang()
                        await trio.sleep(RING_ANEW)
        await trio.sleep(RING_ANEW)


def _held_lock(profile: Profile, settings: Settings) -> Path:
    """Which of the two locks is another's."""
    own = FileLock.try_lock(profile.leader_lock)
    if own is None:
        return profile.leader_lock
    own.close()
    return bot_lock_path(settings)


async def _replace(
    profile: Profile, settings: Settings, holder: Profile, report: Report, times: Times
) -> tuple[FileLock, ...] | Profile:
    """Ask the leader that runs to end, and take its locks; one that is frozen is ended. The holder if it stays."""
    report(f"asking the leader to end: {describe(holder)}")
    started = FileLock.try_lock(holder.start_lock)  # so that no follower starts one in between
    if started is not None:
        with suppress(OSError):
            started.touch()  # as every starter does: who finds it old takes its holder for suspended
    try:
        with trio.move_on_after(times.lease + times.probe + times.farewell + times.patience):
            return await _wait_for_locks(profile, settings, holder, report, times, beside=partial(_ask_each, times))
    finally:
        if started is not None:
            started.close()
    return holder


async def _ask_each(times: Times, holder: Profile) -> None:
    """Ask whoever leads the profile to end: behind one that died instead comes its spare, which has to go as well."""
    asked: str | None = None
    while True:
        record = read_leader(holder)
        if record is not None and record.instance != asked and record.state != ENDED:
            asked = record.instance
            with trio.move_on_after(times.probe):
                await _ask_to_end(holder, record)
        await trio.sleep(times.look_every)


async def _ask_to_end(holder: Profile, record: LeaderRecord) -> None:
    try:
        secret = read_secret(holder.operator_secret)
        ack = await request_once(record.endpoint, OperatorStop(request_id=f"replace:{os.getpid()}", auth=secret))
    except BusError as error:
        log.warning("the leader, process %d, could not be asked: %s", record.pid, error)
        return
    if not ack.ok:
        log.warning("the leader, process %d, refused to end: %s", record.pid, ack.message)


async def _wait_for_locks(
    profile: Profile,
    settings: Settings,
    holder: Profile,
    report: Report,
    times: Times,
    *,
    beside: _Beside | None = None,
    every: float = POLL,
) -> tuple[FileLock, ...]:
    """Try the locks every 25 ms (or `every` s), and when their holder ends, while watching whoever holds them.

    `beside` runs meanwhile, anew for each profile that is found to hold them.
    """
    while True:
        held: tuple[FileLock, ...] | Profile | StateError = holder
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_watch, holder, report, times)
                if beside is not None:
                    nursery.start_soon(beside, holder)
                ring, bell = trio.open_memory_channel[None](1)
                nursery.start_soon(_ring_when_it_ends, holder, ring)
                while isinstance(held, Profile) and held.directory == holder.directory:
                    with trio.move_on_after(every):
                        await bell.receive()
                    try:
                        held = _try_locks(profile, settings)
                    except StateError as error:
                        held = error  # raised below, out of the nursery's group
                nursery.cancel_scope.cancel("the locks were had, or another holds them")
        except BaseException:
            if isinstance(held, tuple):
                close_locks(held)
            raise
        match held:
            case Profile():
                holder = held
            case StateError():
                raise held
            case _:
                return held


async def _ring_when_it_ends(holder: Profile, ring: trio.MemorySendChannel[None]) -> None:
    """Waiting for the process itself is faster than any rhythm, and nobody else has begun to start a leader by then."""
    while True:
        with trio.move_on_after(RING_ANEW):
            await wait_ended(holder)
            while True:  # more than once: somebody may just have tried whether the lock is free
                with suppress(trio.WouldBlock):
                    ring.send_nowait(None)
                await trio.sleep(POLL)


def _try_locks(profile: Profile, settings: Settings) -> tuple[FileLock, ...] | Profile:
    """Both locks without waiting, or the profile whose leader holds one of them."""
    path = bot_lock_path(settings)  # the first time takes 5 ms of imports, which nobody shall wait for with a lock
    own = FileLock.try_lock(profile.leader_lock)
    if own is None:
        return profile
    try:
        _ensure_locks_dir(path.parent)
        shared = FileLock.try_lock(path)
        if shared is not None:
            with suppress(OSError):  # a full disk: whoever waits then knows less
                shared.write_note(f"{profile.home.root}\n{profile.name}\n")
            return own, shared
    except BaseException:
        own.close()
        raise
    own.close()
    return _profile_in(path) or profile


def _ensure_locks_dir(directory: Path) -> None:
    try:
        ensure_private_directory(directory.parent)
        ensure_private_directory(directory)
    except StateError as error:
        raise StateError(
            f"{error}\nthe locks that keep one bot from two leaders lie in the user's state directory: "
            "XDG_STATE_HOME names another one"
        ) from error


def _profile_in(path: Path) -> Profile | None:
    try:
        root, name = path.read_text(errors="surrogateescape").splitlines()
        return Home(root).profile(name)
    except (OSError, ValueError, SettingsError):
        return None  # the holder has not written it yet


async def _watch(holder: Profile, report: Report, times: Times) -> None:
    said: str | None = None

    def judge(judgement: Judgement, _: LeaderRecord | None) -> None:
        nonlocal said
        words = _in_words(judgement, holder)
        if words is not None and words != said:
            report(words)
            said = words

    await watch_holder(holder, judge, times=times)


def _in_words(judgement: Judgement, holder: Profile) -> str | None:
    match judgement:
        case Healthy():
            return f"a leader holds the bot: {describe(holder)}"
        case Frozen():
            return f"the leader was frozen and is being ended: {describe(holder)}"
        case CannotTell(reason):
            who = describe(holder, living=True)
            return f"the leader does not renew its lease, but {reason}; end it by hand: {who}"
    return None


async def _cancel_when_answered(scope: trio.CancelScope, times: Times, holder: Profile) -> None:
    while await answering_leader(holder, times.probe) is None:  # noqa: ASYNC110 - another process
        await trio.sleep(times.look_every)
    scope.cancel("a leader answers")


def close_locks(locks: tuple[FileLock, ...]) -> None:
    for lock in reversed(locks):
        lock.close()
