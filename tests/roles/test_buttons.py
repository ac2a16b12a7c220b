"""Pressed buttons at the leader: answered once, in time, by whoever has to."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.core.errors import ApiError, NotSent, RequestRefused
from telegram_bus.core.permissions import Allowed
from telegram_bus.roles.buttons import PATIENCE, LeaderButtons, Press
from tests.fakes import CHAT, OWNER
from tests.roles.term_rig import Rig, running

TOO_OLD = ApiError(
    "answerCallbackQuery", 400, "Bad Request: query is too old and response timeout expired or query ID is invalid"
)


def press(update_id: int, data: str = "d", *, message_id: int = 5, thread: int | None = 11) -> dict[str, Any]:
    """A button is pressed."""
    body: dict[str, Any] = {"message_id": message_id, "chat": {"id": CHAT, "type": "supergroup"}}
    if thread is not None:
        body |= {"message_thread_id": thread, "is_topic_message": True}
    user = {"id": OWNER, "first_name": "Ann"}
    return {
        "update_id": update_id,
        "callback_query": {"id": f"q{update_id}", "from": user, "data": data, "message": body},
    }


def answers(rig: Rig) -> list[dict[str, Any]]:
    """What was answered to presses."""
    return rig.telegram.made("answerCallbackQuery")


async def owner_answers(rig: Rig, query_id: str, text: str) -> Any:
    """What an owner's call comes to."""
    call = Allowed(method="call", args=("answerCallbackQuery", {"callback_query_id": query_id, "text": text}))
    return await rig.term.buttons.by_owner(query_id, lambda: rig.telegram.call(call.api_method, call.body))


async def test_a_press_that_its_owner_does_not_answer_in_time_is_answered_emptily(
    rig: Rig, autojump_clock: MockClock
) -> None:
    """A late answer of the owner is as good as any other, and is not made."""
    await rig.take(press(1))
    assert rig.got == [("nora", 1)]
    assert answers(rig) == []
    await trio.sleep(PATIENCE + 0.01)
    assert answers(rig) == [{"callback_query_id": "q1"}]
    assert await owner_answers(rig, "q1", "done") is True
    assert len(answers(rig)) == 1


async def test_the_owners_answer_is_the_only_one(rig: Rig, autojump_clock: MockClock) -> None:
    await rig.take(press(1))
    assert await owner_answers(rig, "q1", "done") is True
    await trio.sleep(PATIENCE * 2)
    assert answers(rig) == [{"callback_query_id": "q1", "text": "done"}]


async def test_an_answer_of_the_owner_that_is_under_way_is_waited_for(rig: Rig, autojump_clock: MockClock) -> None:
    """Two answers would cross."""
    rig.telegram.gate = trio.Event()
    await rig.take(press(1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(owner_answers, rig, "q1", "done")
        await trio.sleep(PATIENCE * 2)
        rig.telegram.gate.set()
    await wait_all_tasks_blocked()
    assert answers(rig) == [{"callback_query_id": "q1", "text": "done"}]


async def test_an_answer_that_telegram_refuses_leaves_the_press_to_the_leader(
    rig: Rig, autojump_clock: MockClock
) -> None:
    await rig.take(press(1))
    rig.telegram.results["answerCallbackQuery"] = ApiError("answerCallbackQuery", 400, "Bad Request: MESSAGE_TOO_LONG")
    with pytest.raises(ApiError):
        await owner_answers(rig, "q1", "x" * 500)
    del rig.telegram.results["answerCallbackQuery"]
    await trio.sleep(PATIENCE * 2)
    assert answers(rig)[-1] == {"callback_query_id": "q1"}


async def test_a_press_that_telegram_has_forgotten_is_no_error_of_the_owner(
    rig: Rig, autojump_clock: MockClock
) -> None:
    """It was pressed while nobody led, say; an earlier leader may have answered it."""
    rig.telegram.results["answerCallbackQuery"] = TOO_OLD
    assert await owner_answers(rig, "q77", "done") is True


async def test_who_presses_for_an_absent_agent_hears_that_it_is_kept(rig: Rig, autojump_clock: MockClock) -> None:
    await rig.agent("ines", 13, here=False)
    await rig.take(press(1, thread=13))
    await trio.sleep(1)
    assert answers(rig) == [{"callback_query_id": "q1", "text": "ines is away; this is kept for it."}]
    assert rig.rows()[-1] == (1, "ines", None)


async def test_the_same_press_twice_is_answered_once(rig: Rig, autojump_clock: MockClock) -> None:
    """Scenario 26: Telegram repeats a batch."""
    await rig.take(press(1))
    await rig.take(press(1))
    await trio.sleep(2)
    assert rig.got == [("nora", 1)]
    assert len(answers(rig)) == 1


async def test_a_successor_answers_what_its_predecessor_took(rig: Rig, autojump_clock: MockClock) -> None:
    """The predecessor may have died before it could."""
    await rig.take(press(1))
    successor = Rig(earlier=rig.commits)
    async with running(successor):
        await successor.agent("nora", 11)
        await trio.sleep(1)
        assert answers(successor) == [{"callback_query_id": "q1"}]


# -- buttons of the leader's own


async def pressed(buttons: LeaderButtons, *outcomes: Any, prefix: str = "again") -> list[Press]:
    """Registers a handler that notes presses and returns or raises these outcomes, one after another."""
    seen: list[Press] = []
    left = list(outcomes)

    async def handle(press: Press) -> str | None:
        seen.append(press)
        outcome = left.pop(0) if left else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    buttons.register(prefix, handle)
    return seen


async def test_a_button_of_the_leader_is_handled_by_it_in_whatever_thread_it_stands(
    rig: Rig, autojump_clock: MockClock
) -> None:
    seen = await pressed(rig.term.buttons, "Sent again.")
    await rig.take(press(1, "tb:again:17:x"))
    assert [(one.rest, one.user["id"], one.message["message_id"]) for one in seen] == [("17:x", OWNER, 5)]
    assert answers(rig) == [{"callback_query_id": "q1", "text": "Sent again."}]
    assert rig.got == []
    assert rig.rows() == [(1, None, "answered")]


async def test_a_button_that_a_follower_made_to_look_like_the_leaders_is_its_own(
    rig: Rig, autojump_clock: MockClock
) -> None:
    seen = await pressed(rig.term.buttons)
    await rig.term.store.record_messages("otto", [(CHAT, 5, 12)], 1)
    await rig.take(press(1, "tb:again:17"))
    assert seen == []
    assert rig.got == [("otto", 1)]


async def test_a_button_of_the_leader_that_no_handler_is_for_is_not_known(rig: Rig, autojump_clock: MockClock) -> None:
    await rig.take(press(1, "tb:nothing:1"))
    assert [one["text"] for one in answers(rig)] == ["The agent that offered this button is not known any more."]


@pytest.mark.parametrize("fault", [RequestRefused("it is gone"), NotSent("no line"), RuntimeError("a mistake")])
async def test_a_handler_that_fails_says_so_and_ends_nothing(
    rig: Rig, fault: Exception, autojump_clock: MockClock
) -> None:
    await pressed(rig.term.buttons, fault, "well")
    await rig.take(press(1, "tb:again:1"))
    await rig.take(press(2, "tb:again:2"))
    assert answers(rig)[0]["text"].startswith("That did not work")
    assert answers(rig)[1]["text"] == "well"


async def test_a_handler_that_takes_long_is_answered_for(rig: Rig, autojump_clock: MockClock) -> None:
    gate = trio.Event()

    async def handle(_press: Press) -> str:
        await gate.wait()
        return "too late"

    rig.term.buttons.register("slow", handle)
    await rig.take(press(1, "tb:slow:1"))
    await trio.sleep(1)
    assert answers(rig) == [{"callback_query_id": "q1"}]
    gate.set()
    await wait_all_tasks_blocked()
    assert len(answers(rig)) == 1
    assert rig.rows() == [(1, None, "answered")]


async def test_what_a_handler_did_not_finish_is_done_by_the_successor(rig: Rig, autojump_clock: MockClock) -> None:
    async def handle(_press: Press) -> str:
        return await trio.sleep_forever()

    rig.term.buttons.register("again", handle)
    await rig.take(press(1, "tb:again:1"))
    successor = Rig(earlier=rig.commits)
    seen = await pressed(successor.term.buttons, "done")
    async with running(successor):
        await wait_all_tasks_blocked()
    assert len(seen) == 1
    assert answers(successor) == [{"callback_query_id": "q1", "text": "done"}]


async def test_strangers_press_in_vain(rig: Rig, autojump_clock: MockClock) -> None:
    seen = await pressed(rig.term.buttons)
    stranger = press(1, "tb:again:1")
    stranger["callback_query"]["from"] = {"id": 666}
    await rig.take(stranger)
    await trio.sleep(2)
    assert (seen, answers(rig), rig.rows()) == ([], [], [])


@pytest.mark.parametrize("prefix", ["", "a:b", "again"])
async def test_a_prefix_is_one_handlers(rig: Rig, prefix: str) -> None:
    await pressed(rig.term.buttons)
    with pytest.raises(ValueError, match="prefix"):
        await pressed(rig.term.buttons, prefix=prefix)


async def test_a_long_text_is_cut(rig: Rig, autojump_clock: MockClock) -> None:
    await pressed(rig.term.buttons, "x" * 300)
    await rig.take(press(1, "tb:again:1"))
    assert len(answers(rig)[0]["text"]) == 200
