"""A value that tasks can wait on: the newest counts, and nobody misses the last one."""

from __future__ import annotations

import trio
from trio.testing import wait_all_tasks_blocked

from telegram_bus.roles.watched import Watched


async def test_who_waits_for_a_value_gets_it_at_once_or_when_it_comes() -> None:
    watched = Watched(1)
    assert await watched.wait_for(lambda value: value == 1) == 1
    got: list[int] = []

    async def wait() -> None:
        got.append(await watched.wait_for(lambda value: value > 2))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        watched.set(2)
        await wait_all_tasks_blocked()
        assert got == []
        watched.set(3)
        watched.set(4)
    assert got == [4]
    assert watched.value == 4


async def test_an_equal_value_wakes_nobody() -> None:
    watched, woken = Watched("a"), trio.Event()

    async def wait() -> None:
        await watched.wait_changed()
        woken.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        watched.set("a")
        await wait_all_tasks_blocked()
        assert not woken.is_set()
        watched.set("b")


async def test_values_are_the_one_now_and_the_newest_after_each_change() -> None:
    """Whoever is slow misses those between, but never the last."""
    watched = Watched(0)
    values = watched.values()
    assert await anext(values) == 0
    watched.set(1)
    watched.set(2)
    assert await anext(values) == 2
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def change() -> None:
            await wait_all_tasks_blocked()
            watched.set(3)

        assert await anext(values) == 3
