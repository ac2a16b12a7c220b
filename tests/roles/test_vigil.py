"""A leader that leaves heartbeats unanswered: the follower lives on, and a frozen one is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import trio

from telegram_bus import host
from telegram_bus.core.envelopes import Heartbeat, Register
from telegram_bus.core.identity import ours
from telegram_bus.home import Profile
from telegram_bus.locks import FileLock
from telegram_bus.roles.holder import Times, answering_leader
from telegram_bus.roles.member import Member
from telegram_bus.roles.record import LeaderRecord
from telegram_bus.roles.seat import hold_seat
from telegram_bus.roles.settings import load_settings, store_settings
from telegram_bus.roles.vigil import watch_silent_leader
from tests.fakes import FakeLeader, memory_inbox

STAND_IN = Path(__file__).with_name("stand_in_leader.py")
PROJECT = Path(__file__).parents[2]
QUICK = Times(lease=0.6, look_every=0.05, probe=0.3, farewell=0.5)


@pytest.fixture
def stand_in(bus_profile: Profile) -> Iterator[subprocess.Popen[bytes]]:
    """A leader in a process of its own, which renews its lease."""
    store_settings(bus_profile, load_settings(bus_profile, {"chat": "12"}, {"TELEGRAM_BOT_TOKEN": "123:abcdefgh"}))
    environ = os.environ | {"TELEGRAM_BUS_HOME": str(bus_profile.home.root), "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, str(STAND_IN), "lead", "--profile", bus_profile.name]
    with subprocess.Popen(command, env=environ) as process:
        yield process
        process.kill()


async def wait_leading(profile: Profile) -> LeaderRecord:
    with trio.fail_after(30):
        while (record := await answering_leader(profile, 5.0)) is None:  # noqa: ASYNC110 - another process
            await trio.sleep(0.01)
    return record


async def watch_till_dead(profile: Profile, record: LeaderRecord) -> None:
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(watch_silent_leader, profile, may_start=True, report=print, times=QUICK))
            while host.process_state(record.pid, record.holder.birth) != "dead":  # noqa: ASYNC110 - another process
                await trio.sleep(0.01)
            nursery.cancel_scope.cancel("it is dead")


async def test_a_frozen_leader_is_ended_and_the_start_lock_freed(
    bus_profile: Profile, stand_in: subprocess.Popen[bytes]
) -> None:
    record = await wait_leading(bus_profile)
    os.kill(stand_in.pid, signal.SIGSTOP)
    await watch_till_dead(bus_profile, record)
    lock = FileLock.try_lock(bus_profile.start_lock)
    assert lock is not None
    lock.close()


async def test_a_follower_outlives_a_leader_that_dies_with_a_heartbeat_unanswered(bus_profile: Profile) -> None:
    inbox, _ = memory_inbox()
    with hold_seat(bus_profile, "nora") as seat:
        async with trio.open_nursery() as nursery:
            leader = FakeLeader(bus_profile, nursery, replies={"follower.heartbeat": lambda _: None})
            await leader.start()
            member = Member(profile=bus_profile, seat=seat, inbox=inbox, identity=ours("1"), start_leader=False)
            await nursery.start(member.run)
            with trio.fail_after(30):
                await leader.wait_got(Heartbeat)
                await leader.stop()
                leader.replies.clear()
                await leader.start()
                await leader.wait_got(Register, 2)
                await member.state.wait_for(lambda state: state.phase == "serving")
            nursery.cancel_scope.cancel("the test is over")
