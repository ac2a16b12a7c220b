"""A strict Bot API server on this machine, with a chat page: for people without a token, and for tests."""

from __future__ import annotations

__all__: list[str] = []
