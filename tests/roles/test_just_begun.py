"""A leader that has just begun: the followers of the one before are not back yet, and nobody may be told that."""

from __future__ import annotations

from typing import Any

from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.core import chooser
from telegram_bus.roles.lobby import PROMOTION_GRACE
from tests.fakes import CHAT, OWNER, message
from tests.roles.term_rig import Rig, running

NOBODYS = 77


def press(update_id: int, message_id: int, data: str) -> dict[str, Any]:
    place = {"message_id": message_id, "chat": {"id": CHAT, "type": "supergroup"}, "message_thread_id": NOBODYS}
    query = {"id": f"q{update_id}", "data": data, "from": {"id": OWNER}, "message": {**place, "date": 1}}
    return {"update_id": update_id, "callback_query": query}


async def test_a_question_waits_for_the_agents_that_it_offers(mock_clock: MockClock) -> None:
    async with running(Rig(), begun=True) as rig:
        await rig.take(message(1, thread=NOBODYS))
        assert rig.said == []
        await rig.agent("nora", 11)
        mock_clock.jump(PROMOTION_GRACE)
        await wait_all_tasks_blocked()
        [asked] = rig.telegram.made("sendMessage")
        assert asked["text"].startswith("No agent has this thread")
        assert "nora" in str(asked["reply_markup"])


async def test_where_nobody_comes_it_is_asked_all_the_same(mock_clock: MockClock) -> None:
    async with running(Rig(), begun=True) as rig:
        await rig.take(message(1, thread=NOBODYS))
        mock_clock.jump(PROMOTION_GRACE)
        await wait_all_tasks_blocked()
        [said] = rig.said
        assert said.startswith("No agent is here.")


async def test_a_choice_made_before_the_agent_is_back_has_its_effect(mock_clock: MockClock) -> None:
    give = chooser.data_of(chooser.Press(NOBODYS, "give", chooser.mark_of("nora")))
    async with running(Rig()) as first:
        await first.agent("nora", 11)
        await first.take(message(1, thread=NOBODYS))
        asked = first.telegram._next
    async with running(Rig(telegram=first.telegram, earlier=first.commits), begun=True) as second:
        await second.take(press(2, asked, give))
        assert second.got == []
        await second.agent("nora", 11)
        mock_clock.jump(PROMOTION_GRACE)
        await wait_all_tasks_blocked()
        assert second.got == [("nora", 1)]
        assert second.telegram.made("editMessageText")[-1]["text"] == "Given to nora: 1 message."
        assert "This agent is not here any more." not in str(second.telegram.calls)
