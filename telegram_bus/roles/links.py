"""The leader's connections to its followers' endpoints: one each, opened when first needed, closed with its member."""

from __future__ import annotations

import math
from collections.abc import Iterable

import trio
from attrs import define, field

from telegram_bus.core.envelopes import Ack, Envelope
from telegram_bus.core.errors import NotSent
from telegram_bus.wire.client import BusClient, open_client

__all__ = ["Links"]


@define(eq=False)
class _Link:
    """One connection: `ready` is set once `client` may be used or `failed` says why it never will be."""

    path: str
    ready: trio.Event = field(factory=trio.Event)
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    client: BusClient | None = None


class Links:
    """Requests from the leader to followers, by the path of their endpoint."""

    def __init__(self) -> None:
        self._links: dict[str, _Link] = {}
        self._wanted, self._opening = trio.open_memory_channel[_Link](math.inf)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Own the connections until cancelled."""
        async with trio.open_nursery() as nursery:
            task_status.started()
            async for link in self._opening:
                nursery.start_soon(self._hold, link)

    async def request(self, path: str, envelope: Envelope) -> Ack:
        """Ask the follower that listens at `path`; the caller holds the time limit.

        Raises NotSent where it cannot be reached, AnswerLost where it went before it answered.
        """
        link = self._links.get(path)
        if link is None:
            link = self._links[path] = _Link(path)
            self._wanted.send_nowait(link)
        if not link.ready.is_set():  # a wait that need not be is a turn of everybody's
            await link.ready.wait()
        if link.client is None:
            raise NotSent(f"the connection to {path} was closed because its follower left")
        return await link.client.request(envelope)

    def keep_only(self, paths: Iterable[str]) -> None:
        """Close the connections to all other endpoints: their followers are no members any more."""
        kept = set(paths)
        for link in [link for path, link in self._links.items() if path not in kept]:
            link.scope.cancel("its follower left")

    async def _hold(self, link: _Link) -> None:
        try:
            with link.scope:
                async with open_client(lambda: link.path) as client:
                    link.client = client
                    link.ready.set()
                    await trio.sleep_forever()
        finally:
            link.client = None
            link.ready.set()
            self._links.pop(link.path, None)
