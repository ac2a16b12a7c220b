"""python-telegram-bot's own live tests pass against the sandbox, all those that `ptb_ids.toml` names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.conftest import Run
from tests.clients.listing import read_listing

LISTING = read_listing(Path(__file__).with_name("ptb_ids.toml"))


@pytest.mark.parametrize("test_id", LISTING.ids, ids=LISTING.short_ids)
def test_ptb_live(test_id: str, ptb: Run) -> None:
    LISTING.judge(test_id, ptb.outcomes)


def test_every_live_test_is_listed(ptb: Run) -> None:
    assert LISTING.missing(ptb.outcomes) == []


def test_the_list_holds_all_of_the_forum_and_most_of_the_bot() -> None:
    assert not [test_id for test_id in LISTING.left_out if "test_forum.py" in test_id]
    assert len([test_id for test_id in LISTING.passes if "test_bot.py" in test_id]) >= 75
