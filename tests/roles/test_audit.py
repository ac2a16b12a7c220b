"""The audit log: what is written of a refusal, what a flood leaves out, and what the disk keeps."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from telegram_bus import log as logs
from telegram_bus.roles import audit as audits
from telegram_bus.roles.audit import BURST, Audit
from telegram_bus.wire.connection import Peer

WHAT = ("sendMessage", "chat_id", "must be 5")


def lines(path: Path) -> list[dict[str, Any]]:
    """What stands in the file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@asynccontextmanager
async def running(path: Path) -> AsyncIterator[Audit]:
    """A log that is written meanwhile, to the end."""
    audit = Audit(path=path, now_ms=lambda: 1_000_000_000_000)
    async with trio.open_nursery() as nursery:
        await nursery.start(audit.run)
        yield audit
        nursery.cancel_scope.cancel("the test is over")


async def test_a_refusal_is_noted_with_its_method_field_and_rule(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    async with running(path) as audit:
        audit.note("nora", 77, *WHAT)
        audit.note(None, 0, "follower.register", "auth", "must be the followers' secret")
    assert lines(path) == [
        {
            "time": "2001-09-09T01:46:40.000+00:00",
            "who": "nora",
            "pid": 77,
            "method": "sendMessage",
            "field": "chat_id",
            "rule": "must be 5",
        },
        {
            "time": "2001-09-09T01:46:40.000+00:00",
            "who": None,
            "pid": None,
            "method": "follower.register",
            "field": "auth",
            "rule": "must be the followers' secret",
        },
    ]
    assert path.stat().st_mode & 0o777 == 0o600


async def test_another_user_s_process_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    async with running(path) as audit:
        audit.note_stranger(Peer(pid=9, uid=1234))
    [line] = lines(path)
    assert (line["who"], line["pid"], line["method"], line["field"]) == (None, 9, "connect", "uid")


async def test_a_flood_is_counted_and_costs_nobody_else_a_line(tmp_path: Path, mock_clock: MockClock) -> None:
    path = tmp_path / "audit.jsonl"
    async with running(path) as audit:
        for _ in range(10_000):
            audit.note("loud", 1, *WHAT)
        audit.note("quiet", 2, *WHAT)
    written = lines(path)
    assert sum(1 for one in written if one["who"] == "loud" and "rule" in one) == BURST
    assert [one["left_out"] for one in written if "left_out" in one] == [10_000 - BURST]
    assert [one["pid"] for one in written if one["who"] == "quiet"] == [2]


async def test_after_a_flood_one_more_a_second_is_written(tmp_path: Path, mock_clock: MockClock) -> None:
    path = tmp_path / "audit.jsonl"
    async with running(path) as audit:
        for _ in range(BURST + 5):
            audit.note("loud", 1, *WHAT)
        mock_clock.jump(3)
        audit.note("loud", 1, *WHAT)
    assert [one.get("left_out") for one in lines(path)] == [*[None] * BURST, 5, None]


async def test_the_rates_of_made_up_names_are_bounded(tmp_path: Path) -> None:
    async with running(tmp_path / "audit.jsonl") as audit:
        for number in range(2_000):
            audit.note(f"name-{number}", 1, *WHAT)
        assert len(audit._rates) <= audits.ASKERS


def test_the_file_is_replaced_before_it_grows_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "audit.jsonl"
    monkeypatch.setattr(audits, "LARGEST", 300)
    audit = Audit(path=path, now_ms=lambda: 1, clock=lambda: 0.0)
    for number in range(12):
        audit.note(f"n{number}", 1, *WHAT)
        audit._append(audit._taken())
    assert sorted(one.name for one in tmp_path.iterdir()) == ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]
    assert all(one.stat().st_size <= 300 for one in tmp_path.iterdir())
    assert lines(path)[-1]["who"] == "n11"


async def test_long_names_and_secrets_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    logs.hide("123456:sentinel-token")
    async with running(path) as audit:
        audit.note("123456:sentinel-token" + "x" * 5_000 + "\n", 1, *WHAT)
    [line] = lines(path)
    assert "sentinel" not in path.read_text()
    assert len(line["who"]) == audits.LONGEST


async def test_a_disk_that_takes_nothing_costs_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with running(tmp_path / "missing" / "audit.jsonl") as audit:
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                audit.note("nora", 1, *WHAT)
                audit._append(audit._taken())
    assert len([one for one in caplog.records if "refusals are not noted" in one.message]) == 1
