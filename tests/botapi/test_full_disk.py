"""Where it cannot be noted that a call leaves: a full disk silences nobody, a deposed leader sends nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import trio

from telegram_bus.botapi.sender import Sender
from telegram_bus.core.errors import BusError, LeadershipLost, StateError
from telegram_bus.core.permissions import repeatable
from tests.fakes import CHAT, FakeTelegram


class Memory:
    """A memory that fails when somebody waits for it."""

    def __init__(self, fault: BusError) -> None:
        self.fault = fault

    def started(self, number: int, chat_id: int | None, weight: int) -> None: ...

    def ended(self, number: int) -> None: ...

    def changed(
        self, pauses: Mapping[int | None, float], levels: Mapping[int | None, tuple[int, float]], now: float
    ) -> None: ...

    async def flush(self) -> None:
        await trio.lowlevel.checkpoint()
        raise self.fault


async def say(telegram: FakeTelegram, fault: BusError) -> Any:
    sender = Sender(telegram, repeatable=repeatable, memory=Memory(fault))
    async with trio.open_nursery() as nursery:
        await nursery.start(sender.run)
        try:
            return await sender.call("sendMessage", {"chat_id": CHAT, "text": "the disk is full"}, CHAT)
        finally:
            nursery.cancel_scope.cancel("it was said")


async def test_people_hear_of_a_full_disk() -> None:
    telegram = FakeTelegram()
    assert (await say(telegram, StateError("full")))["message_id"]
    assert len(telegram.made("sendMessage")) == 1


async def test_who_leads_no_more_says_nothing() -> None:
    telegram = FakeTelegram()
    with pytest.RaisesGroup(LeadershipLost):
        await say(telegram, LeadershipLost("another leads"))
    assert telegram.calls == []
