"""The live registry: one member for each running follower, in the order in which they first registered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

import attrs
from attrs import frozen

from telegram_bus.core.identity import DURABLE_ADMISSION, EXTENSIONS, started_ms
from telegram_bus.core.values import Number, ProtocolIdentity, Registration, Target

__all__ = ["STALE_AFTER_MS", "Admitted", "Member", "Provisioned", "Registry", "key_of"]

K = TypeVar("K")

STALE_AFTER_MS: Final = 5_000
"""A follower that was not heard for longer is no member any more (protocol section 10)."""


@frozen(kw_only=True)
class Provisioned:
    """A destination that was found or made for a follower, and the slot and thread name that go with it.

    One that is `shared` has others beside it: the main chat of a chat without threads.
    """

    target: Target
    slot: str | None = None
    thread_name: str | None = None
    shared: bool = False


@frozen(kw_only=True, eq=False)
class Member:
    """A live follower. Only the registry changes `last_heartbeat_ms` (epoch, ms); the rest stays as admitted.

    `registration` is what it said, with our clock in `connected_at_ms` and our answers in `target`, `slot` and
    `thread_name`. `peer_pid` is the pid that the kernel gave for its connection, None when it could not tell.
    """

    registration: Registration
    peer_pid: int | None = None
    provisioned: Provisioned | None = None
    last_heartbeat_ms: Number
    earlier: tuple[Number, ...] = ()
    """Threads that it had in this registration before the present one: what it sends there was on its way."""

    @property
    def instance_id(self) -> str:
        """The running process."""
        return self.registration.instance_id

    @property
    def key(self) -> str:
        """The stable identity: the profile key, or the instance where there is none."""
        return key_of(self.registration)

    @property
    def generation(self) -> str | None:
        """The registration attempt that is in force."""
        return self.registration.registration_generation

    @property
    def target(self) -> Target | None:
        """Its destination."""
        return self.registration.target

    @property
    def joined_ms(self) -> Number:
        """Since when its process is on the bus (epoch, ms), whoever led: as its instance id says, where that does."""
        started = started_ms(self.instance_id)
        registered = self.registration.connected_at_ms
        return started if started is not None and 0 < started <= registered else registered

    @property
    def shares(self) -> bool:
        """Whether its destination is others' too."""
        return self.provisioned is not None and self.provisioned.shared

    @property
    def protocol(self) -> ProtocolIdentity | None:
        """What it speaks."""
        return self.registration.protocol

    @property
    def extended(self) -> bool:
        """Whether it understands our extensions (and so lives under our own policy)."""
        return self.has(EXTENSIONS)

    def has(self, capability: str) -> bool:
        """Whether it announced `capability`."""
        protocol = self.registration.protocol
        return protocol is not None and capability in protocol.capabilities


@frozen(kw_only=True)
class Admitted:
    """What an admission did: the member now, and those that left for it."""

    member: Member
    replaced: tuple[Member, ...]


class Registry:
    """The members, findable by instance, key, target and pid. Times are arguments (epoch, ms)."""

    def __init__(self) -> None:
        self.revision = 0
        """Grows with each change of membership, so that a watcher knows whether it missed something."""
        self._members: dict[str, Member] = {}
        self._by_profile: dict[str, Member] = {}
        self._by_target: dict[Target, Member] = {}
        self._pids: dict[int, int] = {}
        self._slots: dict[bool, tuple[int, list[str]]] = {}
        self._slot_holders: dict[str, int] = {}  # how many members have each slot

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(tuple(self._members.values()))

    def get(self, instance_id: str) -> Member | None:
        """The member that is this instance."""
        return self._members.get(instance_id)

    def by_key(self, key: str) -> Member | None:
        """The member with this profile key (or this instance, where it has no profile key)."""
        member = self._by_profile.get(key)
        if member is None:
            member = self._members.get(key)
            if member is not None and member.registration.profile_key is not None:
                return None
        return member

    def by_target(self, target: Target) -> Member | None:
        """The member with exactly this chat and thread."""
        return self._by_target.get(target)

    def is_place(self, target: Target) -> bool:
        """Whether a member lives there, be it with others."""
        if target in self._by_target:
            return True
        return target.thread_id is None and any(m.shares and m.target == target for m in self._members.values())

    def has_pid(self, pid: int) -> bool:
        """Whether the kernel gave this pid for a live registration."""
        return pid in self._pids

    def admit(
        self,
        registration: Registration,
        provisioned: Provisioned | None,
        *,
        now_ms: int,
        peer_pid: int | None = None,
    ) -> Admitted:
        """Enters a follower, or enters it anew, and removes every other member with its profile key or target.

        The same instance keeps its place and the time of its last heartbeat; a successor inherits neither.
        """
        changes: dict[str, object] = {"connected_at_ms": now_ms}
        if provisioned is not None:
            changes["target"] = provisioned.target
            changes["slot"] = provisioned.slot or registration.slot
            changes["thread_name"] = provisioned.thread_name or registration.thread_name
        registration = attrs.evolve(registration, **changes)  # type: ignore[arg-type]
        known = self._members.get(registration.instance_id)
        shared = provisioned is not None and provisioned.shared
        replaced = self._rivals(registration, shared=shared)
        for rival in replaced:
            self._drop(rival)
        member = Member(
            registration=registration,
            provisioned=provisioned,
            peer_pid=peer_pid or None,
            last_heartbeat_ms=now_ms if known is None else known.last_heartbeat_ms,
        )
        if known is not None:
            self._forget_indices(known)
        self._members[member.instance_id] = member
        self._index(member)
        self.revision += 1
        return Admitted(member=member, replaced=replaced)

    def move(self, member: Member, target: Target, thread_name: str) -> Member:
        """The member has another destination from now on; returns it as it is now. Whoever had that is removed."""
        rival = self._by_target.get(target)
        if rival is not None and rival is not member:
            self._drop(rival)
        self._forget_indices(member)
        told = attrs.evolve(member.registration, target=target, thread_name=thread_name)
        left = member.target.thread_id if member.target is not None and member.target != target else None
        earlier = (*member.earlier, left) if left is not None else member.earlier
        moved = self._members[member.instance_id] = attrs.evolve(member, registration=told, earlier=earlier)
        self._index(moved)
        self.revision += 1
        return moved

    def touch(self, member: Member, now_ms: Number) -> None:
        """The member was heard."""
        # The one thing about a member that changes; a setter that checks would cost more than the rest of a heartbeat.
        object.__setattr__(member, "last_heartbeat_ms", now_ms)

    def remove(self, member: Member) -> bool:
        """Removes exactly this admission; False when it is not (or no longer) in force."""
        if self._members.get(member.instance_id) is not member:
            return False
        self._drop(member)
        self.revision += 1
        return True

    def expire(self, now_ms: int, stale_after_ms: int = STALE_AFTER_MS) -> tuple[Member, ...]:
        """Removes and returns the members that were not heard for more than `stale_after_ms`."""
        stale = tuple(m for m in self._members.values() if now_ms - m.last_heartbeat_ms > stale_after_ms)
        for member in stale:
            self._drop(member)
        self.revision += bool(stale)
        return stale

    def election_slots(self, *, durable_only: bool) -> list[str]:
        """The slots of the members, sorted, duplicates kept; with `durable_only` of those that journal first.

        It is asked with each heartbeat, so it is worked out once a revision. Do not change the list.
        """
        cached = self._slots.get(durable_only)
        if cached is not None and cached[0] == self.revision:
            return cached[1]
        slots = sorted(
            member.registration.slot
            for member in self._members.values()
            if member.registration.slot is not None and (not durable_only or member.has(DURABLE_ADMISSION))
        )
        self._slots[durable_only] = (self.revision, slots)
        return slots

    def slots_of_others(self, instance_id: str) -> set[str]:
        """The slots of all members but this instance; asked with each registration, so it looks at no member."""
        member = self._members.get(instance_id)
        own = member.registration.slot if member is not None else None
        return {slot for slot, count in self._slot_holders.items() if count > (slot == own)}

    def _rivals(self, registration: Registration, *, shared: bool) -> tuple[Member, ...]:
        found: dict[Member, None] = {}
        if registration.profile_key is not None and (rival := self._by_profile.get(registration.profile_key)):
            found[rival] = None
        if not shared and registration.target is not None and (rival := self._by_target.get(registration.target)):
            found[rival] = None
        return tuple(rival for rival in found if rival.instance_id != registration.instance_id)

    def _index(self, member: Member) -> None:
        if member.registration.profile_key is not None:
            self._by_profile[member.registration.profile_key] = member
        if member.target is not None and not member.shares:
            self._by_target[member.target] = member
        if member.peer_pid is not None:
            self._pids[member.peer_pid] = self._pids.get(member.peer_pid, 0) + 1
        if (slot := member.registration.slot) is not None:
            self._slot_holders[slot] = self._slot_holders.get(slot, 0) + 1

    def _forget_indices(self, member: Member) -> None:
        if member.registration.profile_key is not None:
            del self._by_profile[member.registration.profile_key]
        if member.target is not None and not member.shares:
            del self._by_target[member.target]
        if member.peer_pid is not None:
            _count_down(self._pids, member.peer_pid)
        if member.registration.slot is not None:
            _count_down(self._slot_holders, member.registration.slot)

    def _drop(self, member: Member) -> None:
        del self._members[member.instance_id]
        self._forget_indices(member)


def _count_down(counts: dict[K, int], key: K) -> None:
    counts[key] -= 1
    if not counts[key]:
        del counts[key]


def key_of(registration: Registration) -> str:
    """The stable identity of who registers: its profile key, or its instance where there is none."""
    return registration.profile_key if registration.profile_key is not None else registration.instance_id
