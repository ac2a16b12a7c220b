"""Typing as a lease: shown for as long as its owner works, and never longer."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio
from attrs import define, field

from telegram_bus.core.errors import BusError, RequestRefused
from telegram_bus.core.extensions import TypingHold
from telegram_bus.core.registry import Member, Registry
from telegram_bus.roles.threads import Call

__all__ = ["Typing"]

log = logging.getLogger(__name__)

EVERY: Final = 4.5
"""Seconds between two actions: a client shows one for five (bot-api T17)."""

LONGEST_MS: Final = 60_000
"""The longest time that a lease is held without being asked for again: its owner may hang."""

ACTIONS: Final = frozenset(
    {
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
        "choose_sticker",
        "find_location",
        "record_video_note",
        "upload_video_note",
    }
)


PREVIEWS: Final = frozenset({"sendChatAction", "sendMessageDraft", "sendRichMessageDraft"})
"""What is sent and is no answer yet."""


class _Lease:
    """Who is at work: `until` is trio's time; `ended` says that no more is to be shown."""

    def __init__(self, name: str, member: Member, action: str, until: float) -> None:
        self.name, self.member, self.action, self.until = name, member, action, until
        self.ended = False
        self.changed = trio.Event()

    def end(self) -> None:
        self.ended = True
        self.changed.set()


@define(kw_only=True, eq=False)
class Typing:
    """The leases of one term; `run` shows them. `call` makes a Bot API call."""

    call: Call = field(repr=False)
    registry: Registry = field(repr=False)
    _leases: dict[str, _Lease] = field(factory=dict)
    _channel: tuple[trio.MemorySendChannel[_Lease], trio.MemoryReceiveChannel[_Lease]] = field(
        factory=lambda: trio.open_memory_channel[_Lease](math.inf)  # one a follower
    )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Show until cancelled who is at work."""
        async with trio.open_nursery() as nursery:
            task_status.started()
            async for lease in self._channel[1]:
                nursery.start_soon(self._show, lease)

    def hold(self, member: Member, request: TypingHold) -> dict[str, Any]:
        """Begin, prolong or end the member's lease; the answer's `held` says whether it is shown from now on.

        A lease that ended because its owner sent something is not held again under its name. Raises RequestRefused.
        """
        action = request.action or "typing"
        if action not in ACTIONS:
            raise RequestRefused(f"action must be one of {', '.join(sorted(ACTIONS))}, not {action[:40]!r}")
        if member.target is None or not isinstance(member.target.chat_id, int):
            raise RequestRefused("this follower has no chat yet")
        lease = self._leases.get(member.key)
        if request.ttl_ms <= 0:
            if lease is not None and lease.name == request.lease:
                lease.end()
                del self._leases[member.key]
            return {"held": False}
        until = trio.current_time() + min(request.ttl_ms, LONGEST_MS) / 1000
        if lease is not None and lease.name == request.lease:
            if not lease.ended and lease.member is member:
                lease.until, lease.action = until, action
                return {"held": True}
            if lease.ended:
                return {"held": False}
        if lease is not None:
            lease.end()
        lease = self._leases[member.key] = _Lease(request.lease, member, action, until)
        self._channel[0].send_nowait(lease)
        return {"held": True}

    async def made(self, key: str, method: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """Make a follower's call; one that sends something into its thread ends its lease."""
        result = await make()
        lease = self._leases.get(key)
        if lease is not None and method.startswith(("send", "copy")) and method not in PREVIEWS:
            lease.end()  # its name stays, so that it is not begun again
        return result

    async def _show(self, lease: _Lease) -> None:
        while self._is_held(lease):
            target = lease.member.target
            assert target is not None
            params: dict[str, Any] = {"chat_id": target.chat_id, "action": lease.action}
            if target.thread_id is not None:
                params["message_thread_id"] = target.thread_id
            try:
                await self.call("sendChatAction", params, int(target.chat_id))
            except BusError as error:
                log.debug("%s is not shown at work: %s", lease.member.key, error)
            with trio.move_on_after(EVERY):
                await lease.changed.wait()
        if not lease.ended and self._leases.get(lease.member.key) is lease:
            del self._leases[lease.member.key]

    def _is_held(self, lease: _Lease) -> bool:
        here = self.registry.by_key(lease.member.key) is lease.member
        return here and not lease.ended and trio.current_time() < lease.until
