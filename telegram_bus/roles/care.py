"""What whoever looks after the bus may ask of a leader: to show, retry or drop updates, to delete what is old."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from attrs import evolve, frozen

from telegram_bus.core.codec import loads
from telegram_bus.core.errors import RequestRefused
from telegram_bus.core.extensions import OperatorPurge, OperatorRequest, UpdatesDrop, UpdatesList, UpdatesRetry
from telegram_bus.core.updates import describe
from telegram_bus.roles.deliveries import Deliveries
from telegram_bus.store import Listed, Retention, Store

__all__ = ["Care"]

LISTED: Final = 100
MOST_LISTED: Final = 1_000
SHOWN: Final = 200  # characters of a text


@frozen(kw_only=True)
class Care:
    """The hands of whoever looks after the bus."""

    store: Store
    deliveries: Deliveries
    keep: Retention
    now_ms: Callable[[], int]

    async def operate(self, request: OperatorRequest) -> dict[str, Any]:
        """Do it and say what came of it (docs/protocol.md). Raises StateError, RequestRefused."""
        match request:
            case UpdatesList(limit=limit):
                return await self._list(min(max(1, limit or LISTED), MOST_LISTED))
            case UpdatesRetry(ids=ids):
                return await _each(ids, self.deliveries.retry)
            case UpdatesDrop(ids=ids):
                return await _each(ids, self.deliveries.drop)
            case OperatorPurge(settled=settled):
                keep = evolve(self.keep, bodies=-1) if settled else self.keep
                return {"rows": await self.store.purge(self.now_ms(), keep)}
            case _:
                raise RequestRefused(f"this leader does not know what to do with {request.KIND}")

    async def _list(self, limit: int) -> dict[str, Any]:
        listed = [
            *await self.store.listed(aside=True, limit=limit),
            *await self.store.listed(aside=False, limit=limit),
        ]
        counts = await self.store.counts()
        return {"updates": [_shown(one) for one in listed], "waiting": counts.waiting, "set_aside": counts.aside}


async def _each(ids: tuple[int, ...], work: Callable[[int], Awaitable[bool]]) -> dict[str, Any]:
    done = [number for number in ids if await work(number)]
    return {"done": done, "unknown": [number for number in ids if number not in done]}


def _shown(listed: Listed) -> dict[str, Any]:
    update = listed.update
    return {
        "id": update.seq,
        "update_id": update.update_id,
        "kind": update.kind,
        "key": update.owner_key,
        "chat_id": update.chat_id,
        "thread_id": update.thread_id,
        "text": describe(loads(update.body)).text[:SHOWN],
        "admitted_ms": update.admitted_ms,
        "attempts": update.attempts,
        "outcome": listed.outcome,
        "settled_ms": listed.settled_ms,
        "reason": listed.reason,
    }
