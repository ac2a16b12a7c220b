"""How hard tests try that look for a failing example: quickly as a rule, longer for those who ask."""

from __future__ import annotations

import os

__all__ = ["examples"]

EFFORT = float(os.environ.get("TELEGRAM_BUS_EFFORT", "1"))


def examples(usual: int) -> int:
    """How many examples Hypothesis shall try; TELEGRAM_BUS_EFFORT=10 makes it ten times as many."""
    return max(1, round(usual * EFFORT))
