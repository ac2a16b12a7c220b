"""The thin shell around a leader's decisions: takes a request, asks the core, does what it says, answers."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, assert_never

import attrs
import trio

from telegram_bus.core import admission, decisions
from telegram_bus.core.answers import accepted, destination, failed, members, refused
from telegram_bus.core.envelopes import Ack, Envelope, Heartbeat
from telegram_bus.core.errors import BusError
from telegram_bus.core.extensions import Extension, FileGet, OperatorRequest, QuestionWait
from telegram_bus.core.registry import STALE_AFTER_MS, Member, Registry, key_of
from telegram_bus.roles.judging import Judging, Note
from telegram_bus.roles.once import Answer, Once, Turns
from telegram_bus.roles.ports import LeaderPorts

if TYPE_CHECKING:
    from telegram_bus.wire.server import Peer

__all__ = ["MAX_WATCH_SECONDS", "LeaderPorts", "Requests"]

MAX_WATCH_SECONDS: Final = 25.0
"""How long `x.members.list` may wait: less than the 30 s after which its asker gives up."""

_NOT_KEPT: Final = (Heartbeat, Extension, FileGet, QuestionWait)
"""Requests that do no harm, or wait for the same, when they are done again: the ledger keeps no answers to them."""

_LOST: Final = decisions.Refuse(message="this process is not the leader any more: read leader.json and connect anew")


class Requests:
    """The answers of one leader's term. `respond` and `knows` are for the server.

    `registry` is for reading; members leave it through `prune` and `remove`, which wake those who watch it. `note` is
    told of what somebody asked for who may not.
    """

    def __init__(
        self,
        ports: LeaderPorts,
        rules: admission.Rules,
        registry: Registry | None = None,
        note: Note | None = None,
    ) -> None:
        self.registry = Registry() if registry is None else registry
        self._judging = Judging(ports, self.registry, note)
        self._note = note
        self._ports = ports
        self._rules = rules
        self._once = Once()
        self._turns = Turns()
        self._changed = trio.Event()

    def knows(self, peer: Peer) -> bool:
        """Whether the peer's pid is that of a live registration."""
        return self.registry.has_pid(peer.pid)

    def respond(self, envelope: Envelope, peer: Peer) -> Answer:
        """The answer, or what to await for it in a task of its own."""
        refusal = admission.authorise(envelope, self._rules)
        if refusal is not None:
            return self._refuse(envelope, refusal, peer)
        if isinstance(envelope, _NOT_KEPT):
            return self._act(envelope, peer)
        return self._once.answer(envelope, lambda: self._act(envelope, peer))

    def prune(self, stale_after_ms: int = STALE_AFTER_MS) -> tuple[Member, ...]:
        """Removes and returns the members that were not heard for more than `stale_after_ms`."""
        gone = self.registry.expire(self._ports.now_ms(), stale_after_ms)
        if gone:
            self._wake()
        return gone

    def remove(self, member: Member) -> bool:
        """Removes exactly this admission; False when it is no longer in force."""
        removed = self.registry.remove(member)
        if removed:
            self._wake()
        return removed

    async def wait_changed(self, after_revision: int) -> int:
        """Waits until the registry's revision differs from `after_revision`; returns the revision."""
        while self.registry.revision == after_revision:
            await self._changed.wait()
        return self.registry.revision

    def _refuse(self, envelope: Envelope, refusal: decisions.Refuse, peer: Peer) -> Ack:
        if refusal.broken is not None and self._note is not None:
            self._note(None, peer.pid, envelope.KIND, *refusal.broken)
        return refused(envelope, refusal)

    def _act(self, envelope: Envelope, peer: Peer) -> Answer:
        """Decides, and does at once what needs no waiting."""
        decision = admission.decide(envelope, self.registry, self._rules, peer_pid=peer.pid)
        match decision:
            case decisions.Refuse():
                return self._refuse(envelope, decision, peer)
            case decisions.Beat(member=member, slots=slots):
                self._touch(member)
                return accepted(envelope, {"eligibleElectionSlots": slots})
            case decisions.ReportStatus():
                return accepted(envelope, self._ports.status())
            case decisions.ListMembers():
                return self._list(envelope, decision)
            case decisions.Operate() | decisions.Stop():
                return self._obey(envelope, decision)
            case decisions.Call() | decisions.Fetch():
                self._touch(decision.member)
                return self._judging.answer(envelope, decision, peer)
            case decisions.Resolve(member=member) | decisions.Route(member=member) | decisions.Serve(member=member):
                self._touch(member)
                return lambda: self._guarded(envelope, self._ask(envelope, decision))
            case decisions.Provision():
                return lambda: self._guarded(envelope, self._register(envelope, decision, peer))
            case decisions.Leave():
                return lambda: self._guarded(envelope, self._leave(envelope, decision))
            case decisions.ForwardTo():
                self._touch(decision.member)
                return lambda: self._guarded(envelope, self._forward(envelope, decision))
            case decisions.Handoff():
                return lambda: self._guarded(envelope, self._hand_over(envelope, decision))
            case _:
                assert_never(decision)

    def _obey(self, envelope: Envelope, decision: decisions.Operate | decisions.Stop) -> Answer:
        if isinstance(decision, decisions.Operate):
            request = decision.request
            return lambda: self._guarded(envelope, self._operate(request))
        self._ports.request_stop()
        return accepted(envelope)

    async def _operate(self, request: OperatorRequest) -> Ack:
        return accepted(request, await self._ports.operate(request))

    async def _guarded(self, envelope: Envelope, work: Awaitable[Ack]) -> Ack:
        try:
            return await work
        except BusError as fault:
            return failed(envelope, fault)

    async def _register(self, envelope: Envelope, decision: decisions.Provision, peer: Peer) -> Ack:
        registration = decision.registration
        async with self._turns.take(key_of(registration)):
            if not self._ports.leading():
                return refused(envelope, _LOST)
            provisioned = await self._ports.provision(registration)
            if not self._ports.leading():
                return refused(envelope, _LOST)
            admitted = self.registry.admit(
                registration, provisioned, now_ms=self._ports.now_ms(), peer_pid=peer.pid or None
            )
            self._wake()
            result = destination(provisioned, admitted.member.target)
            return attrs.evolve(accepted(envelope, result), protocol=self._rules.identity)

    async def _leave(self, envelope: Envelope, decision: decisions.Leave) -> Ack:
        member = decision.member
        async with self._turns.take(member.key):
            if self.registry.get(member.instance_id) is not member:
                message = f"{member.instance_id} was registered anew meanwhile; it stays"
                return refused(envelope, decisions.Refuse(message=message))
            if not self._ports.leading():
                return refused(envelope, _LOST)
            await self._ports.retire(member)
            self.remove(member)
            return accepted(envelope)

    async def _ask(self, envelope: Envelope, decision: decisions.Resolve | decisions.Route | decisions.Serve) -> Ack:
        match decision:
            case decisions.Resolve():
                extended = decision.main_chat and decision.member.extended
                found = await self._ports.resolve(decision.member, decision.selector, main_chat=extended)
                named = {"key": found.key, "name": found.name} if found.key is not None else {}
                return accepted(envelope, destination(None, found.target) | named)
            case decisions.Serve():
                return accepted(envelope, await self._ports.serve(decision.member, decision.request))
            case decisions.Route():
                await self._ports.route(decision.member, decision.message)
                return accepted(envelope)
            case _:
                assert_never(decision)

    async def _forward(self, envelope: Envelope, decision: decisions.ForwardTo) -> Ack:
        ack = await self._ports.forward(decision.member, decision.envelope)
        if ack.ok:
            self._touch(decision.member)
        return _passed_on(envelope, ack)

    async def _hand_over(self, envelope: Envelope, decision: decisions.Handoff) -> Ack:
        ack = await self._ports.forward(decision.recipient, decision.envelope)
        if ack.ok:
            self._touch(decision.donor)
            self._touch(decision.recipient)
        return _passed_on(envelope, ack)

    def _list(self, envelope: Envelope, decision: decisions.ListMembers) -> Answer:
        seen = decision.after_revision
        if decision.wait_ms == 0 or seen is None or seen != self.registry.revision:
            return accepted(envelope, members(self.registry))
        seconds = min(decision.wait_ms / 1000, MAX_WATCH_SECONDS)

        async def watch() -> Ack:
            with trio.move_on_after(seconds):
                await self.wait_changed(seen)
            return accepted(envelope, members(self.registry))

        return watch

    def _touch(self, member: Member) -> None:
        self.registry.touch(member, self._ports.now_ms())

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


def _passed_on(envelope: Envelope, ack: Ack) -> Ack:
    """The recipient's answer as the answer to the request: its verdict and its receipt, nothing else."""
    if ack.ok:
        return Ack(request_id=envelope.request_id, ok=True, result=ack.result)
    message = ack.message or "the recipient refused"
    return Ack(request_id=envelope.request_id, ok=False, message=message)
