"""What a leader hears: the poller's updates, how polling goes, and whether this machine slept."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import trio
from attrs import define, field

from telegram_bus.botapi.poller import Order, Renewal, run_poller
from telegram_bus.botapi.polling import PollState
from telegram_bus.botapi.transport import BotApi
from telegram_bus.core.health import Condition, remedy
from telegram_bus.roles.hearing import watch_clocks, watch_hearing
from telegram_bus.roles.intake import Intake
from telegram_bus.roles.notices import Notices
from telegram_bus.roles.term import Term

__all__ = ["Reception"]

log = logging.getLogger(__name__)


@define(kw_only=True, eq=False)
class Reception:
    """The polling side of a term; each of its tasks runs until it is cancelled."""

    term: Term
    api: BotApi
    intake: Intake
    notices: Notices
    order: Order
    ready: trio.Event = field(factory=trio.Event)
    """To be set once the bus can take updates; what a poll brings before that waits for it."""
    _renewal: Renewal = field(factory=Renewal)

    @property
    def serving(self) -> bool:
        """Whether polling goes well at this moment."""
        return (state := self.term.polling.value) is not None and state.state == "serving"

    async def poll(self) -> None:
        """Take updates from where the last leader left off."""
        await run_poller(
            self.api,
            offset=await self.term.store.offset(),
            commit=self._commit,
            report=self._note,
            order=self.order,
            renewal=self._renewal,
        )

    async def _commit(self, batch: Sequence[dict[str, Any]], next_offset: int) -> None:
        await self.ready.wait()
        await self.intake.commit(batch, next_offset)

    async def watch_hearing(self) -> None:
        """Notice that polls are answered and yet nothing is heard, and connect anew then."""

        def report(why: str | None) -> None:
            if self.term.note_trouble("deaf", why) and why is not None:
                log.warning("polling: deaf (%s)", why)
                self.notices.say_once("deaf", why)
            if why is not None:
                self._renewal.ask(why)

        await watch_hearing(
            self.api.call,
            serving=lambda: self.serving,
            received=lambda: self.intake.received,
            report=report,
        )

    async def watch_clocks(self) -> None:
        """Connect anew behind a sleep of this machine."""

        def woke(slept: float) -> None:
            log.warning("this machine slept for %.0f s, or its clock was set; connecting anew", slept)
            self._renewal.ask("this machine slept")

        await watch_clocks(woke)

    def _note(self, state: PollState) -> None:
        before = self.term.polling.value
        self.term.polling.set(state)
        if state.state != (before.state if before is not None else "starting"):
            level = logging.INFO if state.state in ("starting", "serving") else logging.WARNING
            todo = remedy(Condition(state.state, state.detail))
            why = f" ({state.detail})" if state.detail else ""
            log.log(level, "polling: %s%s%s", state.state, why, f" — {todo}" if todo else "")
        self.notices.note_polling(state)
