"""Identities, delivery ids and what birth ids prove."""

from __future__ import annotations

import hashlib

import pytest

from telegram_bus.core.identity import (
    DURABLE_ADMISSION,
    Incompatible,
    Liveness,
    compatible,
    delivery_id,
    judge_process,
    ours,
    started_ms,
)
from telegram_bus.core.values import ProtocolIdentity


def test_our_identity_is_one_that_the_wire_takes() -> None:
    """Version 1, our name and version, each capability once and in order."""
    identity = ours("1.2", ["b", "a", "b"])
    assert identity == ProtocolIdentity(protocol_version=1, runtime_build="telegram_bus/1.2", capabilities=("a", "b"))


def test_a_peer_that_does_not_journal_is_incompatible_with_one_that_does() -> None:
    """The reason and the missing capability are named."""
    plain = ProtocolIdentity(protocol_version=1, runtime_build="x", capabilities=())
    assert compatible(ours("1"), plain) == Incompatible(reason="missing-capability", missing=(DURABLE_ADMISSION,))


def test_a_delivery_id_is_the_hash_of_its_facts_as_javascript_writes_them() -> None:
    """Lone surrogates as lower-case escapes, everything else as it is."""
    text = '{"version":1,"kind":"k","recipientBindingKey":"é\\ud800\\n","sourceUpdateId":7}'
    expected = hashlib.sha256(text.encode()).hexdigest()
    assert delivery_id("k", "é\ud800\n", 7) == f"telegram-follower-v1-{expected}"


@pytest.mark.parametrize("source", [-1, 2**53, 1.5, 7.0, True, "7", None])
def test_there_is_no_delivery_id_for_what_is_no_update_id(source: object) -> None:
    """Only safe integers of at least 0 are ids."""
    with pytest.raises(ValueError, match="safe integer"):
        delivery_id("k", "key", source)


@pytest.mark.parametrize(
    ("expected", "observed", "exists", "judged"),
    [
        ("7:start:1", "7:start:1", True, Liveness.ALIVE),
        ("7:start:1", "7:start:2", True, Liveness.DEAD),
        ("7:start:1", None, False, Liveness.DEAD),
        (None, None, False, Liveness.DEAD),
        ("7:start:1", None, True, Liveness.UNVERIFIABLE),
        ("7:start:1", "7:start:1", None, Liveness.UNVERIFIABLE),
        (None, "7:start:1", True, Liveness.UNVERIFIABLE),
        ("7:generation:x", "7:start:1", True, Liveness.UNVERIFIABLE),
        ("7:generation:x", "7:generation:y", True, Liveness.UNVERIFIABLE),
    ],
)
def test_only_proof_makes_a_process_dead(
    expected: str | None, observed: str | None, exists: bool | None, judged: Liveness
) -> None:
    """Its pid is gone, or somebody else has it; anything less is not proof."""
    assert judge_process(expected, observed, exists=exists) is judged


@pytest.mark.parametrize(
    ("instance_id", "expected"),
    [
        ("nora:123:1796136663262:1234abcd", 1_796_136_663_262),
        ("nora:123:1796136663262:12345678", 1_796_136_663_262),  # what is random may be digits only
        ("123:1796136663262", 1_796_136_663_262),
        ("nora", None),
        ("nora:123:now", None),
    ],
)
def test_an_instance_id_says_when_its_process_joined(instance_id: str, expected: int | None) -> None:
    assert started_ms(instance_id) == expected
