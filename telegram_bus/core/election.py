"""Who may lead: when a holder of the lease counts as frozen, and what a follower without a leader does."""

from __future__ import annotations

from typing import Final, Literal

from attrs import evolve, frozen

__all__ = [
    "CannotTell",
    "Follow",
    "Frozen",
    "Healthy",
    "Holder",
    "Judgement",
    "Observation",
    "Probe",
    "ProbeResult",
    "Situation",
    "Start",
    "StartStep",
    "Stay",
    "Suspect",
    "WaitForLeader",
    "Watch",
    "decide_start",
    "head_start",
    "judge_identity",
    "next_delay",
    "restart_delay",
]

RENEW_EVERY: Final = 2.0
"""Seconds between two renewals of the lease (protocol section 10)."""
LEASE: Final = 8.0
"""Seconds of our own monotonic time without a renewal that make a holder suspect (protocol section 10)."""
OWN_LATENESS: Final = 1.0
"""An observer whose own loop was later than this was frozen itself, and has seen nothing."""

FIRST_DELAY: Final = 0.05
LAST_DELAY: Final = 1.0
HEAD_START: Final = 0.1
RESTART_LAST: Final = 60.0
"""Seconds between two starts of a leader that ends at once, at most: it may work again, and costs little."""

ProbeResult = Literal["answered", "unanswered", "unreachable"]


@frozen(kw_only=True)
class Holder:
    """What is needed to know a process again: never only its pid, which another may get."""

    pid: int
    birth: str | None
    boot_id: str
    pid_namespace: int
    uid: int


@frozen(kw_only=True)
class Observation:
    """What was seen at the monotonic time `now`.

    `renewal` is any value that changes with each renewal or holder; `lateness` says how much later (seconds) than
    asked for our own loop woke up since the last observation; `probe` is the result of a request sent since then;
    `strange` says why the holder may not be signalled, None: it is exactly the process that the lease names.
    """

    now: float
    renewal: object
    lateness: float = 0.0
    probe: ProbeResult | None = None
    strange: str | None = "it was not looked at"


@frozen
class Healthy:
    """The holder renewed, or answered."""


@frozen
class Suspect:
    """No renewal for `silent` seconds, which is not yet long enough."""

    silent: float


@frozen
class Probe:
    """Silent for too long: ask it on a fresh connection, 2 s long, and look at the process that the lease names."""

    silent: float


@frozen
class Frozen:
    """All four rules hold: it may be ended."""


@frozen
class CannotTell:
    """It does not renew, but nothing proves that it is frozen, or that we would hit the right process."""

    reason: str


Judgement = Healthy | Suspect | Probe | Frozen | CannotTell


@frozen(kw_only=True)
class Watch:
    """The watch over one holder: the last renewal seen, and since when nothing has changed."""

    since: float
    renewal: object = None
    lease: float = LEASE

    def observe(self, seen: Observation) -> tuple[Watch, Judgement]:
        """The watch after this observation, and what is known of the holder now."""
        if seen.renewal != self.renewal:
            return evolve(self, since=seen.now, renewal=seen.renewal), Healthy()
        if seen.lateness > OWN_LATENESS:
            return evolve(self, since=seen.now), Suspect(0.0)
        if seen.probe == "answered":
            return evolve(self, since=seen.now), Healthy()
        silent = seen.now - self.since
        if silent < self.lease:
            return self, Suspect(silent)
        if seen.probe is None:
            return self, Probe(silent)
        again = evolve(self, since=seen.now)  # whatever is done now, the next probe comes a lease later
        if seen.probe == "unreachable":
            return again, CannotTell("its socket cannot be reached")
        return again, CannotTell(seen.strange) if seen.strange is not None else Frozen()


def judge_identity(lease: Holder, found: Holder | None, ours: Holder) -> str | None:
    """Why the process that the lease names must not be signalled by us; None where nothing speaks against it.

    `found` is what has the lease's pid now (None: nothing), `ours` this process.
    """
    if lease.pid_namespace != ours.pid_namespace:
        return "it runs in another container (PID namespace)"
    if lease.boot_id != ours.boot_id:
        return "it was started before this machine booted, or on another machine"
    if found is None or lease.birth is None or found.birth != lease.birth:
        return f"pid {lease.pid} is not the process that wrote the lease"
    if lease.uid != ours.uid or found.uid != ours.uid:
        return f"it belongs to user {found.uid}"
    return "it is this very process" if lease.pid == ours.pid else None


@frozen(kw_only=True)
class Situation:
    """What a follower without a connection knows.

    `retry_in` are the seconds until a leader may be started again; `standby`: somebody stands by, and has not had
    its time yet.
    """

    answered: bool = False
    stopped: bool = False
    may_start: bool = True
    configured: bool = True
    standby: bool = False
    start_lock_held: bool = False
    leader_lock_free: bool = False
    retry_in: float = 0.0
    last_failure: str | None = None


@frozen
class Follow:
    """A leader answers: connect."""


@frozen
class Start:
    """Start a leader, and keep the start lock until it answers or has exited."""


@frozen
class WaitForLeader:
    """Somebody starts or holds: look again in a moment."""

    reason: str


@frozen
class Stay:
    """Nothing here leads to a leader; a person, or time, has to change something."""

    reason: str
    stopped: bool = False


StartStep = Follow | Start | WaitForLeader | Stay


def decide_start(at: Situation) -> StartStep:
    """What a follower without a leader does next."""
    if at.answered:
        return Follow()
    if at.stopped:
        return Stay("the bus was stopped; telegram-bus start goes on", stopped=True)
    if not at.may_start:
        return Stay("no leader answers, and this process starts none; telegram-bus start does")
    if not at.configured:
        return Stay("no leader answers, and none can be started: run telegram-bus leader once, it stores the settings")
    if at.retry_in > 0:
        return Stay(f"the last leader that was started failed: {at.last_failure or 'it ended at once'}")
    if at.standby:
        return WaitForLeader("a leader that stood by takes over")
    if not at.start_lock_held:
        return WaitForLeader("another process is starting a leader")
    if not at.leader_lock_free:
        return WaitForLeader("a leader holds the lock and does not answer")
    return Start()


def next_delay(previous: float | None, jitter: float) -> float:
    """Seconds to wait before the next attempt to connect: 50 ms, growing to 1 s; `jitter` in [0, 1) shortens it."""
    grown = FIRST_DELAY if previous is None else min(LAST_DELAY, max(previous, FIRST_DELAY) * 1.6)
    return grown * (1 - 0.3 * jitter)


def restart_delay(failures: int) -> float:
    """Seconds between the `failures`-th start that failed in a row and the next one."""
    return 0.0 if failures <= 0 else min(RESTART_LAST, 2.0 ** min(failures - 1, 10))


def head_start(slot: str | None, eligible: tuple[str, ...]) -> float:
    """Seconds to let others go first: none for the lowest slot of those that live, 100 ms for everybody else."""
    return HEAD_START if eligible and slot != min(eligible) else 0.0
