"""What went over the wire between a bot and the sandbox, for the oracle that knows the documentation."""

from __future__ import annotations

from typing import Any

import attrs

from telegram_bus.testing import Sandbox

__all__ = ["Call", "Traffic", "read_traffic"]

KEPT_CALLS, KEPT_UPDATES = 20_000, 1_000  # how much a sandbox keeps


@attrs.frozen
class Call:
    """One call as the record keeps it; `result` only where it was carried out."""

    method: str
    params: dict[str, Any]
    ok: bool
    result: Any


@attrs.frozen
class Traffic:
    """All calls of a run, and all updates that the bot was given."""

    calls: tuple[Call, ...]
    updates: tuple[dict[str, Any], ...]


def read_traffic(sandbox: Sandbox) -> Traffic:
    """Everything that the sandbox's record holds now."""
    answered = [entry for entry in sandbox.record() if entry["ok"] is not None]
    calls = [Call(entry["method"], entry["params"], entry["ok"], entry["result"]) for entry in answered]
    updates = sandbox.updates()
    assert len(answered) < KEPT_CALLS, "the sandbox has forgotten some calls"
    assert len(updates) < KEPT_UPDATES, "the sandbox has forgotten some updates"
    return Traffic(tuple(calls), tuple(updates))
