"""Between a thread and a program: messages become lines on its stdin, its output becomes messages."""

from __future__ import annotations

import codecs
import math
from collections.abc import AsyncIterator
from typing import Any, Final, Protocol

import trio

from telegram_bus.cli.faults import say
from telegram_bus.cli.program import READ_SIZE, Program
from telegram_bus.core.bindings import verdict_of
from telegram_bus.core.errors import AnswerLost, ApiError, RequestRefused
from telegram_bus.core.text import OutputCutter, ending

__all__ = ["SILENCE", "Incoming", "Thread", "lines_of", "serve_program"]

SILENCE: Final = 0.3
"""Seconds without output after which what there is becomes a message: a person takes it as at once."""

FAREWELL: Final = 15.0
"""Seconds for telling the end of the program: longer than a leader's successor takes to come."""

_NEW_THREAD: Final = (1.0, 2.0, 4.0, 8.0)
"""Seconds between the tries of a message whose thread is gone: the leader finds that out by a call or two, each of
which may have to wait for its turn."""

_CONTENTS: Final = ("photo", "voice", "video", "audio", "document", "animation", "video_note", "sticker")
_CONTENTS_TOO: Final = ("location", "contact", "poll", "dice", "story")


class Incoming(Protocol):
    """An update for the program, `telegram_bus.Update` as far as it is needed here."""

    @property
    def kind(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def parts(self) -> tuple[Any, ...]: ...

    async def done(self) -> None: ...


class Thread(Protocol):
    """The program's thread, `telegram_bus.Bus` as far as it is needed here."""

    def __aiter__(self) -> AsyncIterator[Incoming]: ...

    @property
    def state(self) -> str: ...

    async def send(self, text: str, /) -> Any: ...


async def serve_program(thread: Thread, program: Program, title: str) -> int:
    """Connects the two until the program has ended and its thread knows; returns how, as `Program.wait`."""
    async with trio.open_nursery() as around:
        around.start_soon(_write_messages, thread, program, title)
        output = _Output(thread, program)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(output.run)
            status = await program.wait()
            output.end()
        around.cancel_scope.cancel("the program ended")
    if thread.state == "serving":  # else nobody would hear it before the next leader
        with trio.move_on_after(FAREWELL):
            await _send(thread, f"{title} {ending(status)}.")
    return status


def lines_of(update: Incoming) -> str:
    """What a message is on stdin: its text as lines; `[photo]` and the like, one a file, before the caption of files.

    Only new messages are lines: edits, reactions and buttons are not, and neither are service messages.
    """
    if update.kind != "message":
        return ""
    kinds = [next((name for name in (*_CONTENTS, *_CONTENTS_TOO) if name in part), None) for part in update.parts]
    text = " ".join([*(f"[{kind}]" for kind in kinds if kind is not None), update.text]).rstrip()
    if not text:
        return ""
    return text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n") + "\n"


async def _write_messages(thread: Thread, program: Program, title: str) -> None:
    """One message after the other; one that the program did not get stays for its next start."""
    async for update in thread:
        lines = lines_of(update)
        if lines and not await program.write(lines):
            if program.alive:
                await _send(thread, f"{title} reads no more; messages wait for its next start.")
            return
        # a program that reads and ends at once shall not get the same message at its next start
        with trio.CancelScope(shield=True):
            await update.done()


class _Output:
    """The way of the output into the thread, one message at a time.

    While a message is being sent nothing is read: a flood fills the pipe and stops the program, not our memory,
    and what a slow chat holds up arrives in fewer, larger messages.
    """

    def __init__(self, thread: Thread, program: Program) -> None:
        self._thread = thread
        self._program = program
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._cutter = OutputCutter()
        self._reading = trio.CancelScope()
        self._left = math.inf

    async def run(self) -> None:
        """Until nobody can write any more, or the program ended and what it left behind was sent."""
        while self._left > 0:
            data, had_ended = b"", self._left < math.inf
            with trio.CancelScope(deadline=self._patience()) as self._reading:
                data = await self._program.read()
            if data:
                self._left -= len(data)
                await self._send(self._cutter.feed(self._decoder.decode(data)))
                continue
            await self._send(self._cutter.flush())
            if not self._reading.cancelled_caught or had_ended:  # not: while that was being sent
                break
        await self._send([*self._cutter.feed(self._decoder.decode(b"", final=True)), *self._cutter.flush()])

    def end(self) -> None:
        """The program ended: of its own there is at most a full pipe, whatever others write who still hold it."""
        self._left = READ_SIZE
        self._reading.deadline = min(self._reading.deadline, self._patience())

    def _patience(self) -> float:
        waits = self._cutter.pending or self._left < math.inf
        return trio.current_time() + SILENCE if waits else math.inf

    async def _send(self, pieces: list[str]) -> None:
        for piece in pieces:
            await _send(self._thread, piece)


async def _send(thread: Thread, text: str) -> None:
    """Sends it; what Telegram or the leader refuses is said here and not tried again.

    But for what finds out that a person has deleted the thread: it was surely not sent, and the program cannot know. It
    goes where all that the program says next goes, once the leader knows of it: into the thread that is made instead.
    """
    for pause in (*_NEW_THREAD, None):
        try:
            await thread.send(text)
        except (RequestRefused, ApiError, AnswerLost) as error:
            if pause is None or not (isinstance(error, ApiError) and verdict_of(error.description) == "gone"):
                say(f"a message of {len(text)} characters may not have arrived: {error}")
                return
            await trio.sleep(pause)
        else:
            return
