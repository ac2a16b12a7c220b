"""What changed in the world, numbered: the page and the tests follow it and can resume after a gap."""

from __future__ import annotations

import itertools
import json
from collections import deque
from collections.abc import Collection
from typing import Any

from telegram_bus.sandbox.model_types import Json

__all__ = ["Changes"]

# Enough for hours of conversation; who comes back later reads the whole state anew.
KEPT = 10_000
RECENT = 200  # among which one looks for what goes by: typing, drafts, pressed buttons


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

    def recent(self, kinds: Collection[str]) -> list[Json]:
        """Those of these kinds among the newest changes."""
        starts = tuple(f'"kind":"{kind}"' for kind in kinds)
        newest = itertools.islice(reversed(self._kept), RECENT)
        return [json.loads(text) for text in newest if text.partition(",")[2].startswith(starts)][::-1]

    def texts_after(self, seq: int) -> list[str] | None:
        """`after` as JSON texts."""
        if seq > self.last or seq < self.last - len(self._kept):
            return None
        missing = self.last - seq
        return [self._kept[index] for index in range(len(self._kept) - missing, len(self._kept))]
