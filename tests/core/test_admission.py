"""The order of a leader's checks, where the recordings do not show it."""

from __future__ import annotations

from typing import Any

import pytest

from telegram_bus.core.admission import Rules, authorise, decide
from telegram_bus.core.decisions import (
    Beat,
    Decision,
    ForwardTo,
    Handoff,
    ListMembers,
    Provision,
    Refuse,
    ReportStatus,
    Serve,
    Stop,
)
from telegram_bus.core.envelopes import (
    Ack,
    Delivery,
    Disconnect,
    Envelope,
    ForwardMessage,
    Heartbeat,
    OfferQueueHandoff,
    Register,
    Registration,
)
from telegram_bus.core.extensions import (
    ButtonsKeep,
    MembersList,
    OperatorStop,
    OwnRequest,
    QuestionWait,
    StatusGet,
    TypingHold,
)
from telegram_bus.core.identity import ANNOUNCED, QUEUE_HANDOFF, ours
from telegram_bus.core.payloads import AdmissionReceipt, Control
from telegram_bus.core.registry import Registry

RULES = Rules(identity=ours("1", [*ANNOUNCED, QUEUE_HANDOFF]), secret="s", operator_secret="o")


def registration(instance: str, **changes: Any) -> Registration:
    """A registration that this leader takes."""
    told: dict[str, Any] = {"registration_generation": f"{instance}:1", "protocol": RULES.identity} | changes
    return Registration(instance_id=instance, connected_at_ms=0, **told)


def registry(*instances: str, pid: int = 0) -> Registry:
    """Live followers."""
    live = Registry()
    for instance in instances:
        live.admit(registration(instance), None, now_ms=0, peer_pid=pid)
    return live


def beat(instance: str = "a", generation: str | None = "a:1") -> Heartbeat:
    """A heartbeat."""
    return Heartbeat(request_id="1", instance_id=instance, registration_generation=generation, sent_at_ms=0)


def offer(donor: str = "a", recipient: str = "b") -> OfferQueueHandoff:
    """A handoff of a control."""
    receipt = AdmissionReceipt(queue_kind="control", receipt_id="r", source_update_ids=(1,))
    return OfferQueueHandoff(
        request_id="1",
        instance_id=donor,
        registration_generation=f"{donor}:1",
        recipient_instance_id=recipient,
        recipient_registration_generation=f"{recipient}:1",
        donor_process_id=1,
        donor_process_birth_id="1:start:1",
        donor_session_generation=1,
        donor_acquisition_id="q",
        donor_acquired_at_ms=0,
        handoff_token="t" * 32,
        sent_at_ms=0,
        payload=Control(
            kind="control",
            control_type="status",
            queue_lane="control",
            chat_id=1,
            reply_to_message_id=1,
            queue_order=1,
            lane_order=1,
            status_summary="",
            admission_receipts=(receipt,),
        ),
    )


def reason(decision: Decision | None) -> str:
    """Why it was refused."""
    assert isinstance(decision, Refuse)
    return decision.message


@pytest.mark.parametrize(
    ("envelope", "rules", "allowed"),
    [
        (StatusGet(request_id="1", auth="s"), RULES, True),
        (StatusGet(request_id="1", auth="o"), RULES, False),
        (StatusGet(request_id="1", auth="\ud800é"), RULES, False),
        (StatusGet(request_id="1"), RULES, False),
        (StatusGet(request_id="1", auth="anything"), Rules(identity=RULES.identity), True),
        (OperatorStop(request_id="1", auth="o"), RULES, True),
        (OperatorStop(request_id="1", auth="s"), RULES, False),
        (OperatorStop(request_id="1", auth=""), Rules(identity=RULES.identity), False),
        (OperatorStop(request_id="1", auth=""), Rules(identity=RULES.identity, operator_secret=""), False),
        (Ack(request_id="1", ok=True), Rules(identity=RULES.identity), False),
    ],
)
def test_the_operators_secret_opens_what_is_the_operators_and_nothing_else(
    envelope: Envelope, rules: Rules, allowed: bool
) -> None:
    """Without an operator's secret nobody may stop the leader; a response is never a request."""
    assert (authorise(envelope, rules) is None) is allowed


def test_secrets_do_not_show() -> None:
    """Neither in a log nor in a traceback."""
    assert "'s'" not in repr(RULES)
    assert "'o'" not in repr(RULES)


def test_a_registration_is_pinned_to_its_process() -> None:
    """Nobody else speaks or registers in its name; without a pid nothing is pinned."""
    live = registry("a", "b", pid=7)
    assert "process 7" in reason(decide(beat(), live, RULES, peer_pid=8))
    assert "process 7" in reason(decide(offer(), live, RULES, peer_pid=8))
    again = Register(request_id="1", registration=registration("a"))
    assert "process 7" in reason(decide(again, live, RULES, peer_pid=8))
    assert isinstance(decide(again, live, RULES, peer_pid=7), Provision)
    assert isinstance(decide(beat(), live, RULES, peer_pid=7), Beat)
    assert isinstance(decide(beat(), live, RULES, peer_pid=0), Beat)
    assert isinstance(decide(beat(), registry("a"), RULES, peer_pid=8), Beat)


def test_anybody_with_the_secret_may_forward_to_a_follower() -> None:
    """The recipient is pinned to its own process, not the sender."""
    delivery = Delivery(delivery_id="telegram-follower-v1-" + "0" * 64, source_update_id=0, recipient_binding_key="a")
    forward = ForwardMessage(
        request_id="1",
        recipient_instance_id="a",
        recipient_registration_generation="a:1",
        delivery=delivery,
        sent_at_ms=0,
    )
    live = registry("a", pid=7)
    assert decide(forward, live, RULES, peer_pid=8) == ForwardTo(member=next(iter(live)), envelope=forward)


def test_a_stale_or_missing_generation_is_refused() -> None:
    """And so is an instance that nobody knows."""
    live = registry("a")
    for generation in (None, "a:0", ""):
        assert "generation" in reason(decide(beat(generation=generation), live, RULES))
    assert "not registered" in reason(decide(beat("x", "x:1"), live, RULES))
    leaving = Disconnect(request_id="1", instance_id="a", registration_generation="a:2", sent_at_ms=0)
    assert "generation" in reason(decide(leaving, live, RULES))


def test_compatibility_is_checked_before_the_generation() -> None:
    """The refusal says what is missing and who the leader is."""
    told = registration("a", registration_generation=None, protocol=ours("1", []))
    decision = decide(Register(request_id="1", registration=told), Registry(), RULES)
    assert isinstance(decision, Refuse)
    assert (decision.code, decision.protocol) == ("incompatible-protocol", RULES.identity)
    assert "durable-follower-admission-v1" in decision.message
    nameless = registration("a", registration_generation=None)
    decision = decide(Register(request_id="1", registration=nameless), Registry(), RULES)
    assert isinstance(decision, Refuse)
    assert (decision.code, decision.protocol) == (None, RULES.identity)


def test_a_handoff_needs_the_capability_of_all_three() -> None:
    """The refusal says who lacks it; a handoff to oneself is none."""
    live = registry("a", "b")
    decision = decide(offer(), live, RULES)
    assert isinstance(decision, Handoff)
    assert (decision.envelope.donor_instance_id, decision.envelope.payload) == ("a", offer().payload)
    plain = Rules(identity=ours("1"))
    assert "the leader did not" in reason(decide(offer(), live, plain))
    live.admit(registration("b", protocol=ours("1")), None, now_ms=0)
    assert "the recipient did not" in reason(decide(offer(), live, RULES))
    assert "itself" in reason(decide(offer(recipient="a"), live, RULES))


@pytest.mark.parametrize("kind", [ButtonsKeep, QuestionWait, TypingHold])
def test_what_a_follower_asks_for_itself_is_fenced_and_for_our_own_kind(kind: type[OwnRequest]) -> None:
    """A version-1 peer has no such thing, nor has an earlier registration or another process."""
    more: dict[type[OwnRequest], dict[str, Any]] = {
        ButtonsKeep: {"keyboard_id": "k", "content": {}},
        QuestionWait: {"questions": ()},
        TypingHold: {"lease": "l", "ttl_ms": 1},
    }

    def asked(instance: str, generation: str) -> OwnRequest:
        return kind(
            request_id="1", instance_id=instance, registration_generation=generation, sent_at_ms=0, **more[kind]
        )

    live = registry("a", pid=5)
    live.admit(registration("b", protocol=ours("1", [])), None, now_ms=0)
    served = decide(asked("a", "a:1"), live, RULES, peer_pid=5)
    assert isinstance(served, Serve)
    assert served.member is live.get("a")
    assert "announce" in reason(decide(asked("b", "b:1"), live, RULES))
    assert "generation" in reason(decide(asked("a", "a:0"), live, RULES, peer_pid=5))
    assert "process 5" in reason(decide(asked("a", "a:1"), live, RULES, peer_pid=6))
    assert "not registered" in reason(decide(asked("c", "c:1"), live, RULES))


def test_our_own_kinds_need_no_registration() -> None:
    """They are in nobody's name."""
    asked = MembersList(request_id="1", after_revision=3, wait_ms=-5)
    assert decide(asked, Registry(), RULES) == ListMembers(after_revision=3, wait_ms=0)
    assert decide(StatusGet(request_id="1"), Registry(), RULES) == ReportStatus()
    assert decide(OperatorStop(request_id="1"), Registry(), RULES) == Stop()
