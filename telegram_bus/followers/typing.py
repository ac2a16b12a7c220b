"""Typing for as long as a program works: the leader shows it, the follower only says that it goes on."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import trio

from telegram_bus.core.errors import BusError, single_fault
from telegram_bus.core.extensions import TypingHold
from telegram_bus.followers.keyboards import new_key
from telegram_bus.roles.member import Member
from telegram_bus.roles.session import Session

__all__ = ["typing_for"]

log = logging.getLogger(__name__)

LEASE_MS: Final = 25_000  # that the leader shows it without hearing of it again
EVERY: Final = 10.0
FAREWELL: Final = 1.0


@asynccontextmanager
async def typing_for(member: Member, ttl: float, action: str) -> AsyncIterator[None]:
    """What `Bus.typing_for` does."""
    lease = new_key()
    with single_fault():
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_hold, member, lease, ttl, action)
            try:
                yield
            finally:
                nursery.cancel_scope.cancel("the work is done")
                with trio.move_on_after(FAREWELL, shield=True):
                    await _say(member, lease, 0, action)


async def _hold(member: Member, lease: str, ttl: float, action: str) -> None:
    """Say that the work goes on, now and then and to each new leader, until it has sent something."""
    end = trio.current_time() + ttl
    while (left := end - trio.current_time()) > 0:
        session = member.session.value
        if not await _say(member, lease, min(LEASE_MS, round(left * 1000)), action):
            return
        with trio.move_on_after(min(EVERY, left)):
            await _wait_for_another(member, session)


async def _wait_for_another(member: Member, session: Session | None) -> None:
    await member.session.wait_for(lambda now: now is not None and session is not None and now is not session)


async def _say(member: Member, lease: str, ttl_ms: int, action: str) -> bool:
    if ttl_ms == 0 and member.session.value is None:
        return False  # nobody leads, so nobody shows it
    try:
        ack = await member.ask(lambda fields: TypingHold(**fields, lease=lease, ttl_ms=ttl_ms, action=action))
    except BusError as error:  # another program leads, say: the work itself is more important
        log.debug("typing is not shown: %s", error)
        return False
    result: Any = ack.result
    return isinstance(result, dict) and result.get("held") is True
