"""The sender as followers' calls go through it: in an agent's name where agents share a chat, silent where muted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from telegram_bus.botapi.sender import Sender

__all__ = ["Dress", "DressingSender"]

Dress = Callable[[str, str, Mapping[str, Any]], Mapping[str, Any]]
"""Takes the key of an agent, a method and its parameters; returns the parameters as they go out."""


class DressingSender(Sender):
    """A sender that changes the calls of followers last of all: what tells calls apart does not see it.

    So a call that is repeated under its id after the chat has lost its threads is still the same call.
    """

    dress: Dress | None = None

    async def call(self, method: str, params: Mapping[str, Any], chat_id: int | None = None, **more: Any) -> Any:
        """As `Sender.call`; `owner` is the key of the follower that calls."""
        owner = more.get("owner")
        if owner and self.dress is not None:
            params = self.dress(owner, method, params)
        return await super().call(method, params, chat_id, **more)
