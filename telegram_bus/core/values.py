"""The values that envelopes are made of: identities, targets, registrations, deliveries; none of them knows JSON."""

from __future__ import annotations

import enum
from typing import Final, Literal

from attrs import frozen

__all__ = [
    "ABSENT",
    "Absent",
    "AckError",
    "AgentMessage",
    "AgentSelector",
    "Delivery",
    "ErrorCode",
    "Number",
    "ProtocolIdentity",
    "Registration",
    "Target",
]

Number = int | float
"""An id or a time as the wire has it; an integral value that fits 64 bits is an int."""


class Absent(enum.Enum):
    """The type of `ABSENT`, a field that was not there (null is something else)."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT

ErrorCode = Literal["commit-unknown", "request-id-collision", "ledger-overloaded", "incompatible-protocol"]


@frozen(kw_only=True)
class ProtocolIdentity:
    """What one side speaks: version, build (for people) and a strictly ascending list of capabilities."""

    protocol_version: int
    runtime_build: str
    capabilities: tuple[str, ...] = ()


@frozen(kw_only=True)
class Target:
    """A destination: a chat, and a thread in it or None."""

    chat_id: Number
    thread_id: Number | None = None


@frozen(kw_only=True)
class Registration:
    """What a follower says of itself (protocol section 3); all but the first two are optional."""

    instance_id: str
    connected_at_ms: Number
    previous_instance_id: str | None = None
    profile_key: str | None = None
    thread_name: str | None = None
    slot: str | None = None
    cwd: str | None = None
    pid: Number | None = None
    target: Target | None = None
    bus_socket_path: str | None = None
    registration_generation: str | None = None
    protocol: ProtocolIdentity | None = None
    session_generation: int | None = None
    process_birth_id: str | None = None


@frozen(kw_only=True)
class Delivery:
    """The identity of one update for one recipient; it stays the same when the delivery is repeated."""

    delivery_id: str
    source_update_id: int
    recipient_binding_key: str


@frozen(kw_only=True)
class AgentSelector:
    """Names an agent by its thread: exactly one of `thread_id` and `thread_name`."""

    thread_id: int | None = None
    thread_name: str | None = None
    chat_id: int | None = None


@frozen(kw_only=True)
class AgentMessage:
    """A message that one agent put into another's thread and that its owner shall now work on."""

    target: Target
    message_id: int
    text: str


@frozen(kw_only=True)
class AckError:
    """Why a request was refused, for programs."""

    code: ErrorCode
    method: str | None = None
