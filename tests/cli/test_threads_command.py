"""What `threads` prints, what it asks, and what it refuses before it asks anybody."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from telegram_bus.cli import threads
from telegram_bus.cli.main import main
from telegram_bus.cli.threads import render

NOW = 1_800_000_000.0


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the leader was asked last; "answers" are its answers, one after another."""
    seen: dict[str, Any] = {"answers": []}

    def ask(_profile: object, kind: str, _secret: Path, _seconds: float, **fields: Any) -> Any:
        seen["kind"], seen["fields"] = kind, fields
        return seen["answers"].pop(0)

    monkeypatch.setattr(threads, "ask", ask)
    return seen


def test_the_list_is_a_table_with_what_is_being_made_and_what_shall_go() -> None:
    thread = {"key": "nora", "name": "Nora\x1b[31m", "thread_id": 77, "state": "closed", "here": True, "waiting": 2}
    listed = {
        "chat_id": -100,
        "outage": "Telegram says that 3 threads are gone at once",
        "threads": [thread | {"since_ms": NOW * 1000 - 3_600_000}],
        "making": [{"key": "otto", "name": "Otto", "since_ms": NOW * 1000 - 30_000, "looked_for": 90.0}],
        "clean_ups": [{"key": "ida", "thread_id": 5, "how": "delete", "why": "it left", "since_ms": 0}],
    }
    assert list(render(listed, now=NOW, colours=False)) == [
        "Telegram says that 3 threads are gone at once",
        "1 thread in chat -100",
        "KEY   NAME  THREAD  STATE   AGENT  WAITING  AGE",
        "nora  Nora  77      closed  here   2        60 min",
        "Otto for otto was asked for 30 s ago, and is looked for",
        "thread 5 of ida will be deleted: it left",
    ]


@pytest.mark.parametrize(
    ("words", "fields", "answer", "shown"),
    [
        (
            ["rename", "nora", "Big Nora"],
            {"action": "rename", "keys": ["nora"], "name": "Big Nora"},
            {"key": "nora", "name": "Big Nora", "thread_id": 7},
            "nora is called Big Nora (7)\n",
        ),
        (
            ["bind", "nora", "9"],
            {"action": "bind", "keys": ["nora"], "threadId": 9},
            {"key": "nora", "name": "Nora", "thread_id": 9},
            "nora has the thread Nora (9)\n",
        ),
        (
            ["unbind", "nora"],
            {"action": "unbind", "keys": ["nora"]},
            {"key": "nora", "name": "Nora", "thread_id": 9},
            "nora has no longer the thread Nora (9)\n",
        ),
        (
            ["clean", "--how", "delete", "--dry-run"],
            {"action": "clean", "how": "delete", "dryRun": True},
            {"how": "delete", "done": [], "left": ["nora"], "kept": {}},
            "would delete 1 thread: nora\n",
        ),
        (
            ["clean", "nora"],
            {"action": "clean", "keys": ["nora"], "dryRun": False},
            {"how": "close", "done": [], "left": [], "kept": {"nora": "it is here"}},
            "closed 0 threads\n",
        ),
    ],
)
def test_each_action_asks_for_itself_and_says_what_came_of_it(
    asked: dict[str, Any],
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    fields: dict[str, Any],
    answer: dict[str, Any],
    shown: str,
) -> None:
    for extra, expected in (([], shown), (["--json"], json.dumps(answer) + "\n")):
        asked["answers"] = [answer]
        assert main(["threads", *words, *extra]) == 0
        assert (asked["kind"], asked["fields"]) == ("x.operator.threads", fields)
        assert capsys.readouterr().out == expected


def test_a_proof_of_all_goes_on_where_the_last_request_ended(
    asked: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    asked["answers"] = [
        {"there": ["a"], "gone": [], "unknown": [], "left": ["b", "c"]},
        {"there": ["c"], "gone": ["b"], "unknown": [], "left": []},
    ]
    assert main(["threads", "sync"]) == 1
    assert asked["fields"] == {"action": "sync", "keys": ["b", "c"]}
    out = capsys.readouterr().out
    assert "2 there, 1 gone, 0 not known" in out
    assert "b: a person deleted its thread" in out


def test_what_was_not_cleaned_up_is_named(asked: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    asked["answers"] = [{"how": "delete", "done": ["a"], "left": ["b"], "kept": {"c": "it is here"}}]
    assert main(["threads", "clean", "a", "b", "c"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "deleted 1 thread: a\n"
    assert "not done: b" in shown.err
    assert "c keeps its thread: it is here" in shown.err


@pytest.mark.parametrize(
    "words", [["list", "x"], ["rename", "nora"], ["bind", "nora"], ["bind", "nora", "x"], ["unbind"], ["burn"]]
)
def test_what_makes_no_sense_is_refused_before_anybody_is_asked(words: list[str]) -> None:
    assert main(["threads", *words]) == 2
