"""Scenario 34 for the other files of a profile: cut or changed anywhere, they are refused or replaced by name."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from telegram_bus.core.errors import SettingsError, StateError
from telegram_bus.core.identity import ours
from telegram_bus.home import Home, Profile, mint_secret, read_secret
from telegram_bus.roles.holder import this_process
from telegram_bus.roles.record import LeaderRecord, read_leader, stage_leader
from telegram_bus.roles.settings import load_settings, store_settings, stored_interpreter
from telegram_bus.store import open_inbox
from tests.effort import examples

TOKEN = "123456:AAAABBBBCCCCDDDD"


@contextmanager
def a_profile() -> Iterator[Profile]:
    with tempfile.TemporaryDirectory() as directory:
        profile = Home(Path(directory)).profile("default")
        profile.ensure_follower("nora")
        yield profile


@cache
def files() -> dict[str, bytes]:
    """Every small file of a profile as we write it."""
    with a_profile() as profile:
        loaded = load_settings(profile, {"chat": "12"}, {"TELEGRAM_BOT_TOKEN": TOKEN})
        store_settings(profile, loaded)
        mint_secret(profile.follower_secret)
        record = LeaderRecord(
            holder=this_process(),
            instance="leader:1",
            epoch=3,
            endpoint="/x",
            protocol=ours("1"),
            state="leading",
            since=1.0,
        )
        stage_leader(profile, record).publish()

        async def fill() -> None:
            async with open_inbox(profile.inbox("nora")) as inbox:
                for number in range(20):
                    await inbox.append(f"id{number}", "message", number, b"{}" * 20)

        trio.run(fill)
        with closing(sqlite3.connect(profile.inbox("nora"))) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        paths = {
            "settings": profile.config_toml,
            "record": profile.leader_json,
            "secret": profile.follower_secret,
            "inbox": profile.inbox("nora"),
        }
        return {name: path.read_bytes() for name, path in paths.items()}


def use_settings(profile: Profile) -> Path:
    path = profile.config_toml
    with suppress(SettingsError):
        stored_interpreter(profile)
    load_settings(profile, {"chat": "12"}, {"TELEGRAM_BOT_TOKEN": TOKEN})
    return path


def use_record(profile: Profile) -> Path:
    read_leader(profile)
    return profile.leader_json


def use_secret(profile: Profile) -> Path:
    read_secret(profile.follower_secret)
    return profile.follower_secret


def use_inbox(profile: Profile) -> Path:
    path = profile.inbox("nora")

    async def use() -> None:
        async with open_inbox(path) as inbox:
            assert inbox.notice is None or str(path) in inbox.notice
            await inbox.pending()
            assert await inbox.append("new", "message", 99, b"{}")

    trio.run(use)
    return path


USES: dict[str, tuple[str, Callable[[Profile], Path]]] = {
    "settings": ("config.toml", use_settings),
    "record": ("leader.json", use_record),
    "secret": ("follower.secret", use_secret),
    "inbox": ("followers/nora/inbox.sqlite3", use_inbox),
}


@pytest.mark.parametrize("name", USES)
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data())
def test_scenario_34_a_file_that_was_cut_or_changed_is_refused_by_name_or_replaced(
    name: str, data: st.DataObject
) -> None:
    place, use = USES[name]
    content = bytearray(files()[name])
    if data.draw(st.booleans(), "cut"):
        del content[data.draw(st.integers(0, len(content))) :]
    for _ in range(data.draw(st.integers(0, 10), "bytes")):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with a_profile() as profile:
        path = profile.directory / place
        path.write_bytes(content)
        path.chmod(0o600)
        said = ""
        try:
            use(profile)
        except (SettingsError, StateError) as error:
            said = str(error)
        assert not said or str(path) in said or name == "settings"
        if name != "inbox":
            assert path.read_bytes() == content
        assert os.path.lexists(path)
