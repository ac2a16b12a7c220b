"""What changed in the world, numbered: the page and the tests follow it and can resume after a gap."""

from __future__ import annotations

from collections import deque
from typing import Any

from telegram_bus.sandbox.model_types import Json

__all__ = ["Changes"]

# Enough for hours of conversation; who comes back later reads the whole state anew.
KEPT = 20_000


class Changes:
    """The newest changes; each is a dict with `seq` (1, 2, …) and `kind`."""

    def __init__(self) -> None:
        self._kept: deque[Json] = deque(maxlen=KEPT)
        self.last = 0

    def add(self, kind: str, **fields: Any) -> None:
        """Note a change."""
        self.last += 1
        self._kept.append({"seq": self.last, "kind": kind, **fields})

    def after(self, seq: int) -> list[Json] | None:
        """What came after `seq`; None when some of that is no longer kept, or `seq` was never given out."""
        if seq > self.last or seq < self.last - len(self._kept):
            return None
        missing = self.last - seq
        return [self._kept[index] for index in range(len(self._kept) - missing, len(self._kept))]
