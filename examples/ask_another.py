"""Two agents, each a process of its own: `asker` has your questions answered by `expert`, in the expert's thread.

python examples/ask_another.py expert & python examples/ask_another.py asker
"""

from __future__ import annotations

import sys

import trio

import telegram_bus


async def ask() -> None:
    """Passes questions of people on to the expert, and the expert's answers back."""
    async with telegram_bus.join(name="asker") as bus:
        async for update in bus:
            if update.kind == "message":
                if from_agent(update):
                    await bus.send(f"The expert says: {update.text}")
                else:
                    await bus.tell("expert", update.text)
            await update.done()


async def know() -> None:
    """Answers questions in its own thread, where people can follow it, and tells the answer to an agent that asked."""
    async with telegram_bus.join(name="expert") as bus:
        async for update in bus:
            if update.kind == "message":
                answer = f"{update.text!r} has {len(update.text.split())} words."
                await update.reply(answer)
                asked_by = from_agent(update)
                if asked_by:
                    await bus.tell(asked_by, answer)
            await update.done()


def from_agent(update: telegram_bus.Update) -> str | None:
    """The name of the agent that wrote this; None when a person did."""
    sender = update.sender or {}
    return sender["first_name"] if sender.get("is_bot") else None


roles = {"asker": ask, "expert": know}
if len(sys.argv) != 2 or sys.argv[1] not in roles:
    sys.exit("usage: python ask_another.py asker|expert")
trio.run(roles[sys.argv[1]])
