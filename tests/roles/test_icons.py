"""Icons of threads follow what their agents are, slowly."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
from trio.testing import MockClock

from telegram_bus.core.errors import ApiError
from telegram_bus.roles import overview
from telegram_bus.roles.icons import LOOK_EVERY, REST, STEADY, AgentState, Icons
from tests.roles.term_rig import Rig, running

STICKERS = [{"emoji": emoji, "custom_emoji_id": f"id of {emoji[0]}"} for emoji in ("📰", "💬", "⚡️", "☕️", "❓")]
LONG = STEADY + REST + 3 * LOOK_EVERY


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running(Rig()) as rig:
        await rig.agent("nora", 11)
        rig.telegram.results["getForumTopicIconStickers"] = STICKERS
        yield rig


def edits(rig: Rig) -> list[str]:
    return [params["icon_custom_emoji_id"] for params in rig.telegram.made("editForumTopic")]


async def test_an_icon_changes_when_a_state_lasts_and_not_more_than_once_a_minute(
    rig: Rig, autojump_clock: MockClock
) -> None:
    states: dict[str, AgentState] = {"nora": "idle"}
    icons = Icons(store=rig.term.store, threads=rig.term.threads, call=rig.telegram.call, state=states.__getitem__)
    async with trio.open_nursery() as nursery:
        await nursery.start(icons.run)
        await trio.sleep(LONG + LOOK_EVERY / 2)  # between two looks
        assert edits(rig) == ["id of 💬"]
        for state in ("busy", "idle", "busy", "idle"):
            states["nora"] = state
            await trio.sleep(LOOK_EVERY)
        await trio.sleep(LONG)
        assert edits(rig) == ["id of 💬"]
        states["nora"] = "waiting"
        await trio.sleep(LONG)
        states["nora"] = "away"
        await trio.sleep(LONG)
        assert edits(rig) == ["id of 💬", "id of ❓", "id of ☕"]
        assert rig.telegram.made("editForumTopic")[0].keys() == {"chat_id", "message_thread_id", "icon_custom_emoji_id"}
        assert len(rig.telegram.made("getForumTopicIconStickers")) == 1
        nursery.cancel_scope.cancel("the test is over")


async def test_a_successor_changes_nothing_that_is_shown_and_a_refusal_is_not_repeated(
    rig: Rig, autojump_clock: MockClock
) -> None:
    rig.telegram.results["editForumTopic"] = ApiError("editForumTopic", 400, "Bad Request: not enough rights")
    for _ in range(2):
        icons = Icons(store=rig.term.store, threads=rig.term.threads, call=rig.telegram.call, state=lambda _: "busy")
        async with trio.open_nursery() as nursery:
            await nursery.start(icons.run)
            await trio.sleep(LONG)
            nursery.cancel_scope.cancel("this leader is over")
    assert edits(rig) == ["id of ⚡"]


async def test_an_agent_is_idle_busy_or_away(rig: Rig) -> None:
    nora = rig.term.registry.by_key("nora")
    assert nora is not None
    assert overview.agent_state(rig.term, "nora") == "idle"
    rig.term.registry.remove(nora)
    assert overview.agent_state(rig.term, "nora") == "away"
