"""What counts for Telegram's limits outlives the leader: a successor goes on where the dead one was."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.botapi.sender import Sender
from telegram_bus.core.errors import BusError
from telegram_bus.core.meters import DEFAULT_LIMITS
from telegram_bus.core.permissions import repeatable
from telegram_bus.roles.windows import Windows
from telegram_bus.store import Store
from telegram_bus.store.budget import KEPT_MS
from tests.botapi.test_sender import FakeTelegram, flood
from tests.fakes import InlineCommits, memory_store

GROUP, OTHER, PERSON = -100, -200, 7
START_MS = 1_800_000_000_000


def wall() -> int:
    """Milliseconds of a wall clock that goes with the virtual one."""
    return START_MS + round(trio.current_time() * 1000)


@asynccontextmanager
async def leading(
    telegram: FakeTelegram, earlier: InlineCommits | None = None, *, sure: bool = True, ahead_ms: int = 0
) -> AsyncIterator[tuple[Sender, Store, InlineCommits]]:
    """A leader's sender over a store in memory, which an earlier one may have left."""
    store, commits = memory_store(None if earlier is None else earlier.db)
    store.epoch = 1 if earlier is None else earlier.db.execute("SELECT max(epoch) FROM spent").fetchone()[0] or 1
    store.epoch += 1
    windows = Windows(store.spent, lambda: wall() + ahead_ms)
    sender = Sender(telegram, repeatable=repeatable, limits=DEFAULT_LIMITS, memory=windows, jitter=lambda: 0.0)
    await windows.recall(sender.budget, sure=sure)
    async with trio.open_nursery() as nursery:
        await nursery.start(sender.run)
        yield sender, store, commits
        nursery.cancel_scope.cancel("killed")


async def send(sender: Sender, chat: int, text: str = "x", owner: str = "") -> Any:
    try:
        return await sender.call("sendMessage", {"text": text}, chat, owner=owner, patient=True)
    except BusError as fault:
        return fault


async def test_scenario_53_a_successor_respects_the_pause_that_the_dead_leader_was_told(
    autojump_clock: MockClock,
) -> None:
    first = FakeTelegram([flood(30)], delay=0)
    async with trio.open_nursery() as nursery, leading(first) as (sender, _, commits):
        nursery.start_soon(send, sender, GROUP)
        await wait_all_tasks_blocked()
        refused_at = trio.current_time()
    await trio.sleep(10)
    second = FakeTelegram(delay=0)
    async with leading(second, commits) as (sender, _, commits):
        assert await send(sender, PERSON) == "x"
        assert trio.current_time() - refused_at == 10
        await send(sender, GROUP)
        assert trio.current_time() - refused_at == 30
    third = FakeTelegram(delay=0)
    async with leading(third, commits) as (sender, _, _):
        await send(sender, GROUP)
        assert trio.current_time() - refused_at == 30


async def test_what_the_dead_leader_sent_counts_until_a_window_after_its_answer(autojump_clock: MockClock) -> None:
    first = FakeTelegram(delay=0.5)
    async with leading(first) as (sender, _, commits):
        begun = trio.current_time()
        async with trio.open_nursery() as nursery:
            for number in range(18):
                nursery.start_soon(send, sender, GROUP, "x", str(number))
    await trio.sleep(10)
    second = FakeTelegram(delay=0)
    async with leading(second, commits) as (sender, _, _):
        await send(sender, OTHER)
        assert trio.current_time() == begun + 10.5
        await send(sender, GROUP)
        assert trio.current_time() == pytest.approx(begun + 60.5, abs=0.002)


async def test_what_progress_took_counts_as_progress_for_the_successor(autojump_clock: MockClock) -> None:
    """It is sure of three a minute where others fill the rest of its half."""

    async def edit(sender: Sender, number: int) -> Any:
        return await sender.call("editMessageText", {"message_id": number, "text": "x"}, GROUP, owner=str(number))

    async with leading(FakeTelegram(delay=0)) as (sender, _, commits):
        begun = trio.current_time()
        async with trio.open_nursery() as nursery:
            for number in range(3):
                nursery.start_soon(edit, sender, number)
        async with trio.open_nursery() as nursery:
            for number in range(10):
                nursery.start_soon(send, sender, GROUP, "x", str(number))
    await trio.sleep(45)
    async with leading(FakeTelegram(delay=0), commits) as (sender, _, _):
        await send(sender, GROUP)
        assert trio.current_time() == begun + 45
        await sender.call("editMessageText", {"message_id": 9, "text": "x"}, GROUP, owner="9")
        assert trio.current_time() == pytest.approx(begun + 60, abs=0.002)


async def test_what_was_under_way_may_have_arrived_until_the_successor_began(autojump_clock: MockClock) -> None:
    first = FakeTelegram(delay=1_000)
    async with trio.open_nursery() as nursery, leading(first) as (sender, _, commits):
        for number in range(18):
            nursery.start_soon(send, sender, GROUP, "x", str(number))
        await trio.sleep(20)
        commits.db.execute("UPDATE spent SET ended_ms = NULL")
        dead = commits.db.serialize()
    commits.db.deserialize(dead)
    await trio.sleep(5)
    begun = trio.current_time()
    async with leading(FakeTelegram(delay=0), commits) as (sender, _, _):
        await send(sender, GROUP)
        assert trio.current_time() == begun + 60


async def test_a_limit_that_proved_lower_stays_so(autojump_clock: MockClock) -> None:
    async with leading(FakeTelegram([flood(3)], delay=0)) as (sender, _, commits):
        await send(sender, GROUP)
        assert sender.budget.levels == {GROUP: (10, 1.0)}
    async with leading(FakeTelegram(delay=0), commits) as (sender, _, _):
        assert sender.budget.levels == {GROUP: (10, 1.0)}


async def test_a_first_leader_has_nothing_to_wait_for(autojump_clock: MockClock) -> None:
    async with leading(FakeTelegram(delay=0)) as (sender, _, _):
        begun = trio.current_time()
        await send(sender, GROUP)
        assert trio.current_time() == begun


async def test_who_does_not_know_what_was_sent_waits(autojump_clock: MockClock) -> None:
    """A damaged store was set aside, or an older version sent messages and did not note them here."""
    async with leading(FakeTelegram(delay=0), sure=False) as (sender, store, commits):
        begun = trio.current_time()
        await send(sender, GROUP)
        assert trio.current_time() - begun == 60
        await store.record_messages("a", [(GROUP, 1, None)], wall())
    commits.db.execute("DELETE FROM holds")
    commits.db.execute("DELETE FROM spent")
    begun = trio.current_time()
    async with leading(FakeTelegram(delay=0), commits) as (sender, _, commits):
        await send(sender, GROUP)
        assert trio.current_time() - begun == 60


async def test_a_clock_that_was_set_back_makes_nobody_wait_for_more_than_a_window(autojump_clock: MockClock) -> None:
    async with leading(FakeTelegram(delay=0)) as (sender, _, commits), trio.open_nursery() as nursery:
        for number in range(18):
            nursery.start_soon(send, sender, GROUP, "x", str(number))
    begun = trio.current_time()
    async with leading(FakeTelegram(delay=0), commits, ahead_ms=-3_600_000) as (sender, _, _):
        await send(sender, GROUP)
        assert trio.current_time() - begun == 60


async def test_what_does_not_count_any_more_is_deleted(autojump_clock: MockClock) -> None:
    async with leading(FakeTelegram(delay=0)) as (sender, store, commits):
        await send(sender, GROUP)
        await trio.sleep(1)
        assert commits.db.execute("SELECT count(*) FROM spent").fetchone() == (1,)
        await store.purge(wall() + KEPT_MS)
        assert commits.db.execute("SELECT count(*) FROM spent").fetchone() == (0,)


async def test_a_disk_that_fails_holds_up_no_edit(autojump_clock: MockClock) -> None:
    async with leading(FakeTelegram(delay=0)) as (sender, _, commits):
        commits.hold()
        begun = trio.current_time()
        assert await sender.call("editMessageText", {"text": "a", "message_id": 1}, GROUP) == "a"
        assert trio.current_time() - begun < 1
        await commits.release()
