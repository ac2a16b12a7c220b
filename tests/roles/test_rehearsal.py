"""A rehearsal goes all the way from the store to a follower's inbox, and leaves no trace."""

from __future__ import annotations

import logging
import signal
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
import trio

from telegram_bus import crash
from telegram_bus.core.errors import NotSent
from telegram_bus.home import Home, Profile
from telegram_bus.roles import rehearsal
from telegram_bus.roles.settings import Settings, load_settings


@pytest.fixture
def settings(bus_profile: Profile) -> Settings:
    given = {"chat": "-1001", "allow": "7", "show_state": "yes", "clean_up": "delete"}
    return load_settings(bus_profile, given, {"TELEGRAM_BOT_TOKEN": "123:abcdefgh"})


async def test_one_update_goes_to_one_follower(settings: Settings, tmp_path: Path) -> None:
    profile = Home(tmp_path / "stage").profile("play")
    with trio.fail_after(60):
        await rehearsal._play(settings, profile)
    with closing(sqlite3.connect(profile.database)) as db:
        assert db.execute("SELECT owner_key, outcome FROM updates").fetchall() == [(rehearsal.NAME, "accepted")]
    with closing(sqlite3.connect(profile.inbox(rehearsal.NAME))) as db:
        assert db.execute("SELECT count(*) FROM deliveries").fetchone() == (1,)


class Telegram:
    """Says nothing of the bot."""

    async def call(self, *_: object) -> None:
        raise NotSent("no network")


async def test_nobody_hears_of_it_and_no_crash_point_counts(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, bus_profile: Profile
) -> None:
    passed: list[object] = []

    def quick(name: str) -> None:
        passed.append(dict(crash._orders))

    monkeypatch.setattr(crash, "point", quick)
    orders = {"after-admit": (1, signal.SIGKILL)}
    monkeypatch.setattr(crash, "_orders", dict(orders))
    monkeypatch.setattr(rehearsal, "REHEARSAL", 30.0)
    done = trio.Event()
    played = rehearsal._play

    async def play(settings: Settings, profile: Profile) -> None:
        await played(settings, profile)
        done.set()

    async def learn(*_: object) -> None:
        await done.wait()

    monkeypatch.setattr(rehearsal, "_play", play)
    monkeypatch.setattr(rehearsal, "learn_bot", learn)
    before = list(bus_profile.directory.rglob("*"))
    with caplog.at_level(logging.DEBUG), trio.fail_after(60):
        assert await rehearsal.rehearse(settings, Telegram(), trio.Event()) is None  # type: ignore[arg-type]
    assert passed
    assert all(order == {} for order in passed)
    assert crash._orders == orders
    assert [record for record in caplog.records if record.name.startswith("telegram_bus")] == []
    assert list(bus_profile.directory.rglob("*")) == before
    assert logging.root.manager.disable == logging.NOTSET


async def test_a_stage_that_cannot_be_had_is_no_fault(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")

    async def learn(*_: object) -> None:
        return None

    monkeypatch.setattr(rehearsal, "learn_bot", learn)
    with trio.fail_after(60):
        assert await rehearsal.rehearse(settings, Telegram(), trio.Event()) is None  # type: ignore[arg-type]
