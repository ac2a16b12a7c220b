"""What is logged is readable, one line an entry where a program reads it, and holds no secret."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from telegram_bus import log

SECRET = "123456:AAE-secret"  # made up


@pytest.fixture(autouse=True)
def pristine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    monkeypatch.setattr(log, "_secrets", set())
    yield
    root.handlers[:], root.level = handlers, level


def logged(*, as_json: bool) -> io.StringIO:
    stream = io.StringIO()
    log.setup(as_json=as_json, stream=stream)
    return stream


def test_an_entry_is_one_object_a_line_with_what_extra_gave() -> None:
    stream = logged(as_json=True)
    logging.getLogger("telegram_bus.x").warning("two\nlines %s", "é\u2028", extra={"pid": 7, "path": object})
    (line,) = stream.getvalue().split("\n")[:-1]
    entry = json.loads(line)
    assert entry.pop("time").endswith("+00:00")
    assert entry == {
        "level": "warning",
        "logger": "telegram_bus.x",
        "message": "two\nlines é\u2028",
        "pid": 7,
        "path": "<class 'object'>",
    }


def test_a_fault_comes_with_its_traceback() -> None:
    for as_json in (True, False):
        stream = logged(as_json=as_json)
        try:
            raise ZeroDivisionError("by nought")
        except ZeroDivisionError:
            logging.getLogger("x").exception("failed")
        assert "ZeroDivisionError: by nought" in stream.getvalue()


@pytest.mark.parametrize("as_json", [True, False])
def test_no_secret_is_readable_wherever_it_stands(as_json: bool) -> None:
    stream = logged(as_json=as_json)
    log.hide(SECRET, "short")
    logger = logging.getLogger("x")
    logger.warning("https://api/bot%s/getMe short", SECRET)
    logger.warning("quoted %s", SECRET.replace(":", "%3A"))
    logger.warning("extra", extra={"where": {"deep": [SECRET]}, SECRET: 1, "thing": type(SECRET, (), {})})
    try:
        raise ValueError(SECRET)
    except ValueError:
        logger.exception("raised")
    assert "AAE-secret" not in stream.getvalue()
    assert "short" in stream.getvalue(), "what is too short to be a secret stays"


def test_a_terminal_is_not_steered_by_what_is_logged() -> None:
    stream = logged(as_json=False)
    logging.getLogger("x").warning("\x1b[2J\x9b2Jhello\tworld", extra={"n": 1})
    assert stream.getvalue().endswith("warning x: ?[2J?2Jhello\tworld n=1\n")


@pytest.mark.parametrize("as_json", [True, False])
def test_lone_surrogates_can_be_written(as_json: bool) -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="utf-8")
    log.setup(as_json=as_json, stream=stream)
    # to our handler only: what the others caught of it, a report that travels between processes could not hold
    [ours] = [one for one in logging.getLogger().handlers if getattr(one, "stream", None) is stream]
    ours.handle(logging.LogRecord("x", logging.WARNING, __file__, 1, "odd \udc80", (), None))
    stream.flush()
    assert b"\\udc80" in written.getvalue()


def test_setting_up_twice_says_everything_once() -> None:
    first, second = logged(as_json=True), logged(as_json=False)
    logging.getLogger("x").warning("hello")
    assert first.getvalue() == ""
    assert second.getvalue().count("hello") == 1


def test_libraries_that_log_each_request_are_quiet_unless_they_warn() -> None:
    stream = logged(as_json=True)
    logging.getLogger("httpx").info("GET /bot123")
    logging.getLogger("telegram_bus").info("ours")
    logging.getLogger("telegram_bus").debug("too much")
    logging.getLogger("httpx").warning("trouble")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["ours", "trouble"]


WRITER = """
import logging, pathlib, sys
from telegram_bus import log
log.setup(as_json=True, file=pathlib.Path(sys.argv[1]))
for word in sys.stdin.read().split():
    if word == "aside":
        pathlib.Path(sys.argv[1]).rename(sys.argv[1] + ".1")
    elif word == "gone":
        pathlib.Path(sys.argv[1]).unlink()
    elif word == "full":
        pathlib.Path(sys.argv[1]).open("ab").truncate(log.FILE_MAX + 1)
    else:
        logging.warning(word)
print("and what is not logged", flush=True)
"""


@pytest.mark.parametrize("change", ["aside", "gone", "full"])
def test_a_process_whose_log_was_set_aside_goes_on_in_the_new_one(tmp_path: Path, change: str) -> None:
    file = tmp_path / "leader.log"
    with file.open("ab") as output:
        subprocess.run(
            [sys.executable, "-c", WRITER, str(file)],
            input=f"one {change} two three",
            text=True,
            stdout=output,
            stderr=output,
            check=True,
        )
    *entries, last = file.read_text().splitlines()
    assert [json.loads(entry)["message"] for entry in entries] == ["two", "three"]
    assert last == "and what is not logged"
    assert file.stat().st_mode & 0o777 == 0o600
    assert (change == "gone") != (tmp_path / "leader.log.1").exists()


def test_a_process_that_logs_elsewhere_leaves_the_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "leader.log"
    command = [sys.executable, "-c", WRITER, str(file)]
    done = subprocess.run(command, input="one", text=True, capture_output=True, check=True)
    assert json.loads(done.stderr)["message"] == "one"
    assert not file.exists()
