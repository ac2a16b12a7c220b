"""The lists of foreign tests: what fails, what is missing, and what passes though it is left out is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.listing import Listing, read_listing
from tests.clients.suite import Outcome

PASSED, FAILED = Outcome("passed"), Outcome("failed", "1 != 2")
LISTING = Listing(("tests/test_a.py::TestIt::test_one",), {"tests/test_a.py::TestIt::test_two": "there are no games"})
ONE, TWO = LISTING.ids


def test_what_is_as_listed_is_fine() -> None:
    outcomes = {ONE: PASSED, TWO: FAILED}
    LISTING.judge(ONE, outcomes)
    LISTING.judge(TWO, outcomes)
    assert LISTING.missing(outcomes) == []


@pytest.mark.parametrize(
    ("test_id", "outcomes", "said"),
    [
        (ONE, {ONE: FAILED}, "failed\n1 != 2"),
        (ONE, {ONE: Outcome("xfailed", "timed out")}, "xfailed"),
        (ONE, {}, "the suite ran no test .*test_one"),
        (TWO, {}, "the suite ran no test .*test_two"),
        (TWO, {TWO: PASSED}, "test_two passes now, though left out: there are no games"),
    ],
)
def test_what_is_not_as_listed_fails_with_a_clear_line(test_id: str, outcomes: dict[str, Outcome], said: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=said):
        LISTING.judge(test_id, outcomes)


def test_a_new_test_of_the_suite_is_noticed() -> None:
    assert LISTING.missing({ONE: PASSED, TWO: FAILED, "tests/test_a.py::test_new": PASSED}) == [
        "tests/test_a.py::test_new"
    ]


def test_names_are_short_and_in_the_same_order() -> None:
    assert LISTING.short_ids == ("test_a::test_one", "test_a::test_two")


def test_a_list_names_each_test_once_and_gives_reasons(tmp_path: Path) -> None:
    path = tmp_path / "ids.toml"
    path.write_text('passes = ["a"]\n[[left_out]]\nreason = "why"\nids = ["b", "c"]\n')
    assert read_listing(path) == Listing(("a",), {"b": "why", "c": "why"})
    path.write_text('passes = ["a"]\n[[left_out]]\nreason = "why"\nids = ["a"]\n')
    with pytest.raises(AssertionError, match="named twice"):
        read_listing(path)
    path.write_text('passes = ["a"]\n[[left_out]]\nreason = ""\nids = ["b"]\n')
    with pytest.raises(AssertionError, match="needs a reason"):
        read_listing(path)
