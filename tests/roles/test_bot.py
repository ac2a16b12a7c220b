"""Who the bot is, and what its settings forbid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from trio.testing import MockClock

from telegram_bus.core.errors import ApiError, NotSent
from telegram_bus.roles.bot import BotFacts, hindrances, learn_bot

GROUP, PRIVATE = -1001234, 11


@pytest.mark.parametrize(
    ("chat", "facts", "word"),
    [
        (PRIVATE, {"has_topics": False}, "Threaded Mode"),
        (PRIVATE, {"has_topics": True, "reads_groups": False}, None),
        (GROUP, {"reads_groups": False, "is_administrator": False, "manages_topics": True}, "Group Privacy"),
        (GROUP, {"reads_groups": False, "is_administrator": True, "manages_topics": True}, None),
        (
            GROUP,
            {"reads_groups": True, "is_administrator": False, "manages_topics": False, "is_forum": True},
            "manage topics",
        ),
        (GROUP, {"reads_groups": True, "is_forum": False}, "switch on Topics"),
        (GROUP, {}, None),
    ],
    ids=str,
)
def test_what_is_in_the_way_names_the_switch(chat: int, facts: dict[str, Any], word: str | None) -> None:
    found = hindrances(BotFacts(id=9, username="our_bot", **facts), chat)
    if word is None:
        assert found == []
    else:
        assert len(found) == 1
        assert word in found[0]
        assert "@our_bot" in found[0]


@pytest.mark.parametrize(
    ("seat", "expected"),
    [
        ({"status": "administrator", "can_manage_topics": True}, (True, True)),
        ({"status": "administrator"}, (True, False)),
        ({"status": "member"}, (False, False)),
    ],
    ids=str,
)
async def test_in_a_group_the_bot_s_own_rights_are_asked_for(seat: dict[str, Any], expected: tuple[bool, bool]) -> None:
    async def call(method: str, params: Mapping[str, Any]) -> Any:
        if method == "getMe":
            return {"username": "our_bot", "can_read_all_group_messages": False}
        if method == "getChat":
            return {"id": GROUP, "is_forum": True}
        assert (method, params) == ("getChatMember", {"chat_id": GROUP, "user_id": 9})
        return seat

    facts = await learn_bot(call, 9, GROUP)
    assert (facts.is_administrator, facts.manages_topics, facts.is_forum) == (*expected, True)
    assert (facts.name, facts.reads_groups) == ("@our_bot", False)


async def test_a_chat_that_telegram_does_not_let_the_bot_into_is_named() -> None:
    async def call(method: str, _params: Mapping[str, Any]) -> Any:
        if method == "getMe":
            return {"username": "our_bot"}
        raise ApiError(method, 400, "Bad Request: chat not found")

    facts = await learn_bot(call, 9, PRIVATE)
    assert facts.no_chat == "Bad Request: chat not found"
    assert ["--chat" in one for one in hindrances(facts, PRIVATE)] == [True]


async def test_telegram_is_asked_until_it_answers(autojump_clock: MockClock) -> None:
    asked = []

    async def call(method: str, _params: Mapping[str, Any]) -> Any:
        asked.append(method)
        if len(asked) < 4:
            raise NotSent("no network")
        return {"username": "our_bot", "has_topics_enabled": True}

    facts = await learn_bot(call, 9, PRIVATE)
    assert facts.has_topics is True
    assert asked == ["getMe"] * 4 + ["getChat"]
    assert facts.is_administrator is None
