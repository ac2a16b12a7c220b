"""What becomes of threads behind agents that left: nothing without a stored intent, asked again before each call."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.core.bindings import CleanUp
from telegram_bus.core.errors import ApiError, LeadershipLost, NotSent, RequestRefused, StateError
from telegram_bus.locks import FileLock
from telegram_bus.roles.clean_up import AGAIN, GRACE, LOOK_AFTER, REPLAY, CleanUpPolicy
from tests.fakes import CHAT
from tests.roles.thread_rig import Rig, running


async def departed(root: Path, policy: CleanUpPolicy = "delete", chat_id: int = CHAT) -> tuple[Rig, int]:
    """An agent that has a thread has just left."""
    rig = Rig(root, policy=policy, chat_id=chat_id)
    thread = await rig.agent("nora")
    await rig.agent("otto")
    rig.telegram.calls.clear()
    await rig.leave("nora")
    return rig, thread


def held(rig: Rig, key: str) -> FileLock:
    """The lock of an agent that lives."""
    rig.profile.ensure()
    rig.profile.ensure_follower(key)
    lock = FileLock.try_lock(rig.profile.inbox_lock(key))
    assert lock is not None
    return lock


async def test_by_default_a_thread_stays_when_its_agent_leaves(tmp_path: Path, autojump_clock: MockClock) -> None:
    """As a hint for its return."""
    rig, _ = await departed(tmp_path, "keep")
    async with running(rig):
        await trio.sleep(100)
    assert rig.telegram.calls == []
    assert len(await rig.stored()) == 2


async def test_what_shall_be_deleted_is_stored_at_once_and_deleted_after_a_grace(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """With its binding; nothing is left of it."""
    rig, thread = await departed(tmp_path)
    assert [row for row in await rig.stored() if isinstance(row, CleanUp)] == [
        CleanUp(CHAT, thread, "nora", "delete", "it left", 0)
    ]
    async with running(rig):
        await trio.sleep(GRACE - 1)
        assert rig.telegram.calls == []
        await trio.sleep(2)
    assert rig.telegram.calls == [("deleteForumTopic", {"chat_id": CHAT, "message_thread_id": thread})]
    assert [row.key for row in await rig.stored()] == ["otto"]
    assert rig.threads.of_thread(CHAT, thread) is None


async def test_a_thread_is_closed_and_opened_when_its_agent_is_back(tmp_path: Path, autojump_clock: MockClock) -> None:
    """The binding stays."""
    rig, thread = await departed(tmp_path, "close")
    async with running(rig):
        await trio.sleep(GRACE + 1)
        assert rig.telegram.closed == {thread}
        assert await rig.agent("nora", run=2) == thread
    assert rig.telegram.asked() == ["closeForumTopic", "reopenForumTopic"]
    assert rig.telegram.closed == set()


async def test_in_a_private_chat_close_means_keep(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Telegram closes no threads there."""
    rig, _ = await departed(tmp_path, "close", chat_id=7)
    async with running(rig):
        await trio.sleep(100)
    assert rig.telegram.calls == []
    assert len(await rig.stored()) == 2


async def test_an_agent_that_is_back_keeps_its_thread(tmp_path: Path, autojump_clock: MockClock) -> None:
    """It was only restarted."""
    rig, thread = await departed(tmp_path)
    async with running(rig):
        await trio.sleep(GRACE - 1)
        assert await rig.agent("nora", run=2) == thread
        await trio.sleep(100)
    assert rig.telegram.calls == []
    assert not [row for row in await rig.stored() if isinstance(row, CleanUp)]


async def test_an_agent_whose_process_lives_keeps_its_thread_until_that_ends(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """It lost its leader and said goodbye, or is slow to end: whoever holds its lock lives."""
    rig, _ = await departed(tmp_path)
    rig.profile.ensure()
    rig.profile.ensure_follower("nora")
    lock = FileLock.try_lock(rig.profile.inbox_lock("nora"))
    assert lock is not None
    async with running(rig):
        await trio.sleep(100)
        assert rig.telegram.calls == []
        lock.close()
        await trio.sleep(AGAIN + 1)
    assert rig.telegram.asked() == ["deleteForumTopic"]


async def test_asking_for_a_lock_leaves_it_free(tmp_path: Path) -> None:
    """Who comes at this moment finds its own key."""
    rig = Rig(tmp_path)
    rig.profile.ensure()
    rig.profile.ensure_follower("nora")
    assert not rig.clean_ups.may_live("nora")
    with FileLock.try_lock(rig.profile.inbox_lock("nora")) as lock:  # type: ignore[union-attr]
        assert lock is not None
        assert rig.clean_ups.may_live("nora")
    assert not rig.clean_ups.may_live("nora")
    assert not rig.clean_ups.may_live("../no/key")


async def test_a_thread_stays_while_something_waits_for_its_agent(tmp_path: Path, autojump_clock: MockClock) -> None:
    """Nothing is lost."""
    rig, _ = await departed(tmp_path)
    rig.waits["nora"] = 2
    async with running(rig):
        await trio.sleep(100)
    assert rig.telegram.calls == []
    assert len(await rig.stored()) == 2


async def test_who_returns_while_its_thread_is_being_deleted_gets_another(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """It waits until that has ended: a slow clean-up cannot overtake it."""
    rig, thread = await departed(tmp_path)
    rig.telegram.gate = trio.Event()
    given: list[int] = []

    async def come_back() -> None:
        given.append(await rig.agent("nora", run=2))

    async with running(rig), trio.open_nursery() as nursery:
        await trio.sleep(GRACE + 1)
        assert rig.telegram.asked() == ["deleteForumTopic"]
        nursery.start_soon(come_back)
        await wait_all_tasks_blocked()
        assert given == []
        rig.telegram.gate.set()
    assert rig.telegram.asked() == ["deleteForumTopic", "createForumTopic"]
    assert given[0] != thread


async def test_a_successor_does_what_was_left_undone_before_anybody_may_come(tmp_path: Path) -> None:
    """Also where the call was made already, and only its confirmation was cut off."""
    rig, thread = await departed(tmp_path)
    successor = await rig.successor()
    await successor.clean_ups.replay()
    assert rig.telegram.asked() == ["deleteForumTopic"]
    assert [row.key for row in await successor.stored()] == ["otto"]

    again = await rig.successor()
    await again.threads.note([CleanUp(CHAT, thread, "nora", "delete", "it left", 0)])
    again = await again.successor()
    await again.clean_ups.replay()
    assert not [row for row in await again.stored() if isinstance(row, CleanUp)]


async def test_a_replay_holds_up_a_start_for_a_few_seconds_only(tmp_path: Path, autojump_clock: MockClock) -> None:
    """What Telegram has not answered by then goes on later."""
    rig, _ = await departed(tmp_path)
    rig.telegram.results["deleteForumTopic"] = NotSent("no network")
    began = trio.current_time()
    successor = await rig.successor()
    await successor.clean_ups.replay()
    assert trio.current_time() - began < 6
    assert [row for row in await successor.stored() if isinstance(row, CleanUp)]
    async with running(successor):
        await trio.sleep(GRACE + 1)
        rig.telegram.results.clear()
        await trio.sleep(AGAIN + 1)
    assert [row.key for row in await successor.stored()] == ["otto"]


async def test_an_answer_that_does_not_come_holds_up_no_start(tmp_path: Path, autojump_clock: MockClock) -> None:
    """The call goes on, and what it comes to is noted; nobody makes it a second time meanwhile."""
    rig, thread = await departed(tmp_path)
    rig.telegram.gate = trio.Event()
    successor = await rig.successor()
    async with trio.open_nursery() as nursery:
        began = trio.current_time()
        await nursery.start(successor.clean_ups.replay)
        assert trio.current_time() - began == REPLAY
        async with running(successor):
            await trio.sleep(100)
            [row] = successor.threads.book.clean_ups.values()
            assert await successor.clean_ups.carry_out(row) == "later"
            rig.telegram.gate.set()
            await trio.sleep(1)
            assert [row.key for row in await successor.stored()] == ["otto"]
    assert rig.telegram.calls == [("deleteForumTopic", {"chat_id": CHAT, "message_thread_id": thread})]


async def test_who_leads_no_more_deletes_nothing(tmp_path: Path) -> None:
    """Neither one that knows it, nor one whose epoch is over."""
    rig, _ = await departed(tmp_path)
    [row] = rig.threads.book.clean_ups.values()
    rig.leads = False
    with pytest.raises(LeadershipLost):
        await rig.clean_ups.carry_out(row)
    rig.leads = True
    rig.commits.fault = LeadershipLost("epoch 1 is over")
    with pytest.raises(LeadershipLost):
        await rig.clean_ups.carry_out(row)
    assert rig.telegram.topics.keys() >= {row.thread_id}


async def test_a_full_disk_postpones_it(tmp_path: Path) -> None:
    """The intent is read before each call."""
    rig, _ = await departed(tmp_path)
    [row] = rig.threads.book.clean_ups.values()
    rig.commits.fault = StateError("disk full")
    assert await rig.clean_ups.carry_out(row) == "later"
    assert row.thread_id in rig.telegram.topics


async def test_what_telegram_refuses_is_told_and_not_tried_for_ever(tmp_path: Path, autojump_clock: MockClock) -> None:
    """A right is missing."""
    rig, _ = await departed(tmp_path)
    fault = ApiError("deleteForumTopic", 400, "Bad Request: not enough rights to delete the topic")
    rig.telegram.results["deleteForumTopic"] = fault
    async with running(rig):
        await trio.sleep(100)
    assert rig.telegram.asked() == ["deleteForumTopic"]
    assert "not enough rights" in rig.said[0]
    assert len(await rig.stored()) == 2


async def test_only_a_proven_death_takes_a_thread_and_only_if_that_is_wanted(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """Silence proves nothing."""
    for dead, held, wanted in ((False, False, []), (True, True, []), (True, False, ["deleteForumTopic"])):
        rig = Rig(tmp_path / f"{dead}-{held}", policy="delete", dead=dead)
        await rig.agent("nora")
        rig.telegram.calls.clear()
        rig.profile.ensure()
        rig.profile.ensure_follower("nora")
        lock = FileLock.try_lock(rig.profile.inbox_lock("nora"))
        assert lock is not None
        member = rig.registry.by_key("nora")
        assert member is not None
        rig.registry.remove(member)
        if not held:
            lock.close()
        async with running(rig):
            await rig.clean_ups.fell_silent(member)
            await trio.sleep(100)
        assert rig.telegram.asked() == wanted
        lock.close()


async def test_who_was_frozen_and_dies_later_is_dead_too(tmp_path: Path, autojump_clock: MockClock) -> None:
    rig = Rig(tmp_path, policy="delete", dead=True)
    await rig.agent("nora")
    lock = held(rig, "nora")
    member = rig.registry.by_key("nora")
    assert member is not None
    rig.registry.remove(member)
    async with running(rig), trio.open_nursery() as nursery:
        nursery.start_soon(rig.clean_ups.watch_for_dead, lambda _: False)
        await rig.clean_ups.fell_silent(member)
        await trio.sleep(100)
        assert "deleteForumTopic" not in rig.telegram.asked()
        lock.close()
        await trio.sleep(AGAIN + GRACE + 1)
        nursery.cancel_scope.cancel("the test is over")
    assert "deleteForumTopic" in rig.telegram.asked()


@pytest.mark.parametrize("after", ["death", "return", "farewell", "another setting"])
async def test_who_was_frozen_under_one_leader_and_dies_under_the_next_is_dead_too(
    tmp_path: Path, autojump_clock: MockClock, after: str
) -> None:
    """Though the first one saw it leave; not who is back, or left in order, or whom nobody wanted to judge."""
    first = Rig(tmp_path, policy="delete", dead=True)
    await first.agent("nora")
    lock = held(first, "nora")
    member = first.registry.by_key("nora")
    assert member is not None
    first.registry.remove(member)
    await first.clean_ups.fell_silent(member)
    if after == "another setting":
        first.policy = "keep"
        between = await first.successor()
        await between.clean_ups.watch_for_dead(lambda _: True)
        first.policy = "delete"
    rig = await first.successor()
    async with running(rig), trio.open_nursery() as nursery:
        nursery.start_soon(rig.clean_ups.watch_for_dead, lambda _: True)
        await trio.sleep(LOOK_AFTER / 2)
        if after in ("return", "farewell"):
            await rig.agent("nora", run=2)
        if after == "farewell":
            rig.clean_ups.policy = "keep"
            await rig.leave("nora")
            rig.clean_ups.policy = "delete"
        await trio.sleep(LOOK_AFTER)
        assert "deleteForumTopic" not in rig.telegram.asked()
        if after == "return":
            rig.registry.remove(rig.registry.by_key("nora"))  # type: ignore[arg-type]
        lock.close()
        await trio.sleep(AGAIN + GRACE + 1)
        nursery.cancel_scope.cancel("the test is over")
    assert ("deleteForumTopic" in rig.telegram.asked()) == (after == "death")
    assert await rig.threads.store.told.recall("silent ") == {}


@pytest.mark.parametrize("dead", [True, False])
async def test_who_died_while_nobody_led_is_found_after_a_while(
    tmp_path: Path, autojump_clock: MockClock, *, dead: bool
) -> None:
    """Not whoever lives, is here again, was seen leaving, has messages, or has no lock that could prove anything."""
    earlier = Rig(tmp_path, policy="delete", dead=dead)
    locks = {}
    for key in ("died", "lives", "back", "left", "busy", "foreign"):
        await earlier.agent(key)
        if key != "foreign":
            locks[key] = held(earlier, key)
    for key in ("died", "back", "left", "busy"):
        locks[key].close()
    rig = await earlier.successor(waits={"busy": 1})
    rig.telegram.calls.clear()
    async with running(rig), trio.open_nursery() as nursery:
        nursery.start_soon(rig.clean_ups.watch_for_dead, lambda key: key == "left")
        await rig.agent("back", run=2)
        await trio.sleep(LOOK_AFTER - 1)
        assert rig.telegram.calls == []
        await trio.sleep(100)
        nursery.cancel_scope.cancel("the test is over")
    assert rig.telegram.asked() == (["deleteForumTopic"] if dead else [])
    assert (rig.threads.of_key("died") is None) == dead
    locks["lives"].close()


async def test_the_old_thread_of_who_was_given_another_is_deleted_while_its_agent_is_here(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    """A person wanted it so; the new one is proven to be there, and its earlier owner registers anew."""
    rig = Rig(tmp_path)
    nora, otto = await rig.agent("nora"), await rig.agent("otto")
    rig.telegram.topics[500] = "mine"
    async with running(rig):
        await rig.care.give("nora", 500)
        await trio.sleep(1)
        assert rig.telegram.topics == {500: "nora", otto: "otto"}
        await rig.care.give("nora", otto, remove_old=False)
        await trio.sleep(100)
    assert rig.telegram.topics == {500: "nora", otto: "nora"}
    assert rig.moved == [("nora", 500), ("nora", otto)]
    assert rig.reseated == ["otto"]
    with pytest.raises(RequestRefused, match="there is no thread"):
        await rig.care.give("nora", nora)
    assert rig.threads.of_thread(CHAT, otto) == "nora"
