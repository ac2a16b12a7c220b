"""Tells in its thread which agents come and go, and prints it."""

from __future__ import annotations

from contextlib import suppress

import trio

import telegram_bus


async def main() -> None:
    """Watches until it is stopped."""
    async with telegram_bus.join(name="watcher") as bus:
        before: set[str] = set()
        async for members in bus.watch_members():
            now = {member.name or member.key for member in members if member.key != bus.key}
            words = [f"{name} came" for name in sorted(now - before)]
            words += [f"{name} left" for name in sorted(before - now)]
            before = now
            if words:
                print(", ".join(words), flush=True)
                await bus.send(", ".join(words))


with suppress(KeyboardInterrupt):  # Ctrl-C is the way to end it
    trio.run(main)
