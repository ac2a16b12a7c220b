"""Bot API calls in a follower's name: claimed before they are sent, made once, and remembered with their owner."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import trio
from attrs import define, field

from telegram_bus.botapi.sender import Outcome, Sender, Sent
from telegram_bus.core import outcomes
from telegram_bus.core.errors import ApiError
from telegram_bus.core.files import file_ids
from telegram_bus.core.permissions import Allowed, repeatable
from telegram_bus.core.registry import Member
from telegram_bus.roles.files import Enclosed, Files
from telegram_bus.roles.outbox import Outbox
from telegram_bus.roles.parking import Parking
from telegram_bus.store import Store

__all__ = ["NAMED", "Calls"]

NAMED: Final = "named:"
"""Before the ids that programs give their calls, so that they never meet those of requests in the store."""


@define(kw_only=True, eq=False)
class Calls:
    """The calls of one term."""

    store: Store = field(repr=False)
    sender: Sender = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    files: Files = field(repr=False)
    outbox: Outbox = field(init=False)

    def __attrs_post_init__(self) -> None:
        parking = Parking(store=self.store, now_ms=self.now_ms)
        self.sender.bar = parking.check  # whoever sends: nobody writes into a closed chat
        self.outbox = Outbox(
            store=self.store, sender=self.sender, now_ms=self.now_ms, files=self.files, parking=parking
        )

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

    async def named(self, key: str, method: str, params: dict[str, Any], call_id: str) -> Any:
        """Make a call that a follower has named, or would, in its name, whether it is here or not.

        Raises as `make`.
        """
        call = Allowed(method="call", args=(method, params))
        return await self.outbox.once((key, f"{NAMED}{call_id}"), call, [method], durable=True, files=Enclosed().take)

    async def _make(
        self, member: Member, call: Allowed, request_id: str, call_id: str | None, enclosed: Enclosed
    ) -> Any:
        self.files.check(enclosed)
        if repeatable(call.api_method):
            return await self._repeatable(member, call, enclosed)
        if call_id is None:
            place, told_apart_by = request_id, [call.api_method, call.body, *enclosed.facts()]
        else:
            place, told_apart_by = f"{NAMED}{call_id}", [call.api_method]
        durable = call_id is not None and not enclosed.parts
        return await self.outbox.once((member.key, place), call, told_apart_by, durable=durable, files=enclosed.take)

    async def _repeatable(self, member: Member, call: Allowed, enclosed: Enclosed) -> Any:
        """An edit, a deletion, an action: nothing is claimed, but whose its result is, is noted."""

        async def note(outcome: Outcome) -> None:
            for upload in files:  # told in any case, and last of all
                os.close(upload.descriptor)
            if isinstance(outcome, Sent):
                self.files.note(member.key, file_ids(outcome.result))
                if sent := outcomes.sent_messages(call, outcome.result):
                    await self.store.record_messages(member.key, sent, self.now_ms())

        async def send(call: Allowed) -> Any:
            chat = outcomes.chat_of(call.body)
            turn = _turn(member, call)
            return await self.sender.call(call.api_method, call.body, chat, after=note, files=files, **turn)

        files = enclosed.take()
        try:
            return await send(call)
        except ApiError as error:
            instead = None if files else await self.outbox.passage.notice(call, error)
            if instead is None:
                raise
        return await send(instead)


def _turn(member: Member, call: Allowed) -> dict[str, Any]:
    """What the budget has to know of a call."""
    return {"owner": member.key, "urgency": call.urgency, "patient": call.patient}
