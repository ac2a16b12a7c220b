"""Deafness is found within minutes, without a false alarm; sleep is told from time that passes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import trio
from attrs import define, field
from trio.testing import MockClock

from telegram_bus.core.errors import NotSent
from telegram_bus.roles.hearing import LOOK_EVERY, SLEPT, TICK, watch_clocks, watch_hearing


@define
class Telegram:
    """Says how much waits; polls bring `brings` updates between two looks."""

    pending: list[Any] = field(factory=list)
    brings: int = 0
    received: int = 0
    asked: int = 0
    serving: bool = True
    told: list[str | None] = field(factory=list)

    async def call(self, method: str, _params: Mapping[str, Any]) -> Any:
        assert method == "getWebhookInfo"
        self.asked += 1
        await trio.lowlevel.checkpoint()
        answer = self.pending.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, str) else {"url": "", "pending_update_count": answer}

    async def look(self, times: int) -> list[str | None]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch)
            await trio.sleep(LOOK_EVERY / 2)
            for _ in range(times):
                self.received += self.brings
                await trio.sleep(LOOK_EVERY)
            nursery.cancel_scope.cancel("enough")
        return self.told

    async def _watch(self) -> None:
        await watch_hearing(
            self.call, serving=lambda: self.serving, received=lambda: self.received, report=self.told.append
        )


async def test_what_waits_twice_while_polls_are_empty_makes_a_bot_deaf(autojump_clock: MockClock) -> None:
    told = await Telegram(pending=[3, 4, 4, 0]).look(4)
    deaf = "Telegram holds 4 updates that polls do not bring"
    assert told == [None, deaf, deaf, None]


@pytest.mark.parametrize("answers", [[1, 0, 1, 0], [1, NotSent("no network"), "odd", 0], [True, None, "5", 0]])
async def test_what_comes_and_goes_is_no_deafness(autojump_clock: MockClock, answers: list[Any]) -> None:
    assert set(await Telegram(pending=answers).look(4)) == {None}


async def test_a_bot_that_hears_is_not_asked_about(autojump_clock: MockClock) -> None:
    telegram = Telegram(brings=1)
    await telegram.look(4)
    assert telegram.asked == 0
    away = Telegram(serving=False)
    await away.look(4)
    assert away.asked == 0


async def slept(seconds_of_sleep: Callable[[int], float]) -> list[float]:
    """What is told while the wall clock runs ahead so much in each tick."""
    told: list[float] = []
    extra, ticks = 0.0, 0

    def wall() -> float:
        return trio.current_time() + extra

    async with trio.open_nursery() as nursery:

        async def watch() -> None:
            await watch_clocks(told.append, wall=wall)

        nursery.start_soon(watch)
        for ticks in range(10):
            await trio.sleep(TICK)
            extra += seconds_of_sleep(ticks)
        nursery.cancel_scope.cancel("enough")
    return told


async def test_a_machine_that_slept_is_noticed_once(autojump_clock: MockClock) -> None:
    assert [round(one) for one in await slept(lambda tick: 3_600.0 if tick == 4 else 0.0)] == [3_600]


async def test_clocks_that_drift_or_are_set_back_are_no_sleep(autojump_clock: MockClock) -> None:
    assert await slept(lambda tick: SLEPT / 2 if tick % 2 else -60.0) == []
