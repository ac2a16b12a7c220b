"""Owners that are away: people are told once, what waited is announced at the return, and expires in the end."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.core.errors import NotSent
from telegram_bus.roles.absences import EXPIRY_EVERY, GRACE, RETURN
from telegram_bus.roles.notices import PAUSE
from tests.fakes import admit, message
from tests.roles.term_rig import Rig, running


@pytest.fixture
async def rig(mock_clock: MockClock) -> AsyncIterator[Rig]:
    async with running(Rig()) as rig:
        yield rig


def come(rig: Rig, key: str, thread: int) -> None:
    """As the leader does it when the registry has changed."""
    admit(rig.term.registry, key, thread=thread)
    rig.absences.note_members([key])
    rig.term.deliveries.wake([key])


async def leave(rig: Rig, key: str) -> None:
    member = rig.term.registry.by_key(key)
    assert member is not None
    rig.term.registry.remove(member)
    rig.absences.note_members([])
    await wait_all_tasks_blocked()


async def later(clock: MockClock, seconds: float) -> None:
    await wait_all_tasks_blocked()
    clock.jump(seconds)
    await wait_all_tasks_blocked()


async def test_people_are_told_once_that_something_is_kept_and_when_it_is_delivered(
    rig: Rig, mock_clock: MockClock
) -> None:
    await rig.agent("builder", 11, here=False)
    come(rig, "builder", 11)
    await leave(rig, "builder")
    await rig.take(message(1))
    await later(mock_clock, GRACE)
    await rig.take(message(2))
    await later(mock_clock, GRACE)
    assert len(rig.said) == 1
    assert rig.said[0].startswith("Kept for builder, away since 0")
    assert rig.telegram.made("sendMessage")[0]["message_thread_id"] == 11
    come(rig, "builder", 11)
    await wait_all_tasks_blocked()
    [said] = rig.said[1:]
    assert said.startswith("builder is back and gets 2 kept messages, the oldest ")
    assert rig.got == [("builder", 1), ("builder", 2)]
    await leave(rig, "builder")
    await rig.take(message(3))
    await later(mock_clock, GRACE)
    assert len(rig.said) == 3  # another absence


async def test_a_restart_of_an_agent_is_nothing_to_talk_about(rig: Rig, mock_clock: MockClock) -> None:
    await rig.agent("builder", 11, here=False)
    come(rig, "builder", 11)
    await leave(rig, "builder")
    await rig.take(message(1))
    await later(mock_clock, GRACE / 2)
    come(rig, "builder", 11)
    await later(mock_clock, GRACE)
    assert rig.said == []
    assert rig.got == [("builder", 1)]


async def test_who_dies_with_an_update_unacknowledged_is_away_too(rig: Rig, mock_clock: MockClock) -> None:
    await rig.agent("builder", 11, here=False)
    come(rig, "builder", 11)
    rig.down = True
    await rig.take(message(1))
    await leave(rig, "builder")  # it was counted as here when the update came
    await later(mock_clock, GRACE)
    assert len(rig.said) == 1


async def test_who_was_served_by_the_leader_before_has_its_time_to_return_however_slow_the_failover(
    mock_clock: MockClock,
) -> None:
    async with running(Rig()) as first:
        for key, thread in (("builder", 11), ("tester", 12), ("gone", 13)):
            await first.agent(key, thread)
        first.down = True
        await first.take(message(1, thread=11), message(2, thread=12), message(3, thread=13))
    second = Rig(earlier=first.commits)
    async with running(second, opened=False):
        await later(mock_clock, 60)  # a slow disk, say: nobody can have found it
        assert second.said == []
        second.absences.note_open()
        await later(mock_clock, RETURN - 1)
        come(second, "builder", 11)
        await later(mock_clock, GRACE - 1)  # the others may be on their way, since one has just come
        second.absences.note_members(["builder", "tester"])
        admit(second.term.registry, "tester", thread=12)
        second.term.deliveries.wake(["tester"])
        await later(mock_clock, GRACE)
        assert second.said == ["Kept for gone, away; it gets this when it is back."]
        assert sorted(second.got) == [("builder", 1), ("tester", 2)]


async def test_the_next_leader_does_not_say_it_again(mock_clock: MockClock) -> None:
    async with running(Rig()) as first:
        await first.agent("builder", 11, here=False)
        await first.take(message(1))
        await later(mock_clock, RETURN)
        assert first.said == ["Kept for builder, away; it gets this when it is back."]
    async with running(Rig(earlier=first.commits)) as second:
        await later(mock_clock, GRACE)
        await second.take(message(2))
        await later(mock_clock, GRACE)
        assert second.said == []
        come(second, "builder", 11)
        await wait_all_tasks_blocked()
        [said] = second.said
        assert said.startswith("builder is back and gets 2 kept messages, the oldest ")


async def test_what_people_are_told_of_an_agent_whose_thread_was_deleted_stands_in_the_main_chat(
    rig: Rig, mock_clock: MockClock
) -> None:
    """Into the thread nothing would get."""
    await rig.agent("builder", 11, here=False)
    await rig.term.threads.note(rig.term.threads.book.parked(11, 1))
    await rig.take(message(1))
    await later(mock_clock, RETURN)
    [told] = rig.telegram.made("sendMessage")
    assert told["text"].startswith("Kept for builder")
    assert "message_thread_id" not in told


async def test_what_waits_too_long_is_set_aside_with_one_notice_and_can_be_had_again(mock_clock: MockClock) -> None:
    async with running(Rig(expire=100.0)) as rig:
        await rig.agent("builder", 11, here=False)
        await rig.agent("tester", 12)
        await rig.take(message(1), message(2), message(3, thread=12))
        await later(mock_clock, RETURN)
        rig.telegram.calls.clear()
        rig.commits.db.execute("UPDATE updates SET admitted_ms = 1 WHERE outcome IS NULL")
        for _ in range(5):
            await later(mock_clock, min(EXPIRY_EVERY, 25.0))
        assert rig.said == [
            "2 messages for builder expired: it was away for 100 s or more. See: telegram-bus updates list"
        ]
        assert [row[2] for row in rig.rows()] == ["expired", "expired", "accepted"]
        assert rig.term.deliveries.total_waiting() == 0
        assert await rig.term.deliveries.retry(1)
        assert not await rig.term.deliveries.retry(3)
        come(rig, "builder", 11)
        await wait_all_tasks_blocked()
        assert ("builder", 1) in rig.got
        assert ("builder", 2) not in rig.got
        assert rig.term.deliveries.total_waiting() == 0


async def test_a_notice_waits_for_telegram(rig: Rig, mock_clock: MockClock) -> None:
    rig.telegram.results["sendMessage"] = NotSent("no network")
    rig.notices.say("hello")
    await wait_all_tasks_blocked()
    del rig.telegram.results["sendMessage"]
    await later(mock_clock, PAUSE)
    assert rig.said == ["hello", "hello"]  # asked for twice, sent once


async def test_a_backlog_is_delivered_and_its_age_is_told_once(rig: Rig) -> None:
    await rig.agent("builder", 11)
    now = rig.term.now_ms() // 1000
    old = [message(number, date=now - 7_200) for number in range(1, 101)]
    await rig.take(*old, offset=101)
    assert rig.said == []  # more may come at once
    await rig.take(message(101, date=now - 90), message(102), offset=103)
    assert len(rig.got) == 102
    [said] = rig.said
    assert said.startswith("101 messages had waited at Telegram while nobody asked for them, the oldest for 2 h.")
    await rig.take(message(103), offset=104)
    assert len(rig.said) == 1
    assert rig.telegram.made("sendMessage")[0].get("message_thread_id") is None


async def test_what_strangers_wrote_is_no_backlog(rig: Rig) -> None:
    await rig.take(message(1, sender={"id": 666}, date=1))
    assert rig.said == []


async def test_an_empty_inbox_of_notices_outlives_a_flood(rig: Rig) -> None:
    gate = rig.telegram.gate = trio.Event()
    for number in range(200):
        rig.notices.say(str(number))
    gate.set()
    await wait_all_tasks_blocked()
    assert rig.said[0] == "0"
    assert len(rig.said) < 110
