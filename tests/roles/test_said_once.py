"""What is set aside is said once, also where the leader that set it aside died before it could say so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from trio.testing import MockClock

from telegram_bus.roles.absences import SAID_WITHIN_MS
from telegram_bus.roles.deliveries import REFUSALS
from telegram_bus.roles.notices import once_by
from tests.fakes import message
from tests.roles.term_rig import Rig, running


@asynccontextmanager
async def leading(rig: Rig, *, mute: bool = False) -> AsyncIterator[Rig]:
    """With the outbox, through which goes what is said once; one that is `mute` dies before it says anything."""
    calls = rig.term.calls
    rig.notices.named = once_by(calls.outbox)
    async with running(rig), trio.open_nursery() as nursery:
        await nursery.start(calls.sender.run)
        await nursery.start(calls.outbox.run)
        if mute:
            rig.notices._channel = trio.open_memory_channel(0)
        yield rig
        nursery.cancel_scope.cancel("the leader is gone")


def told(rig: Rig, what: str) -> list[str]:
    return [text for text in rig.said if what in text]


async def test_a_refused_update_is_said_by_the_next_leader_and_only_by_that(autojump_clock: MockClock) -> None:
    rig = Rig()
    rig.broken = "nora"
    async with leading(rig, mute=True):
        await rig.agent("nora", 11)
        await rig.take(message(1))
        await trio.sleep(REFUSALS * 10)
        assert rig.rows() == [(1, "nora", "rejected")]
    for _ in range(3):
        rig = Rig(telegram=rig.telegram, earlier=rig.commits)
        async with leading(rig):
            await trio.sleep(10)
        assert len(told(rig, "was set aside")) == 1
    [said] = rig.telegram.made("sendMessage")
    assert said["message_thread_id"] == 11
    assert said["reply_parameters"]["message_id"] == 1001


async def test_what_expired_is_said_once_with_its_number(autojump_clock: MockClock) -> None:
    rig = Rig(expire=100.0)
    async with leading(rig, mute=True):
        await rig.agent("nora", 11, here=False)
        await rig.take(message(1), message(2))
        rig.commits.db.execute("UPDATE updates SET admitted_ms = 1")  # by the clock of the rig
        await trio.sleep(200)
        assert [row[2] for row in rig.rows()] == ["expired", "expired"]
    for _ in range(2):
        rig = Rig(telegram=rig.telegram, earlier=rig.commits, expire=100.0)
        async with leading(rig):
            await trio.sleep(10)
        assert len(told(rig, "2 messages for nora expired")) == 1


async def test_what_is_retried_and_refused_again_is_said_again(autojump_clock: MockClock) -> None:
    rig = Rig()
    rig.broken = "nora"
    numbers = iter(range(1_000, 10_000))
    rig.term.deliveries.now_ms = lambda: next(numbers)
    async with leading(rig):
        await rig.agent("nora", 11)
        await rig.take(message(1))
        await trio.sleep(REFUSALS * 10)
        assert await rig.term.deliveries.retry(1)
        await trio.sleep(REFUSALS * 10)
    assert len(told(rig, "was set aside")) == 2


async def test_what_was_set_aside_long_ago_is_not_said(autojump_clock: MockClock) -> None:
    rig = Rig()
    rig.broken = "nora"
    async with leading(rig, mute=True):
        await rig.agent("nora", 11)
        await rig.take(message(1))
        await trio.sleep(REFUSALS * 10)
    rig = Rig(telegram=rig.telegram, earlier=rig.commits)
    rig.absences.now_ms = lambda: SAID_WITHIN_MS + 2
    async with leading(rig):
        await trio.sleep(10)
    assert told(rig, "was set aside") == []
