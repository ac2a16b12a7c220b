"""Whether threads are there: what a report leads to, and what many reports at once do not lead to."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.core.errors import ApiError, RequestRefused
from telegram_bus.roles.threads import Missing
from tests.fakes import CHAT
from tests.roles.thread_rig import Rig, running


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


async def with_agents(rig: Rig, *keys: str) -> dict[str, int]:
    """Agents with threads; what was called for that is forgotten."""
    threads = {key: await rig.agent(key) for key in keys}
    rig.telegram.calls.clear()
    return threads


async def test_a_thread_that_a_person_deleted_is_parked_and_people_know(rig: Rig) -> None:
    """One look at it, one at another one, and nothing is made before its agent says something."""
    threads = await with_agents(rig, "nora", "otto", "ida")
    del rig.telegram.topics[threads["nora"]]
    async with running(rig):
        rig.threads.thread_missing(CHAT, threads["nora"], "not found")
        await wait_all_tasks_blocked()
        rig.threads.thread_missing(CHAT, threads["nora"], "not found")
        await wait_all_tasks_blocked()
    assert rig.telegram.asked() == ["editForumTopic", "editForumTopic"]
    assert [binding.key for binding in rig.threads.all() if binding.gone_ms is not None] == ["nora"]
    assert sorted(await rig.stored()) == sorted(rig.threads.all())
    assert rig.said == ["The thread of nora was deleted. nora gets another with the next thing it says."]


@pytest.mark.parametrize("how", ["not found", "elsewhere"])
async def test_a_thread_that_is_there_stays_whatever_was_reported(rig: Rig, how: Missing) -> None:
    """A refusal of one send proves nothing."""
    threads = await with_agents(rig, "nora", "otto")
    async with running(rig):
        rig.threads.thread_missing(CHAT, threads["nora"], how)
        await wait_all_tasks_blocked()
    assert rig.telegram.asked() == ["editForumTopic"]
    assert not [binding for binding in rig.threads.all() if binding.gone_ms is not None]


async def test_what_cannot_be_told_changes_nothing(rig: Rig) -> None:
    """Nor is another thread made."""
    threads = await with_agents(rig, "nora", "otto")
    rig.telegram.results["editForumTopic"] = ApiError("editForumTopic", 400, "Bad Request: the chat is not a forum")
    async with running(rig):
        rig.threads.thread_missing(CHAT, threads["nora"], "not found")
        await wait_all_tasks_blocked()
    assert await rig.threads.before_output("nora") is None
    assert rig.telegram.asked() == ["editForumTopic"]


async def test_the_next_output_makes_one_other_thread_however_much_goes_out(rig: Rig) -> None:
    """Under the name that it had, also one that a person gave; all of it goes there."""
    threads = await with_agents(rig, "nora", "otto")
    await rig.threads.note(rig.threads.book.renamed(threads["nora"], "Nora's", by_person=True))
    await rig.threads.note(rig.threads.book.parked(threads["nora"], 1))
    made: list[int | None] = []

    async def put_out() -> None:
        binding = await rig.threads.before_output("nora", "nora:1")
        made.append(binding and binding.thread_id)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(put_out)
    assert rig.telegram.asked() == ["createForumTopic"]
    assert set(made) == {rig.threads.book.bindings["nora"].thread_id}
    assert rig.threads.book.bindings["nora"].name == "Nora's"
    assert await rig.threads.before_output("nora", "nora:1") is None


async def test_a_thread_that_is_deleted_again_is_made_again_only_for_a_new_process(rig: Rig) -> None:
    """A person does not want it; who starts the agent anew does."""
    threads = await with_agents(rig, "nora", "otto")
    await rig.threads.note(rig.threads.book.parked(threads["nora"], 1))
    again = await rig.threads.before_output("nora", "nora:1")
    assert again is not None
    assert again.thread_id is not None
    await rig.threads.note(rig.threads.book.parked(again.thread_id, 2))
    with pytest.raises(RequestRefused, match="threads unbind nora"):
        await rig.threads.before_output("nora", "nora:1")
    successor = await rig.successor()
    with pytest.raises(RequestRefused, match="deleted again"):
        await successor.threads.before_output("nora", "nora:1")
    await successor.agent("nora", run=2)
    assert await successor.threads.before_output("nora", "nora:2") is not None
    assert rig.telegram.asked() == ["createForumTopic", "createForumTopic"]


async def test_threads_that_people_deleted_during_a_few_minutes_are_no_outage(
    rig: Rig, autojump_clock: MockClock
) -> None:
    """One after another, while others are there."""
    threads = await with_agents(rig, *"abcdef")
    async with running(rig):
        for key in "abcd":
            del rig.telegram.topics[threads[key]]
            rig.threads.thread_missing(CHAT, threads[key], "not found")
            await trio.sleep(90)
    assert sorted(binding.key for binding in rig.threads.all() if binding.gone_ms is not None) == list("abcd")
    assert rig.threads.outage is None


async def test_many_that_were_deleted_at_once_are_given_up_when_others_are_there(
    rig: Rig, autojump_clock: MockClock
) -> None:
    """After two looks, half a minute and a minute later; until then nothing is changed."""
    threads = await with_agents(rig, *"abcdef")
    async with running(rig):
        for key in "abc":
            del rig.telegram.topics[threads[key]]
            rig.threads.thread_missing(CHAT, threads[key], "not found")
        await trio.sleep(5)
        assert "3 threads" in str(rig.threads.outage)
        assert not [binding for binding in rig.threads.all() if binding.gone_ms is not None]
        await trio.sleep(200)
        assert rig.threads.outage is None
    assert sorted(binding.key for binding in rig.threads.all() if binding.gone_ms is not None) == list("abc")


async def test_a_closed_thread_is_noted_and_opened_when_a_new_process_has_it(rig: Rig) -> None:
    """Not for the process that is there already: a person closed it before its eyes."""
    threads = await with_agents(rig, "nora")
    rig.telegram.closed.add(threads["nora"])
    async with running(rig):
        rig.threads.thread_missing(CHAT, threads["nora"], "closed")
        await wait_all_tasks_blocked()
        assert rig.threads.book.bindings["nora"].closed
        await rig.agent("nora", run=1)
        assert rig.telegram.asked() == []
        successor = await rig.successor()
        await successor.agent("nora", run=2)
    assert rig.telegram.asked() == ["reopenForumTopic"]
    assert not successor.threads.book.bindings["nora"].closed
    assert not rig.telegram.closed


async def test_in_a_private_chat_nothing_is_opened(tmp_path: Path) -> None:
    """Threads of private chats can be neither closed nor opened by bots (bot-api T11)."""
    rig = Rig(tmp_path, chat_id=7)
    thread = await rig.agent("nora")
    await rig.threads.note(rig.threads.book.closed(thread, closed=True))
    await rig.agent("nora", run=2)
    assert rig.telegram.asked() == ["createForumTopic"]


async def test_scenario_59_a_wave_of_refusals_changes_nothing_and_is_waited_out(
    rig: Rig, autojump_clock: MockClock
) -> None:
    """Whether Telegram says of the threads only that they take no messages, or that there are none."""
    threads = await with_agents(rig, *"abcdef")
    before = await rig.stored()
    async with running(rig):
        for lost in (False, True):
            rig.telegram.lost = lost
            for thread in threads.values():
                rig.threads.thread_missing(CHAT, thread, "not found")
            await trio.sleep(5)
            with pytest.raises(RequestRefused, match="nothing is sent into threads just now"):
                await rig.threads.before_output("a")
            if not lost:
                assert await rig.threads.before_output("a") is None  # it waited until that was over
            await trio.sleep(110)
            rig.telegram.lost = False
            await trio.sleep(300)
            assert rig.threads.outage is None
            assert await rig.threads.before_output("a") is None
    assert set(rig.telegram.asked()) == {"editForumTopic"}
    assert len(rig.telegram.asked()) < 30
    assert await rig.stored() == before
    assert rig.said == []
