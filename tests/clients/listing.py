"""Which tests of a foreign suite have to pass, and why the others are left out."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from tests.clients.suite import Outcome

__all__ = ["Listing", "read_listing"]


@attrs.frozen
class Listing:
    """A suite's tests: those that have to pass, and the reason for each that does not."""

    passes: tuple[str, ...]
    left_out: dict[str, str]

    @property
    def ids(self) -> tuple[str, ...]:
        """All listed tests."""
        return (*self.passes, *self.left_out)

    @property
    def short_ids(self) -> tuple[str, ...]:
        """The same in the same order, without folder and class."""
        return tuple(
            f"{test_id.partition('.py')[0].rpartition('/')[2]}::{test_id.rpartition('::')[2]}" for test_id in self.ids
        )

    def judge(self, test_id: str, outcomes: Mapping[str, Outcome]) -> None:
        """Fail the running test unless the suite's test did what the list says of it."""
        found = outcomes.get(test_id)
        if found is None:
            pytest.fail(f"the suite ran no test {test_id}", pytrace=False)
        if test_id in self.left_out:
            if found.outcome == "passed":
                pytest.fail(f"{test_id} passes now, though left out: {self.left_out[test_id]}", pytrace=False)
        elif found.outcome != "passed":
            pytest.fail(f"{test_id}: {found.outcome}\n{found.text}", pytrace=False)

    def missing(self, outcomes: Mapping[str, Outcome]) -> list[str]:
        """The tests that the suite ran and the list does not name."""
        return sorted(set(outcomes) - set(self.ids))


def read_listing(path: Path) -> Listing:
    """Read `passes`, a list of ids, and the tables `left_out` with `reason` and `ids`."""
    listed = tomllib.loads(path.read_text(encoding="utf-8"))
    left_out = {test_id: group["reason"] for group in listed.get("left_out", ()) for test_id in group["ids"]}
    assert all(left_out.values()), f"{path.name}: every test that is left out needs a reason"
    listing = Listing(tuple(listed["passes"]), left_out)
    assert len(set(listing.ids)) == len(listing.ids), f"{path.name}: a test is named twice"
    return listing
