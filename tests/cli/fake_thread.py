"""A thread in memory: what a wrapped program needs of the bus, and what tests want to know of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import trio
from attrs import define, field

__all__ = ["FakeThread", "Message"]

PATIENCE = 20.0  # a loaded machine is no failure, a program that never answers is


@define(eq=False)
class Message:
    """An incoming update that remembers whether it was finished."""

    text: str
    kind: str = "message"
    message: Any = field(factory=dict)
    more: tuple[Any, ...] = ()
    finished: trio.Event = field(factory=trio.Event)

    @property
    def parts(self) -> tuple[Any, ...]:
        return (self.message, *self.more)

    async def done(self) -> None:
        self.finished.set()


@define(eq=False)
class FakeThread:
    """Hands out what `write` was given; keeps what was sent, in order. `fault` is raised by the next send."""

    sent: list[str] = field(factory=list)
    fault: Exception | None = None
    state: str = "serving"
    asked: trio.Event = field(factory=trio.Event)
    refused: trio.Event = field(factory=trio.Event)
    gate: trio.Event = field(factory=trio.Event)
    _changed: trio.Event = field(factory=trio.Event)
    _channel: Any = field(factory=lambda: trio.open_memory_channel[Message](100))

    def __attrs_post_init__(self) -> None:
        self.gate.set()

    def __aiter__(self) -> AsyncIterator[Message]:
        channel: trio.MemoryReceiveChannel[Message] = self._channel[1]
        return channel.__aiter__()

    async def send(self, text: str, /) -> None:
        self.asked.set()
        await self.gate.wait()
        if self.fault is not None:
            fault, self.fault = self.fault, None
            self.refused.set()
            raise fault
        self.sent.append(text)
        self._changed.set()
        self._changed = trio.Event()

    def write(self, text: str, **fields: Any) -> Message:
        message = Message(text, **fields)
        self._channel[0].send_nowait(message)
        return message

    async def until(self, holds: Callable[[list[str]], bool]) -> None:
        with trio.fail_after(PATIENCE):
            while not holds(self.sent):
                await self._changed.wait()
