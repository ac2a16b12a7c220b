"""Pressed buttons at the leader: each is answered within a second, and some are the leader's own."""

from __future__ import annotations

import logging
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, NamedTuple

import trio
from attrs import define, field

from telegram_bus.core import buttons
from telegram_bus.core.codec import loads
from telegram_bus.core.errors import ApiError, BusError, StateError
from telegram_bus.roles.threads import Call
from telegram_bus.store import Store, StoredUpdate

__all__ = ["PATIENCE", "Handler", "LeaderButtons", "Press"]

log = logging.getLogger(__name__)

PATIENCE: Final = 0.8
"""Seconds that a press waits for whoever has to answer it: a person's client turns its wheel until then."""

REMEMBERED: Final = 4_096  # presses: Telegram forgets them sooner (bot-api M12)
_TOO_OLD: Final = "query is too old"  # Telegram's words for a press that was answered, or nobody answered in time


class Press(NamedTuple):
    """A press of a button that is the leader's own; who pressed is among the people that the bot listens to.

    `rest` is what follows `tb:<prefix>:` in the button's data, `message` Telegram's Message under which the button
    stands (perhaps only its id and chat, bot-api M13), `user` the User who pressed.
    """

    rest: str
    message: dict[str, Any]
    user: dict[str, Any]
    query_id: str


Handler = Callable[[Press], Awaitable[str | None]]
"""Does what the button is for and returns what the person is shown (at most 200 characters), None for nothing.

It may be called again for the same press after a crash: what must not happen twice it has to claim itself. After 0.8 s
the press is answered without it; who needs longer has to write a message.
"""


class _Query:
    """A press that was or will be answered; who answers holds the lock."""

    def __init__(self) -> None:
        self.answered = False
        self.lock = trio.Lock()


@define(kw_only=True, eq=False)
class LeaderButtons:
    """Sees to it that each press is answered once and in time; `run` does the work.

    `call` makes a Bot API call; `away` names an owner that is not here (None: it is here).
    """

    call: Call = field(repr=False)
    store: Store = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    away: Callable[[str], str | None] = field(repr=False, default=lambda _key: None)
    _handlers: dict[str, Handler] = field(factory=dict)
    _queries: OrderedDict[str, _Query] = field(factory=OrderedDict)
    _channel: tuple[
        trio.MemorySendChannel[Callable[[], Awaitable[None]]], trio.MemoryReceiveChannel[Callable[[], Awaitable[None]]]
    ] = field(
        factory=lambda: trio.open_memory_channel[Callable[[], Awaitable[None]]](math.inf)  # one for each press
    )

    def register(self, prefix: str, handler: Handler) -> None:
        """Buttons with the data `tb:<prefix>:…` are pressed for this handler; call it before the leader polls."""
        if not prefix or ":" in prefix or prefix in self._handlers:
            raise ValueError(f"{prefix!r} cannot be the prefix of a handler: it is taken, empty or has a colon")
        self._handlers[prefix] = handler

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Answer until cancelled."""
        async with trio.open_nursery() as nursery:
            task_status.started()
            async for work in self._channel[1]:
                nursery.start_soon(work)

    def put(self, update: StoredUpdate) -> bool:
        """Take an update without an owner if it is a press of a leader's own button; False: it is none."""
        if update.kind != "callback_query":
            return False
        query = loads(update.body)["callback_query"]
        data = query.get("data")
        parts = buttons.leaders(data) if isinstance(data, str) else None
        handler = self._handlers.get(parts[0]) if parts is not None else None
        if parts is None or handler is None or not isinstance(query.get("id"), str):
            return False
        message = query.get("message")
        press = Press(parts[1], message if isinstance(message, dict) else {}, query["from"], query["id"])
        self._channel[0].send_nowait(partial(self._handle, handler, press, update))
        return True

    def expect(self, query_id: str, owner: str | None, since: float | None = None) -> None:
        """A press came in, for this owner or for the leader (None): answer it emptily unless that is done in time.

        `since` is trio's time at which it came (None: now).
        """
        if query_id not in self._queries:
            self._query(query_id)
            until = (trio.current_time() if since is None else since) + PATIENCE
            self._channel[0].send_nowait(partial(self._answer_in_time, query_id, owner, until))

    def say(self, query_id: str, text: str | None) -> None:
        """Answer a press, unless it was answered."""
        self._channel[0].send_nowait(partial(self._answer, query_id, text))

    async def by_owner(self, query_id: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """Have the owner's answer made by `make`; one that comes too late is not made, and as good as any other."""
        query = self._query(query_id)
        async with query.lock:
            if query.answered:
                return True
            try:
                result = await make()
            except ApiError as refusal:
                if _TOO_OLD not in refusal.description.lower():
                    raise
                result = True
            query.answered = True
            return result

    def _query(self, query_id: str) -> _Query:
        query = self._queries.get(query_id)
        if query is None:
            query = self._queries[query_id] = _Query()
            if len(self._queries) > REMEMBERED:
                self._queries.popitem(last=False)
        return query

    async def _answer_in_time(self, query_id: str, owner: str | None, until: float) -> None:
        await trio.sleep_until(until)
        name = self.away(owner) if owner is not None else None
        await self._answer(query_id, f"{name} is away; this is kept for it." if name is not None else None)

    async def _answer(self, query_id: str, text: str | None) -> None:
        query = self._query(query_id)
        async with query.lock:
            if query.answered:
                return
            params = {"callback_query_id": query_id}
            if text is not None:
                params["text"] = buttons.toast(text)
            try:
                await self.call("answerCallbackQuery", params, None)
                query.answered = True
            except BusError as error:
                query.answered = isinstance(error, ApiError)  # else its owner may have better luck
                log.log(_level(error), "a pressed button got no answer: %s", error)

    async def _handle(self, handler: Handler, press: Press, update: StoredUpdate) -> None:
        text: str | None = None
        try:
            text = await handler(press)
        except BusError as error:
            log.warning("the button %r did nothing: %s", press.rest, error)
            text = f"That did not work: {error}"
        except Exception:  # a mistake over one button must not end everything
            log.exception("the button %r did nothing", press.rest)
            text = "That did not work; the leader's log says why."
        await self._answer(press.query_id, text)
        try:
            await self.store.settle(update.seq, "answered", self.now_ms())
        except StateError as error:  # the next leader does it once more
            log.error("update %d may be answered once more: %s", update.update_id, error)  # noqa: TRY400


def _level(error: BusError) -> int:
    """A press that an earlier leader answered is no news."""
    return logging.DEBUG if isinstance(error, ApiError) and _TOO_OLD in error.description.lower() else logging.WARNING
