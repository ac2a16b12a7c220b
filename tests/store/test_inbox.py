"""The follower's inbox: acknowledged means committed, and handled means never again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import trio

from telegram_bus.store import Inbox, open_inbox

KIND = "leader.forwardMessage"


class Clock:
    """A wall clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 1_700_000_000.0

    def __call__(self) -> float:
        return self.seconds


async def waiting(inbox: Inbox) -> list[str]:
    return [received.delivery_id for received in await inbox.pending()]


async def test_deliveries_wait_in_order_of_arrival_over_a_restart_until_they_are_done(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "db", clock=Clock()) as inbox:
        for name in ("c", "a", "b"):
            assert await inbox.append(name, KIND, 5, b'{"text":"%s"}' % name.encode())
        await inbox.done("a")
    async with open_inbox(tmp_path / "db", clock=Clock()) as inbox:
        [first, second] = await inbox.pending()
    assert (first.delivery_id, first.kind, first.source_update_id, first.body) == ("c", KIND, 5, b'{"text":"c"}')
    assert first.received_ms == 1_700_000_000_000
    assert second.delivery_id == "b"


async def test_a_repeated_delivery_is_recognised_while_it_waits_and_after_it_is_done(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "db") as inbox:
        assert await inbox.append("a", KIND, 5, b"1")
        assert not await inbox.append("a", KIND, 5, b"1")
        await inbox.done("a")
        assert not await inbox.append("a", KIND, 5, b"1")
        assert await waiting(inbox) == []
    async with open_inbox(tmp_path / "db") as inbox:
        assert not await inbox.append("a", KIND, 5, b"1")


async def test_the_id_is_forgotten_two_days_after_it_was_done_and_the_body_at_once(tmp_path: Path) -> None:
    clock = Clock()
    async with open_inbox(tmp_path / "db", clock=clock) as inbox:
        await inbox.append("a", KIND, 5, b"sentinel body")
        await inbox.append("waits", KIND, 6, b"2")
        await inbox.done("a")
        clock.seconds += 48 * 3600
        await inbox.done("unknown")
        assert not await inbox.append("a", KIND, 5, b"1")
        clock.seconds += 1
        await inbox.done("unknown")
        assert await inbox.append("a", KIND, 5, b"1")
        assert await waiting(inbox) == ["waits", "a"]


async def test_a_cancelled_append_is_kept(tmp_path: Path) -> None:
    async with open_inbox(tmp_path / "db") as inbox:
        with trio.CancelScope() as scope:
            scope.cancel()
            await inbox.append("a", KIND, 5, b"1")
        assert await waiting(inbox) == ["a"]


async def test_done_twice_keeps_the_first_time(tmp_path: Path) -> None:
    clock = Clock()
    async with open_inbox(tmp_path / "db", clock=clock) as inbox:
        await inbox.append("a", KIND, 5, b"1")
        await inbox.done("a")
        clock.seconds += 40 * 3600
        await inbox.done("a")
        clock.seconds += 10 * 3600
        await inbox.done("other")
        assert await inbox.append("a", KIND, 5, b"1")


def test_a_follower_that_imports_the_inbox_imports_no_telegram_and_no_http() -> None:
    code = "import sys, telegram_bus.store; print(*sorted({'telegram', 'httpx', 'asyncio', 'rich'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
