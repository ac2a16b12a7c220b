"""Many programs share one Telegram bot: one leader polls, every follower gets its own chat thread."""

from __future__ import annotations

from telegram_bus._version import __version__

__all__ = ["__version__"]
