"""What becomes of a request, as a value: the decisions of a leader (core/admission.py makes them, roles do them)."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from telegram_bus.core.envelopes import (
    AgentMessage,
    AgentSelector,
    ErrorCode,
    Forward,
    ForwardQueueHandoff,
    Registration,
)
from telegram_bus.core.extensions import FilePart, OperatorRequest, OwnRequest
from telegram_bus.core.registry import Member
from telegram_bus.core.values import ProtocolIdentity

__all__ = [
    "Beat",
    "Call",
    "Decision",
    "Fetch",
    "ForwardTo",
    "Handoff",
    "Leave",
    "ListMembers",
    "Operate",
    "Provision",
    "Refuse",
    "ReportStatus",
    "Resolve",
    "Route",
    "Serve",
    "Stop",
]


@frozen(kw_only=True)
class Refuse:
    """Answer `ok: false`: `message` is for people, `code` for programs; `protocol` is sent along where it helps.

    `broken` names the field and the rule where somebody asked who may not: that goes into the audit log.
    """

    message: str
    code: ErrorCode | None = None
    protocol: ProtocolIdentity | None = None
    broken: tuple[str, str] | None = None


@frozen(kw_only=True)
class Beat:
    """Note that the member lives, and answer its heartbeat with these slots."""

    member: Member
    slots: list[str]


@frozen(kw_only=True)
class Provision:
    """Find or make a destination for the follower, then admit it."""

    registration: Registration


@frozen(kw_only=True)
class Leave:
    """Clean up after the member, then remove it if it is still this admission."""

    member: Member


@frozen(kw_only=True)
class Call:
    """Note that the member lives, judge its call, make it."""

    member: Member
    method: str
    args: tuple[Any, ...]
    call_id: str | None = None
    urgency: str | None = None
    parts: tuple[FilePart, ...] = ()
    enclosed: object = field(default=None, repr=False)
    """The open files that came beside the request, for the shell, which puts them here."""


@frozen(kw_only=True)
class Fetch:
    """Note that the member lives and give it a file that was sent to it."""

    member: Member
    file_id: str
    resume: bool = False


@frozen(kw_only=True)
class Serve:
    """Note that the member lives, and do what it asks for itself."""

    member: Member
    request: OwnRequest


@frozen(kw_only=True)
class Resolve:
    """Note that the member lives and find the agent it means."""

    member: Member
    selector: AgentSelector
    main_chat: bool = False


@frozen(kw_only=True)
class Route:
    """Note that the member lives and give its message to the agent whose thread it stands in."""

    member: Member
    message: AgentMessage


@frozen(kw_only=True)
class ForwardTo:
    """Send the envelope on, unchanged, and answer what the recipient answers."""

    member: Member
    envelope: Forward


@frozen(kw_only=True)
class Handoff:
    """Send the donor's offer on as `envelope` and answer what the recipient answers."""

    donor: Member
    recipient: Member
    envelope: ForwardQueueHandoff


@frozen(kw_only=True)
class ListMembers:
    """Answer the live members once the revision differs from `after_revision`, after `wait_ms` at the latest."""

    after_revision: int | None
    wait_ms: int


@frozen(kw_only=True)
class ReportStatus:
    """Answer the leader's state."""


@frozen(kw_only=True)
class Operate:
    """Do what somebody who looks after the bus asks for, and answer what came of it."""

    request: OperatorRequest


@frozen(kw_only=True)
class Stop:
    """End in order."""


Decision = (
    Refuse
    | Beat
    | Provision
    | Leave
    | Call
    | Fetch
    | Serve
    | Resolve
    | Route
    | ForwardTo
    | Handoff
    | ListMembers
    | ReportStatus
    | Operate
    | Stop
)
