"""A leader whose Telegram is the sandbox's world, in this process: what a follower's calls really come to."""

from __future__ import annotations

import random
from typing import Any

import trio
from attrs import define, field

from telegram_bus.core.answers import failed
from telegram_bus.core.envelopes import Ack, CallApi, Envelope
from telegram_bus.core.errors import ApiError, BusError, RequestRefused
from telegram_bus.core.extensions import FileSend
from telegram_bus.sandbox import methods
from telegram_bus.sandbox.args import Args, Upload
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.refusal import Refusal
from tests.fakes import FakeLeader, ok


@define(eq=False)
class Telegram:
    """Makes the calls that a fake leader is asked for; `calls` are those that were made.

    `faults` (None: none) come first. A call with an id is made once, as by a real leader, for which this one stands.
    """

    leader: FakeLeader
    private: bool = False
    world: World = field(factory=lambda: World(random.Random(1)))
    calls: list[tuple[str, dict[str, Any]]] = field(factory=list)
    faults: dict[str, list[BusError | None]] = field(factory=dict)
    known: dict[str, Any] = field(factory=dict)
    now: float = 1_800_000_000.0
    gate: trio.Event | None = None
    chat_id: int = field(init=False)
    thread_id: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.chat_id = self.world.owner.id if self.private else self.world.forum_id
        topic = methods.call(self.world, "createForumTopic", Args({"chat_id": self.chat_id, "name": "nora"}), self.now)
        self.thread_id = topic["message_thread_id"]
        self.leader.target = {"chatId": self.chat_id, "threadId": self.thread_id, "threadName": "nora"}
        self.leader.replies[CallApi.KIND] = self._call
        self.leader.replies[FileSend.KIND] = self._upload

    def made(self, method: str) -> list[dict[str, Any]]:
        """The parameters of each call of the method that reached Telegram."""
        return [params for called, params in self.calls if called == method]

    def texts(self) -> list[str]:
        """What stands in the thread, in order; of a file its name."""
        chat = self.world.chats[self.chat_id]
        found = [one for _, one in sorted(chat.messages.items()) if one.thread_id == self.thread_id and not one.service]
        return [one.text or (one.content or {}).get("document", {}).get("file_name", "") for one in found]

    async def _call(self, envelope: Envelope) -> Ack:
        assert isinstance(envelope, CallApi)
        method, params = envelope.args
        return await self._answer(envelope, envelope.call_id, method, params)

    async def _upload(self, envelope: Envelope) -> Ack:
        assert isinstance(envelope, FileSend)
        files = {part.field: Upload(part.name, b"content") for part in envelope.files}
        return await self._answer(envelope, envelope.call_id, envelope.method, {**envelope.params, **files})

    async def _answer(self, envelope: Envelope, call_id: str | None, method: str, params: dict[str, Any]) -> Ack:
        if self.gate is not None:
            await self.gate.wait()
        if call_id is None or call_id not in self.known:
            outcome = self._outcome(method, params)
            if call_id is not None and not isinstance(outcome, RequestRefused):
                self.known[call_id] = outcome
        else:
            outcome = self.known[call_id]
        return failed(envelope, outcome, extended=True) if isinstance(outcome, BusError) else ok(envelope, outcome)

    def _outcome(self, method: str, params: dict[str, Any]) -> Any:
        self.calls.append((method, params))
        if self.faults.get(method) and (fault := self.faults[method].pop(0)) is not None:
            return fault
        try:
            return methods.call(self.world, method, Args(params), self.now)
        except Refusal as refused:
            return ApiError(method, refused.code, refused.description)
