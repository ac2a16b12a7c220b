"""The thin shell around a leader's decisions: takes a request, asks the core, does what it says, answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, assert_never

import trio
from attrs import define, field

from telegram_bus.core.admission import (
    Beat,
    Call,
    Decision,
    ForwardTo,
    Handoff,
    Leave,
    ListMembers,
    Provision,
    Refuse,
    ReportStatus,
    Resolve,
    Route,
    Rules,
    Stop,
)
from telegram_bus.core.envelopes import Ack, AgentMessage, AgentSelector, Envelope, Registration, Target
from telegram_bus.core.permissions import Allowed, Owned
from telegram_bus.core.registry import Member, Provisioned, Registry

if TYPE_CHECKING:
    from telegram_bus.wire.server import Peer

__all__ = ["LeaderPorts", "Requests"]


class LeaderPorts(Protocol):
    """What the requests need from the leader around them.

    What is `async` may raise any `BusError`: its text becomes the message of the refusal.
    """

    def now_ms(self) -> int:
        """The time (epoch, ms)."""

    def leading(self) -> bool:
        """Whether this process still holds the lease."""

    async def provision(self, registration: Registration) -> Provisioned | None:
        """Finds or makes the destination of a follower; None leaves it the target that it registered with."""

    async def retire(self, member: Member) -> None:
        """Cleans up after a member that leaves of its own will; it is still registered meanwhile."""

    def owned_by(self, member: Member) -> Owned:
        """What belongs to the member."""

    async def call_api(self, member: Member, call: Allowed, request_id: str) -> Any:
        """Makes the call, notes who owns what it sent, returns Telegram's result.

        Raises ApiError (Telegram's refusal), CommitUnknown, RequestRefused (ours).
        """

    async def resolve(self, member: Member, selector: AgentSelector) -> Target:
        """The chat and thread of the one other agent that the selector names; raises RequestRefused."""

    async def route(self, member: Member, message: AgentMessage) -> None:
        """Gives a message to the agent whose thread it stands in; raises RequestRefused."""

    async def forward(self, member: Member, envelope: Envelope) -> Ack:
        """Sends an envelope to the member's own endpoint; raises NotSent or AnswerLost."""

    async def status(self) -> dict[str, Any]:
        """The leader's state, for `x.status.get`."""

    def request_stop(self) -> None:
        """Begins an orderly end."""


class Requests:
    """The answers of one leader's term. Give `respond` and `knows` to the server, `registry` to whoever reads it."""

    def __init__(self, ports: LeaderPorts, rules: Rules, registry: Registry | None = None) -> None:
        self.registry = registry or Registry()
        self._ports = ports
        self._rules = rules

    def knows(self, peer: Peer) -> bool:
        """Whether the peer's pid is that of a live registration."""
        return self.registry.has_pid(peer.pid)

    def respond(self, envelope: Envelope, peer: Peer) -> Ack | Callable[[], Awaitable[Ack]]:
        """The answer, or what to await for it: to be run in a task of its own."""
        raise NotImplementedError

    def prune(self) -> tuple[Member, ...]:
        """Removes and returns the members that were not heard for more than 5 s."""
        raise NotImplementedError

    def remove(self, member: Member) -> bool:
        """Removes exactly this admission; False when it is no longer in force."""
        raise NotImplementedError

    async def wait_changed(self, after_revision: int) -> int:
        """Waits until the registry's revision differs from `after_revision`; returns the revision."""
        raise NotImplementedError
