"""The record of every call and poll: what was asked, when, what came of it, and who hung up."""

from __future__ import annotations

from collections import deque
from typing import Any

import attrs

from telegram_bus.sandbox.model_types import Json

__all__ = ["Entry", "Record", "Wanted"]

# Bounds the memory of a long run; who looks for something reads it long before.
KEPT = 20_000


@attrs.define(kw_only=True)
class Entry:
    """One request. Times are seconds: `began`, `ended`, `disconnected` monotonic, `began_at` since 1970.

    `kind` is "poll" for getUpdates and "call" for the rest; a poll that waits has no `ended` and no `ok` yet.
    `version` is that of the record when the entry last changed.
    """

    n: int
    kind: str
    method: str
    params: Json
    began: float
    began_at: float
    ended: float | None = None
    disconnected: float | None = None
    ok: bool | None = None
    code: int | None = None
    description: str | None = None
    result: Any = None
    version: int = 0


@attrs.frozen(kw_only=True)
class Wanted:
    """A filter; None matches everything. `text` is looked for in the parameters' text, `params` compares as text."""

    after: int = 0
    changed_after: int = 0
    kind: str | None = None
    method: str | None = None
    ok: bool | None = None
    open: bool | None = None
    disconnected: bool | None = None
    text: str | None = None
    params: dict[str, str] = attrs.field(factory=dict)

    def matches(self, entry: Entry) -> bool:
        """Whether an entry is one of the wanted."""
        facts = (
            (self.kind, entry.kind),
            (self.method and self.method.lower(), entry.method.lower()),
            (self.ok, entry.ok),
            (self.open, entry.ended is None),
            (self.disconnected, entry.disconnected is not None),
        )
        return (
            entry.n > self.after
            and entry.version > self.changed_after
            and all(wanted is None or wanted == fact for wanted, fact in facts)
            and (self.text is None or self.text in str(entry.params.get("text", "")))
            and all(str(entry.params.get(name, "")) == value for name, value in self.params.items())
        )


class Record:
    """The newest entries, numbered 1, 2, …; `version` grows with each entry and each change of one."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=KEPT)
        # Each change of an entry in order, so that news are found without looking at everything.
        self._changes: deque[tuple[int, Entry]] = deque(maxlen=2 * KEPT)
        self.last = 0
        self.version = 0

    def begin(self, method: str, params: Json, now: float, wall: float) -> Entry:
        """Note that a request arrived."""
        self.last += 1
        kind = "poll" if method.lower() == "getupdates" else "call"
        entry = Entry(n=self.last, kind=kind, method=method, params=params, began=now, began_at=wall)
        self._entries.append(entry)
        self._changed(entry)
        return entry

    def end(self, entry: Entry, now: float, answer: Json) -> None:
        """Note what was answered; of a poll's updates, their ids."""
        entry.ended = now
        entry.ok = answer["ok"]
        entry.code = answer.get("error_code", 200)
        entry.description = answer.get("description")
        result = answer.get("result")
        if entry.kind == "poll" and isinstance(result, list):
            result = [update["update_id"] for update in result]
        entry.result = result
        self._changed(entry)

    def hung_up(self, entry: Entry, now: float) -> None:
        """Note that the client went before its answer."""
        entry.disconnected = now
        self._changed(entry)

    def find(self, wanted: Wanted) -> list[Entry]:
        """All kept entries that match, the oldest first."""
        entries = self.changed_since(wanted.changed_after) if wanted.changed_after else self._entries
        return [entry for entry in entries if wanted.matches(entry)]

    def changed_since(self, version: int) -> list[Entry]:
        """The entries that are new or changed since the record had that version, the oldest first."""
        changed: dict[int, Entry] = {}
        for at, entry in reversed(self._changes):
            if at <= version:
                break
            changed[entry.n] = entry
        return [changed[number] for number in sorted(changed)]

    def _changed(self, entry: Entry) -> None:
        self.version += 1
        entry.version = self.version
        self._changes.append((self.version, entry))
