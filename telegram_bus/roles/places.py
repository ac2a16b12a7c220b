"""Where what a follower sends goes when its thread is another one meanwhile, and how it hears of that."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import trio
from attrs import define, evolve, field

from telegram_bus.core.bindings import Binding
from telegram_bus.core.envelopes import Ack, Envelope, ReplaceFollowerTarget, Target
from telegram_bus.core.errors import BusError
from telegram_bus.core.permissions import Allowed
from telegram_bus.core.registry import Member, Registry
from telegram_bus.core.scopes import wire_id
from telegram_bus.roles.threads import Threads

__all__ = ["Places"]

log = logging.getLogger(__name__)

TOLD_WITHIN: Final = 5.0  # seconds for a follower to take in that its thread is another
_LATER: Final = ("sendChatAction", "closeForumTopic", "deleteForumTopic")  # no output


@define(kw_only=True, eq=False)
class Places:
    """The places of those that are here, while threads are deleted, made anew, renamed and given to others."""

    threads: Threads
    registry: Registry = field(repr=False)
    forward: Callable[[Member, Envelope], Awaitable[Ack]] = field(repr=False)
    secret: str = field(repr=False)
    epoch: int
    now_ms: Callable[[], int] = field(repr=False)

    async def in_place(self, member: Member, call: Allowed) -> Allowed:
        """A call into the member's own thread as it goes out: where a person deleted the thread, into the new one.

        Raises RequestRefused while nothing is sent into threads, or where the person deleted that one too.
        """
        own = member.target.thread_id if member.target is not None else None
        if own is None or wire_id(call.body.get("message_thread_id")) != own:
            return call
        if call.api_method == "editForumTopic":
            return self._as_people_call_it(member, call)
        if call.api_method in _LATER:
            return call
        made = await self.threads.before_output(member.key, member.instance_id)
        if made is None:
            return call
        await self.move(member.key, made)
        return _with(call, message_thread_id=made.thread_id)

    def _as_people_call_it(self, member: Member, call: Allowed) -> Allowed:
        """A name that a person gave stays: a call that gives another one still proves that the thread is there."""
        binding = self.threads.of_key(member.key)
        if binding is None or not binding.by_person or call.body.get("name") in (None, "", binding.name):
            return call
        log.info("%s keeps the name that a person gave its thread: %s", member.key, binding.name)
        return _with(call, name=binding.name)

    def note_name(self, binding: Binding) -> None:
        """A thread may have another name: its agent is found by that from now on."""
        member, target = self.registry.by_key(binding.key), Target(chat_id=binding.chat_id, thread_id=binding.thread_id)
        if member is None or member.target != target or member.registration.thread_name == binding.name:
            return
        self.registry.move(member, target, binding.name)

    async def move(self, key: str, binding: Binding) -> None:
        """A follower that is here has another thread from now on, and is told so."""
        member = self.registry.by_key(key)
        if member is None or member.target is None:
            return
        old, target = member.target, Target(chat_id=binding.chat_id, thread_id=binding.thread_id)
        if old == target:
            return
        member = self.registry.move(member, target, binding.name)
        telling = ReplaceFollowerTarget(
            request_id=f"moved:{self.epoch}:{binding.thread_id}",
            auth=self.secret,
            recipient_instance_id=member.instance_id,
            recipient_registration_generation=member.generation,
            target=target,
            old_target=old if old.thread_id is not None else None,
            reason="thread-restore",
            sent_at_ms=self.now_ms(),
        )
        with trio.move_on_after(TOLD_WITHIN):
            try:
                await self.forward(member, telling)
            except BusError as error:
                log.warning("%s was not told of its new thread: %s", key, error)


def _with(call: Allowed, **fields: object) -> Allowed:
    return evolve(call, args=(call.args[0], {**call.body, **fields}, *call.args[2:]))
