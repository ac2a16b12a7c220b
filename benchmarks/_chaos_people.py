"""The person of a run of chaos: presses, chooses, writes where nobody is, deletes threads; and Telegram's bad days."""

from __future__ import annotations

import json
import random
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import trio
from attrs import define, field

from benchmarks._chaos_check import LOST, QUESTION, notice_of
from telegram_bus.testing import Sandbox, SandboxError

__all__ = ["Person"]

PRESSED: Final = 0.6  # the share of buttons "Send again" that a person presses
LOOK: Final = 0.5
UNOWNED_EVERY: Final = 4.0  # seconds between messages in threads that nobody has
PATIENCE: Final = 2.0  # until a question that came to nothing is pressed again
DELETED_EVERY: Final = 31.0  # three threads that vanish within a minute are taken for a fault of Telegram's
BAD_DAY_EVERY: Final = 3.0

Line = Mapping[str, Any]


@define(kw_only=True, eq=False)
class Person:
    """What people do of themselves. `record` grows with what the sandbox notes, `diary` is what handlers wrote down.

    `said` is added to; `pressed` are, of each question, the answers that were given, in order; `deleted` the names of
    the threads that were deleted.
    """

    sandbox: Sandbox
    chance: random.Random
    record: Mapping[int, Line]
    diary: Callable[[], Sequence[Line]]
    said: list[str]
    pressed: dict[str, list[str]] = field(factory=lambda: defaultdict(list))
    deleted: list[str] = field(factory=list)
    calm: bool = True
    _seen: set[int] = field(factory=set)
    _threads: dict[int, str] = field(factory=dict)  # of nobody, with what waits in them
    _pressed_at: dict[int, float] = field(factory=dict)

    async def answer(self) -> None:
        """Press "Send again" under some of the notices, now and then twice, and answer every question."""
        while True:
            await trio.sleep(LOOK)
            for entry in list(self.record.values()):
                if entry["n"] in self._seen or not entry["ok"] or entry["method"] != "sendMessage":
                    continue
                self._seen.add(entry["n"])
                if (data := notice_of(entry)) is not None:
                    for _ in range(self.chance.choice((1, 1, 2)) if self.chance.random() < PRESSED else 0):
                        await self._press(entry, data)
                elif (text := str(entry["params"].get("text", ""))).startswith(QUESTION):
                    for _ in range(self.chance.choice((1, 1, 2))):
                        button = self.chance.choice(_buttons(entry))
                        self.pressed[text].append(button["text"])
                        await self._press(entry, button["callback_data"])

    async def write_to_nobody(self) -> None:
        """Write into threads that no agent has, and say who shall get it, until somebody has."""
        began = time.monotonic()
        while True:
            await trio.sleep(LOOK)
            if not self.calm and time.monotonic() - began > UNOWNED_EVERY:
                began = time.monotonic()
                text = f"{LOST}:{len(self.said)}"
                thread = await trio.to_thread.run_sync(self.sandbox.create_topic, text)
                await trio.to_thread.run_sync(partial(self.sandbox.say, text, thread_id=thread))
                self.said.append(text)
                self._threads[thread] = text
            had = {line["text"] for line in self.diary() if line["what"] == "handed"} if self._threads else set()
            self._threads = {thread: text for thread, text in self._threads.items() if text not in had}
            for thread in self._threads:
                if time.monotonic() - self._pressed_at.get(thread, 0.0) > PATIENCE:
                    await self._choose(thread)

    async def _choose(self, thread: int) -> None:
        asked = [
            entry
            for entry in list(self.record.values())
            if entry["method"] == "sendMessage" and entry["ok"] and entry["params"].get("message_thread_id") == thread
        ]
        for entry in asked[-1:]:
            buttons = await trio.to_thread.run_sync(self._now, thread, entry["result"]["message_id"])
            agents = [one for one in buttons if ":g:" in one["callback_data"] and one["text"].startswith("f")]
            again = [one for one in buttons if ":s:give" in one["callback_data"]]
            if agents or again:
                self._pressed_at[thread] = time.monotonic()
                await self._press(entry, self.chance.choice(agents or again)["callback_data"])

    def _now(self, thread: int, message_id: int) -> list[dict[str, str]]:
        """The buttons of a message as it is now."""
        messages = self.sandbox.messages(thread_id=thread, by_bot=True)
        return [key for one in messages if one["message_id"] == message_id for key in _keys(one.get("reply_markup"))]

    async def delete_threads(self) -> None:
        """Delete the thread of a newcomer that waits for that."""
        while True:
            await trio.sleep(LOOK)
            exposed = [line for line in self.diary() if line["what"] == "exposed" and line["key"] not in self.deleted]
            if exposed and not self.calm:
                line = exposed[-1]
                self.deleted.append(line["key"])
                with suppress(SandboxError):  # it has gone of itself
                    await trio.to_thread.run_sync(self.sandbox.delete_topic, line["thread"])
                await trio.sleep(DELETED_EVERY)

    async def have_bad_days(self) -> None:
        """Telegram wants a pause, or the answer to a message is lost on its way."""
        while True:
            await trio.sleep(self.chance.uniform(0.5, 1.5) * BAD_DAY_EVERY)
            if self.calm:
                continue
            match self.chance.randrange(3):
                case 0:
                    pause = partial(self.sandbox.refuse, "sendMessage", 429, "Too Many Requests: retry after 1")
                    trouble = partial(pause, parameters={"retry_after": 1})
                case 1:
                    trouble = partial(self.sandbox.drop_answer, "sendMessage")
                case _:
                    trouble = partial(self.sandbox.drop_call, "sendMessage")
            await trio.to_thread.run_sync(partial(trouble, seconds=BAD_DAY_EVERY))

    async def _press(self, entry: Line, data: str) -> None:
        message = {"chat": {"id": self.sandbox.chat_id}, "message_id": entry["result"]["message_id"]}
        with suppress(SandboxError):  # the button went with the first press
            await trio.to_thread.run_sync(self.sandbox.press, message, data)


def _buttons(entry: Line) -> list[dict[str, str]]:
    return _keys(entry["params"].get("reply_markup"))


def _keys(markup: Any) -> list[dict[str, str]]:
    rows = (json.loads(markup) if isinstance(markup, str) else markup or {}).get("inline_keyboard", [])
    return [key for row in rows for key in row]
