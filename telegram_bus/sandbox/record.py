"""The record of every call and poll: what was asked, when, what came of it, and who hung up."""

from __future__ import annotations

import json
from collections import deque
from itertools import islice
from typing import Any

import attrs

from telegram_bus.sandbox.model_types import Json

__all__ = ["Entry", "Record", "Wanted"]

# Bounds the memory of a long run; who looks for something reads it long before.
KEPT = 20_000


@attrs.define(kw_only=True, eq=False)
class Entry:
    """One request. Times are seconds: `began`, `ended`, `disconnected` monotonic, `began_at` since 1970.

    `kind` is "poll" for getUpdates and "call" for the rest; a poll that waits has no `ended` and no `ok` yet.
    `fault` is the order that struck it, {"id", "does"}; `flood` the limit that it broke. A call that was carried out
    and then not answered has `ok` and `result` of what was done. `version` is that of the record when the entry last
    changed.
    """

    n: int
    kind: str
    method: str
    began: float
    began_at: float
    ended: float | None = None
    disconnected: float | None = None
    ok: bool | None = None
    code: int | None = None
    description: str | None = None
    fault: Json | None = None
    flood: str | None = None
    version: int = 0
    # As JSON text, a fifth of the memory: most entries are never looked at.
    params_text: str = "{}"
    result_text: str = "null"

    @property
    def params(self) -> Json:
        """The call's parameters, those that are JSON decoded."""
        params: Json = json.loads(self.params_text)
        return params

    @property
    def result(self) -> Any:
        """What was answered; of a poll, the update ids."""
        return json.loads(self.result_text)

    @property
    def took(self) -> float | None:
        """Seconds from the request to its answer."""
        return None if self.ended is None else self.ended - self.began

    def view(self) -> Json:
        """The entry for those who ask for the record."""
        shown = {name: getattr(self, name) for name in _PLAIN}
        return {**shown, "params": self.params, "result": self.result}

    def holds(self, words: str) -> bool:
        """Whether the words stand anywhere in it, whatever their case."""
        text = f"{self.method} {self.code} {self.description or ''} {self.fault or ''} {self.flood or ''}"
        if words in text.lower():
            return True
        return any(words in _readable(part).lower() for part in (self.params_text, self.result_text))


_PLAIN = tuple(field.name for field in attrs.fields(Entry) if not field.name.endswith("_text"))


@attrs.frozen(kw_only=True)
class Wanted:
    """A filter; None matches everything. `text` is looked for in the call's text, `search` everywhere.

    `params` compares as text; `slower` is the least time until the answer; `since` and `until` bound `began_at`;
    `fault` is what an order does ("drop", …) or "any", `flood` a limit or "any".
    """

    after: int = 0
    changed_after: int = 0
    kind: str | None = None
    method: str | None = None
    ok: bool | None = None
    code: int | None = None
    description: str | None = None
    open: bool | None = None
    disconnected: bool | None = None
    fault: str | None = None
    flood: str | None = None
    slower: float | None = None
    since: float | None = None
    until: float | None = None
    text: str | None = None
    search: str | None = None
    params: dict[str, str] = attrs.field(factory=dict)

    def matches(self, entry: Entry) -> bool:
        """Whether an entry is one of the wanted."""
        facts = (
            (self.kind, entry.kind),
            (self.method and self.method.lower(), entry.method.lower()),
            (self.ok, entry.ok),
            (self.code, entry.code),
            (self.open, entry.ended is None),
            (self.disconnected, entry.disconnected is not None),
        )
        return (
            entry.n > self.after
            and entry.version > self.changed_after
            and all(wanted is None or wanted == fact for wanted, fact in facts)
            and self._fits_time(entry)
            and _is(self.fault, entry.fault["does"] if entry.fault else None)
            and _is(self.flood, entry.flood)
            and (self.description is None or self.description.lower() in (entry.description or "").lower())
            and self._fits_params(entry)
            and (self.search is None or entry.holds(self.search.lower()))
        )

    def _fits_time(self, entry: Entry) -> bool:
        return (
            (self.slower is None or (entry.took is not None and entry.took >= self.slower))
            and (self.since is None or entry.began_at >= self.since)
            and (self.until is None or entry.began_at <= self.until)
        )

    def _fits_params(self, entry: Entry) -> bool:
        if self.text is None and not self.params:
            return True
        params = entry.params
        return (self.text is None or self.text in str(params.get("text", ""))) and all(
            str(params.get(name, "")) == value for name, value in self.params.items()
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
        entry = Entry(n=self.last, kind=kind, method=method, began=now, began_at=wall, params_text=_text(params))
        self._entries.append(entry)
        self._changed(entry)
        return entry

    def came_to(self, entry: Entry, answer: Json) -> None:
        """Note what the call came to, whether or not anybody will be told; of a poll's updates, their ids."""
        entry.ok = answer["ok"]
        entry.code = answer.get("error_code", 200)
        entry.description = answer.get("description")
        result = answer.get("result")
        if entry.kind == "poll" and isinstance(result, list):
            result = [update["update_id"] for update in result]
        entry.result_text = _text(result)
        self._changed(entry)

    def end(self, entry: Entry, now: float, answer: Json) -> None:
        """Note what was answered."""
        entry.ended = now
        self.came_to(entry, answer)

    def struck(self, entry: Entry, *, fault: Json | None = None, flood: str | None = None) -> None:
        """Note the fault that a call met, or the limit that it broke."""
        entry.fault, entry.flood = fault or entry.fault, flood or entry.flood
        self._changed(entry)

    def finished(self, entry: Entry, now: float) -> None:
        """Note that nothing more will be sent."""
        entry.ended = now
        self._changed(entry)

    def hung_up(self, entry: Entry, now: float) -> None:
        """Note that the client went before its answer."""
        entry.disconnected = now
        self._changed(entry)

    def find(self, wanted: Wanted) -> list[Entry]:
        """All kept entries that match, the oldest first."""
        entries = self.changed_since(wanted.changed_after) if wanted.changed_after else self._newer(wanted.after)
        return [entry for entry in entries if wanted.matches(entry)]

    def changed_since(self, version: int) -> list[Entry]:
        """The entries that are new or changed since the record had that version, the oldest first."""
        changed: dict[int, Entry] = {}
        for at, entry in reversed(self._changes):
            if at <= version:
                break
            changed[entry.n] = entry
        return [changed[number] for number in sorted(changed)]

    def _newer(self, after: int) -> list[Entry]:
        # Entries are numbered without gaps.
        missing = max(0, min(len(self._entries), self.last - after))
        return list(islice(self._entries, len(self._entries) - missing, None))

    def _changed(self, entry: Entry) -> None:
        self.version += 1
        entry.version = self.version
        self._changes.append((self.version, entry))


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _readable(text: str) -> str:
    # What is kept is ASCII; a search is for what people read.
    return json.dumps(json.loads(text), ensure_ascii=False) if "\\u" in text else text


def _is(wanted: str | None, fact: str | None) -> bool:
    return wanted is None or fact == wanted or (wanted == "any" and fact is not None)
