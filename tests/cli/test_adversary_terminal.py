"""What somebody else named, on a terminal: it steers nothing, turns nothing around, and makes up no line."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from telegram_bus import log
from telegram_bus.cli import faults
from telegram_bus.cli.logs import readable
from telegram_bus.cli.status import render
from telegram_bus.cli.terminal import clean, cleaned, columns, put
from telegram_bus.core.errors import RequestRefused

STEERING = "\x1b[2J\x1b]0;title\x07\x9b31m\u202egnp.exe\u2066\u200b\ufeff\x00\r\b"
FORBIDDEN = set("\x1b\x07\x9b\u202e\u2066\u200b\ufeff\x00\r\b")


def test_what_is_shown_of_a_name_has_nothing_in_it_that_is_not_seen() -> None:
    shown = clean(f"no{STEERING}ra\nleader    serving")
    assert not set(shown) & FORBIDDEN
    assert "\n" not in shown
    assert cleaned("two\nlines\u202e") == "two\nlines"
    assert clean("a\u200db \U0001f468\u200d\U0001f469") == "a\u200db \U0001f468\u200d\U0001f469", "joiners are needed"


def test_columns_stand_below_each_other_whatever_is_in_them() -> None:
    rows = columns([(clean("a\u200b\u202e"), "x"), (clean("e\u0301\u20dd\u200d"), "y"), ("ab", "z")])
    assert rows == [["a   ", "x"], ["e\u0301\u20dd\u200d   ", "y"], ["ab  ", "z"]]


def test_a_status_of_strange_followers_is_one_line_for_each() -> None:
    names: dict[str, Any] = {"name": STEERING + "\nforged", "key": "\ud800" + STEERING, "state": STEERING}
    doing = {"text": f"x{STEERING}\ny", "since_ms": 1, "needs_person": True}
    followers = [names | {"activity": doing}]
    status = {"state": "serving", "pid": 1, "epoch": 1, "followers": followers, "bot": {}, "chat": {}}
    lines = list(render(status, now=2.0, colours=False))
    assert not set("".join(lines)) & FORBIDDEN
    assert sum("forged" in line for line in lines) == 1
    assert not any("\n" in line for line in lines)


def test_json_is_printed_whatever_is_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Half a character ended `status --json` with a traceback."""
    value = {"name": f"\ud800{STEERING}"}
    put(json.dumps(value, ensure_ascii=False))
    printed = capsys.readouterr().out
    assert json.loads(printed) == value
    assert not set(printed) & (FORBIDDEN - {"\u200b", "\ufeff"})


def test_a_fault_says_what_others_said_without_steering(capsys: pytest.CaptureFixture[str]) -> None:
    assert faults.report(RequestRefused(f"no agent is called {STEERING}; here are: x")) == faults.REFUSED
    said = capsys.readouterr().err
    assert said.startswith("telegram-bus: no agent is called ")
    assert not set(said) & FORBIDDEN


@pytest.mark.parametrize("as_json", [True, False])
def test_a_message_makes_up_no_entry_of_a_log(as_json: bool) -> None:
    formatter = log.JsonFormatter() if as_json else log.ReadableFormatter()
    forged = '\n12:00:00 error telegram_bus.roles.leader: the token was given away\n{"level": "error"}' + STEERING
    try:
        raise ValueError(forged)
    except ValueError as error:
        caught = (type(error), error, error.__traceback__)
    record = logging.LogRecord("telegram_bus.x", logging.WARNING, "f", 1, "refused: %s", (forged,), caught)
    record.who = forged
    text = formatter.format(record)
    first, *others = text.split("\n")
    assert "refused" in first
    assert all(line.startswith("    ") for line in others)
    assert not others or not as_json
    assert not set(text) & (FORBIDDEN - {"\u200b", "\ufeff"})
    if as_json:
        shown, _ = readable(text.encode())
        assert not set(shown) & FORBIDDEN
