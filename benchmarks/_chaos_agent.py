"""A process of several followers whose handlers write down what they do, in a file that outlives them.

Without names of followers it is one follower after another, each new.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import trio

import telegram_bus
from telegram_bus.agent import Update

__all__ = ["QUESTION", "asks_person", "parts_of", "recipient_of"]

PARTS = {"??": 3, "?": 1, "!": 1}
"""What ends the text of an update that wants an answer, and of how many messages; after `!` nobody waits for it."""

QUESTION = "which for "
"""What begins a question to a person, which the text of an update that ends in `#` wants."""

CHOICES = ("yes", "no", "perhaps")

LEAVES = 0.02  # seconds, at most, after which a handler stops waiting for the answer to `!`
PAUSE = 0.3  # seconds between newcomers

EXPOSED = 5  # of so many newcomers one waits for a person to delete its thread
NEXT_WORD = 0.5  # seconds between its words, …
WORDS = 20.0  # … and for how long it says them

AGAIN = 0.1  # seconds until what a full disk refused is tried again


def parts_of(text: str) -> int:
    """How many messages the answer to an update has."""
    return next((count for ending, count in PARTS.items() if text.endswith(ending)), 0)


def recipient_of(text: str) -> str | None:
    """To whom the update of this text is to be handed over: `f1:7>f2`."""
    return text.partition(">")[2] or None


def asks_person(text: str) -> bool:
    """Whether a person is asked something because of the update of this text."""
    return text.endswith("#")


class Diary:
    """Appends lines of JSON, each with one write: what was written before a kill is there after it."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def note(self, what: str, **facts: Any) -> None:
        """Write a line, however long the disk takes."""
        line = json.dumps({"what": what, "pid": os.getpid(), "at": time.monotonic(), **facts}).encode() + b"\n"
        while True:
            try:
                os.write(self._file, line)
            except OSError:
                await trio.sleep(AGAIN)
            else:
                return


async def _follow(name: str, diary: Diary) -> None:
    while True:
        joined = False
        try:
            async with telegram_bus.join(name) as bus:
                joined = True
                await _work(bus, diary)
        except telegram_bus.StateError as error:  # join says so while the disk fails; later nothing may
            if joined:
                raise
            await diary.note("not yet", key=name, why=str(error))
            await trio.sleep(AGAIN)


async def _work(bus: telegram_bus.Bus, diary: Diary) -> None:
    await bus.wait_serving()
    await diary.note("serving", key=bus.key)
    async for update in bus:
        facts = {"key": bus.key, "id": update.id}
        for message in update.parts:  # an album is one update
            await diary.note("handed", text=message.get("text", message.get("caption")), **facts)
        to = recipient_of(update.text)
        if to not in (None, bus.key) and await _gave(update, to, diary, facts):
            continue
        if asks_person(update.text):
            await _ask(bus, update.text, diary, facts)
        count = parts_of(update.text)
        for part in range(1, count + 1):
            with trio.move_on_after(random.uniform(0, LEAVES) if update.text.endswith("!") else math.inf):
                await _answer(update, diary, facts, part, count)
        await _finish(update)
        await diary.note("done", **facts)


async def _gave(update: Update, to: str, diary: Diary, facts: dict[str, Any]) -> bool:
    """Hand the update over; False where it stays here."""
    while True:
        try:
            await update.hand_over(to)
        except telegram_bus.RequestRefused as refusal:
            await diary.note("kept", why=str(refusal), **facts)
            return False
        except telegram_bus.BusError:  # a full disk: who has it will be known when it is asked again
            await trio.sleep(AGAIN)
        except ValueError:  # it had gone over, and only the end of that was not stored
            await diary.note("gave", **facts)
            return True
        else:
            await diary.note("gave", **facts)
            return True


async def _ask(bus: telegram_bus.Bus, text: str, diary: Diary, facts: dict[str, Any]) -> None:
    while True:
        try:
            answer = await bus.ask_person(QUESTION + text, CHOICES, once=text)
        except telegram_bus.CommitUnknown:
            await diary.note("not asked", **facts)
        except telegram_bus.BusError as fault:  # a full disk
            await diary.note("not asked yet", why=str(fault), **facts)
            await trio.sleep(AGAIN)
            continue
        else:
            await diary.note("answered", value=str(answer), **facts)
        return


async def _answer(update: Update, diary: Diary, facts: dict[str, Any], part: int, count: int) -> None:
    """Send a part of the answer once; the words differ each time, as those of a model do."""
    facts = {**facts, "part": part}
    while True:
        try:
            words = f"re {update.text} {part} of {count} by {os.getpid()} at {time.monotonic()}"
            sent = await update.reply(words, once=f"answer {part}")
        except telegram_bus.CommitUnknown:
            await diary.note("unknown", **facts)
        except telegram_bus.RequestRefused as refusal:  # a full disk, surely not sent
            await diary.note("refused", why=str(refusal), **facts)
            await trio.sleep(AGAIN)
            continue
        else:
            await diary.note("sent", message_id=sent.message_id, **facts)
        return


async def _finish(update: Update) -> None:
    while True:
        try:
            await update.done()
        except telegram_bus.StateError:
            await trio.sleep(AGAIN)
        else:
            return


async def _come_and_go(diary: Diary) -> None:
    """One follower after another that nobody knows yet, each of which needs a thread."""
    for number in itertools.count():
        name = f"new-{os.getpid()}-{number}"
        try:
            async with telegram_bus.join(name) as bus:
                await bus.wait_serving()
                thread = None if bus.target is None else bus.target.thread_id
                await diary.note("came", key=bus.key, thread=thread)
                if number % EXPOSED == EXPOSED - 1 and thread is not None:
                    await diary.note("exposed", key=bus.key, thread=thread)
                    await _speak(bus, thread)
        except telegram_bus.StateError as error:
            await diary.note("not yet", key=name, why=str(error))
        await trio.sleep(PAUSE)


async def _speak(bus: telegram_bus.Bus, thread: float) -> None:
    """Say something now and then, until a person has deleted the thread and there is another one."""
    with trio.move_on_after(WORDS):
        while bus.target is None or bus.target.thread_id == thread:
            try:
                await bus.send(f"still here at {time.monotonic()}")
            except (telegram_bus.ApiError, telegram_bus.BusError):
                await trio.sleep(NEXT_WORD)
            await trio.sleep(NEXT_WORD)


def _end_with_parent() -> None:
    while os.read(0, 1024):  # not through sys.stdin, whose lock would be held when the interpreter ends
        pass
    os._exit(0)


async def _main(path: Path, names: list[str]) -> None:
    diary = Diary(path)
    try:
        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(_follow, name, diary)
            if not names:
                nursery.start_soon(_come_and_go, diary)
    except BaseException:
        await diary.note("fault", why=traceback.format_exc())  # stderr may be on the disk that fails
        raise


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    trio.run(_main, Path(sys.argv[1]), sys.argv[2:])
