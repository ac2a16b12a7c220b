"""The watch over a process that holds a leader's lock: does it answer, is it frozen, and if so, its end."""

from __future__ import annotations

import json
import logging
import os
import signal
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Final

import trio
from attrs import evolve, frozen

from telegram_bus import host
from telegram_bus.core.election import (
    LEASE,
    RENEW_EVERY,
    CannotTell,
    Frozen,
    Healthy,
    Holder,
    Judgement,
    Observation,
    Probe,
    ProbeResult,
    Watch,
    judge_identity,
)
from telegram_bus.home import Profile
from telegram_bus.roles.record import LeaderRecord, read_leader

__all__ = [
    "DEFAULT_TIMES",
    "Times",
    "answering_leader",
    "describe",
    "probe",
    "this_process",
    "wait_ended",
    "watch_holder",
]

log = logging.getLogger(__name__)

POLL: Final = 0.025
"""Seconds between two looks at what frees itself at once: a lock, a process that was told to end."""


@frozen(kw_only=True)
class Times:
    """Seconds of the rules in "Leadership"; tests with processes of their own shorten them."""

    renew_every: float = RENEW_EVERY
    lease: float = LEASE
    look_every: float = 0.5
    probe: float = 2.0
    farewell: float = 3.0
    patience: float = 10.0
    """How long a leader may take from its start to its first answer; a cold start of twenty takes 5.5 s of CPU."""


DEFAULT_TIMES: Final = Times()


def this_process() -> Holder:
    """What a lease of ours says about us."""
    pid = os.getpid()
    return Holder(
        pid=pid,
        birth=host.process_birth_id(pid),
        boot_id=host.boot_id(),
        pid_namespace=host.pid_namespace(),
        uid=os.getuid(),
    )


def describe(profile: Profile, *, living: bool = False) -> str:
    """Who leads the profile according to its lease, for a person; with `living`, nobody who has ended."""
    record = read_leader(profile)
    if living and record is not None and host.process_state(record.pid, record.holder.birth) == "dead":
        record = None
    who = f"process {record.pid}" if record else "a process that has not said who it is"
    return f"{who}, profile {profile.name} in {profile.home.root}"


async def answering_leader(profile: Profile, seconds: float = DEFAULT_TIMES.probe) -> LeaderRecord | None:
    """The leader of the profile if one answers a request on a fresh connection within `seconds`."""
    record = read_leader(profile)
    while record is not None and await probe(record.endpoint, seconds) == "answered":
        current = read_leader(profile)
        if current is not None and current.instance == record.instance:
            return record
        record = current  # a successor took over meanwhile, at the same endpoint
    return None


async def probe(endpoint: str, seconds: float) -> ProbeResult:
    """Whether anything answers there; a refusal is an answer too, so no secret is sent."""
    request = json.dumps({"kind": "x.status.get", "requestId": f"probe-{os.urandom(4).hex()}"}).encode() + b"\n"
    with trio.move_on_after(seconds):
        while True:
            try:
                stream = await trio.open_unix_socket(endpoint)
            except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError, ValueError):
                return "unreachable"  # ValueError: a path that no socket can have
            except OSError as error:
                if error.errno is None:
                    return "unreachable"  # a path that is too long for a socket
                # a full queue of connections looks like this, and a frozen leader has one
                await trio.sleep(POLL * 2)
                continue
            async with stream:
                try:
                    await stream.send_all(request)
                    return "answered" if await stream.receive_some(1) else "unreachable"
                except trio.BrokenResourceError:
                    return "unreachable"  # as where it just closed: no line of ours is worth that, so it is going away
    return "unanswered"


async def wait_ended(profile: Profile) -> None:
    """Return at the moment at which the holder's process ends; where the system cannot tell, wait for ever."""
    record = read_leader(profile)
    try:
        descriptor = os.pidfd_open(record.pid) if record is not None and hasattr(os, "pidfd_open") else -1
    except (OSError, OverflowError):  # it has ended before, or is none of our namespace
        descriptor = -1
    if descriptor < 0:
        await trio.sleep_forever()
    try:
        await trio.lowlevel.wait_readable(descriptor)
    finally:
        os.close(descriptor)


async def watch_holder(
    profile: Profile,
    report: Callable[[Judgement, LeaderRecord | None], None],
    *,
    may_end: Callable[[], bool] = lambda: True,
    times: Times = DEFAULT_TIMES,
) -> None:
    """Watch who holds the profile's lock until cancelled, and end it when it is frozen and `may_end()`.

    `report` gets each judgement and the lease it is about.
    """
    last = trio.current_time()
    watch = Watch(since=last, lease=times.lease)
    while True:
        await trio.sleep(times.look_every)
        now = trio.current_time()
        record = read_leader(profile)
        seen = Observation(now=now, renewal=_renewal(profile, record), lateness=now - last - times.look_every)
        watch, judgement = watch.observe(seen)
        if isinstance(judgement, Probe):
            watch, judgement = await _look_closely(profile, watch, may_end, times)
        report(judgement, record)
        last = trio.current_time()


def _renewal(profile: Profile, record: LeaderRecord | None) -> tuple[str | None, int | None]:
    try:
        renewed = profile.leader_lock.stat().st_mtime_ns
    except OSError:
        renewed = None
    return (record.instance if record else None, renewed)


async def _look_closely(
    profile: Profile, watch: Watch, may_end: Callable[[], bool], times: Times
) -> tuple[Watch, Judgement]:
    """Ask the silent holder, look at who it is, and end it where nothing speaks for it."""
    record = read_leader(profile)
    pid = host.lock_holder(profile.leader_lock)
    if pid is not None and (record is None or record.pid != pid):
        return await _look_at_unnamed(profile, watch, pid, may_end, times)
    if record is None:
        return watch, CannotTell("it has not said who it is")
    try:
        handle = host.open_process(record.pid)
    except ProcessLookupError:
        return watch, CannotTell(
            f"process {record.pid}, which led before, is gone, and the one after it has not said who it is "
            f"(lsof {profile.leader_lock} does)"
        )
    except (OSError, OverflowError) as error:
        return watch, CannotTell(f"pid {record.pid} cannot be looked at ({error})")
    with closing(handle):
        began = trio.current_time()
        result = await probe(record.endpoint, times.probe)
        now = trio.current_time()
        seen = Observation(
            now=now,
            renewal=_renewal(profile, read_leader(profile)),
            lateness=now - began - times.probe,
            probe=result,
            strange=_strange(record),
        )
        watch, judgement = watch.observe(seen)
        if isinstance(judgement, Frozen) and may_end():
            log.warning("the leader, process %d, is frozen; ending it", record.pid)
            await _end(handle, record.holder.birth, times)
    return watch, judgement


async def _look_at_unnamed(
    profile: Profile, watch: Watch, pid: int, may_end: Callable[[], bool], times: Times
) -> tuple[Watch, Judgement]:
    """A silent holder that has not said who it is, but the kernel does: there is no socket of it to ask.

    It froze between its locks and its record. So nothing less than being stopped proves that it does not just take
    long over its start.
    """
    watch = evolve(watch, since=trio.current_time())
    try:
        handle = host.open_process(pid)
    except OSError as error:
        return watch, CannotTell(f"process {pid}, which holds its lock, cannot be looked at ({error})")
    with closing(handle):
        birth = host.process_birth_id(pid)
        if pid == os.getpid():
            return watch, CannotTell("it is this very process")
        if (uid := host.process_uid(pid)) != os.getuid():
            return watch, CannotTell(f"process {pid}, which holds its lock, belongs to user {uid}")
        if not host.is_stopped(pid):
            return watch, CannotTell(f"process {pid}, which holds its lock, has not said yet that it leads, and runs")
        if host.lock_holder(profile.leader_lock) != pid:
            return watch, Healthy()
        if may_end():
            log.warning("process %d holds the lock of the leader and is frozen; ending it", pid)
            await _end(handle, birth, times)
    return watch, Frozen()


def _strange(record: LeaderRecord) -> str | None:
    """Asked while a handle on the process is open, so that the answer is about what would be signalled."""
    ours = this_process()
    birth, uid = host.process_birth_id(record.pid), host.process_uid(record.pid)
    found = None
    if birth is not None and uid is not None:
        found = Holder(pid=record.pid, birth=birth, boot_id=ours.boot_id, pid_namespace=ours.pid_namespace, uid=uid)
    return judge_identity(record.holder, found, ours)


async def _end(handle: host.ProcessHandle, birth: str | None, times: Times) -> None:
    with suppress(ProcessLookupError):
        handle.signal(signal.SIGTERM)
        handle.signal(signal.SIGCONT)  # a stopped process does not hear the first one
        with trio.move_on_after(times.farewell):
            while host.process_state(handle.pid, birth) != "dead":  # noqa: ASYNC110 - another process
                await trio.sleep(POLL)
            return
        handle.signal(signal.SIGKILL)
