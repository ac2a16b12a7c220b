"""Followers that talk, as a process: each sends its messages one after another, and answers presses of buttons."""

from __future__ import annotations

import json
import sys
from functools import partial

import trio

import telegram_bus

PRESSED = "press"


def say(**facts: object) -> None:
    """One line of JSON."""
    print(json.dumps(facts), flush=True)


async def _talk(key: str, count: int, task_status: trio.TaskStatus[trio.Event]) -> None:
    """Join, put a button into the thread, wait for the signal, talk."""
    go, refusals = trio.Event(), 0
    async with telegram_bus.join(key) as bus, trio.open_nursery() as nursery:
        asked = await bus.send(f"{key}: press me", buttons=[[("press", PRESSED)]])
        say(key=key, thread=asked.thread_id, chat=asked.chat_id, message=asked.raw)
        nursery.start_soon(_answer, bus)
        task_status.started(go)
        await go.wait()
        for number in range(count):
            try:
                await bus.send(f"{key}:{number}")
            except telegram_bus.BusError as error:
                refusals += 1
                say(key=key, refused=str(error))
        say(key=key, done=count - refusals, refusals=refusals)
        await trio.sleep_forever()


async def _answer(bus: telegram_bus.Bus) -> None:
    """Answer presses: at once, and with a message."""
    async with trio.open_nursery() as nursery:
        async for update in bus:
            if update.kind == "callback":
                await update.answer()
                nursery.start_soon(_reply, update)
            await update.done()


async def _reply(update: telegram_bus.Update) -> None:
    try:
        await update.reply("pressed")
    except telegram_bus.BusError as error:
        say(refused=str(error))


async def _main(count: int, keys: list[str]) -> None:
    async with trio.open_nursery() as nursery:
        signals = [await nursery.start(partial(_talk, key, count)) for key in keys]
        say(ready=True)
        await trio.to_thread.run_sync(sys.stdin.readline)
        for signal in signals:
            signal.set()


if __name__ == "__main__":
    trio.run(_main, int(sys.argv[1]), sys.argv[2:])
