"""The budget over a change of leaders: what counts is noted by the wall clock, and taken up by the next one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import trio
from attrs import define, field

from telegram_bus.core.budget import Budget
from telegram_bus.store.budget import ALL, Hold, SpentJournal

__all__ = ["Windows"]

log = logging.getLogger(__name__)


@define(eq=False)
class Windows:
    """The memory of a sender (`botapi.requests.Memory`). Nothing but `flush` and `recall` waits for the disk."""

    journal: SpentJournal = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)

    async def recall(self, budget: Budget, *, sure: bool = True) -> None:
        """Let the budget go on where earlier leaders were; where that is not known (not `sure`) it waits."""
        wall = self.now_ms()
        spent, holds, complete = await self.journal.begin(wall)
        now = trio.current_time()
        for one in spent:
            ended = now - max(0, wall - one.ended_ms) / 1000
            budget.recall(one.chat_id, one.weight, ended, progress=one.progress)
        for hold in holds:
            chat_id = None if hold.chat_id == ALL else hold.chat_id
            if hold.until_ms > wall:
                budget.recall_pause(chat_id, now + (hold.until_ms - wall) / 1000)
            if hold.most:
                budget.recall_level(chat_id, (hold.most, hold.stretch), now)
        if not (sure and complete):
            log.warning("what was sent a moment ago is not known; the limits of Telegram count as reached")
            budget.be_unsure(now)

    def started(self, number: int, chat_id: int | None, weight: int) -> None:
        """A call that counts is about to leave; `number` is odd where it only shows progress."""
        self.journal.started_soon(number, chat_id, weight, self.now_ms())

    def ended(self, number: int) -> None:
        """It was answered, or will not be."""
        self.journal.ended_soon(number, self.now_ms())

    def changed(
        self, pauses: Mapping[int | None, float], levels: Mapping[int | None, tuple[int, float]], now: float
    ) -> None:
        """Pauses and lowered limits are these."""
        wall = self.now_ms()
        holds = []
        for chat_id in {*pauses, *levels}:
            until = wall + round((pauses[chat_id] - now) * 1000) if chat_id in pauses else 0
            holds.append(Hold(ALL if chat_id is None else chat_id, until, *levels.get(chat_id, (0, 1.0))))
        self.journal.hold_soon(holds)

    async def flush(self) -> None:
        """Return once what was noted is on the disk."""
        await self.journal.flush()
