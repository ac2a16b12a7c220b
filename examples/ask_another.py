"""Two agents, each a process of its own: `asker` has your questions answered by `expert`, in the expert's thread.

python examples/ask_another.py expert & python examples/ask_another.py asker
"""

from __future__ import annotations

import sys
from contextlib import suppress

import trio

import telegram_bus


async def ask() -> None:
    """Passes the questions of people on to the expert; the answer comes back into this thread."""
    async with telegram_bus.join(name="asker") as bus:
        async for update in bus:
            if update.kind == "message":
                agent = from_agent(update)
                if agent:
                    await update.reply(f"So says {agent}.")
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
                agent = from_agent(update)
                if agent:
                    await bus.tell(agent, answer)
            await update.done()


def from_agent(update: telegram_bus.Update) -> str | None:
    """The name of the agent that wrote this; None when a person did."""
    sender = update.sender or {}
    return sender["first_name"] if sender.get("is_bot") else None


roles = {"asker": ask, "expert": know}
if len(sys.argv) != 2 or sys.argv[1] not in roles:
    sys.exit("usage: python ask_another.py asker|expert")
with suppress(KeyboardInterrupt):  # Ctrl-C is the way to end it
    trio.run(roles[sys.argv[1]])
