"""What agents say they do: kept for the status and the thread's icon, also over a change of leaders."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from attrs import define, field

from telegram_bus.core.codec import dumps, loads
from telegram_bus.core.errors import RequestRefused, StateError
from telegram_bus.core.extensions import ActivitySet
from telegram_bus.core.registry import Member
from telegram_bus.store import Store
from telegram_bus.store.told import DOING

__all__ = ["Activities", "Doing"]

log = logging.getLogger(__name__)

LONGEST: Final = 200  # characters; the chat shows about half of them


class Doing(NamedTuple):
    """What an agent says it does, since when (epoch, ms), and whether it cannot go on without a person."""

    text: str
    since_ms: int
    needs_person: bool
    instance_id: str

    def facts(self) -> dict[str, Any]:
        """As the status has it."""
        return {"text": self.text, "since_ms": self.since_ms, "needs_person": self.needs_person}


@define(kw_only=True, eq=False)
class Activities:
    """By key. What a process said holds for that process: a new one of the same key has said nothing yet."""

    store: Store = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    _doings: dict[str, Doing] = field(factory=dict)

    async def load(self) -> None:
        """Read what was said to earlier leaders; raises what the store raises."""
        for what, value in (await self.store.told.recall(DOING)).items():
            self._doings[what.removeprefix(DOING)] = Doing(*loads(value.encode()))

    def of(self, key: str, instance_id: str | None = None) -> Doing | None:
        """What the agent does, if this very process has said so (None: whichever process)."""
        doing = self._doings.get(key)
        return None if doing is None or (instance_id is not None and doing.instance_id != instance_id) else doing

    async def note(self, member: Member, request: ActivitySet) -> dict[str, Any]:
        """An agent says what it does (without a text: nothing in particular); raises what the store raises.

        The same text again goes on: its time counts from when it was said first.
        """
        text = " ".join((request.text or "").split())
        if len(text) > LONGEST:
            raise RequestRefused(f"an activity has {LONGEST} characters at most, this one has {len(text)}")
        before = self.of(member.key, member.instance_id)
        needs_person = request.needs_person is True
        if not text and not needs_person:
            await self._change(member.key, None)
            return {"activity": None}
        since = before.since_ms if before is not None and before.text == text else self.now_ms()
        doing = Doing(text, since, needs_person, member.instance_id)
        if doing != before:
            await self._change(member.key, doing)
        return {"activity": doing.facts()}

    async def _change(self, key: str, doing: Doing | None) -> None:
        """It is so at once, in the order in which agents say it; what the disk does not take is taken back."""
        before = self._doings.pop(key, None)
        if doing is not None:
            self._doings[key] = doing
        elif before is None:
            return
        try:
            if doing is None:
                await self.store.told.forget(DOING + key)
            else:
                await self.store.told.tell(DOING + key, dumps(list(doing)).decode())
        except StateError:
            if self._doings.get(key) is doing:
                self._doings.pop(key, None)
                if before is not None:
                    self._doings[key] = before
            raise
