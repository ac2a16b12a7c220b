"""What `status` and `logs` print."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from telegram_bus.cli.logs import last_lines, new_lines, readable
from telegram_bus.cli.main import main
from telegram_bus.cli.status import render
from telegram_bus.cli.terminal import columns

NOW = 1_800_000_000.0
MS = int(NOW * 1_000)


def a_status(**changes: Any) -> dict[str, Any]:
    status = {
        "version": "0.1.0",
        "state": "polling",
        "detail": None,
        "pid": 4242,
        "epoch": 3,
        "since_ms": MS - 600_000,
        "bot": {"id": 77, "username": "work_bot"},
        "chat": {"id": 1001, "kind": "private"},
        "last_poll_ms": MS - 4_000,
        "followers": [
            {
                "key": "shell",
                "name": "shell",
                "chat_id": 1001,
                "thread_id": 7,
                "slot": "B",
                "connected_at_ms": MS - 90_000,
                "last_heartbeat_ms": MS - 500,
                "state": "live",
                "waiting": 2,
            },
            {"key": "builder", "name": "建設 bot", "thread_id": None, "connected_at_ms": MS, "state": "live"},
        ],
        "waiting": 2,
    }
    return status | changes


def test_a_status_is_aligned_text() -> None:
    assert list(render(a_status(), now=NOW, colours=False)) == [
        "leader    polling",
        "process   pid 4242, term 3, for 10 min",
        "bot       @work_bot (77)",
        "chat      1001 (private)",
        "last poll 4 s ago",
        "waiting   2 updates",
        "version   0.1.0",
        "",
        "2 followers",
        "NAME      KEY      THREAD  SLOT  AGE   BEAT  WAITING  STATE",
        "建設 bot  builder  -       -     0 s   -     0        live",
        "shell     shell    7       B     90 s  0 s   2        live",
    ]


def test_what_is_not_settled_is_shown_where_there_is_something() -> None:
    sends = {
        "waiting": 1,
        "unknown": 2,
        "unknown_calls": [{"key": "old"}, {"key": "shell", "method": "sendMessage", "since_ms": MS - 60_000}],
        "parked": [{"chat_id": 1001, "why": "the person has blocked the bot"}],
    }
    assert list(render(a_status(sends=sends), now=NOW, colours=False))[6:9] == [
        "sending   1 message",
        "unknown   2 messages perhaps sent, the newest of shell 60 s ago: look into its thread",
        "closed    chat 1001: the person has blocked the bot; write to the bot there",
    ]
    quiet = {"waiting": 0, "unknown": 0, "unknown_calls": [], "parked": []}
    assert list(render(a_status(sends=quiet), now=NOW, colours=False)) == list(
        render(a_status(), now=NOW, colours=False)
    )


def test_a_leader_that_cannot_work_says_why_and_nobody_may_colour_it() -> None:
    status = a_status(state="conflict", detail="another \x1b[31mpoller\x1b[0m\nrobs us", bot=None, last_poll_ms=None)
    lines = list(render(status, now=NOW, colours=False))
    assert lines[:3] == [
        "leader    conflict",
        "          another poller robs us",
        "          → end that program, give one of the two a bot of its own, or have @BotFather make a new token",
    ]
    assert "last poll none yet" in lines


def test_all_that_is_wrong_is_named_with_what_to_do() -> None:
    states = [
        {"state": "offline", "detail": "no route to host"},
        {"state": "no threads", "detail": "switch on Topics"},
        {"state": "starting", "detail": None},
    ]
    lines = list(render(a_status(state="offline", detail="no route to host", states=states), now=NOW, colours=False))
    assert lines[:4] == [
        "leader    offline",
        "          no route to host",
        "          → look at this machine's network; it goes on by itself",
        "also      no threads: switch on Topics",
    ]
    assert lines[4].startswith("process")


def test_a_leader_older_than_the_package_is_said_to_be() -> None:
    lines = list(render(a_status(installed_version="0.2.0"), now=NOW, colours=False))
    assert "version   0.1.0; 0.2.0 is installed, so replace this leader: telegram-bus leader --replace" in lines
    assert "version   0.1.0" in list(render(a_status(installed_version="0.1.0"), now=NOW, colours=False))


def test_no_followers_are_an_invitation() -> None:
    assert "telegram-bus follower" in list(render(a_status(followers=[]), now=NOW, colours=False))[-1]


def test_colours_change_nothing_but_colours() -> None:
    coloured = list(render(a_status(), now=NOW, colours=True))
    assert "\x1b[32mpolling\x1b[0m" in coloured[0]
    cleaned = [line.replace("\x1b[0m", "") for line in coloured]
    for code in ("31", "32", "33", "2", "1"):
        cleaned = [line.replace(f"\x1b[{code}m", "") for line in cleaned]
    assert cleaned == list(render(a_status(), now=NOW, colours=False))


def test_a_table_is_cut_to_the_terminal_at_its_widest_column() -> None:
    followers = [
        {"key": "k" * 40, "name": "建" * 30, "state": "live", "activity": {"text": "running " * 9, "since_ms": MS}}
    ]
    lines = list(render(a_status(followers=followers), now=NOW, colours=False, width=80))
    table = lines[lines.index("1 follower") + 1 :]
    assert len(table) == 2
    assert all(len(line) + line.count("建") <= 80 for line in table)
    assert table[0].split() == "NAME KEY THREAD SLOT AGE BEAT WAITING STATE".split()
    assert table[1].count("…") == 3
    whole = list(render(a_status(followers=followers), now=NOW, colours=False))
    assert "k" * 40 in whole[-1]


def test_a_table_that_no_cutting_helps_stays_readable() -> None:
    rows = columns([("a" * 9, "b" * 9), ("c", "d")], width=5)
    assert [row[1] for row in rows] == ["bbbbbbb…", "d"]


def test_columns_count_wide_and_combining_characters() -> None:
    assert ["".join(row) for row in columns([("建", "x"), ("e\u0301", "y"), ("abc", "z")])] == [
        "建   x",
        "e\u0301    y",
        "abc  z",
    ]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"not json \xff", "not json \N{REPLACEMENT CHARACTER}"),
        (b'"a word"', '"a word"'),
        (
            b'{"time":"2026-01-02T03:04:05Z","level":"warning","message":"slow\\u001b[2J disk","ms":12,"none":null}',
            "2026-01-02T03:04:05Z WARNING slow disk ms=12",
        ),
        (b'{"event":"started","pid":3}', "started pid=3"),
        (
            b'{"level":"error","logger":"telegram_bus.x","message":"oh","error":"Traceback\\n  File\\nOSError"}',
            "ERROR   telegram_bus.x: oh\n    Traceback\n      File\n    OSError",
        ),
    ],
)
def test_log_lines_are_readable(line: bytes, text: str) -> None:
    assert readable(line)[0] == text


def test_times_in_milliseconds_and_seconds_are_the_same_moment() -> None:
    seconds = readable(json.dumps({"ts": 1_800_000_000}).encode())[0]
    assert seconds == readable(json.dumps({"ts": 1_800_000_000_123}).encode())[0]


@pytest.mark.parametrize("number", [0, 1, 3, 1_000])
def test_the_last_lines_are_the_last_whole_lines(number: int, tmp_path: Path) -> None:
    log = tmp_path / "leader.log"
    lines = [f"line {index} {'x' * 400}".encode() for index in range(500)]
    log.write_bytes(b"\n".join([*lines, b"half a li"]))
    found, position = last_lines(log, number)
    assert found == lines[len(lines) - min(number, 500) :]
    assert position == (log.stat().st_ino, log.stat().st_size - len("half a li"))


def test_what_is_written_is_followed_across_rotation_and_truncation(tmp_path: Path) -> None:
    log = tmp_path / "leader.log"
    assert last_lines(log, 5) == ([], (0, 0))
    log.write_bytes(b"one\ntwo\nthr")
    lines, position = new_lines(log, (0, 0))
    assert lines == [b"one", b"two"]
    with log.open("ab") as file:
        file.write(b"ee\nfour\n")
    log.rename(tmp_path / "leader.log.1")
    assert new_lines(log, position) == ([], position)
    log.write_bytes(b"five\n")
    lines, position = new_lines(log, position)
    assert lines == [b"three", b"four", b"five"]
    assert new_lines(log, position) == ([], position)
    log.write_bytes(b"6\n")
    assert new_lines(log, position)[0] == [b"6"]


def test_without_a_log_a_leader_in_the_foreground_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "profiles" / "default" / "leader.json"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"endpoint": str(tmp_path / "socket"), "pid": 4242}))
    assert main(["--home", str(tmp_path), "logs"]) == 1
    assert "4242" in capsys.readouterr().err


def test_the_audit_log_is_shown_or_said_to_be_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = tmp_path / "profiles" / "default"
    (profile / "logs").mkdir(parents=True)
    assert main(["--home", str(tmp_path), "logs", "--audit"]) == 3
    (profile / "leader.json").write_text(json.dumps({"endpoint": str(tmp_path / "socket"), "pid": 4242}))
    assert main(["--home", str(tmp_path), "logs", "--audit"]) == 0
    assert "nothing was refused so far" in capsys.readouterr().err
    entry = {
        "time": "2026-01-01",
        "who": "nora",
        "pid": 7,
        "method": "sendMessage",
        "field": "chat_id",
        "rule": "must be 5",
    }
    (profile / "logs" / "audit.jsonl").write_text(json.dumps(entry) + "\n")
    assert main(["--home", str(tmp_path), "logs", "--audit"]) == 0
    assert "2026-01-01 who=nora pid=7 method=sendMessage field=chat_id rule=must be 5" in capsys.readouterr().out


def test_following_prints_what_comes_and_ends_with_ctrl_c(tmp_path: Path) -> None:
    log = tmp_path / "profiles" / "default" / "logs" / "leader.log"
    log.parent.mkdir(parents=True)
    log.write_text("first\n")
    command = [sys.executable, "-m", "telegram_bus", "--home", str(tmp_path), "logs", "-f"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "first\n"
        with log.open("a") as file:
            file.write("second\n")
        assert process.stdout.readline() == "second\n"
        process.send_signal(2)
        assert process.wait(timeout=30) == 0
