"""Several pieces of work at once: all of it, or the one fault."""

from __future__ import annotations

import pytest
import trio

from telegram_bus.roles.together import together


async def test_everything_is_done_at_once() -> None:
    met, done = trio.Event(), []

    async def one() -> None:
        await met.wait()
        done.append(1)

    async def two() -> None:
        met.set()
        done.append(2)

    await together(one, two)
    assert sorted(done) == [1, 2]
    await together()


async def test_the_first_fault_is_raised_alone_and_ends_the_rest() -> None:
    ended = trio.Event()

    async def waits() -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    async def fails() -> None:
        await trio.lowlevel.checkpoint()
        raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        await together(waits, fails)
    assert ended.is_set()
