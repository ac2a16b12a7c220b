"""The thin shell around a leader's decisions: takes a request, asks the core, does what it says, answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, assert_never

import attrs
import trio

from telegram_bus.core import admission
from telegram_bus.core.answers import destination, failed, members, refused
from telegram_bus.core.envelopes import ABSENT, Ack, Envelope, Heartbeat
from telegram_bus.core.errors import BusError
from telegram_bus.core.extensions import Extension, FileGet, OperatorRequest, QuestionWait
from telegram_bus.core.permissions import COMPATIBLE, OWN, Allowed, Caller, Denied, judge, judge_files
from telegram_bus.core.registry import STALE_AFTER_MS, Member, Registry, key_of
from telegram_bus.roles.files import Enclosed
from telegram_bus.roles.once import Answer, Once, Turns
from telegram_bus.roles.ports import LeaderPorts
from telegram_bus.wire.descriptors import Descriptors

if TYPE_CHECKING:
    from telegram_bus.wire.server import Peer

__all__ = ["MAX_WATCH_SECONDS", "LeaderPorts", "Requests"]

MAX_WATCH_SECONDS: Final = 25.0
"""How long `x.members.list` may wait: less than the 30 s after which its asker gives up."""

_LOST: Final = admission.Refuse(message="this process is not the leader any more: read leader.json and connect anew")


class Requests:
    """The answers of one leader's term. `respond` and `knows` are for the server.

    `registry` is for reading; members leave it through `prune` and `remove`, which wake those who watch it.
    """

    def __init__(self, ports: LeaderPorts, rules: admission.Rules, registry: Registry | None = None) -> None:
        self.registry = Registry() if registry is None else registry
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
            return refused(envelope, refusal)
        if isinstance(envelope, Heartbeat | Extension | FileGet | QuestionWait):
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

    def _act(self, envelope: Envelope, peer: Peer) -> Answer:
        """Decides, and does at once what needs no waiting."""
        decision = admission.decide(envelope, self.registry, self._rules, peer_pid=peer.pid)
        match decision:
            case admission.Refuse():
                return refused(envelope, decision)
            case admission.Beat(member=member, slots=slots):
                self._touch(member)
                return _accepted(envelope, {"eligibleElectionSlots": slots})
            case admission.ReportStatus():
                return _accepted(envelope, self._ports.status())
            case admission.ListMembers():
                return self._list(envelope, decision)
            case admission.Operate() | admission.Stop():
                return self._obey(envelope, decision)
            case admission.Call() | admission.Fetch():
                return self._call_or_fetch(envelope, decision, peer)
            case admission.Resolve(member=member) | admission.Route(member=member) | admission.Serve(member=member):
                self._touch(member)
                return lambda: self._guarded(envelope, self._ask(envelope, decision))
            case admission.Provision():
                return lambda: self._guarded(envelope, self._register(envelope, decision, peer))
            case admission.Leave():
                return lambda: self._guarded(envelope, self._leave(envelope, decision))
            case admission.ForwardTo():
                self._touch(decision.member)
                return lambda: self._guarded(envelope, self._forward(envelope, decision))
            case admission.Handoff():
                return lambda: self._guarded(envelope, self._hand_over(envelope, decision))
            case _:
                assert_never(decision)

    def _obey(self, envelope: Envelope, decision: admission.Operate | admission.Stop) -> Answer:
        if isinstance(decision, admission.Operate):
            request = decision.request
            return lambda: self._guarded(envelope, self._operate(request))
        self._ports.request_stop()
        return _accepted(envelope)

    async def _operate(self, request: OperatorRequest) -> Ack:
        return _accepted(request, await self._ports.operate(request))

    async def _guarded(self, envelope: Envelope, work: Awaitable[Ack]) -> Ack:
        try:
            return await work
        except BusError as fault:
            return failed(envelope, fault)

    async def _register(self, envelope: Envelope, decision: admission.Provision, peer: Peer) -> Ack:
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
            return attrs.evolve(_accepted(envelope, result), protocol=self._rules.identity)

    async def _leave(self, envelope: Envelope, decision: admission.Leave) -> Ack:
        member = decision.member
        async with self._turns.take(member.key):
            if self.registry.get(member.instance_id) is not member:
                message = f"{member.instance_id} was registered anew meanwhile; it stays"
                return refused(envelope, admission.Refuse(message=message))
            if not self._ports.leading():
                return refused(envelope, _LOST)
            await self._ports.retire(member)
            self.remove(member)
            return _accepted(envelope)

    def _call(self, envelope: Envelope, decision: admission.Call) -> Answer:
        self._touch(decision.member)
        verdict = self._judge(decision)
        if isinstance(verdict, Allowed):
            return lambda: self._call_api(envelope, decision, verdict)
        recall = self._ports.recall(decision.args)
        if recall is not None:
            return lambda: self._call_after(recall, envelope, decision)
        return self._call_without_reply(envelope, decision, verdict)

    def _call_without_reply(self, envelope: Envelope, decision: admission.Call, verdict: Denied) -> Answer:
        """As Telegram does it where the message to reply to is gone: we may have forgotten whose it was."""
        args = _without_reply(decision.args)
        plain = self._judge(attrs.evolve(decision, args=args)) if args is not None else verdict
        if isinstance(plain, Allowed):
            return lambda: self._call_api(envelope, decision, plain)
        return refused(envelope, admission.Refuse(message=verdict.reason))

    def _judge(self, decision: admission.Call) -> Allowed | Denied:
        member = decision.member
        caller = Caller(
            target=member.target,
            owned=self._ports.owned_by(member),
            is_agent=lambda target: self.registry.by_target(target) is not None,
            upload_root=self._ports.upload_root(member),
        )
        if decision.parts:
            return judge_files(OWN, decision.args, [part.field for part in decision.parts], caller)
        return judge(OWN if member.extended else COMPATIBLE, decision.method, decision.args, caller)

    def _call_or_fetch(self, envelope: Envelope, decision: admission.Call | admission.Fetch, peer: Peer) -> Answer:
        if isinstance(decision, admission.Fetch):
            return self._fetch(envelope, decision, peer)
        if decision.parts:
            decision = attrs.evolve(decision, enclosed=peer.descriptors)
        return self._call(envelope, decision)

    def _fetch(self, envelope: Envelope, decision: admission.Fetch, peer: Peer) -> Answer:
        member, file_id = decision.member, decision.file_id
        self._touch(member)
        if not self._ports.owned_by(member).file(file_id):
            message = "this file was not sent to this follower, or so long ago that the bus has forgotten it"
            return refused(envelope, admission.Refuse(message=message))

        async def fetch() -> Ack:
            try:
                return _accepted(envelope, await self._ports.fetch_file(member, file_id, peer.descriptors))
            except BusError as fault:
                return failed(envelope, fault, method="getFile", extended=True)

        return fetch

    async def _call_after(
        self, recall: Callable[[], Awaitable[None]], envelope: Envelope, decision: admission.Call
    ) -> Ack:
        """Judge again, now that memory holds whose the messages are that the call names."""
        await recall()
        verdict = self._judge(decision)
        if isinstance(verdict, Allowed):
            return await self._call_api(envelope, decision, verdict)
        answer = self._call_without_reply(envelope, decision, verdict)
        return answer if isinstance(answer, Ack) else await answer()

    async def _call_api(self, envelope: Envelope, asked: admission.Call, call: Allowed) -> Ack:
        try:
            enclosed = Enclosed(asked.parts, _descriptors(asked)) if asked.parts else None
            result = await self._ports.call_api(asked.member, call, envelope.request_id, asked.call_id, enclosed)
            return _accepted(envelope, result)
        except BusError as fault:
            return failed(envelope, fault, method=call.api_method, extended=asked.member.extended)

    async def _ask(self, envelope: Envelope, decision: admission.Resolve | admission.Route | admission.Serve) -> Ack:
        match decision:
            case admission.Resolve():
                target = await self._ports.resolve(decision.member, decision.selector)
                return _accepted(envelope, destination(None, target))
            case admission.Serve():
                return _accepted(envelope, await self._ports.serve(decision.member, decision.request))
            case admission.Route():
                await self._ports.route(decision.member, decision.message)
                return _accepted(envelope)
            case _:
                assert_never(decision)

    async def _forward(self, envelope: Envelope, decision: admission.ForwardTo) -> Ack:
        ack = await self._ports.forward(decision.member, decision.envelope)
        if ack.ok:
            self._touch(decision.member)
        return _passed_on(envelope, ack)

    async def _hand_over(self, envelope: Envelope, decision: admission.Handoff) -> Ack:
        ack = await self._ports.forward(decision.recipient, decision.envelope)
        if ack.ok:
            self._touch(decision.donor)
            self._touch(decision.recipient)
        return _passed_on(envelope, ack)

    def _list(self, envelope: Envelope, decision: admission.ListMembers) -> Answer:
        seen = decision.after_revision
        if decision.wait_ms == 0 or seen is None or seen != self.registry.revision:
            return _accepted(envelope, members(self.registry))
        seconds = min(decision.wait_ms / 1000, MAX_WATCH_SECONDS)

        async def watch() -> Ack:
            with trio.move_on_after(seconds):
                await self.wait_changed(seen)
            return _accepted(envelope, members(self.registry))

        return watch

    def _touch(self, member: Member) -> None:
        self.registry.touch(member, self._ports.now_ms())

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


def _without_reply(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The call without its reply, None where there is none or its sender insists on it."""
    body = args[1] if len(args) > 1 and isinstance(args[1], dict) else {}
    reply = body.get("reply_parameters")
    if not isinstance(reply, dict) or reply.get("allow_sending_without_reply") is not True:
        return None
    return (args[0], {name: value for name, value in body.items() if name != "reply_parameters"}, *args[2:])


def _descriptors(asked: admission.Call) -> Descriptors:
    return asked.enclosed if isinstance(asked.enclosed, Descriptors) else Descriptors()


def _accepted(envelope: Envelope, result: Any = ABSENT) -> Ack:
    return Ack(request_id=envelope.request_id, ok=True, result=result)


def _passed_on(envelope: Envelope, ack: Ack) -> Ack:
    """The recipient's answer as the answer to the request: its verdict and its receipt, nothing else."""
    if ack.ok:
        return Ack(request_id=envelope.request_id, ok=True, result=ack.result)
    message = ack.message or "the recipient refused"
    return Ack(request_id=envelope.request_id, ok=False, message=message)
