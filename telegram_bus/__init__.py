"""Many programs share one Telegram bot: one leader polls, every follower gets its own chat thread."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from telegram_bus._version import __version__

if TYPE_CHECKING:
    from telegram_bus.agent import Bus, FileInfo, Media, MemberInfo, SentMessage, Update, join
    from telegram_bus.core.errors import (
        AnswerLost,
        ApiError,
        BusError,
        CommitUnknown,
        NoLeader,
        RequestRefused,
        SettingsError,
        StateError,
    )

__all__ = [
    "AnswerLost",
    "ApiError",
    "Bus",
    "BusError",
    "CommitUnknown",
    "FileInfo",
    "Media",
    "MemberInfo",
    "NoLeader",
    "RequestRefused",
    "SentMessage",
    "SettingsError",
    "StateError",
    "Update",
    "__version__",
    "join",
]

_HOMES: Final = dict.fromkeys(
    ("Bus", "FileInfo", "Media", "MemberInfo", "SentMessage", "Update", "join"), "telegram_bus.agent"
)


def __getattr__(name: str) -> Any:
    """Import what is asked for, and only then: `telegram-bus status` needs neither Trio nor the agent's API."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "telegram_bus.core.errors")), name)
    globals()[name] = value
    return value
