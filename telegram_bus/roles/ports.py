"""What a leader's requests need from the leader around them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

from telegram_bus.core.envelopes import Ack, AgentMessage, AgentSelector, Envelope, Registration, Target
from telegram_bus.core.extensions import OperatorRequest, OwnRequest
from telegram_bus.core.permissions import Allowed, Owned
from telegram_bus.core.registry import Member, Provisioned
from telegram_bus.roles.files import Enclosed
from telegram_bus.wire.descriptors import Descriptors

__all__ = ["Found", "LeaderPorts"]


class Found(NamedTuple):
    """Where an agent is written to; one that shares the main chat with others is told apart by its key."""

    target: Target
    key: str | None = None
    name: str | None = None


class LeaderPorts(Protocol):
    """The leader as its requests see it.

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

    def recall(self, member: Member, method: str, args: Sequence[Any]) -> Callable[[], Awaitable[None]] | None:
        """What brings the owners of the messages and files that a call names into `owned_by`; None: it knows all.

        `method` and `args` are those of `follower.callApi`.
        """

    def upload_root(self, member: Member) -> str | None:
        """The absolute directory that one of our own followers may upload from; None: it may not."""

    async def call_api(
        self,
        member: Member,
        call: Allowed,
        request_id: str,
        call_id: str | None = None,
        enclosed: Enclosed | None = None,
    ) -> Any:
        """Makes the call, notes who owns what it sent (`permissions.sent_by`), returns Telegram's result.

        Raises ApiError (Telegram's refusal), CommitUnknown, RequestRefused (ours). The same `request_id` of the same
        member may come again after a lost connection. A `call_id` names the call in its place, for as many requests as
        may come.
        """

    async def fetch_file(
        self, member: Member, file_id: str, beside: Descriptors | None, *, resume: bool = False
    ) -> Any:
        """Writes a file into the descriptor beside the request and returns what is known of it.

        With `resume` what is in it is the file's beginning.
        Raises ApiError, RequestRefused, StateError, and what else a call raises.
        """

    async def serve(self, member: Member, request: OwnRequest) -> Any:
        """Does what one of our own followers asks for itself; raises RequestRefused, StateError."""

    async def resolve(self, member: Member, selector: AgentSelector, *, main_chat: bool = False) -> Found:
        """Where the one other agent that the selector names is written to; raises RequestRefused.

        Only who asks for `main_chat` is given that as an agent's place.
        """

    async def route(self, member: Member, message: AgentMessage) -> None:
        """Gives a message to the agent whose thread it stands in; raises RequestRefused."""

    async def forward(self, member: Member, envelope: Envelope) -> Ack:
        """Sends an envelope to the member's own endpoint; raises NotSent or AnswerLost."""

    def status(self) -> dict[str, Any]:
        """The leader's state, for `x.status.get`."""

    async def operate(self, request: OperatorRequest) -> Any:
        """Does what somebody who looks after the bus asks for; raises StateError."""

    def request_stop(self) -> None:
        """Begins an orderly end."""
