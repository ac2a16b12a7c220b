"""An agent in an asyncio program: the bus blocks, so each call runs in a thread; other tasks go on meanwhile."""

from __future__ import annotations

import asyncio

from telegram_bus import blocking


async def tick(counted: list[int]) -> None:
    """Something else that the program does."""
    while True:
        counted[0] += 1
        await asyncio.sleep(0.01)


async def main() -> None:
    """Answers until it is stopped."""
    counted = [0]
    ticking = asyncio.create_task(tick(counted))
    with blocking.join("ticker") as bus:
        while (update := await asyncio.to_thread(bus.next_update)) is not None:
            if update.kind == "message":
                await asyncio.to_thread(update.reply, f"{counted[0]} ticks so far")
            await asyncio.to_thread(update.done)
    ticking.cancel()


try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("bye", flush=True)
