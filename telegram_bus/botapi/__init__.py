"""Telegram: transport, poller and sender."""

from __future__ import annotations

import sys

# Where rich and click are installed httpx would import its own command line: 45 ms that a failover need not wait for.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None: such a module is not to be had
