"""The update queue of a bot: what waits for confirmation, by the rules U1 to U11 of the contract."""

from __future__ import annotations

import json
import math
import random
from collections import deque
from collections.abc import Iterable

import attrs

from telegram_bus.sandbox.model_types import Json

__all__ = ["DEFAULT_KINDS", "KNOWN_KINDS", "UpdateQueue"]

KNOWN_KINDS = frozenset(
    "message edited_message channel_post edited_channel_post business_connection business_message "
    "edited_business_message deleted_business_messages message_reaction message_reaction_count inline_query "
    "chosen_inline_result callback_query shipping_query pre_checkout_query purchased_paid_media poll poll_answer "
    "my_chat_member chat_member chat_join_request chat_boost removed_chat_boost stopped_message_generation".split()
)
DEFAULT_KINDS = KNOWN_KINDS - {"chat_member", "message_reaction", "message_reaction_count"}

DAY = 86_400.0
WEEK = 7 * DAY
CALLBACK_LIFE = 150.0  # U10
MAX_UPDATES = 100_000  # U10
MAX_ANSWER = 4 << 20  # U6
MAX_ID = 2**31 - 1
# For those who look at what the bot is given; as text, they take little memory.
KEPT = 1_000


@attrs.frozen
class _Stored:
    update_id: int
    body: Json
    size: int
    expires: float


class UpdateQueue:
    """Updates in the order of their ids; an update leaves only when a later call confirms it, or when it expires."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._items: deque[_Stored] = deque()
        self._newest: deque[str] = deque(maxlen=KEPT)
        self._last_added = 0.0
        self._next_start: int | None = None
        self._soonest = math.inf  # when the first of the waiting updates expires
        self.tail = self._random_start()
        self.kinds = DEFAULT_KINDS

    def __len__(self) -> int:
        return len(self._items)

    @property
    def head(self) -> int:
        """The id of the oldest update that waits, or the next one to be given."""
        return self._items[0].update_id if self._items else self.tail

    def newest(self) -> list[Json]:
        """The newest updates, confirmed or not, the oldest of them first."""
        return [json.loads(text) for text in self._newest]

    def allow(self, names: Iterable[object]) -> None:
        """Take over a client's `allowed_updates`: nothing usable among them means the default (U9)."""
        chosen = {name for name in names if isinstance(name, str)} & KNOWN_KINDS
        self.kinds = frozenset(chosen) or DEFAULT_KINDS

    def add(self, kind: str, payload: Json, now: float) -> int | None:
        """Queue an update and return its id; None when its kind is not wanted or the queue is full (U5, U10)."""
        if kind not in self.kinds or len(self._items) >= MAX_UPDATES:
            return None
        if self._last_added and now - self._last_added > WEEK:
            self._items.clear()
            self.restart()
        if self._next_start is not None and not self._items:
            self.tail, self._next_start = self._next_start, None
        self._last_added = now
        update_id, self.tail = self.tail, self.tail + 1
        body = {"update_id": update_id, kind: payload}
        life = CALLBACK_LIFE if kind == "callback_query" else DAY
        text = json.dumps(body, ensure_ascii=False)
        size = len(text.encode("utf-8", "surrogatepass"))
        self._newest.append(text)
        self._items.append(_Stored(update_id, body, size, now + life))
        self._soonest = min(self._soonest, now + life)
        return update_id

    def take(self, offset: int, limit: int, now: float) -> list[Json]:
        """Forget what `offset` confirms and return up to `limit` updates from there (U2, U3, U4, U6)."""
        start = self._start(offset)
        while self._items and self._items[0].update_id < start:
            self._items.popleft()
        self._expire(now)
        taken: list[Json] = []
        size = 0
        for item in self._items:
            size += item.size
            if len(taken) == limit or (taken and size > MAX_ANSWER):
                break
            taken.append(item.body)
        return taken

    def restart(self, start: int | None = None) -> None:
        """Let ids begin anew, at `start` or at random, with the next update that comes while none waits (U5)."""
        self._next_start = start or self._random_start()

    def clear(self) -> None:
        """Forget everything that waits."""
        self._items.clear()

    def _expire(self, now: float) -> None:
        if now >= self._soonest:
            self._items = deque(item for item in self._items if item.expires > now)
            self._soonest = min((item.expires for item in self._items), default=math.inf)

    def _start(self, offset: int) -> int:
        head = self.head
        if offset < 0:
            return max(self.tail + offset, head)
        # "In the future" or too far in the past is ignored, not refused (U4).
        if offset == 0 or offset > self.tail + 10 or offset < head - MAX_UPDATES:
            return head
        return offset

    def _random_start(self) -> int:
        return self._rng.randrange(2_000_001, MAX_ID // 2)
