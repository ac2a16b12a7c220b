"""Agents whose messages make no sound: muted by a person, for a time or until that is taken back, or in quiet hours."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import define, field

from telegram_bus.core import sharing
from telegram_bus.store import Store

__all__ = ["ALL", "Muting"]

ALL: Final = "*"
"""In the place of a key: everybody. No agent's key has an asterisk."""


@define(kw_only=True, eq=False)
class Muting:
    """Who is muted until when, in memory and in the store. `quiet` are the minutes of a day between which nothing
    sounds, in the time of this machine; it may pass midnight."""

    store: Store = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    quiet: tuple[int, int] | None = None
    _until: dict[str, int | None] = field(factory=dict)

    async def load(self) -> None:
        """Read what earlier leaders were told; raises what the store raises."""
        self._until = await self.store.lobby.mutes()

    async def mute(self, key: str, seconds: int | None) -> None:
        """Mute an agent for so long (None: until it is taken back); raises what the store raises."""
        until = None if seconds is None else self.now_ms() + seconds * 1000
        await self.store.lobby.mute(key, until)
        self._until[key] = until

    async def unmute(self, key: str) -> bool:
        """Let it sound again; False where it did. Raises what the store raises."""
        muted = await self.store.lobby.unmute(key)
        self._until.pop(key, None)
        return muted

    def muted(self, key: str) -> bool:
        """Whether a person muted this agent, or all."""
        now = self.now_ms()
        return any(one in self._until and ((until := self._until[one]) is None or until > now) for one in (key, ALL))

    def dress(self, key: str, method: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """A call as it goes out."""
        return sharing.silenced(method, body) if self.muted(key) or self._is_quiet() else body

    def _is_quiet(self) -> bool:
        if self.quiet is None:
            return False
        now = time.localtime(self.now_ms() / 1000)
        return sharing.within(now.tm_hour * 60 + now.tm_min, self.quiet)
