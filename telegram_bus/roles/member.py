"""The role loop of a follower process: find a leader or start one, register, beat, and begin anew when it is gone."""

from __future__ import annotations

import itertools
import logging
import os
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Literal

import trio
from attrs import define, field, frozen

from telegram_bus import home
from telegram_bus.core import identity, receiving
from telegram_bus.core.answers import fault_of
from telegram_bus.core.election import head_start
from telegram_bus.core.envelopes import (
    Ack,
    AckError,
    CallApi,
    Envelope,
    ProtocolIdentity,
    Registration,
    Target,
)
from telegram_bus.core.errors import (
    AnswerLost,
    ApiError,
    BusError,
    NoLeader,
    NotSent,
    RequestRefused,
    StateError,
)
from telegram_bus.core.extensions import Carrying, Extension, OwnRequest
from telegram_bus.roles.seat import HeldSeat
from telegram_bus.roles.session import Session, now_ms, register
from telegram_bus.roles.starter import LeaderStopped, ensure_leader
from telegram_bus.roles.unread import LIMIT as UNREAD_LIMIT
from telegram_bus.roles.unread import Unread
from telegram_bus.roles.vigil import SILENCE, watch_silent_leader
from telegram_bus.roles.watched import Watched
from telegram_bus.store.inbox import Inbox
from telegram_bus.wire.client import BusClient, open_client
from telegram_bus.wire.endpoint import Endpoint, open_endpoint
from telegram_bus.wire.server import Answer, Peer, serve_bus

__all__ = ["Member", "MemberState", "Phase"]

log = logging.getLogger(__name__)

Phase = Literal["connecting", "serving", "no leader", "stopped", "refused", "left"]

_EXTENDED: Final = (Extension, Carrying, OwnRequest)

HEARTBEAT: Final = 1.0  # protocol section 10
FAREWELL: Final = 1.0  # for the last request of a follower that leaves
LONG_ALONE: Final = 3.0  # a successor takes a second or two; longer than this is worth a line
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 1.0
SHORTEST_TERM: Final = 0.25  # a leader that lets go of us sooner than this is not asked again at once
REFUSED_PAUSE: Final = 5.0  # a refusal does not go away by asking often
MAINTENANCE: Final = 1.0  # how often the endpoint's public path is looked after
LONGEST_MAINTENANCE: Final = 15.0  # where it cannot be put back


@frozen(kw_only=True)
class MemberState:
    """What a follower is doing about its leader; `reason` says why it is not served."""

    phase: Phase
    reason: str | None = None


def _later(request_id: str, why: str) -> Ack:
    """A refusal that says nothing against the update, so that the leader does not count it."""
    return Ack(request_id=request_id, ok=False, message=why, error=AckError(code="ledger-overloaded"))


class _RegisterAgain(Exception):
    """The leader does not know this registration (any more)."""


@define(kw_only=True, eq=False)
class Member:
    """A follower process on the bus; `run` keeps it there, everything else may be used meanwhile."""

    profile: home.Profile
    seat: HeldSeat
    inbox: Inbox
    identity: ProtocolIdentity
    thread_name: str | None = None
    start_leader: bool = True
    state: Watched[MemberState] = field(factory=lambda: Watched(MemberState(phase="connecting")))
    target: Watched[Target | None] = field(factory=lambda: Watched(None))
    session: Watched[Session | None] = field(factory=lambda: Watched(None))
    unread: Unread = field(init=False)
    _slot: str | None = None
    _slots: tuple[str, ...] = ()
    _receiving: receiving.Seat | None = None
    _ids: itertools.count[int] = field(factory=lambda: itertools.count(1))
    _leader_pid: int = 0
    _terms: int = 0  # registrations so far
    _alone_since: float = 0.0

    def __attrs_post_init__(self) -> None:
        self.unread = Unread(inbox=self.inbox)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Stay on the bus until cancelled; started once updates can arrive (not: once there is a leader).

        Raises StateError where the follower's own files or endpoint cannot be used.
        """
        await self.unread.load()
        with open_endpoint(self.profile.run_dir / f"{self.seat.key}.sock") as endpoint:
            async with trio.open_nursery() as nursery:
                await nursery.start(partial(serve_bus, endpoint.listener, self._respond, is_known=self._is_leader))
                endpoint.publish()
                nursery.start_soon(_keep_published, endpoint)
                task_status.started()
                try:
                    await self._stay_registered(str(endpoint.public))
                finally:
                    endpoint.withdraw()  # the lock of the seat is held until later
                    self.state.set(MemberState(phase="left"))

    async def ask(self, build: Callable[[dict[str, Any]], Envelope], descriptors: Sequence[int] = ()) -> Ack:
        """Ask the leader, whoever that is by then, and return its ack; `descriptors` are open files that go along.

        `build` makes the envelope from the fields that all requests share. Waits while there is no leader.
        A leader that remembers calls is asked again under the same id when an answer was lost, so that the call
        is made once. Raises RequestRefused, ApiError, CommitUnknown where nobody can tell whether it was made, and
        NoLeader once this follower has left.
        """
        request_id = self.next_id()
        while True:
            session = await self._next_session()
            envelope = build(session.fields(request_id))
            if isinstance(envelope, _EXTENDED) and identity.EXTENSIONS not in session.leader.capabilities:
                raise RequestRefused(f"this leader does not know {envelope.KIND}; it is another program, or an old one")
            if isinstance(envelope, CallApi) and envelope.call_id is not None and not session.remembers_calls:
                raise RequestRefused("this leader does not promise once=…; it is another program, or an old one")
            try:
                ack = await session.client.request(envelope, descriptors)
            except NotSent:
                await self._leave(session)
                continue
            except AnswerLost:
                if not session.remembers_calls:
                    raise
                await self._leave(session)
                continue
            if ack.ok:
                return ack
            if ack.error is None and not await session.is_known():
                await self._leave(session)
                continue
            raise fault_of(ack)

    def next_id(self) -> str:
        """A request id that this process has not used."""
        return f"{self.seat.instance_id}:{next(self._ids)}"

    async def _next_session(self) -> Session:
        """The session of this moment or the next one; raises NoLeader where there will be none."""
        await self.state.wait_for(lambda state: self.session.value is not None or state.phase == "left")
        if self.session.value is None:
            raise NoLeader("this follower has left the bus; join it anew")
        return self.session.value

    async def _leave(self, session: Session) -> None:
        """Wait until another session stands in this one's place."""
        await self.session.wait_for(lambda current: current is not session)

    # -- the endpoint

    def _is_leader(self, peer: Peer) -> bool:
        return peer.pid != 0 and peer.pid == self._leader_pid

    def _respond(self, envelope: Envelope, _peer: Peer) -> Answer:
        match receiving.receive(envelope, self._receiving):
            case receiving.Turned(ack=ack):
                return ack
            case receiving.Moved(target=target):
                self.target.set(target)
                return Ack(request_id=envelope.request_id, ok=True)
            case receiving.Incoming() as incoming:
                return partial(self._store, envelope.request_id, incoming)

    async def _store(self, request_id: str, incoming: receiving.Incoming) -> Ack:
        """Commit an update and only then acknowledge it."""
        if self.unread.full:
            return _later(request_id, f"{UNREAD_LIMIT} updates wait for this program; deliver later")
        try:
            await self.unread.store(incoming)
        except StateError as error:
            return _later(request_id, str(error))
        return Ack(request_id=request_id, ok=True, result=receiving.receipt(incoming.delivery))

    # -- the leader

    async def _stay_registered(self, public: str) -> None:
        pause = FIRST_PAUSE
        while True:
            began, terms = trio.current_time(), self._terms
            try:
                await self._join_leader(public)
            except _RegisterAgain:
                log.info("the leader forgot this registration; registering again")
                self.state.set(MemberState(phase="connecting", reason="the leader forgot this registration"))
            except LeaderStopped as stopped:
                self.state.set(MemberState(phase="stopped", reason=str(stopped)))
            except (RequestRefused, ApiError) as refused:
                self.state.set(MemberState(phase="refused", reason=str(refused)))
                log.warning("the leader refused this follower: %s", refused)
                await trio.sleep(REFUSED_PAUSE * random.uniform(0.8, 1.2))
                continue
            except (BusError, trio.TooSlowError) as error:
                self._wait_for_leader(str(error) or "it does not answer")
            served, lasted = self._terms != terms, trio.current_time() - began
            if served or lasted > LONGEST_PAUSE:  # that leaders die one after another is no reason to wait longer
                pause = FIRST_PAUSE
            if lasted > (SHORTEST_TERM if served else LONGEST_PAUSE):
                continue  # it was well: every moment counts to have it so again
            await trio.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 2, LONGEST_PAUSE)

    def _wait_for_leader(self, reason: str) -> None:
        """Show why there is no leader, and say it once when that lasts: a person may not know that it waits."""
        if self.state.value.phase != "no leader":
            self._alone_since = trio.current_time()
        elif trio.current_time() - self._alone_since > LONG_ALONE:
            log.warning("waiting for a leader: %s", reason)
            self._alone_since = float("inf")
        self.state.set(MemberState(phase="no leader", reason=reason))

    async def _join_leader(self, public: str) -> None:
        """Register with the leader of this moment and stay with it until the connection ends."""
        record = await ensure_leader(
            self.profile,
            may_start=self.start_leader,
            head_start=head_start(self._slot, self._slots),
            report=self._wait_for_leader,
        )
        self._leader_pid = record.pid
        async with open_client(lambda: record.endpoint) as client:
            with self.unread.led():  # before the registration: the leader may deliver ahead of its answer to that
                await self._stay_with(client, public, record.endpoint)

    async def _stay_with(self, client: BusClient, public: str, endpoint: str) -> None:
        secret = home.read_secret(self.profile.follower_secret)
        session = await self._register(client, public, secret)
        self._terms += 1
        self.session.set(session)
        self.state.set(MemberState(phase="serving"))
        gone = False
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._beat, session, nursery.cancel_scope)
                await client.wait_lost()
                gone = True
                nursery.cancel_scope.cancel("the connection ended")
        except* _RegisterAgain:
            raise _RegisterAgain from None
        finally:
            self.session.set(None)
            if not gone:
                with trio.move_on_after(FAREWELL, shield=True):
                    await session.say_goodbye(endpoint)
        raise NoLeader("the connection to the leader ended")

    async def _register(self, client: BusClient, public: str, secret: str) -> Session:
        generation = self.next_id()
        # From here on: the leader may deliver before its answer has reached us.
        self._receiving = receiving.Seat(
            key=self.seat.key, instance_id=self.seat.instance_id, generation=generation, secret=secret
        )
        registration = Registration(
            instance_id=self.seat.instance_id,
            connected_at_ms=now_ms(),
            profile_key=self.seat.key,
            thread_name=self.thread_name,
            slot=self._slot,
            cwd=_working_directory(),
            pid=self.seat.pid,
            target=self.target.value,
            bus_socket_path=public,
            registration_generation=generation,
            protocol=self.identity,
            process_birth_id=self.seat.birth_id,
        )
        session, place = await register(
            client, registration, generation=generation, secret=secret, ours=self.identity, next_id=self.next_id
        )
        self._take_place(place)
        return session

    def _take_place(self, result: object) -> None:
        """Remember the thread and slot that the leader gave, for it and for its successors."""
        if not isinstance(result, dict):
            self.target.set(None)
            return
        slot, chat, thread = result.get("slot"), result.get("chatId"), result.get("threadId")
        self._slot = slot if isinstance(slot, str) else None
        thread_id = thread if isinstance(thread, int) else None
        self.target.set(Target(chat_id=chat, thread_id=thread_id) if isinstance(chat, int) else None)

    async def _beat(self, session: Session, scope: trio.CancelScope) -> None:
        """Say once a second that this follower lives, one beat in flight, until the connection ends."""
        while True:
            ack = await self._one_beat(session)
            if ack is None and not session.client.connected:
                return  # `_join_leader` notices it too
            if ack is None:
                log.warning("the leader has not answered for %.0f s; looking for it again", SILENCE)
                scope.cancel("the leader is silent")
                return
            if not ack.ok:
                raise _RegisterAgain
            self._note_slots(ack.result)
            if self.state.value.phase != "serving":
                self.state.set(MemberState(phase="serving"))
            await trio.sleep(HEARTBEAT)

    async def _one_beat(self, session: Session) -> Ack | None:
        """The answer to a heartbeat, None where there is none; meanwhile the leader's lease is watched."""

        def tell(reason: str) -> None:
            if self.state.value.phase == "serving":
                self.state.set(MemberState(phase="no leader", reason=reason))

        watch = partial(watch_silent_leader, self.profile, may_start=self.start_leader, report=tell)
        ack: Ack | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            with trio.move_on_after(SILENCE), suppress(NotSent, AnswerLost):
                ack = await session.beat()
            nursery.cancel_scope.cancel("it was answered, or never will be")
        return ack

    def _note_slots(self, result: object) -> None:
        slots = result.get("eligibleElectionSlots") if isinstance(result, dict) else None
        self._slots = tuple(slot for slot in slots if isinstance(slot, str)) if isinstance(slots, list) else ()


def _working_directory() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109  # as the wire has it
    except OSError:  # it was removed
        return None


async def _keep_published(endpoint: Endpoint) -> None:
    """Publish the endpoint again when something removed its public path, as soon as the disk lets us."""
    pause = MAINTENANCE
    while True:
        await trio.sleep(pause)
        try:
            if endpoint.ensure_published():
                log.warning("%s had been removed; published it again", endpoint.public)
            pause = MAINTENANCE
        except StateError as error:  # what is connected stays so, and the disk may have room again
            if pause == MAINTENANCE:
                log.warning("no leader can reach this follower anew until its endpoint is back: %s", error)
            pause = min(LONGEST_MAINTENANCE, pause * 2)
