"""The registry against a simple model, and its rules one by one."""

from __future__ import annotations

from typing import Any

import attrs
import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from telegram_bus.core.identity import DURABLE_ADMISSION
from telegram_bus.core.registry import Member, Provisioned, Registry
from telegram_bus.core.values import ProtocolIdentity, Registration, Target
from tests.effort import examples

DURABLE = ProtocolIdentity(protocol_version=1, runtime_build="t", capabilities=(DURABLE_ADMISSION,))


def registration(instance: str, **changes: Any) -> Registration:
    """A registration of an instance."""
    return Registration(instance_id=instance, connected_at_ms=0, registration_generation=f"{instance}:1", **changes)


def test_a_prune_at_exactly_the_limit_removes_nobody() -> None:
    """Stale is who was not heard for more than the limit."""
    registry = Registry()
    registry.admit(registration("a"), None, now_ms=1_000)
    assert registry.expire(6_000) == ()
    assert [gone.instance_id for gone in registry.expire(6_001)] == ["a"]
    assert len(registry) == 0


def test_a_prune_that_removes_nobody_is_no_change() -> None:
    """Watchers sleep on."""
    registry = Registry()
    registry.admit(registration("a"), None, now_ms=0)
    before = registry.revision
    registry.expire(0)
    assert registry.revision == before
    registry.expire(9_000)
    assert registry.revision > before


def test_a_name_that_provisioning_does_not_answer_is_kept_from_the_registration() -> None:
    """Slot and thread name of the answer win; where it has none, the follower's own stay."""
    registry = Registry()
    answer = Provisioned(target=Target(chat_id=1, thread_id=2), thread_name="Nora")
    said = registration("a", slot="C", thread_name="Old").target
    member = registry.admit(registration("a", slot="C", thread_name="Old", target=said), answer, now_ms=5).member
    assert (member.registration.slot, member.registration.thread_name) == ("C", "Nora")
    assert (member.target, member.registration.connected_at_ms) == (answer.target, 5)


def test_a_profile_key_and_an_instance_of_the_same_name_are_not_the_same() -> None:
    """Neither replaces the other."""
    registry = Registry()
    registry.admit(registration("x"), None, now_ms=0)
    registry.admit(registration("y", profile_key="x"), None, now_ms=0)
    assert [member.instance_id for member in registry] == ["x", "y"]
    by_key = registry.by_key("x")
    assert by_key is not None
    assert by_key.instance_id == "y"
    assert registry.by_key("y") is None


def test_removing_an_admission_that_was_renewed_does_nothing() -> None:
    """A slow disconnect cannot remove its replacement."""
    registry = Registry()
    first = registry.admit(registration("a"), None, now_ms=0).member
    second = registry.admit(registration("a"), None, now_ms=0).member
    assert not registry.remove(first)
    assert registry.get("a") is second


def test_slots_are_those_of_members_that_journal_where_that_is_asked() -> None:
    """Sorted, duplicates kept, anew after each change."""
    registry = Registry()
    for instance, slot, protocol in (("a", "C", DURABLE), ("b", "A", None), ("c", "C", DURABLE), ("d", None, DURABLE)):
        registry.admit(registration(instance, slot=slot, protocol=protocol), None, now_ms=0)
    assert registry.election_slots(durable_only=False) == ["A", "C", "C"]
    assert registry.election_slots(durable_only=True) == ["C", "C"]
    member = registry.get("a")
    assert member is not None
    registry.remove(member)
    assert registry.election_slots(durable_only=True) == ["C"]


def test_a_pid_is_known_as_long_as_one_of_its_members_lives() -> None:
    """Two followers in one process are two members; pid 0 is nobody's."""
    registry = Registry()
    first = registry.admit(registration("a"), None, now_ms=0, peer_pid=7).member
    second = registry.admit(registration("b"), None, now_ms=0, peer_pid=7).member
    registry.admit(registration("c"), None, now_ms=0, peer_pid=0)
    registry.remove(first)
    assert registry.has_pid(7)
    assert not registry.has_pid(0)
    registry.remove(second)
    assert not registry.has_pid(7)


class RegistryMachine(RuleBasedStateMachine):
    """The registry against a list of facts, in order of registration."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = Registry()
        self.model: list[dict[str, Any]] = []
        self.now = 0
        self.seen_revision = 0
        self.seen_members: list[Member] = []

    @rule(
        instance=st.sampled_from("abcd"),
        profile=st.sampled_from([None, "p", "q"]),
        chat=st.sampled_from([None, 1, 2]),
        thread=st.sampled_from([None, 5]),
        pid=st.sampled_from([0, 8, 9]),
        slot=st.sampled_from([None, "A", "B"]),
    )
    def admit(
        self, instance: str, profile: str | None, chat: int | None, thread: int | None, pid: int, slot: str | None
    ) -> None:
        """A follower registers, or registers again."""
        target = None if chat is None else Target(chat_id=chat, thread_id=thread)
        known = next((one for one in self.model if one["instance"] == instance), None)
        rivals = [
            one["instance"]
            for one in self.model
            if one is not known
            and (
                (profile is not None and one["profile"] == profile) or (target is not None and one["target"] == target)
            )
        ]
        facts = {"instance": instance, "profile": profile, "target": target, "pid": pid}
        facts["heard"] = self.now if known is None else known["heard"]
        if known is None:
            self.model.append(facts)
        else:
            self.model[self.model.index(known)] = facts
        self.model = [one for one in self.model if one["instance"] not in rivals]
        told = registration(instance, profile_key=profile, target=target, slot=slot)
        admitted = self.registry.admit(told, None, now_ms=self.now, peer_pid=pid)
        assert sorted(gone.instance_id for gone in admitted.replaced) == sorted(rivals)

    @rule(instance=st.sampled_from("abcd"))
    def touch(self, instance: str) -> None:
        """A follower is heard."""
        member = self.registry.get(instance)
        known = next((one for one in self.model if one["instance"] == instance), None)
        assert (member is None) == (known is None)
        if member is not None and known is not None:
            self.registry.touch(member, self.now)
            known["heard"] = self.now

    @rule(instance=st.sampled_from("abcd"))
    def remove(self, instance: str) -> None:
        """A follower leaves."""
        member = self.registry.get(instance)
        if member is not None:
            assert self.registry.remove(member)
            assert not self.registry.remove(member)
        self.model = [one for one in self.model if one["instance"] != instance]

    @rule(passed=st.sampled_from([1, 2_500, 5_000]))
    def expire(self, passed: int) -> None:
        """Time passes, and those that were not heard go."""
        self.now += passed
        gone = [one["instance"] for one in self.model if self.now - one["heard"] > 5_000]
        assert [member.instance_id for member in self.registry.expire(self.now)] == gone
        self.model = [one for one in self.model if one["instance"] not in gone]

    @invariant()
    def agrees(self) -> None:
        """The same members in the same order, each found by each of its names, and nobody else."""
        told = [(member.instance_id, member.last_heartbeat_ms) for member in self.registry]
        assert told == [(one["instance"], one["heard"]) for one in self.model]
        for member in self.registry:
            assert self.registry.get(member.instance_id) is member
            if member.registration.profile_key is not None:
                assert self.registry.by_key(member.registration.profile_key) is member
            if member.target is not None:
                assert self.registry.by_target(member.target) is member
        for pid in (8, 9):
            assert self.registry.has_pid(pid) == any(one["pid"] == pid for one in self.model)
        for profile in ("p", "q"):
            assert (self.registry.by_key(profile) is None) == all(one["profile"] != profile for one in self.model)
        members = list(self.registry)
        for instance in "abcd":
            slots = {m.registration.slot for m in members if m.instance_id != instance} - {None}
            assert self.registry.slots_of_others(instance) == slots
        if self.registry.revision == self.seen_revision:
            assert members == self.seen_members
        self.seen_revision, self.seen_members = self.registry.revision, members


RegistryMachine.TestCase.settings = settings(max_examples=examples(50), stateful_step_count=30)
TestRegistryMachine = RegistryMachine.TestCase


@pytest.mark.parametrize(
    ("instance", "joined"),
    [
        ("nora:7:1500:0123abcd", 1_500),
        ("7:1500", 1_500),
        ("nora:7:9999:0123abcd", 2_000),
        ("nora:1", 2_000),
        ("x", 2_000),
    ],
    ids=["ours", "pi-telegram's", "one of a clock that is ahead", "a name", "anything"],
)
def test_a_member_is_as_old_as_its_process_whoever_leads(instance: str, joined: int) -> None:
    member = Member(registration=attrs.evolve(registration(instance), connected_at_ms=2_000), last_heartbeat_ms=2_000)
    assert member.joined_ms == joined
