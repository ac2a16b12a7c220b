"""A holder is ended only when all four rules hold; a follower starts a leader only when it is its turn."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from telegram_bus.core.election import (
    LEASE,
    OWN_LATENESS,
    CannotTell,
    Follow,
    Frozen,
    Healthy,
    Holder,
    Judgement,
    Observation,
    Probe,
    ProbeResult,
    Situation,
    Start,
    Stay,
    Suspect,
    WaitForLeader,
    Watch,
    decide_start,
    head_start,
    judge_identity,
    next_delay,
    restart_delay,
)

LEADER = Holder(pid=10, birth="10:start:5", boot_id="b", pid_namespace=1, uid=1000)
OURS = Holder(pid=20, birth="20:start:9", boot_id="b", pid_namespace=1, uid=1000)


def silent_watch() -> Watch:
    watch, _ = Watch(since=0.0).observe(Observation(now=0.0, renewal="r"))
    return watch


def judge(watch: Watch, now: float, **more: Any) -> Judgement:
    return watch.observe(Observation(now=now, renewal=more.pop("renewal", "r"), **more))[1]


def test_a_holder_that_renews_is_healthy() -> None:
    assert judge(silent_watch(), 100.0, renewal="other") == Healthy()


def test_silence_shorter_than_the_lease_only_makes_suspect() -> None:
    assert judge(silent_watch(), LEASE - 0.01) == Suspect(LEASE - 0.01)


def test_after_the_lease_the_holder_is_asked_before_anything_is_done() -> None:
    assert judge(silent_watch(), LEASE) == Probe(LEASE)


def test_an_unanswered_question_to_the_process_of_the_lease_proves_it_frozen() -> None:
    assert judge(silent_watch(), LEASE + 2, probe="unanswered", strange=None) == Frozen()


def test_an_answer_makes_it_healthy_and_the_count_starts_anew() -> None:
    watch, judgement = silent_watch().observe(Observation(now=LEASE, renewal="r", probe="answered", strange=None))
    assert judgement == Healthy()
    assert judge(watch, LEASE + 1) == Suspect(1.0)


def test_an_observer_that_was_late_itself_starts_anew() -> None:
    watch, judgement = silent_watch().observe(Observation(now=60.0, renewal="r", lateness=OWN_LATENESS + 0.01))
    assert judgement == Suspect(0.0)
    assert judge(watch, 60.0 + LEASE - 0.5) == Suspect(LEASE - 0.5)


def test_a_renewal_during_the_question_saves_the_holder() -> None:
    assert judge(silent_watch(), LEASE + 2, renewal="new", probe="unanswered", strange=None) == Healthy()


def test_being_late_while_asking_proves_nothing() -> None:
    assert judge(silent_watch(), LEASE + 5, lateness=3.0, probe="unanswered", strange=None) == Suspect(0.0)


def test_a_socket_that_cannot_be_reached_proves_nothing() -> None:
    assert isinstance(judge(silent_watch(), LEASE + 2, probe="unreachable", strange=None), CannotTell)


def test_a_strange_process_is_named_and_asked_again_a_lease_later() -> None:
    watch, judgement = silent_watch().observe(
        Observation(now=LEASE, renewal="r", probe="unanswered", strange="it runs elsewhere")
    )
    assert judgement == CannotTell("it runs elsewhere")
    assert isinstance(judge(watch, LEASE * 2 - 0.1), Suspect)
    assert isinstance(judge(watch, LEASE * 2), Probe)


def test_whoever_did_not_look_at_the_process_may_not_end_it() -> None:
    assert isinstance(judge(silent_watch(), LEASE + 2, probe="unanswered"), CannotTell)


def test_the_very_process_of_the_lease_is_not_strange() -> None:
    assert judge_identity(LEADER, LEADER, OURS) is None


@pytest.mark.parametrize(
    ("lease", "found", "words"),
    [
        (evolve(LEADER, pid_namespace=2), LEADER, "container"),
        (evolve(LEADER, boot_id="older"), LEADER, "booted"),
        (LEADER, None, "not the process"),
        (LEADER, evolve(LEADER, birth="10:start:6"), "not the process"),
        (evolve(LEADER, birth=None), evolve(LEADER, birth=None), "not the process"),
        (LEADER, evolve(LEADER, uid=0), "user 0"),
        (evolve(LEADER, uid=7), evolve(LEADER, uid=7), "user 7"),
        (OURS, OURS, "this very process"),
    ],
)
def test_any_difference_protects_a_process_from_our_signals(lease: Holder, found: Holder | None, words: str) -> None:
    reason = judge_identity(lease, found, OURS)
    assert reason is not None
    assert words in reason


class WatchMachine(RuleBasedStateMachine):
    """The watch against the plain history of what was seen: rules (a) to (d), looked up rather than counted."""

    @initialize()
    def begin(self) -> None:
        self.now = 1000.0
        self.renewal = 0
        self.watch = Watch(since=self.now)
        self.history: list[tuple[float, int, float, ProbeResult | None]] = []
        self.judgement: Judgement = Healthy()
        self.strange: str | None = None
        self.observe(0.0, 0.0, None, None)

    def observe(self, passed: float, lateness: float, probe: ProbeResult | None, strange: str | None) -> None:
        self.now += passed + lateness
        self.history.append((self.now, self.renewal, lateness, probe))
        self.strange = strange
        self.watch, self.judgement = self.watch.observe(
            Observation(now=self.now, renewal=self.renewal, lateness=lateness, probe=probe, strange=strange)
        )

    @rule(passed=st.sampled_from([0.5, 0.6, 1.5, 4.0]), lateness=st.sampled_from([0.0, 0.0, 0.0, 0.9, 1.1, 30.0]))
    def look(self, passed: float, lateness: float) -> None:
        self.observe(passed, lateness, None, "not looked at")

    @rule()
    def the_holder_renews(self) -> None:
        self.renewal += 1

    @rule(
        probe=st.sampled_from(["answered", "unanswered", "unanswered", "unreachable"]),
        strange=st.sampled_from([None, None, "elsewhere"]),
        lateness=st.sampled_from([0.0, 0.0, 1.2]),
    )
    def ask_if_told_to(self, probe: ProbeResult, strange: str | None, lateness: float) -> None:
        if isinstance(self.judgement, Probe):
            self.observe(2.0, lateness, probe, strange)

    @rule()
    def the_holder_dies_and_another_takes_its_place(self) -> None:
        """What changes is whose lease it is: to the watch that is a renewal like any other."""
        self.renewal += 1000

    @rule()
    def the_observer_dies_and_another_begins(self) -> None:
        """It has seen nothing: the lease is counted anew."""
        self.watch = Watch(since=self.now)
        self.history.clear()
        self.observe(0.0, 0.0, None, None)

    def silence(self) -> float:
        """How long, until now, nothing was renewed or answered and we were never late."""
        end, renewal, _, _ = self.history[-1]
        start = end
        for at, seen, lateness, probe in reversed(self.history[:-1]):
            if seen != renewal:
                break
            start = at
            if lateness > OWN_LATENESS or probe is not None:
                break
        return end - start

    @invariant()
    def frozen_only_by_all_four_rules(self) -> None:
        if isinstance(self.judgement, Frozen):
            _, _, lateness, probe = self.history[-1]
            assert self.silence() >= LEASE
            assert lateness <= OWN_LATENESS
            assert probe == "unanswered"
            assert self.strange is None

    @invariant()
    def whoever_is_silent_long_enough_is_asked(self) -> None:
        _, _, lateness, probe = self.history[-1]
        if probe is None and lateness <= OWN_LATENESS and self.silence() >= LEASE:
            assert isinstance(self.judgement, Probe)


TestWatchMachine = WatchMachine.TestCase

COLD = Situation(start_lock_held=True, leader_lock_free=True)


@pytest.mark.parametrize(
    ("situation", "step"),
    [
        (evolve(COLD, answered=True, stopped=True), Follow),
        (COLD, Start),
        (evolve(COLD, standby=True), WaitForLeader),
        (evolve(COLD, start_lock_held=False), WaitForLeader),
        (evolve(COLD, leader_lock_free=False), WaitForLeader),
        (evolve(COLD, stopped=True), Stay),
        (evolve(COLD, may_start=False), Stay),
        (evolve(COLD, configured=False), Stay),
        (evolve(COLD, retry_in=0.1), Stay),
    ],
)
def test_a_leader_is_started_only_where_nothing_speaks_against_it(situation: Situation, step: type) -> None:
    assert isinstance(decide_start(situation), step)


def test_stopped_is_told_from_other_reasons_to_stay() -> None:
    assert decide_start(evolve(COLD, stopped=True, may_start=False)) == Stay(
        "the bus was stopped; telegram-bus start goes on", stopped=True
    )


@given(
    st.builds(
        Situation,
        answered=st.booleans(),
        stopped=st.booleans(),
        may_start=st.booleans(),
        configured=st.booleans(),
        standby=st.booleans(),
        start_lock_held=st.booleans(),
        leader_lock_free=st.booleans(),
        retry_in=st.sampled_from([0.0, 1.0]),
    )
)
def test_whoever_starts_holds_the_start_lock_and_found_the_leader_lock_free(at: Situation) -> None:
    if isinstance(decide_start(at), Start):
        assert at.start_lock_held
        assert at.leader_lock_free
        assert at.may_start
        assert at.configured
        assert not at.stopped
        assert not at.standby


def test_delays_grow_from_50_ms_to_a_second_and_jitter_shortens_them() -> None:
    delays = [next_delay(None, 0.0)]
    while len(delays) < 12:
        delays.append(next_delay(delays[-1], 0.0))
    assert delays[0] == 0.05
    assert delays == sorted(delays)
    assert delays[-1] == 1.0
    assert 0.03 < next_delay(None, 0.99) < 0.05


def test_a_leader_that_ends_at_once_is_started_less_and_less_often() -> None:
    assert [restart_delay(failures) for failures in (0, 1, 2, 3, 7, 5000)] == [0.0, 1.0, 2.0, 4.0, 60.0, 60.0]


def test_only_the_lowest_living_slot_needs_no_patience() -> None:
    assert head_start("A", ("A", "B")) == 0.0
    assert head_start("B", ("A", "B")) == 0.1
    assert head_start(None, ("A", "B")) == 0.1
    assert head_start(None, ()) == 0.0
