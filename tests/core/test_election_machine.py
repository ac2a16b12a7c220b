"""An election of processes that die or freeze at any moment: one starter at a time, and in the end one leader.

The locks are those of the operating system as a model: they belong to a process and are free at the instant of its
death. What the processes decide is decided by the real core.
"""

from __future__ import annotations

from typing import Any

from attrs import define, field
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from telegram_bus.core.election import (
    LEASE,
    Follow,
    Frozen,
    Observation,
    Probe,
    Situation,
    Start,
    Stay,
    Watch,
    decide_start,
    head_start,
    restart_delay,
)
from tests.effort import examples

FOLLOWERS = 3
STANDBY = 1.5  # seconds that a spare is given
SLOTS = tuple("ABC")


@define(eq=False)
class Leader:
    """A process that leads, or tries to: `epoch` 0 until it has the lock."""

    by: int | None
    epoch: int = 0
    renewals: int = 0
    frozen: bool = False
    alive: bool = True


@define(eq=False)
class Follower:
    """A process that wants a leader; `started` is one that it waits for, `since` when it began to look for one."""

    number: int
    alive: bool = True
    leader: Leader | None = None
    started: Leader | None = None
    since: float = 0.0
    watch: Watch = field(factory=lambda: Watch(since=0.0))


class Election(RuleBasedStateMachine):
    """`lock` and `start_lock` are held by processes; `failures` is what start.lock tells of starts that failed."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.lock: Leader | None = None
        self.start_lock: Follower | None = None
        self.followers = [Follower(number) for number in range(FOLLOWERS)]
        self.leaders: list[Leader] = []
        self.spare: Leader | None = None
        self.stopped = False
        self.failures, self.failed_at = 0, 0.0
        self.epoch = 0
        self.ended_epochs: list[int] = []

    # -- what processes do

    def answering(self) -> Leader | None:
        leader = self.lock
        return leader if leader is not None and leader.epoch and not leader.frozen else None

    @rule(number=st.integers(0, FOLLOWERS - 1))
    def look(self, number: int) -> None:
        """One round of a follower's search."""
        me = self.followers[number]
        if not me.alive:
            return
        if me.leader is not None:
            if me.leader.alive and not me.leader.frozen:
                return  # its heartbeats are answered
            me.leader, me.since = None, self.now
        if me.started is not None and self.answering() is None and me.started.alive:
            self.suspect(me)
            return  # it waits for that one, and keeps the start lock
        if me.started is not None and self.answering() is None:
            self.failures, self.failed_at = self.failures + 1, self.now
        me.started = None
        self.decide(me)

    def decide(self, me: Follower) -> None:
        found = self.answering()
        at: dict[str, Any] = {
            "answered": found is not None,
            "stopped": self.stopped,
            "retry_in": restart_delay(self.failures) - (self.now - self.failed_at),
        }
        step = decide_start(Situation(**at, start_lock_held=True, leader_lock_free=True))
        if isinstance(step, Start):
            at["standby"] = self.spare is not None and self.now - me.since < STANDBY
            patient = self.now - me.since >= head_start(SLOTS[me.number], SLOTS)
            if not at["standby"] and patient and self.start_lock is None:
                self.start_lock = me
            step = decide_start(
                Situation(**at, start_lock_held=self.start_lock is me, leader_lock_free=self.lock is None)
            )
        match step:
            case Follow():
                me.leader, self.failures = found, 0
                self.free_start_lock(me)
            case Start():
                assert self.start_lock is me
                assert self.lock is None
                assert not [one for one in self.leaders if one.alive and self.has_living_starter(one)], "two starters"
                me.started = Leader(by=me.number)
                self.leaders.append(me.started)
            case Stay():
                self.free_start_lock(me)
            case _:
                self.suspect(me)

    def has_living_starter(self, leader: Leader) -> bool:
        return leader.by is not None and self.followers[leader.by].started is leader and not leader.epoch

    def suspect(self, me: Follower) -> None:
        """Only who holds the start lock ends a leader that is proven to be frozen."""
        renewal = None if self.lock is None else (id(self.lock), self.lock.renewals)
        me.watch, judgement = me.watch.observe(Observation(now=self.now, renewal=renewal, strange=None))
        if isinstance(judgement, Probe):
            probe = "answered" if self.lock is not None and not self.lock.frozen else "unanswered"
            seen = Observation(now=self.now, renewal=renewal, strange=None, probe=probe)  # type: ignore[arg-type]
            me.watch, judgement = me.watch.observe(seen)
        if isinstance(judgement, Frozen) and self.start_lock is me and self.lock is not None:
            assert self.lock.frozen, "a leader that lives was ended"
            self.end(self.lock)

    def free_start_lock(self, me: Follower) -> None:
        if self.start_lock is me:
            self.start_lock = None

    @rule()
    def leaders_try(self) -> None:
        """Those that were started, and the spare, try the lock; a second one that was started ends."""
        for leader in [*self.leaders, *([self.spare] if self.spare is not None else [])]:
            if not leader.alive or leader.epoch or leader.frozen:
                continue
            if self.lock is None and not self.stopped:
                self.lock, self.epoch = leader, self.epoch + 1
                leader.epoch = self.epoch
                assert leader.epoch > max(self.ended_epochs, default=0)
                if leader is self.spare:
                    self.leaders.append(leader)
                    self.spare = None
            elif leader is not self.spare:
                leader.alive = False

    @rule(seconds=st.sampled_from([0.1, 0.5, 2.0, LEASE]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        if self.lock is not None and not self.lock.frozen:
            self.lock.renewals += 1

    @rule(rounds=st.integers(1, 4), seconds=st.sampled_from([0.1, 0.5, 4.0]))
    def a_while_passes(self, rounds: int, seconds: float) -> None:
        """Everybody has a few turns."""
        for _ in range(rounds):
            self.time_passes(seconds)
            for number in range(FOLLOWERS):
                self.look(number)
            self.leaders_try()

    @precondition(lambda self: self.answering() is not None and self.spare is None)
    @rule()
    def a_spare_stands_by(self) -> None:
        self.spare = Leader(by=None)

    # -- what happens to them

    def end(self, leader: Leader) -> None:
        leader.alive = False
        if self.lock is leader:
            self.lock = None
            self.ended_epochs.append(leader.epoch)
        if self.spare is leader:
            self.spare = None

    @precondition(lambda self: any(one.alive for one in self.leaders))
    @rule(data=st.data())
    def a_leader_dies(self, data: st.DataObject) -> None:
        self.end(data.draw(st.sampled_from([one for one in self.leaders if one.alive])))

    @precondition(lambda self: self.spare is not None)
    @rule()
    def the_spare_dies(self) -> None:
        assert self.spare is not None
        self.end(self.spare)

    @precondition(lambda self: any(one.alive for one in self.leaders))
    @rule(data=st.data())
    def a_leader_freezes_or_goes_on(self, data: st.DataObject) -> None:
        leader = data.draw(st.sampled_from([one for one in self.leaders if one.alive]))
        leader.frozen = not leader.frozen

    @rule(number=st.integers(0, FOLLOWERS - 1))
    def a_follower_dies_or_is_started_anew(self, number: int) -> None:
        me = self.followers[number]
        self.free_start_lock(me)
        self.followers[number] = Follower(number, alive=not me.alive, since=self.now, watch=Watch(since=self.now))

    @rule(stopped=st.booleans())
    def a_person_stops_or_starts(self, stopped: bool) -> None:
        self.stopped = stopped
        if stopped and self.answering() is not None and self.lock is not None:
            self.end(self.lock)

    # -- what is to hold

    @invariant()
    def one_leads_at_most(self) -> None:
        leading = [one for one in self.leaders if one.alive and one.epoch]
        assert leading == ([self.lock] if self.lock is not None else [])

    def teardown(self) -> None:
        """Left alone, whoever lives has the same leader soon, whatever happened before."""
        self.stopped = False
        self.followers[0] = self.followers[0] if self.followers[0].alive else Follower(0, since=self.now)
        for leader in self.leaders:
            leader.frozen = leader.frozen and leader.epoch > 0  # one that froze as it began is ended by hand
        for _ in range(75):
            self.a_while_passes(4, 0.5)
        living = [one for one in self.followers if one.alive]
        assert self.answering() is not None
        assert {one.leader for one in living} == {self.lock}
        assert self.start_lock is None


Election.TestCase.settings = settings(max_examples=examples(100), stateful_step_count=30, deadline=None)
TestElection = Election.TestCase
