"""What changed in the world, numbered: the page and the tests follow it and can resume after a gap."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

from telegram_bus.sandbox.model_types import Json

__all__ = ["Changes"]

# Enough for hours of conversation; who comes back later reads the whole state anew.
KEPT = 10_000


class Changes:
    """The newest changes; each is an object with `seq` (1, 2, …) and `kind`.

    They are kept as JSON text: a fifth of the memory, encoded once for all who follow, and never altered afterwards.
    """

    def __init__(self) -> None:
        self._kept: deque[str] = deque(maxlen=KEPT)
        self.last = 0

    def add(self, kind: str, **fields: Any) -> None:
        """Note a change."""
        self.last += 1
        self._kept.append(json.dumps({"seq": self.last, "kind": kind, **fields}, separators=(",", ":")))

    def after(self, seq: int) -> list[Json] | None:
        """What came after `seq`; None when some of that is no longer kept, or `seq` was never given out."""
        texts = self.texts_after(seq)
        return None if texts is None else [json.loads(text) for text in texts]

    def texts_after(self, seq: int) -> list[str] | None:
        """`after` as JSON texts."""
        if seq > self.last or seq < self.last - len(self._kept):
            return None
        missing = self.last - seq
        return [self._kept[index] for index in range(len(self._kept) - missing, len(self._kept))]
