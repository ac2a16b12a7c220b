"""What is stored a moment later: much of it at once, and again where the disk takes none."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import trio
from trio.testing import MockClock

from telegram_bus.core.errors import LeadershipLost, StateError, single_fault
from telegram_bus.roles.saving import SAVE_AGAIN, SAVE_EVERY, Saving


async def test_much_is_stored_at_once_and_none_is_lost_to_a_full_disk(autojump_clock: MockClock) -> None:
    """The newest value counts, also where an older one waits for the disk."""
    saving: Saving[str, int] = Saving("it")
    stored: list[dict[str, int]] = []
    full = True

    async def write(batch: Mapping[str, int]) -> None:
        await trio.lowlevel.checkpoint()
        if full:
            raise StateError("the disk is full")
        stored.append(dict(batch))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(saving.run, write)
        saving.note({"a": 1})
        saving.note({"b": 1})
        await trio.sleep(SAVE_EVERY + 0.5)
        saving.note({"a": 2, "c": 1})
        full = False
        await trio.sleep(SAVE_AGAIN + SAVE_EVERY)
        assert stored == [{"a": 2, "b": 1, "c": 1}]
        nursery.cancel_scope.cancel("the test is over")


async def test_who_leads_no_more_stops_trying(autojump_clock: MockClock) -> None:
    async def write(_: Mapping[str, int]) -> None:
        raise LeadershipLost("another leads")

    saving: Saving[str, int] = Saving("it")
    saving.note({"a": 1})
    with pytest.raises(LeadershipLost), single_fault():
        await saving.run(write)
