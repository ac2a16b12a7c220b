"""What everything rests on that a follower asks of its leader: Bot API calls with its own place filled in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import trio
from attrs import define, field

from telegram_bus import crash
from telegram_bus.core.buttons import needs_keeping
from telegram_bus.core.envelopes import CallApi, Target
from telegram_bus.core.errors import NoLeader, RequestRefused
from telegram_bus.core.extensions import FilePart, FileSend
from telegram_bus.core.scopes import CROSS_TARGET
from telegram_bus.roles.member import Member

if TYPE_CHECKING:
    from telegram_bus.core.urgency import Hint

__all__ = ["CALLS_AT_ONCE", "FILES_AT_ONCE", "Calling"]

CALLS_AT_ONCE: Final = 32
"""Calls of one follower on their way to the leader; it works on 64 requests a connection (wire/limits.py), and while
Telegram is slow a follower with more than that would not get its heartbeats through."""

FILES_AT_ONCE: Final = 4
"""Of them with files: each is an open file in the leader, and Telegram takes a chat's uploads one after the other."""

_WITHOUT_CHAT: Final = frozenset({"getMe", "answerCallbackQuery", "setMyCommands", "deleteMyCommands", "getMyCommands"})
_INTO_THREAD: Final = ("send", "copyMessage", "editForumTopic", "closeForumTopic", "deleteForumTopic")


@define(kw_only=True, eq=False)
class Calling:
    """A follower's way to the Bot API."""

    _member: Member
    _calls: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(CALLS_AT_ONCE), repr=False)
    _transfers: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(FILES_AT_ONCE), repr=False)

    @property
    def key(self) -> str:
        """The stable name of this follower: the same after a restart, different from all live ones."""
        return self._member.seat.key

    @property
    def target(self) -> Target | None:
        """Its chat and thread; None before the first registration."""
        return self._member.target.value

    async def wait_serving(self) -> None:
        """Wait until a leader has given this follower its place. Raises NoLeader once it has left the bus."""
        state = await self._member.state.wait_for(lambda state: state.phase in ("serving", "left"))
        if state.phase == "left":
            raise NoLeader("this follower has left the bus; join it anew")

    @property
    def _folder(self) -> Path:
        return self._member.profile.files(self.key)

    async def call(self, method: str, **params: Any) -> Any:
        """Make any Bot API call that the bus allows a follower, and return its result.

        The chat and thread of this follower are filled in where they are missing; parameters that are None are left
        out. Many may be made at once; 32 of them are on their way, the others wait their turn. RequestRefused where a
        field, at any depth, names a file by its path.
        """
        from telegram_bus.core.scopes import local_file  # noqa: PLC0415 - for those who make calls of their own

        if (field := local_file(params)) is not None:
            raise RequestRefused(
                f"{method}: {field} must be a file id, an address or an attachment, not a path; send_file sends files",
                method=method,
            )
        return await self._make(method, params)

    async def _make(
        self, method: str, params: dict[str, Any], call_id: str | None = None, hint: str | None = None
    ) -> Any:
        """What `call` does, under a call id of one's own where that is given; `hint` says how urgent it is."""
        async with self._calls:
            return await self._ask(method, params, call_id, hint)

    async def _upload(
        self,
        method: str,
        params: dict[str, Any],
        parts: dict[int, FilePart],
        call_id: str | None,
        hint: str | None = None,
    ) -> Any:
        async with self._transfers, self._calls:
            body = await self._body(method, params, call_id)
            files = tuple(parts.values())
            ack = await self._member.ask(
                lambda fields: FileSend(
                    **fields,
                    method=method,
                    params=body,
                    files=files,
                    call_id=call_id,
                    urgency=cast("Hint | None", hint),
                ),
                tuple(parts),
            )
        return ack.result

    async def _body(self, method: str, params: dict[str, Any], call_id: str | None) -> dict[str, Any]:
        """The parameters, with chat and thread where they are missing; waits until those are known.

        What buttons mean beyond Telegram's 64 bytes is with the leader when it returns.
        """
        await self.wait_serving()
        body = {name: value for name, value in params.items() if value is not None}
        target = self.target
        if target is not None and method not in _WITHOUT_CHAT:
            body.setdefault("chat_id", target.chat_id)
            if target.thread_id is not None and method.startswith(_INTO_THREAD) and CROSS_TARGET not in body:
                body.setdefault("message_thread_id", target.thread_id)
        markup: Any = body.get("reply_markup")
        if needs_keeping(markup):
            from telegram_bus.followers.keyboards import kept_markup  # noqa: PLC0415 - for those who need it

            lasting = None if markup.get("one_time") else body.get("message_id")
            scope = call_id or (None if lasting is None else f"edit {lasting}")
            body["reply_markup"] = await kept_markup(self._member, markup, scope)
        return body

    async def _ask(self, method: str, params: dict[str, Any], call_id: str | None, hint: str | None = None) -> Any:
        body = await self._body(method, params, call_id)
        ack = await self._member.ask(
            lambda fields: CallApi(
                **fields, method="call", args=(method, body), call_id=call_id, urgency=cast("Hint | None", hint)
            )
        )
        crash.point("after-answer")
        return ack.result
