"""What a follower sends in parts is kept whole, for as long as it can be gone on with."""

from __future__ import annotations

from pathlib import Path

from telegram_bus.store import open_inbox
from tests.store.test_inbox import Clock

HOUR = 3600.0


async def test_a_plan_is_found_over_a_restart_for_48_hours(tmp_path: Path) -> None:
    clock = Clock()
    async with open_inbox(tmp_path / "db", clock=clock) as inbox:
        assert await inbox.plan("a") is None
        await inbox.keep_plan("a", b"one")
        await inbox.keep_plan("b", b"")
    clock.seconds += 48 * HOUR
    async with open_inbox(tmp_path / "db", clock=clock) as inbox:
        assert (await inbox.plan("a"), await inbox.plan("b")) == (b"one", b"")
        clock.seconds += 1
        assert await inbox.plan("a") is None


async def test_old_plans_go_when_another_one_comes(tmp_path: Path) -> None:
    clock = Clock()
    async with open_inbox(tmp_path / "db", clock=clock) as inbox:
        await inbox.keep_plan("a", b"one")
        clock.seconds += 49 * HOUR
        await inbox.keep_plan("b", b"two")
        clock.seconds -= 48 * HOUR  # a clock that was set back does not bring it back
        assert (await inbox.plan("a"), await inbox.plan("b")) == (None, b"two")
