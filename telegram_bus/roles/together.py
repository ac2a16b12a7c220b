"""Several pieces of work at once, with the one fault that a caller expects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

__all__ = ["together"]


async def together(*works: Callable[[], Awaitable[object]]) -> None:
    """Do all of it at once. The first that fails ends the others, and what it raised is raised, in no group."""
    faults: list[Exception] = []
    async with trio.open_nursery() as nursery:

        async def do(work: Callable[[], Awaitable[object]]) -> None:
            try:
                await work()
            except Exception as fault:  # noqa: BLE001 - raised again below, out of the nursery's group
                faults.append(fault)
                nursery.cancel_scope.cancel("another piece of the work failed")

        for work in works:
            nursery.start_soon(do, work)
    if faults:
        raise faults[0]
