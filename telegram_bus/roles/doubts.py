"""Calls whose outcome nobody knows: people are told of each once, with a button that sends it again."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import trio
from attrs import define, field

from telegram_bus import crash
from telegram_bus.core import outcomes
from telegram_bus.core.codec import dumps, loads
from telegram_bus.core.errors import BusError, StateError
from telegram_bus.store import Store
from telegram_bus.store.outbox import LEADER, Open
from telegram_bus.store.values import SEEN_MS

if TYPE_CHECKING:
    from telegram_bus.roles.buttons import Press

__all__ = ["Doubts", "Work"]

log = logging.getLogger(__name__)

Work = Callable[[], Awaitable[None]]

PAGE: Final = 50
PAUSE: Final = 30.0  # seconds until a disk that failed is tried again
SHOWN: Final = 20  # unknown calls in the status
REMEMBERED: Final = 1_000  # of them in memory


@define(kw_only=True, eq=False)
class Doubts:
    """The unknown calls of one bot.

    `send` has a call from the store sent, `call` makes one that may be repeated, `do` has work done in the background.
    """

    store: Store = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    send: Callable[[Open], object] = field(repr=False)
    call: Callable[..., Awaitable[Any]] = field(repr=False)
    do: Callable[[Work], None] = field(repr=False)
    _unknown: OrderedDict[int, Open] = field(factory=OrderedDict)

    def recall(self, unknown: Sequence[Open]) -> None:
        """Calls that earlier leaders left unknown, the newest first."""
        for row in reversed(unknown):
            self._remember(row)

    def note(self, row: Open) -> None:
        """A call is unknown: tell people soon."""
        self._remember(row)
        self.do(partial(self._tell, row))

    async def tell_all(self) -> None:
        """Tell people of everything that they have not been told of."""
        while rows := await self._untold():
            for row in rows:
                await self._tell(row)

    async def pressed(self, press: Press) -> str:
        """A person pressed "Send again"; returns what they are shown.

        One effect for each notice: a second press finds that it was done. Raises what the store raises.
        """
        which = outcomes.again_of(press.rest)
        again = None if which is None else await self.store.send_again(*which, self.now_ms())
        if again is not None:
            crash.point("after-again")
            self._unknown.pop(again.seq, None)
            self.send(again)
        self.do(partial(self._take_button, press.message, sent=again is not None))
        return "It is sent again." if again is not None else "That was sent again already, or is forgotten."

    def count(self, key: str) -> int:
        """How many of a follower's calls are unknown."""
        return sum(1 for one in self._lately() if one.key == key)

    def status(self) -> dict[str, Any]:
        """How many there are, and the newest of them."""
        unknown = self._lately()
        shown = [{"key": one.key, "method": one.method, "since_ms": one.since_ms} for one in unknown[-SHOWN:]]
        return {"unknown": len(unknown), "unknown_calls": shown}

    def _lately(self) -> list[Open]:
        since = self.now_ms() - SEEN_MS
        return [one for one in self._unknown.values() if one.since_ms >= since]

    def _remember(self, row: Open) -> None:
        if row.key == LEADER:
            return
        self._unknown[row.seq] = row._replace(body=None)
        if len(self._unknown) > REMEMBERED:
            self._unknown.popitem(last=False)

    async def _untold(self) -> list[Open]:
        while True:
            try:
                return await self.store.untold_calls(PAGE)
            except StateError:
                await trio.sleep(PAUSE)

    async def _tell(self, row: Open) -> None:
        """The notice is a call of the leader, as durable as those it is about; of itself nobody is told."""
        params = outcomes.doubt_notice(row.method, None if row.body is None else loads(row.body), row.seq, row.tries)
        notice = None
        if params is not None:
            request_id = f"doubt:{row.seq}.{row.tries}"
            notice = (request_id, sha256(request_id.encode()).hexdigest(), "sendMessage", dumps(params))
        try:
            accepted = await self.store.tell_doubt(row.seq, notice, self.now_ms())
        except StateError as error:
            log.warning("the next leader tells people that the outcome of %s is not known: %s", row.method, error)
            await trio.sleep(PAUSE)
            return
        crash.point("after-tell")
        if accepted is not None:
            self.send(accepted)

    async def _take_button(self, message: dict[str, Any], *, sent: bool) -> None:
        """Nobody shall press it twice; where that fails a second press has no effect all the same."""
        chat = outcomes.chat_of({"chat_id": (message.get("chat") or {}).get("id")})
        text, method = message.get("text"), "editMessageReplyMarkup"
        params = {"chat_id": chat, "message_id": message.get("message_id")}
        if sent and isinstance(text, str):
            method, params["text"] = "editMessageText", f"{text}\n\nSent again."
        try:
            await self.call(method, params, chat)
        except BusError as error:
            log.info("the button of message %s stays: %s", params["message_id"], error)
