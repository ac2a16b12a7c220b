"""A growing message whose block is held open by a task, for those who cannot have the block around their own code."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import trio
from attrs import define, field

from telegram_bus.core.errors import BusError
from telegram_bus.followers.messages import SentMessage
from telegram_bus.followers.streams import Stream

__all__ = ["HeldStream", "hold_stream"]


class _GivenUp(Exception):
    """Whoever writes the text wants no more of it."""


@define(eq=False)
class HeldStream:
    """A stream that is open until `end`."""

    stream: Stream
    _ending: trio.Event = field(factory=trio.Event)
    _ended: trio.Event = field(factory=trio.Event)
    _given_up: bool = False
    _fault: Exception | None = None

    async def end(self, *, give_up: bool = False) -> SentMessage | None:
        """Have all of the text sent, or (`give_up`) said that it is not all; raises what sending raises."""
        self._given_up = give_up
        self._ending.set()
        await self._ended.wait()
        if self._fault is not None:
            raise self._fault
        return self.stream.message

    async def wait(self) -> None:
        """Inside of the block: until `end`."""
        await self._ending.wait()
        if self._given_up:
            raise _GivenUp

    def close(self, fault: Exception | None) -> None:
        """Behind the block: this is how it ended."""
        self._fault = fault
        self._ended.set()


async def hold_stream(
    block: AbstractAsyncContextManager[Stream], *, task_status: trio.TaskStatus[HeldStream] = trio.TASK_STATUS_IGNORED
) -> None:
    """Run the block of a stream; started with the held stream."""
    held: HeldStream | None = None
    fault: Exception | None = None
    try:
        async with block as stream:
            held = HeldStream(stream)
            task_status.started(held)
            await held.wait()
    except _GivenUp:
        pass
    except (BusError, OSError) as error:
        fault = error
    finally:
        if held is not None:
            held.close(fault)
