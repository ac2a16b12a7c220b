"""What `updates` prints, and what it refuses before it asks anybody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from telegram_bus.cli.main import main
from telegram_bus.cli.updates import render

NOW = 1_800_000_000.0


def update(number: int, **changes: Any) -> dict[str, Any]:
    plain = {
        "id": number,
        "update_id": 70 + number,
        "kind": "message",
        "key": "builder",
        "chat_id": 1,
        "thread_id": 2,
        "text": "build it",
        "admitted_ms": NOW * 1000 - 3_600_000,
        "attempts": 0,
        "outcome": None,
        "settled_ms": None,
        "reason": None,
    }
    return plain | changes


def test_the_list_is_a_table_with_reasons() -> None:
    listed = {
        "updates": [
            update(1, outcome="rejected", attempts=20, reason="builder refused it\x1b[31m 20 times"),
            update(12, key=None, text="y" * 60),
        ],
        "waiting": 1,
        "set_aside": 1,
    }
    assert list(render(listed, now=NOW, colours=False)) == [
        "1 update set aside, 1 waiting",
        "ID  FOR         KIND     AGE     STATE     TRIES  TEXT",
        "1   builder     message  60 min  rejected  20     build it",
        "  builder refused it 20 times",
        f"12  the leader  message  60 min  waiting   0      {'y' * 39}…",
    ]


def test_nothing_is_said_in_one_line() -> None:
    assert list(render({"updates": [], "waiting": 0, "set_aside": 0}, now=NOW, colours=False)) == [
        "0 updates set aside, 0 waiting"
    ]


@pytest.mark.parametrize("arguments", [["retry"], ["drop"], ["drop", "1", "--all"]])
def test_which_updates_has_to_be_said_in_one_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(["--home", str(tmp_path), "updates", *arguments]) == 2
    assert "--all" in capsys.readouterr().err


def test_an_id_is_a_number_of_the_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for word in ("x", "²", "1" * 30):
        assert main(["--home", str(tmp_path), "updates", "drop", word]) == 2
        assert f"{word!r} is no ID" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["updates", "list"], ["updates", "drop", "1"], ["purge"]])
def test_without_a_leader_there_is_nobody_to_ask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(["--home", str(tmp_path), *arguments]) == 3
    assert "no leader runs" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
