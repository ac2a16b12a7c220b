"""The demo as a newcomer runs it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tests.e2e.rig import PATIENCE, until

DEMO = [sys.executable, "-m", "telegram_bus", "demo"]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A marker by which all processes of this test are found, and a directory for temporary files."""
    return os.environ | {"TMPDIR": str(tmp_path), "DEMO_TEST": str(tmp_path)}


def processes_of(marker: str) -> list[str]:
    """The command lines of the processes that inherited the marker, zombies left out."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"DEMO_TEST={marker}".encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it ended, or is somebody else's
    return [command for command in found if command]


def assert_nothing_is_left(directory: Path) -> None:
    until(lambda: not processes_of(str(directory)))
    assert list(directory.glob("telegram-bus-demo-*")) == []


@pytest.fixture
def demo(environ: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """A demo that prints what to try, and is ended in any case."""
    with subprocess.Popen(
        DEMO, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)


def read_until(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if found := re.search(pattern, text, re.DOTALL):
            return found
    raise AssertionError(f"the demo ended: {text}{process.stderr.read() if process.stderr else ''}")


def test_one_message_gets_its_answer_and_nothing_is_left(environ: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [*DEMO, "--say", "good morning"], env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout) == (0, "You said: good morning\n"), done.stderr
    assert "answered after" in done.stderr
    assert_nothing_is_left(tmp_path)


def test_a_demo_without_words_is_a_usage_error(environ: dict[str, str]) -> None:
    done = subprocess.run([*DEMO, "--say", " "], env=environ, capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_taken_port_is_a_clear_failure(environ: dict[str, str], demo: subprocess.Popen[str], tmp_path: Path) -> None:
    port = read_until(demo, r"http://127\.0\.0\.1:(\d+)/")[1]
    command = [*DEMO, "--say", "hello", "--port", port]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert port in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_shows_its_page_until_it_is_stopped(
    demo: subprocess.Popen[str], tmp_path: Path, number: signal.Signals
) -> None:
    page = read_until(demo, r"(http://127\.0\.0\.1:\d+/).*Ctrl-C")[1]
    with urlopen(page) as response:
        assert response.status == 200
    assert len(processes_of(str(tmp_path))) >= 5
    demo.send_signal(number)
    assert demo.wait(PATIENCE) == 0
    assert_nothing_is_left(tmp_path)


def test_a_killed_leader_is_succeeded_and_the_successor_stops_too(
    demo: subprocess.Popen[str], tmp_path: Path, environ: dict[str, str]
) -> None:
    found = read_until(demo, r"kill -KILL (\d+).*--home (\S+) status.*Ctrl-C")
    leader, home = int(found[1]), found[2]
    os.kill(leader, signal.SIGKILL)
    command = [sys.executable, "-m", "telegram_bus", "--home", home, "status", "--json"]

    def status() -> dict[str, Any]:
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False)
        return dict(json.loads(done.stdout)) if done.returncode == 0 else {"followers": []}

    until(lambda: {one["key"] for one in status()["followers"]} >= {"echo", "shell"})
    assert status()["pid"] != leader
    demo.send_signal(signal.SIGINT)
    assert demo.wait(PATIENCE) == 0
    assert_nothing_is_left(tmp_path)
