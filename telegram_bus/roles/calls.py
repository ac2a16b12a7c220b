"""Bot API calls in a follower's name: claimed before they are sent, made once, and remembered with their owner."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final, assert_never

import trio
from attrs import define, field

from telegram_bus import crash
from telegram_bus.botapi.sender import Failed, Outcome, Sender, Sent
from telegram_bus.core.codec import dumps, loads
from telegram_bus.core.errors import ApiError, CommitUnknown, RequestRefused
from telegram_bus.core.files import file_ids
from telegram_bus.core.permissions import Allowed, repeatable, sent_by
from telegram_bus.core.registry import Member
from telegram_bus.roles.files import Enclosed, Files
from telegram_bus.store import Collision, New, Repeat, Store, Unknown

__all__ = ["Calls"]

log = logging.getLogger(__name__)

NAMED: Final = "named:"
"""Before the ids that programs give their calls, so that they never meet those of requests in the store."""


@define(eq=False)
class _Running:
    """A call under way; who asks for it again waits for the same end, whoever of them is cut off meanwhile."""

    with_sender: bool = False  # which then tells when it has ended
    done: trio.Event = field(factory=trio.Event)


@define(kw_only=True, eq=False)
class Calls:
    """The calls of one term."""

    store: Store = field(repr=False)
    sender: Sender = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    files: Files = field(repr=False)
    _running: dict[tuple[str, str], _Running] = field(factory=dict)

    async def make(
        self,
        member: Member,
        call: Allowed,
        request_id: str,
        call_id: str | None = None,
        enclosed: Enclosed | None = None,
    ) -> Any:
        """Make the call and return Telegram's result; a call with this id that was made before is not made again.

        With a `call_id` that is its id, and the member answers for what it means: what the call says may then differ
        (a program that died is asked again and words it anew), the first result holds.

        Raises ApiError, CommitUnknown, RequestRefused, and what the store raises.
        """
        if call.method == "downloadFile":
            return await self.files.fetch_by_path(member, *[*call.args, None, None][:2])
        if call.method == "callMultipart":
            with await trio.to_thread.run_sync(self.files.enclose, member, call) as opened:  # its disk may be slow
                return await self._make(member, call, request_id, call_id, opened)
        return await self._make(member, call, request_id, call_id, Enclosed() if enclosed is None else enclosed)

    async def _make(
        self, member: Member, call: Allowed, request_id: str, call_id: str | None, enclosed: Enclosed
    ) -> Any:
        enclosed.check(self.files.limits)
        method, params = call.api_method, call.body
        if repeatable(method):

            async def note(outcome: Outcome) -> None:
                if isinstance(outcome, Sent):
                    self.files.note(member.key, file_ids(outcome.result))
                if isinstance(outcome, Sent) and (sent := _sent(call, outcome.result)):
                    await self.store.record_messages(member.key, sent, self.now_ms())

            return await self.sender.call(method, params, _chat(params), after=note)
        if call_id is None:
            told_apart_by = [method, params, *enclosed.facts()]
            return await self._once((member.key, request_id), call, told_apart_by, enclosed)
        return await self._once((member.key, f"{NAMED}{call_id}"), call, [method], enclosed)

    async def _once(self, place: tuple[str, str], call: Allowed, told_apart_by: list[Any], enclosed: Enclosed) -> Any:
        while (running := self._running.get(place)) is not None:
            await running.done.wait()
        self._running[place] = running = _Running()
        try:
            return await self._claimed(place, call, sha256(dumps(told_apart_by)).hexdigest(), enclosed)
        finally:
            if not running.with_sender:
                self._ended(place)

    def _ended(self, place: tuple[str, str]) -> None:
        self._running.pop(place).done.set()

    async def _claimed(self, place: tuple[str, str], call: Allowed, digest: str, enclosed: Enclosed) -> Any:
        method = call.api_method
        self.sender.check(method, _chat(call.body))
        known = await self.store.known_call(*place, digest)
        match known:
            case New():
                return await self._send(place, call, digest, enclosed)
            case Repeat(answer=answer):
                return _recall(method, answer)
            case Unknown():
                raise _begun(method)
            case Collision():
                raise RequestRefused(
                    f"another call was made under the id {place[1]}; give each call an id of its own",
                    code="request-id-collision",
                    method=method,
                )
            case _:
                assert_never(known)

    async def _send(self, place: tuple[str, str], call: Allowed, digest: str, enclosed: Enclosed) -> Any:
        uploads = enclosed.take()
        claimed = False

        async def claim() -> None:
            """When it is its turn: what only waits when this leader dies was surely not sent, and the next one does."""
            nonlocal claimed
            with trio.CancelScope(shield=True):  # a claim that is made has to be known: what was not sent is withdrawn
                known = await self.store.claim_call(*place, digest, self.now_ms())
            if not isinstance(known, New):
                raise _begun(call.api_method)
            claimed = True
            crash.point("after-claim")

        async def settle(outcome: Outcome) -> None:
            """In the sender's task: what Telegram did is noted whoever still waits for it."""
            if not claimed:
                return
            crash.point("after-send")
            match outcome:
                case Sent(result=result):
                    answer, sent = dumps({"result": result}), _sent(call, result)
                    self.files.note(place[0], file_ids(result))
                    await self.store.settle_call(*place, answer, self.now_ms(), sent=sent)
                case Failed(fault=ApiError() as error):
                    await self.store.settle_call(*place, _error(error), self.now_ms())
                case Failed(fault=CommitUnknown()):
                    log.warning("whether %s of %s was carried out is not known", call.api_method, place[0])
                case Failed():
                    await self.store.withdraw_call(*place)

        async def end(outcome: Outcome) -> None:
            try:
                await settle(outcome)
                crash.point("after-settle-call")
            finally:
                for upload in uploads:
                    os.close(upload.descriptor)
                self._ended(place)

        self._running[place].with_sender = True
        return await self.sender.call(
            call.api_method, call.body, _chat(call.body), before=claim, after=end, files=uploads
        )


def _begun(method: str) -> CommitUnknown:
    return CommitUnknown(
        f"{method} was begun and its outcome is not known; look into the chat before you send it again"
    )


def _sent(call: Allowed, result: Any) -> list[tuple[int, int, int | None]]:
    """The messages that the call sent, each (chat, message, thread)."""
    thread = call.body.get("message_thread_id")
    thread_id = thread if isinstance(thread, int) else None
    return [(int(chat), int(message), thread_id) for chat, message in sent_by(call, result, every_method=True)]


def _chat(params: Mapping[str, Any]) -> int | None:
    chat = params.get("chat_id")
    if isinstance(chat, str) and chat.removeprefix("-").isdecimal():
        return int(chat)
    return chat if isinstance(chat, int) else None


def _error(error: ApiError) -> bytes:
    facts = {
        "code": error.code,
        "description": error.description,
        "retry_after": error.retry_after,
        "migrate_to_chat_id": error.migrate_to_chat_id,
    }
    return dumps({"error": facts})


def _recall(method: str, answer: bytes) -> Any:
    stored = loads(answer)
    if "error" in stored:
        raise ApiError(method, **stored["error"])
    return stored["result"]
