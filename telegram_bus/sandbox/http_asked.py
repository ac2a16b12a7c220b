"""What a person wants, as a request of the control says it."""

from __future__ import annotations

import attrs

from telegram_bus.sandbox.model_doings import UnknownError
from telegram_bus.sandbox.model_types import Chat, Json, User

__all__ = ["Asked"]


@attrs.frozen
class Asked:
    """The request's fields, and who does it where; the readers raise `UnknownError`."""

    fields: Json
    chat: Chat
    user: User

    def number(self, name: str) -> int:
        """A whole number; 0 when it is absent."""
        value = self.fields.get(name, 0)
        if not isinstance(value, int) or isinstance(value, bool):
            raise UnknownError(f"{name} must be a number")
        return value

    def text(self, name: str) -> str:
        """A text; empty when it is absent."""
        value = self.fields.get(name, "")
        if not isinstance(value, str):
            raise UnknownError(f"{name} must be a text")
        return value

    def flag(self, name: str, *, default: bool = True) -> bool:
        """A truth value."""
        value = self.fields.get(name, default)
        if not isinstance(value, bool):
            raise UnknownError(f"{name} must be true or false")
        return value
