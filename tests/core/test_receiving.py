"""What a follower admits at its own endpoint."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from telegram_bus.core.envelopes import (
    Ack,
    Delivery,
    ForwardCallback,
    ForwardMessage,
    Heartbeat,
    ReplaceFollowerTarget,
    Target,
)
from telegram_bus.core.identity import delivery_id
from telegram_bus.core.receiving import Incoming, Moved, Seat, Turned, receipt, receive

SEAT = Seat(key="builder", instance_id="builder:1", generation="g2", secret="s3cret")


def forwarded(**changes: Any) -> ForwardMessage:
    delivery = Delivery(
        delivery_id=delivery_id(ForwardMessage.KIND, "builder", 101),
        source_update_id=101,
        recipient_binding_key="builder",
    )
    base = ForwardMessage(
        request_id="l:1", auth="s3cret", recipient_instance_id="builder:1", recipient_registration_generation="g2",
        delivery=delivery, message={"text": "hi", "pi_telegram_source_update_id": 101}, sent_at_ms=1,
    )  # fmt: skip
    return attrs.evolve(base, **changes)


def test_a_whole_delivery_comes_in_and_its_receipt_names_it() -> None:
    received = receive(forwarded(), SEAT)
    assert isinstance(received, Incoming)
    assert (received.kind, received.body["text"]) == ("message", "hi")
    assert receipt(received.delivery) == {"deliveryId": received.delivery.delivery_id, "sourceUpdateId": 101}


GOOD = forwarded().delivery


@pytest.mark.parametrize(
    "changes",
    [
        {"auth": "wrong"},
        {"auth": None},
        {"auth": "\ud800"},
        {"recipient_instance_id": "tester:1"},
        {"recipient_registration_generation": "g1"},
        {"delivery": attrs.evolve(GOOD, recipient_binding_key="tester")},
        {"delivery": attrs.evolve(GOOD, delivery_id=delivery_id(ForwardCallback.KIND, "builder", 101))},
        {"delivery": attrs.evolve(GOOD, source_update_id=102)},
        {"message": {"text": "hi", "pi_telegram_source_update_id": 102}},
        {"message": {"text": "hi"}},
        {"message": None},
        {"message": [1]},
    ],
    ids=str,
)
def test_anything_that_does_not_fit_is_turned_away_with_a_reason(changes: dict[str, Any]) -> None:
    turned = receive(forwarded(**changes), SEAT)
    assert isinstance(turned, Turned)
    assert not turned.ack.ok
    assert turned.ack.request_id == "l:1"
    assert turned.ack.message


def test_before_the_first_registration_nothing_comes_in() -> None:
    assert isinstance(receive(forwarded(), None), Turned)


def test_acks_and_requests_for_a_leader_are_turned_away() -> None:
    beat = Heartbeat(request_id="r", auth="s3cret", instance_id="x", sent_at_ms=1)
    for envelope in (Ack(request_id="r", ok=True), beat):
        assert isinstance(receive(envelope, SEAT), Turned)


def test_a_new_target_is_taken_from_this_generation_only() -> None:
    new = Target(chat_id=1, thread_id=2)
    move = ReplaceFollowerTarget(
        request_id="r",
        auth="s3cret",
        recipient_instance_id="builder:1",
        target=new,
        reason="thread-restore",
        sent_at_ms=1,
    )
    assert receive(move, SEAT) == Moved(target=new)
    assert isinstance(receive(attrs.evolve(move, recipient_registration_generation="g1"), SEAT), Turned)


def test_a_comment_is_known_to_be_followed_where_the_leader_says_so() -> None:
    for position, announced in (("comment", True), ("forward", False), (None, False)):
        received = receive(forwarded(forward_comment_batch_position=position), SEAT)
        assert isinstance(received, Incoming)
        assert received.announced is announced
