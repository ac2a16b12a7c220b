"""The one poll of a bot: each batch is stored before the next poll confirms it."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NoReturn, Protocol
from urllib.parse import urlsplit

import trio
from attrs import define, field, frozen

from telegram_bus.botapi.polling import (
    ALLOWED_UPDATES,
    PollState,
    Standing,
    State,
    after_fault,
    after_success,
    sift,
)
from telegram_bus.core.errors import AnswerLost, ApiError, NotSent, StateError

__all__ = ["Commit", "Order", "PollApi", "Renewal", "run_poller"]

Commit = Callable[[list[dict[str, Any]], int], Awaitable[None]]
"""Stores the updates and the offset of the next poll, durably; StateError means: not stored, try again."""

HANGING_WINDOWS: Final = 3
"""A poll that lasts so many windows hangs, whatever trickles in."""

SHORT_STATES: Final = frozenset({"starting", "offline", "rate-limited", "unauthorised", "webhook", "storage"})
"""From these one poll without waiting shows at once that all is well again. (In a conflict it would show nothing.)"""

NEWEST: Final = -1
"""An offset: the server forgets all but the newest update and answers with that one."""

EAGER_SECONDS: Final = 0.5
"""An empty answer to a long poll that comes sooner than this is not asked for again at once."""

log = logging.getLogger(__name__)


class PollApi(Protocol):
    """What the poller needs of `BotApi`."""

    async def poll(self, params: Mapping[str, Any], window: float) -> Any:
        """getUpdates with a long poll of `window` seconds."""

    async def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Any other method."""


@define(eq=False)
class Renewal:
    """Lets others end the poll of this moment, whose connection is made anew then."""

    _scope: trio.CancelScope | None = field(default=None, init=False)
    reason: str = field(default="", init=False)

    def ask(self, reason: str) -> None:
        """End the poll that is on its way, if there is one."""
        if self._scope is not None:
            self.reason = reason
            self._scope.cancel(reason)

    def scope(self, seconds: float) -> trio.CancelScope:
        """For the poller: the scope of its next poll."""
        self._scope, self.reason = trio.CancelScope(deadline=trio.current_time() + seconds), ""
        return self._scope


@frozen(kw_only=True)
class Order:
    """What a person wants at the start, once: the backlog at Telegram dropped, a webhook removed that is in the way."""

    drop_backlog: bool = False
    delete_webhook: bool = False


async def run_poller(
    api: PollApi,
    *,
    offset: int,
    commit: Commit,
    report: Callable[[PollState], None],
    window: float = 25.0,
    jitter: Callable[[], float] = random.random,
    order: Order = Order(),
    renewal: Renewal | None = None,
) -> NoReturn:
    """Poll from `offset` on for ever; every change of state and every completed poll is reported.

    `commit` gets the raw updates that have an integral id and the next offset, and polling goes on when it has
    returned. It may raise StateError (shown as `storage`, the same updates come again); anything else, LeadershipLost
    above all, ends the poller. Nothing that Telegram or the network does ends it.
    """
    renewal = Renewal() if renewal is None else renewal
    dropping = order.drop_backlog
    watch = _Watch(report)
    standing = Standing(started=trio.current_time())
    while True:
        try:
            wait = 0.0 if dropping or watch.state in SHORT_STATES else window
            answer = await _poll(api, NEWEST if dropping else offset, wait, window, renewal)
            updates, next_offset = sift(answer) if answer != [] else ([], offset)
            if dropping:
                await _store(commit, [], next_offset)
                log.warning("dropped what waited at Telegram; the next update is %d or later", next_offset)
                dropping, updates = False, []
            if updates:
                if len(updates) < len(answer):
                    log.warning("Telegram sent %d updates without an id; skipped", len(answer) - len(updates))
                await _store(commit, updates, next_offset)
        except (ApiError, NotSent, AnswerLost, _NotStored) as fault:
            told = fault.state_error if isinstance(fault, _NotStored) else fault
            step = after_fault(standing, told, now=trio.current_time(), window=window, jitter=jitter())
            detail = step.detail
            if step.state == "webhook":
                detail = await _webhook_detail(api, window)
                if order.delete_webhook and await _delete_webhook(api, detail):
                    continue
            standing = step.standing
            watch.enter(step.state, detail)
            await trio.sleep(step.delay)
        else:
            offset = next_offset
            if wait or updates:  # an empty answer that did not have to wait proves little
                standing = after_success(standing, now=trio.current_time(), window=window)
            watch.completed()


class _NotStored(Exception):
    """The commit failed, which must not be taken for a fault of the poll."""

    def __init__(self, state_error: StateError) -> None:
        super().__init__(str(state_error))
        self.state_error = state_error


@define(eq=False)
class _Watch:
    """The state that was reported last."""

    _report: Callable[[PollState], None]
    state: State = "starting"
    _detail: str | None = None
    _since: float = field(factory=trio.current_time)
    _last_completed: float | None = None

    def enter(self, state: State, detail: str | None) -> None:
        if (state, detail) == (self.state, self._detail):
            return
        if state != self.state:
            self._since = trio.current_time()
        self.state, self._detail = state, detail
        self._tell()

    def completed(self) -> None:
        self._last_completed = trio.current_time()
        if self.state == "serving":
            self._tell()
        else:
            self.enter("serving", None)

    def _tell(self) -> None:
        self._report(
            PollState(state=self.state, detail=self._detail, since=self._since, last_completed=self._last_completed)
        )


async def _poll(api: PollApi, offset: int, wait: float, window: float, renewal: Renewal) -> Any:
    params = {"offset": offset, "limit": 1 if offset < 0 else 100, "allowed_updates": list(ALLOWED_UPDATES)}
    begun = trio.current_time()
    with renewal.scope(HANGING_WINDOWS * window):
        answer = await api.poll(params, wait)
        if answer == [] and wait and trio.current_time() - begun < EAGER_SECONDS:
            await trio.sleep(EAGER_SECONDS)
        return answer
    reason = renewal.reason or f"no answer in {HANGING_WINDOWS * window:g} s"
    raise AnswerLost(f"getUpdates: {reason}; the connection is made anew")


async def _store(commit: Commit, updates: list[dict[str, Any]], next_offset: int) -> None:
    try:
        await commit(updates, next_offset)
    except StateError as fault:
        raise _NotStored(fault) from fault


async def _delete_webhook(api: PollApi, detail: str) -> bool:
    try:
        await api.call("deleteWebhook", {"drop_pending_updates": False})
    except (ApiError, NotSent, AnswerLost) as error:
        log.warning("the webhook was not removed: %s", error)
        return False
    log.warning("removed what was in the way: %s", detail)
    return True


async def _webhook_detail(api: PollApi, window: float) -> str:
    """Name the webhook's host; its path may be a secret."""
    host = None
    with trio.move_on_after(window):
        try:
            info = await api.call("getWebhookInfo")
            host = urlsplit(str(info["url"])).hostname
        except (ApiError, NotSent, AnswerLost, TypeError, KeyError, ValueError):
            host = None
    where = f"a webhook at {host}" if host else "a webhook"
    return f"{where} takes this bot's updates"
