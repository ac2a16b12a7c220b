"""pyTelegramBotAPI's own tests pass against the sandbox, all those that `telebot_ids.toml` names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.conftest import Run
from tests.clients.listing import read_listing

LISTING = read_listing(Path(__file__).with_name("telebot_ids.toml"))


@pytest.mark.parametrize("test_id", LISTING.ids, ids=LISTING.short_ids)
def test_telebot_live(test_id: str, telebot: Run) -> None:
    LISTING.judge(test_id, telebot.outcomes)


def test_every_live_test_is_listed(telebot: Run) -> None:
    assert LISTING.missing(telebot.outcomes) == []
