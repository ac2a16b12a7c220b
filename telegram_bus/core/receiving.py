"""What a follower admits at its own endpoint (protocol section 6): the mirror image of the leader's admission."""

from __future__ import annotations

import hmac
from typing import Any, Final, Literal, assert_never

from attrs import frozen

from telegram_bus.core.envelopes import (
    ABSENT,
    Ack,
    Delivery,
    Envelope,
    Forward,
    ForwardCallback,
    ForwardEditedMessage,
    ForwardMessage,
    ForwardReaction,
    ReplaceFollowerTarget,
    Target,
)
from telegram_bus.core.identity import delivery_id
from telegram_bus.core.updates import SOURCE_MARKER

__all__ = ["Incoming", "IncomingKind", "Moved", "Received", "Seat", "Turned", "receipt", "receive"]

IncomingKind = Literal["message", "edited_message", "callback", "reaction"]

_UNAUTHORISED: Final = "the secret of this bus is wrong"


@frozen(kw_only=True)
class Seat:
    """Who this follower is to its leader at this moment."""

    key: str
    instance_id: str
    generation: str
    secret: str


@frozen(kw_only=True)
class Incoming:
    """An update that is ours and whole: to be stored, then acknowledged with `receipt`.

    `announced`: it is a comment, and the leader has seen the forward that it is about.
    """

    delivery: Delivery
    kind: IncomingKind
    body: dict[str, Any]
    announced: bool = False


@frozen(kw_only=True)
class Moved:
    """The leader gave this follower another thread."""

    target: Target


@frozen(kw_only=True)
class Turned:
    """Not admitted: this is the answer."""

    ack: Ack


Received = Incoming | Moved | Turned


def receipt(delivery: Delivery) -> dict[str, Any]:
    """The durable receipt that a follower's ack carries as `result`."""
    return {"deliveryId": delivery.delivery_id, "sourceUpdateId": delivery.source_update_id}


def _turn(envelope: Envelope, why: str) -> Turned:
    return Turned(ack=Ack(request_id=envelope.request_id, ok=False, message=why))


def _content(envelope: Forward) -> tuple[IncomingKind, Any]:
    match envelope:
        case ForwardMessage():
            return "message", envelope.message
        case ForwardEditedMessage():
            return "edited_message", envelope.message
        case ForwardCallback():
            return "callback", envelope.query
        case ForwardReaction():
            return "reaction", envelope.reaction_update
        case _:
            raise TypeError(f"not a forward: {type(envelope).__name__}")


def _forward(envelope: Forward, seat: Seat) -> Received:
    delivery = envelope.delivery
    if envelope.recipient_registration_generation != seat.generation:
        return _turn(
            envelope,
            "the delivery is for an earlier registration of this follower; deliver it to the current one",
        )
    if delivery.recipient_binding_key != seat.key:
        return _turn(envelope, f"the delivery is bound to another follower, not to {seat.key}")
    if delivery.delivery_id != delivery_id(envelope.KIND, seat.key, delivery.source_update_id):
        return _turn(envelope, "deliveryId is not the hash of this kind, recipient and update")
    kind, body = _content(envelope)
    if body is ABSENT or not isinstance(body, dict):
        return _turn(envelope, "the delivery carries no Telegram object")
    if body.get(SOURCE_MARKER) != delivery.source_update_id:
        return _turn(envelope, f"{SOURCE_MARKER} differs from the delivery's sourceUpdateId")
    announced = isinstance(envelope, ForwardMessage) and envelope.forward_comment_batch_position == "comment"
    return Incoming(delivery=delivery, kind=kind, body=body, announced=announced)


def receive(envelope: Envelope, seat: Seat | None) -> Received:
    """Decide what an envelope at the follower's endpoint is; `seat` is None before the first registration."""
    if isinstance(envelope, Ack):
        return _turn(envelope, "a response is not a request")
    if seat is None:
        return _turn(envelope, "this follower is not registered; deliver again once it is")
    if not hmac.compare_digest((envelope.auth or "").encode("utf-8", "surrogatepass"), seat.secret.encode()):
        return _turn(envelope, _UNAUTHORISED)
    if not isinstance(envelope, Forward | ReplaceFollowerTarget):
        return _turn(envelope, f"a follower does not answer {envelope.KIND}")
    if envelope.recipient_instance_id != seat.instance_id:
        return _turn(envelope, "the delivery is for another process")
    match envelope:
        case Forward():
            return _forward(envelope, seat)
        case ReplaceFollowerTarget():
            if envelope.recipient_registration_generation not in (None, seat.generation):
                return _turn(envelope, "the new target is for an earlier registration of this follower")
            return Moved(target=envelope.target)
        case _:
            assert_never(envelope)
