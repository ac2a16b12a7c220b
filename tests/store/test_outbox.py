"""Calls of an earlier version of the store: what was answered stays answered, what was claimed stays unknown."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from telegram_bus.store import New, Repeat, Unknown, open_store
from telegram_bus.store.schema import JOURNAL


async def test_calls_of_version_2_are_taken_over_and_nobody_is_told_of_old_ones(tmp_path: Path) -> None:
    """What an old call said was not kept, so that it cannot be sent again; its id is known for 48 h all the same."""
    path = tmp_path / "bus.sqlite3"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript("".join(JOURNAL.steps[:2]))
        db.execute(f"PRAGMA application_id = {JOURNAL.application_id}")
        db.execute("PRAGMA user_version = 2")
        db.execute("INSERT INTO calls VALUES ('nora', 'answered', 'd', 1, 5, x'31', 6)")
        db.execute("INSERT INTO calls VALUES ('nora', 'claimed', 'd', 1, 5, NULL, NULL)")
    path.chmod(0o600)
    async with open_store(path, holder="test") as store:
        found = await store.begin_calls(10)
        assert found.keys == []
        assert await store.known_call("nora", "answered", "d") == Repeat(b"1")
        assert await store.known_call("nora", "claimed", "d") == Unknown()
        assert await store.known_call("nora", "new", "d") == New()
        assert await store.untold_calls(10) == []
        [unknown] = found.unknown
        assert (unknown.key, unknown.request_id) == ("nora", "claimed")
        assert await store.send_again(unknown.seq, 0, 9) is None
        assert await store.accept_call("nora", "new", "d", 9, ("sendMessage", b"{}")) == New()
        [accepted] = await store.accepted_calls("nora", 0, 10)
        assert accepted.seq > unknown.seq
