"""An agent that asks before it acts: say what to do, and press a button; kill it in between, and it still knows.

python examples/approve.py
"""

from __future__ import annotations

from contextlib import suppress

import trio

import telegram_bus


async def main() -> None:
    """Asks about each order, in its thread, and remembers where it was when it is started anew."""
    async with telegram_bus.join(name="careful") as bus:
        async for update in bus:
            if update.kind == "message":
                await decide(bus, update)
            await update.done()


async def decide(bus: telegram_bus.Bus, update: telegram_bus.Update) -> None:
    """One order: the update is not done before it is decided, so that it comes again after a crash."""
    answer = await bus.ask_person(
        f"Shall I really do this: {update.text[:200]}?",
        ["Yes", ("In a minute", {"wait": 60}), "No"],
        once=update.id,  # the same question after a restart, and the answer that came meanwhile
    )
    name = answer.sender["first_name"]
    if answer == "No":
        await update.reply(f"Then not, {name}.", once="result")
        return
    async with bus.typing_for():
        if isinstance(answer.value, dict):
            await trio.sleep(answer.value["wait"])
        await trio.sleep(1)  # the work
    await update.reply(f"Done, as {name} said.", once="result")


with suppress(KeyboardInterrupt):  # Ctrl-C is the way to end it
    trio.run(main)
