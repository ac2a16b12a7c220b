"""The recordings of the reference, and a report of where we differ from them."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["Differences", "alike", "lines"]

SHOWN = 5  # differences in a report; one fault often shows in hundreds of lines


def lines(name: str) -> Iterator[tuple[int, Any]]:
    """The numbered lines of a recording, from the project's copy or the folder that CONFORMANCE_DIR names."""
    folder = Path(os.environ.get("CONFORMANCE_DIR") or Path(__file__).with_name("data"))
    text = gzip.decompress((folder / f"{name}.jsonl.gz").read_bytes()).decode("utf-8")
    for number, line in enumerate(text.split("\n"), start=1):  # not splitlines: U+2028 stands inside strings
        if line:
            yield number, json.loads(line)


def alike(ours: Any, theirs: Any) -> bool:
    """Equality of JSON: 5 is 5.0, but true is not 1, and the order of keys does not matter."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(alike(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(alike, ours, theirs))
    return isinstance(ours, bool) == isinstance(theirs, bool) and bool(ours == theirs)


class Differences:
    """What differed, in the order in which it was found."""

    def __init__(self) -> None:
        self.checked = 0
        self.found: list[str] = []

    def check(self, where: str, ours: Any, theirs: Any) -> None:
        """Notes a difference between what we did and what was recorded."""
        self.checked += 1
        if not alike(ours, theirs):
            self.found.append(f"{where}\n    recorded {_short(theirs)}\n    ours     {_short(ours)}")

    def report(self, least: int) -> None:
        """Fails with the first differences, or when fewer than `least` comparisons were made."""
        shown = "\n".join(self.found[:SHOWN])
        assert not self.found, f"{len(self.found)} of {self.checked} comparisons differ; the first:\n{shown}"
        assert self.checked >= least, f"only {self.checked} comparisons were made: is the recording complete?"


def _short(value: Any) -> str:
    text = json.dumps(value, default=repr)
    return text if len(text) <= 900 else text[:900] + " …"
