"""Bots written with client libraries of others serve a guest in the sandbox: topics, buttons, files, edits."""

from __future__ import annotations

import pytest

from tests.clients.cafe import PROGRAMS
from tests.clients.conftest import Conversations


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_bot_of_others_serves_its_guest(program: str, conversations: Conversations) -> None:
    traffic = conversations.traffic(program)
    assert [call.method for call in traffic.calls if not call.ok] == []
    assert {next(kind for kind in update if kind != "update_id") for update in traffic.updates} >= {
        "message", "edited_message", "callback_query",
    }  # fmt: skip
