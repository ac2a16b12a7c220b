"""One attrs model for each envelope kind of protocol version 1; none of them knows JSON."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from attrs import field, frozen

from telegram_bus.core.payloads import Payload
from telegram_bus.core.urgency import Hint
from telegram_bus.core.values import (
    ABSENT,
    Absent,
    AckError,
    AgentMessage,
    AgentSelector,
    Delivery,
    ErrorCode,
    Number,
    ProtocolIdentity,
    Registration,
    Target,
)

__all__ = [
    "ABSENT",
    "Absent",
    "Ack",
    "AckError",
    "AgentMessage",
    "AgentSelector",
    "CallApi",
    "Delivery",
    "Disconnect",
    "Envelope",
    "ErrorCode",
    "FollowerRequest",
    "Forward",
    "ForwardCallback",
    "ForwardEditedMessage",
    "ForwardMessage",
    "ForwardQueueHandoff",
    "ForwardReaction",
    "Heartbeat",
    "Number",
    "OfferQueueHandoff",
    "ProtocolIdentity",
    "QueueHandoff",
    "Register",
    "Registration",
    "ReplaceFollowerTarget",
    "ResolveAgentTarget",
    "RouteAgentMessage",
    "Target",
]


@frozen(kw_only=True)
class Envelope:
    """What every envelope has: an id that its answer repeats, and the secret of the bus."""

    KIND: ClassVar[str] = ""

    request_id: str
    auth: str | None = None


@frozen(kw_only=True)
class Ack(Envelope):
    """The answer to a request; `message` is for people only."""

    KIND: ClassVar[str] = "bus.ack"

    ok: bool
    message: str | None = None
    result: Any = ABSENT
    protocol: ProtocolIdentity | None = None
    error: AckError | None = None


@frozen(kw_only=True)
class Register(Envelope):
    """A follower asks to be admitted, or to be admitted again."""

    KIND: ClassVar[str] = "follower.register"

    registration: Registration


@frozen(kw_only=True)
class FollowerRequest(Envelope):
    """A request in the name of a registered follower, fenced by its generation."""

    instance_id: str
    sent_at_ms: Number
    registration_generation: str | None = None


@frozen(kw_only=True)
class Heartbeat(FollowerRequest):
    """The follower lives."""

    KIND: ClassVar[str] = "follower.heartbeat"


@frozen(kw_only=True)
class Disconnect(FollowerRequest):
    """The follower leaves."""

    KIND: ClassVar[str] = "follower.disconnect"


@frozen(kw_only=True)
class CallApi(FollowerRequest):
    """The follower wants a Bot API call made (protocol section 9).

    With a `call_id` (an extension) it is made once for its follower's key, whatever request asks for it. `urgency` (an
    extension, too) says more of its turn than the method does.
    """

    KIND: ClassVar[str] = "follower.callApi"

    method: str
    args: tuple[Any, ...]
    call_id: str | None = None
    urgency: Hint | None = None


@frozen(kw_only=True)
class ResolveAgentTarget(FollowerRequest):
    """The follower asks where another agent can be written to.

    With `main_chat` (an extension) it takes the main chat for an answer: then `result` has no thread, but the agent's
    key and name.
    """

    KIND: ClassVar[str] = "follower.resolveAgentTarget"

    selector: AgentSelector
    main_chat: bool | None = None


@frozen(kw_only=True)
class RouteAgentMessage(FollowerRequest):
    """The follower has put a message into another agent's thread; its owner shall get it."""

    KIND: ClassVar[str] = "follower.routeAgentMessage"

    message: AgentMessage


@frozen(kw_only=True)
class QueueHandoff(Envelope):
    """The fields that both envelopes of a queue handoff share (protocol section 7)."""

    recipient_instance_id: str
    recipient_registration_generation: str
    donor_process_id: int
    donor_process_birth_id: str
    donor_session_generation: int
    donor_acquisition_id: str
    donor_acquired_at_ms: int
    handoff_token: str = field(repr=False)
    payload: Payload
    sent_at_ms: Number


@frozen(kw_only=True)
class OfferQueueHandoff(QueueHandoff):
    """A donor offers queued work to another follower through the leader."""

    KIND: ClassVar[str] = "follower.offerQueueHandoff"

    instance_id: str
    registration_generation: str


@frozen(kw_only=True)
class ForwardQueueHandoff(QueueHandoff):
    """The leader forwards a donor's offer to its recipient."""

    KIND: ClassVar[str] = "leader.offerQueueHandoff"

    donor_instance_id: str


@frozen(kw_only=True)
class Forward(Envelope):
    """The fields of every forwarded update (protocol section 6)."""

    recipient_instance_id: str
    recipient_registration_generation: str
    delivery: Delivery
    sent_at_ms: Number


@frozen(kw_only=True)
class ForwardMessage(Forward):
    """A message for its owner."""

    KIND: ClassVar[str] = "leader.forwardMessage"

    message: Any = ABSENT
    forward_comment_batch_position: Literal["comment", "forward"] | None = None


@frozen(kw_only=True)
class ForwardEditedMessage(Forward):
    """An edited message for its owner."""

    KIND: ClassVar[str] = "leader.forwardEditedMessage"

    message: Any = ABSENT


@frozen(kw_only=True)
class ForwardCallback(Forward):
    """A pressed button for its owner."""

    KIND: ClassVar[str] = "leader.forwardCallback"

    query: Any = ABSENT


@frozen(kw_only=True)
class ForwardReaction(Forward):
    """A reaction for the owner of the message it stands on."""

    KIND: ClassVar[str] = "leader.forwardReaction"

    reaction_update: Any = ABSENT


@frozen(kw_only=True)
class ReplaceFollowerTarget(Envelope):
    """The leader gives a follower another thread."""

    KIND: ClassVar[str] = "leader.replaceFollowerTarget"

    recipient_instance_id: str
    target: Target
    reason: Literal["thread-restore"]
    sent_at_ms: Number
    recipient_registration_generation: str | None = None
    old_target: Target | None = None
