"""The demo's first follower: repeats what is written to it, and has buttons that change its answer."""

from __future__ import annotations

import trio

from telegram_bus.agent import Bus, Update, join

__all__ = ["main"]

_BUTTONS = [[("LOUDER", "louder"), ("Backwards", "backwards")], [("Forget it", "forget")]]


async def main() -> None:
    """Serves the thread `echo` until it is ended."""
    async with join(name="echo") as bus:
        async for update in bus:
            await _answer(bus, update)
            await update.done()


async def _answer(bus: Bus, update: Update) -> None:
    match update.kind:
        case "message":
            await update.reply(f"You said: {update.text}", buttons=_BUTTONS)
        case "edited_message":
            await update.reply(f"Now you say: {update.text}")
        case "callback":
            await _press(bus, update)
        case "reaction":
            pass


async def _press(bus: Bus, update: Update) -> None:
    message, text = update.message["message_id"], update.text.removeprefix("You said: ")
    await update.answer()
    match update.data:
        case "louder":
            await bus.edit(message, f"{text.upper()}!")
        case "backwards":
            await bus.edit(message, text[::-1])
        case _:
            await bus.delete(message)


if __name__ == "__main__":
    trio.run(main)
