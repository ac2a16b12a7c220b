"""The version of this release; the wire's `runtimeBuild` is `telegram_bus/<version>`."""

from __future__ import annotations

__version__ = "0.1.0"
