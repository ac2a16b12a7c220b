"""Many programs share one Telegram bot: one leader polls, every follower gets its own chat thread."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from telegram_bus._version import __version__

if TYPE_CHECKING:
    from telegram_bus.agent import Bus, FileInfo, Keyboard, Media, MemberInfo, Recipient, SentMessage, Update, join
    from telegram_bus.core.errors import (
        AnswerLost,
        ApiError,
        BusError,
        CommitUnknown,
        Expired,
        NoLeader,
        RequestRefused,
        SettingsError,
        StateError,
    )
    from telegram_bus.followers.questions import Answer

__all__ = [
    "Answer",
    "AnswerLost",
    "ApiError",
    "Bus",
    "BusError",
    "CommitUnknown",
    "Expired",
    "FileInfo",
    "Keyboard",
    "Media",
    "MemberInfo",
    "NoLeader",
    "Recipient",
    "RequestRefused",
    "SentMessage",
    "SettingsError",
    "StateError",
    "Update",
    "__version__",
    "join",
]

_HOMES: Final = dict.fromkeys(
    ("Bus", "FileInfo", "Keyboard", "Media", "MemberInfo", "Recipient", "SentMessage", "Update", "join"),
    "telegram_bus.agent",
) | {"Answer": "telegram_bus.followers.questions"}


def __getattr__(name: str) -> Any:
    """Import what is asked for, and only then: `telegram-bus status` needs neither Trio nor the agent's API."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "telegram_bus.core.errors")), name)
    globals()[name] = value
    return value
