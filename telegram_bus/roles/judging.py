"""A follower's calls and fetches: judged by its policy, made where that allows them, noted where it does not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import attrs

from telegram_bus.core import decisions
from telegram_bus.core.answers import accepted, failed, refused
from telegram_bus.core.envelopes import Ack, Envelope
from telegram_bus.core.errors import BusError
from telegram_bus.core.permissions import COMPATIBLE, OWN, Allowed, Caller, Denied, judge, judge_files
from telegram_bus.core.registry import Member, Registry
from telegram_bus.core.scopes import CROSS_TARGET, wire_id
from telegram_bus.roles.files import Enclosed
from telegram_bus.roles.once import Answer
from telegram_bus.roles.ports import LeaderPorts
from telegram_bus.wire.descriptors import Descriptors

if TYPE_CHECKING:
    from telegram_bus.wire.server import Peer

__all__ = ["Judging", "Note"]

Note = Callable[[str | None, int, str, str | None, str], None]
"""Told of each refusal: who (a follower's key, None: nobody known), pid, method, field, rule."""


class Judging:
    """What becomes of `follower.callApi`, `x.file.send` and `x.file.get` once their sender is known to be current."""

    def __init__(self, ports: LeaderPorts, registry: Registry, note: Note | None = None) -> None:
        self._ports = ports
        self._registry = registry
        self._note = note

    def answer(self, envelope: Envelope, decision: decisions.Call | decisions.Fetch, peer: Peer) -> Answer:
        """The answer to a call, or to who wants a file."""
        if isinstance(decision, decisions.Fetch):
            return self._fetch(envelope, decision, peer)
        return self._call(envelope, decision, peer)

    def _call(self, envelope: Envelope, decision: decisions.Call, peer: Peer) -> Answer:
        if decision.parts:
            decision = attrs.evolve(decision, enclosed=peer.descriptors)
        decision = _into_present_thread(decision)
        verdict = self._judge(decision)
        if isinstance(verdict, Allowed):
            return lambda: self._make(envelope, decision, verdict)
        recall = self._ports.recall(decision.member, decision.method, decision.args)
        if recall is not None:
            return lambda: self._call_after(recall, envelope, decision)
        return self._call_without_reply(envelope, decision, verdict)

    def _fetch(self, envelope: Envelope, decision: decisions.Fetch, peer: Peer) -> Answer:
        member, file_id = decision.member, decision.file_id
        owned = self._ports.owned_by(member)
        recall = None
        if not owned.file(file_id):
            recall = self._ports.recall(member, "downloadFile", (file_id,))
            if recall is None:
                return self._not_theirs(envelope, member)

        async def fetch() -> Ack:
            if recall is not None:
                await recall()
                if not owned.file(file_id):
                    return self._not_theirs(envelope, member)
            try:
                beside, resume = peer.descriptors, decision.resume
                return accepted(envelope, await self._ports.fetch_file(member, file_id, beside, resume=resume))
            except BusError as fault:
                return failed(envelope, fault, method="getFile", extended=True)

        return fetch

    def _not_theirs(self, envelope: Envelope, member: Member) -> Ack:
        self._refused(member, "getFile", "file_id", "must be that of a file of this follower's")
        message = "getFile: file_id: this file was not sent to this follower, or so long ago that it is forgotten"
        return refused(envelope, decisions.Refuse(message=message))

    def _refused(self, member: Member, method: str, field: str | None, rule: str) -> None:
        if self._note is not None:
            self._note(member.key, member.peer_pid or 0, method, field, rule)

    async def _call_after(
        self, recall: Callable[[], Awaitable[None]], envelope: Envelope, decision: decisions.Call
    ) -> Ack:
        """Judge again, now that memory holds whose the messages and files are that the call names."""
        await recall()
        verdict = self._judge(decision)
        if isinstance(verdict, Allowed):
            return await self._make(envelope, decision, verdict)
        answer = self._call_without_reply(envelope, decision, verdict)
        return answer if isinstance(answer, Ack) else await answer()

    def _call_without_reply(self, envelope: Envelope, decision: decisions.Call, verdict: Denied) -> Answer:
        """As Telegram does it where the message to reply to is gone: we may have forgotten whose it was."""
        args = _without_reply(decision.args)
        plain = self._judge(attrs.evolve(decision, args=args)) if args is not None else verdict
        if isinstance(plain, Allowed):
            return lambda: self._make(envelope, decision, plain)
        self._refused(decision.member, verdict.method, verdict.field, verdict.rule)
        return refused(envelope, decisions.Refuse(message=verdict.reason))

    def _judge(self, decision: decisions.Call) -> Allowed | Denied:
        member = decision.member
        caller = Caller(
            target=member.target,
            owned=self._ports.owned_by(member),
            is_agent=self._registry.is_place,
            upload_root=self._ports.upload_root(member),
        )
        if decision.parts:
            return judge_files(OWN, decision.args, [part.field for part in decision.parts], caller)
        return judge(OWN if member.extended else COMPATIBLE, decision.method, decision.args, caller)

    async def _make(self, envelope: Envelope, asked: decisions.Call, call: Allowed) -> Ack:
        try:
            enclosed = Enclosed(asked.parts, _descriptors(asked)) if asked.parts else None
            call = Allowed(method=call.method, args=call.args, urgency=asked.urgency, patient=asked.member.extended)
            result = await self._ports.call_api(asked.member, call, envelope.request_id, asked.call_id, enclosed)
            return accepted(envelope, result)
        except BusError as fault:
            return failed(envelope, fault, method=call.api_method, extended=asked.member.extended)


def _without_reply(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The call without its reply, None where there is none or its sender insists on it."""
    body = args[1] if len(args) > 1 and isinstance(args[1], dict) else {}
    reply = body.get("reply_parameters")
    if not isinstance(reply, dict) or reply.get("allow_sending_without_reply") is not True:
        return None
    return (args[0], {name: value for name, value in body.items() if name != "reply_parameters"}, *args[2:])


def _descriptors(asked: decisions.Call) -> Descriptors:
    return asked.enclosed if isinstance(asked.enclosed, Descriptors) else Descriptors()


def _into_present_thread(decision: decisions.Call) -> decisions.Call:
    """The call of a member that was given another thread meanwhile, into that one: it is its thread that it meant."""
    member, args = decision.member, decision.args
    body = args[1] if len(args) > 1 and isinstance(args[1], dict) else {}
    if not member.earlier or member.target is None or body.get(CROSS_TARGET) is True:
        return decision
    if wire_id(body.get("message_thread_id")) not in member.earlier:
        return decision
    moved = {**body, "message_thread_id": member.target.thread_id}
    return attrs.evolve(decision, args=(args[0], moved, *args[2:]))
