"""The smallest agent: it answers whatever is written in its thread."""

from contextlib import suppress

import trio

import telegram_bus


async def main() -> None:
    async with telegram_bus.join(name="echo") as bus:
        async for update in bus:
            if update.kind == "message":
                await update.reply(f"You said: {update.text}")
            await update.done()


with suppress(KeyboardInterrupt):  # Ctrl-C is the way to end it
    trio.run(main)
