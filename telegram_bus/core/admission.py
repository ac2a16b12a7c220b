"""What a leader does with a request: the checks of protocol section 5, in their order, as one decision."""

from __future__ import annotations

import hmac
import re
from typing import Final, assert_never

from attrs import field, frozen

from telegram_bus.core.decisions import (
    Beat,
    Call,
    Decision,
    Fetch,
    ForwardTo,
    Handoff,
    Leave,
    ListMembers,
    Operate,
    Provision,
    Refuse,
    ReportStatus,
    Resolve,
    Route,
    Serve,
    Stop,
)
from telegram_bus.core.envelopes import (
    Ack,
    CallApi,
    Disconnect,
    Envelope,
    Forward,
    ForwardQueueHandoff,
    Heartbeat,
    OfferQueueHandoff,
    ProtocolIdentity,
    Register,
    Registration,
    ReplaceFollowerTarget,
    ResolveAgentTarget,
    RouteAgentMessage,
)
from telegram_bus.core.extensions import (
    Extension,
    FileGet,
    FileSend,
    MembersList,
    OperatorRequest,
    OperatorStop,
    OwnRequest,
    StatusGet,
)
from telegram_bus.core.identity import (
    DURABLE_ADMISSION,
    EXTENSIONS,
    QUEUE_HANDOFF,
    Compatible,
    Incompatible,
    compatible,
)
from telegram_bus.core.registry import Member, Registry

__all__ = ["Rules", "authorise", "decide"]


LONGEST_NAME: Final = 1_024
"""Characters of what a follower is known by: a key of a foreign kind may be a path."""

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


@frozen(kw_only=True)
class Rules:
    """What a leader goes by: its identity, the followers' secret (None: anyone is let in) and the operator's."""

    identity: ProtocolIdentity
    secret: str | None = field(default=None, repr=False)
    operator_secret: str | None = field(default=None, repr=False)


_FollowerRequest = (
    Heartbeat | Disconnect | CallApi | ResolveAgentTarget | RouteAgentMessage | FileSend | FileGet | OwnRequest
)


def authorise(envelope: Envelope, rules: Rules) -> Refuse | None:
    """Checks 1 and 2: a response is no request, and the secret must be the right one."""
    if isinstance(envelope, Ack):
        return Refuse(message="a response is not a request")
    if isinstance(envelope, OperatorRequest):
        if not rules.operator_secret or not _same(envelope.auth, rules.operator_secret):
            message = f"{envelope.KIND} needs the operator's secret (the file operator.secret)"
            return Refuse(message=message, broken=("auth", "must be the operator's secret"))
        return None
    if rules.secret is not None and not _same(envelope.auth, rules.secret):
        message = "wrong or missing secret: read follower.secret of this profile again"
        probe = isinstance(envelope, StatusGet) and envelope.auth is None  # so it is found out whether a leader answers
        return Refuse(message=message, broken=None if probe else ("auth", "must be the followers' secret"))
    return None


def decide(envelope: Envelope, registry: Registry, rules: Rules, *, peer_pid: int = 0) -> Decision:
    """Checks 3 and 4 for a request that `authorise` let through.

    `peer_pid` is the pid that the kernel gives for the connection (0: it cannot tell, then nothing is pinned).
    """
    match envelope:
        case Register():
            return _decide_register(envelope, registry, rules, peer_pid)
        case (
            Heartbeat()
            | Disconnect()
            | CallApi()
            | ResolveAgentTarget()
            | RouteAgentMessage()
            | FileSend()
            | FileGet()
            | OwnRequest()
        ):
            member = _fenced(envelope.instance_id, envelope.registration_generation, registry, peer_pid)
            return member if isinstance(member, Refuse) else _decide_follower(envelope, member, registry, rules)
        case Forward():
            member = _fenced(envelope.recipient_instance_id, envelope.recipient_registration_generation, registry, 0)
            return member if isinstance(member, Refuse) else ForwardTo(member=member, envelope=envelope)
        case OfferQueueHandoff():
            return _decide_handoff(envelope, registry, rules, peer_pid)
        case Extension():
            return _decide_extension(envelope)
        case ReplaceFollowerTarget() | ForwardQueueHandoff():
            return Refuse(message=f"{envelope.KIND} is for followers; a leader does not take it")
        case _:
            return Refuse(message=f"this leader does not know what to do with {envelope.KIND}")


def _decide_follower(envelope: _FollowerRequest, member: Member, registry: Registry, rules: Rules) -> Decision:
    match envelope:
        case Heartbeat():
            durable_only = DURABLE_ADMISSION in rules.identity.capabilities
            return Beat(member=member, slots=registry.election_slots(durable_only=durable_only))
        case Disconnect():
            return Leave(member=member)
        case CallApi():
            return Call(
                member=member,
                method=envelope.method,
                args=envelope.args,
                call_id=envelope.call_id,
                urgency=envelope.urgency,
            )
        case FileSend() | FileGet() | OwnRequest() if not member.extended:
            return Refuse(message=f"{envelope.KIND} is for peers that announce {EXTENSIONS}")
        case FileSend():
            args = (envelope.method, envelope.params)
            return Call(
                member=member,
                method="call",
                args=args,
                call_id=envelope.call_id,
                urgency=envelope.urgency,
                parts=envelope.files,
            )
        case FileGet():
            return Fetch(member=member, file_id=envelope.file_id, resume=envelope.resume is True)
        case OwnRequest():
            return Serve(member=member, request=envelope)
        case ResolveAgentTarget():
            return Resolve(member=member, selector=envelope.selector, main_chat=envelope.main_chat is True)
        case RouteAgentMessage():
            return Route(member=member, message=envelope.message)
        case _:
            assert_never(envelope)


def _decide_register(envelope: Register, registry: Registry, rules: Rules, peer_pid: int) -> Decision:
    registration = envelope.registration
    match compatible(rules.identity, registration.protocol):
        case Incompatible(reason=reason, missing=missing):
            detail = f": it lacks {', '.join(missing)}" if missing else ""
            return Refuse(
                message=f"the follower's protocol does not fit this leader's ({reason}{detail})",
                code="incompatible-protocol",
                protocol=rules.identity,
            )
        case Compatible():
            pass
    if registration.registration_generation is None:
        return Refuse(message="a registration needs a registrationGeneration", protocol=rules.identity)
    if (odd := _unusable(registration)) is not None:
        return Refuse(message=f"a registration's {odd}", protocol=rules.identity)
    known = registry.get(registration.instance_id)
    if known is not None and _foreign(known, peer_pid):
        return _not_yours(known, rules.identity)
    return Provision(registration=registration)


def _unusable(registration: Registration) -> str | None:
    """What is wrong with the names that everything of a follower is kept under; None: nothing."""
    names = {
        "instanceId": registration.instance_id,
        "profileKey": registration.profile_key,
        "registrationGeneration": registration.registration_generation,
    }
    for name, value in names.items():
        if value is not None and not (value and len(value) <= LONGEST_NAME and _UNSTORABLE.search(value) is None):
            return f"{name} must be a text of 1 to {LONGEST_NAME} characters, without halves of characters and NUL"
    return None


def _decide_handoff(envelope: OfferQueueHandoff, registry: Registry, rules: Rules, peer_pid: int) -> Decision:
    donor = _fenced(envelope.instance_id, envelope.registration_generation, registry, peer_pid)
    if isinstance(donor, Refuse):
        return donor
    recipient = _fenced(envelope.recipient_instance_id, envelope.recipient_registration_generation, registry, 0)
    if isinstance(recipient, Refuse):
        return recipient
    if donor is recipient:
        return Refuse(message="a follower cannot hand its work to itself")
    lacking = [
        who
        for who, can in (
            ("the leader", QUEUE_HANDOFF in rules.identity.capabilities),
            ("the donor", donor.has(QUEUE_HANDOFF)),
            ("the recipient", recipient.has(QUEUE_HANDOFF)),
        )
        if not can
    ]
    if lacking:
        return Refuse(message=f"no queue handoff: {' and '.join(lacking)} did not announce {QUEUE_HANDOFF}")
    return Handoff(donor=donor, recipient=recipient, envelope=_forwarded(envelope))


def _forwarded(offer: OfferQueueHandoff) -> ForwardQueueHandoff:
    return ForwardQueueHandoff(
        request_id=offer.request_id,
        auth=offer.auth,
        donor_instance_id=offer.instance_id,
        recipient_instance_id=offer.recipient_instance_id,
        recipient_registration_generation=offer.recipient_registration_generation,
        donor_process_id=offer.donor_process_id,
        donor_process_birth_id=offer.donor_process_birth_id,
        donor_session_generation=offer.donor_session_generation,
        donor_acquisition_id=offer.donor_acquisition_id,
        donor_acquired_at_ms=offer.donor_acquired_at_ms,
        handoff_token=offer.handoff_token,
        payload=offer.payload,
        sent_at_ms=offer.sent_at_ms,
    )


def _decide_extension(envelope: Extension) -> Decision:
    match envelope:
        case MembersList():
            return ListMembers(after_revision=envelope.after_revision, wait_ms=max(0, envelope.wait_ms or 0))
        case StatusGet():
            return ReportStatus()
        case OperatorStop():
            return Stop()
        case OperatorRequest():
            return Operate(request=envelope)
        case _:
            return Refuse(message=f"this leader does not know what to do with {envelope.KIND}")


def _fenced(instance_id: str, generation: str | None, registry: Registry, peer_pid: int) -> Member | Refuse:
    member = registry.get(instance_id)
    if member is None:
        return Refuse(message=f"{instance_id} is not registered here: register (again) first")
    if generation is None or generation != member.generation:
        return Refuse(message=f"the generation given for {instance_id} is not the registered one: register again")
    if _foreign(member, peer_pid):
        return _not_yours(member)
    return member


def _foreign(member: Member, peer_pid: int) -> bool:
    return peer_pid > 0 and member.peer_pid is not None and member.peer_pid != peer_pid


def _not_yours(member: Member, protocol: ProtocolIdentity | None = None) -> Refuse:
    message = f"{member.instance_id} is registered by process {member.peer_pid}; nobody else may speak for it"
    rule = f"must be this process's own: it is that of {member.key}"
    return Refuse(message=message, protocol=protocol, broken=("instanceId", rule))


def _same(given: str | None, expected: str) -> bool:
    if given is None:
        return False
    if given.isascii() and expected.isascii():
        return hmac.compare_digest(given, expected)
    # It refuses text beyond ASCII, and a peer may send anything.
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), expected.encode("utf-8", "surrogatepass"))
