"""Icons of threads that show what their agents are; seldom changed, since Telegram notes each change in the thread."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import trio
from attrs import define, field

from telegram_bus.core.bindings import Binding, verdict_of
from telegram_bus.core.errors import ApiError, BusError, LeadershipLost
from telegram_bus.roles.threads import Call, Threads
from telegram_bus.store import Store
from telegram_bus.store.told import ICON

__all__ = ["ICONS", "AgentState", "Icons"]

log = logging.getLogger(__name__)

AgentState = Literal["idle", "busy", "away", "waiting"]

ICONS: Final[Mapping[AgentState, str]] = {"idle": "💬", "busy": "⚡", "away": "☕", "waiting": "❓"}
"""Of the icons that every bot may use (getForumTopicIconStickers); variation selectors do not count."""

LOOK_EVERY: Final = 10.0
STEADY: Final = 20.0
"""Seconds that an agent is in a state before its icon says so."""

REST: Final = 60.0
"""Seconds between two changes of one thread's icon."""


@define(kw_only=True, eq=False)
class Icons:
    """`state` says what an agent is now. At most one icon changes in each look: the budget is for messages."""

    store: Store = field(repr=False)
    threads: Threads = field(repr=False)
    call: Call = field(repr=False)
    state: Callable[[str], AgentState] = field(repr=False)
    _ids: dict[AgentState, str] = field(factory=dict)
    _shown: dict[str, str] = field(factory=dict)  # what the thread shows: "<thread id> <state>"
    _since: dict[str, tuple[AgentState, float]] = field(factory=dict)
    _changed: dict[str, float] = field(factory=dict)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Look now and then until cancelled."""
        task_status.started()
        recalled = False
        while True:
            await trio.sleep(LOOK_EVERY)
            try:
                if not recalled:
                    kept = await self.store.told.recall(ICON)
                    self._shown = {what.removeprefix(ICON): value for what, value in kept.items()}
                    recalled = True
                await self._look()
            except LeadershipLost:
                raise
            except BusError as error:
                log.info("the icons stay as they are: %s", error)

    async def _look(self) -> None:
        now = trio.current_time()
        for binding in self.threads.all():
            state = self.state(binding.key)
            known = self._since.get(binding.key)
            if known is None or known[0] != state:
                self._since[binding.key] = known = (state, now)
            due = now - known[1] >= STEADY and now - self._changed.get(binding.key, -REST) >= REST
            if due and binding.gone_ms is None and self._differs(binding, state):
                self._changed[binding.key] = now
                await self._show(binding, state)
                return

    def _differs(self, binding: Binding, state: AgentState) -> bool:
        shown = self._shown.get(binding.key)
        return shown != f"{binding.thread_id} {state}"

    async def _show(self, binding: Binding, state: AgentState) -> None:
        icon = (await self._icons()).get(state)
        if icon is None:
            return
        place = {"chat_id": binding.chat_id, "message_thread_id": binding.thread_id, "icon_custom_emoji_id": icon}
        try:
            await self.call("editForumTopic", place, binding.chat_id)
        except ApiError as error:
            if verdict_of(error.description) != "there":
                log.info("the icon of %s stays: %s", binding.name, error.description)
        value = self._shown[binding.key] = f"{binding.thread_id} {state}"
        await self.store.told.tell(ICON + binding.key, value)

    async def _icons(self) -> Mapping[AgentState, str]:
        """The custom emoji ids of our icons, asked for once."""
        if not self._ids:
            found: dict[str, Any] = {}
            for sticker in await self.call("getForumTopicIconStickers", {}, None) or ():
                found.setdefault(str(sticker.get("emoji", "")).rstrip("\ufe0f"), sticker.get("custom_emoji_id"))
            self._ids = {state: found[emoji] for state, emoji in ICONS.items() if isinstance(found.get(emoji), str)}
        return self._ids
