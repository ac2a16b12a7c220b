"""The one poll of a bot: each batch is stored before the next poll confirms it."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NoReturn, Protocol
from urllib.parse import urlsplit

import trio
from attrs import define, field

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

__all__ = ["Commit", "PollApi", "run_poller"]

Commit = Callable[[list[dict[str, Any]], int], Awaitable[None]]
"""Stores the updates and the offset of the next poll, durably; StateError means: not stored, try again."""

HANGING_WINDOWS: Final = 3
"""A poll that lasts so many windows hangs, whatever trickles in."""

SHORT_STATES: Final = frozenset({"starting", "offline", "rate-limited", "unauthorised", "webhook", "storage"})
"""From these one poll without waiting shows at once that all is well again. (In a conflict it would show nothing.)"""

EAGER_SECONDS: Final = 0.5
"""An empty answer to a long poll that comes sooner than this is not asked for again at once."""

log = logging.getLogger(__name__)


class PollApi(Protocol):
    """What the poller needs of `BotApi`."""

    async def poll(self, params: Mapping[str, Any], window: float) -> Any:
        """getUpdates with a long poll of `window` seconds."""

    async def call(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Any other method."""


async def run_poller(
    api: PollApi,
    *,
    offset: int,
    commit: Commit,
    report: Callable[[PollState], None],
    window: float = 25.0,
    jitter: Callable[[], float] = random.random,
) -> NoReturn:
    """Poll from `offset` on for ever; every change of state and every completed poll is reported.

    `commit` gets the raw updates that have an integral id and the next offset, and polling goes on when it has
    returned. It may raise StateError (shown as `storage`, the same updates come again); anything else, LeadershipLost
    above all, ends the poller. Nothing that Telegram or the network does ends it.
    """
    watch = _Watch(report)
    standing = Standing(started=trio.current_time())
    while True:
        try:
            wait = 0.0 if watch.state in SHORT_STATES else window
            answer = await _poll(api, offset, wait, window)
            updates, next_offset = sift(answer) if answer != [] else ([], offset)
            if updates:
                if len(updates) < len(answer):
                    log.warning("Telegram sent %d updates without an id; skipped", len(answer) - len(updates))
                await _store(commit, updates, next_offset)
        except (ApiError, NotSent, AnswerLost, _NotStored) as fault:
            told = fault.state_error if isinstance(fault, _NotStored) else fault
            step = after_fault(standing, told, now=trio.current_time(), window=window, jitter=jitter())
            detail = step.detail
            if step.state == "webhook":
                detail = await _webhook_detail(api, step.detail, window)
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


async def _poll(api: PollApi, offset: int, wait: float, window: float) -> Any:
    params = {"offset": offset, "limit": 100, "allowed_updates": list(ALLOWED_UPDATES)}
    begun = trio.current_time()
    with trio.move_on_after(HANGING_WINDOWS * window):
        answer = await api.poll(params, wait)
        if answer == [] and wait and trio.current_time() - begun < EAGER_SECONDS:
            await trio.sleep(EAGER_SECONDS)
        return answer
    raise AnswerLost(f"getUpdates: no answer in {HANGING_WINDOWS * window:g} s; the connection is made anew")


async def _store(commit: Commit, updates: list[dict[str, Any]], next_offset: int) -> None:
    try:
        await commit(updates, next_offset)
    except StateError as fault:
        raise _NotStored(fault) from fault


async def _webhook_detail(api: PollApi, description: str, window: float) -> str:
    """Name the webhook's host; its path may be a secret."""
    host = None
    with trio.move_on_after(window):
        try:
            info = await api.call("getWebhookInfo")
            host = urlsplit(str(info["url"])).hostname
        except (ApiError, NotSent, AnswerLost, TypeError, KeyError, ValueError):
            host = None
    where = f"a webhook at {host}" if host else "a webhook"
    return f"{where} takes this bot's updates; remove it or use another bot ({description})"
