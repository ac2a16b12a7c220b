"""Crash points: each that has a name is passed somewhere, and each is died at in a test."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from telegram_bus import crash

ROOT = Path(__file__).parents[1]

PASS = "import sys; from telegram_bus import crash\n" + "for name in sys.argv[1:]: crash.point(name)\nprint('lives')"


def test_every_point_is_passed_and_no_other() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "telegram_bus").rglob("*.py"))
    assert set(re.findall(r"crash\.point\(\"([a-z-]+)\"\)", source)) == set(crash.POINTS)


def test_every_point_is_died_at_in_a_test() -> None:
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__))
    died_at = set(re.findall(r"\"([a-z-]+)(?::\d+)?\"", tests))
    assert set(crash.POINTS) <= died_at


def passing(order: str, *names: str) -> subprocess.CompletedProcess[str]:
    environ = os.environ | {crash.VARIABLE: order}
    return subprocess.run(
        [sys.executable, "-c", PASS, *names], env=environ, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("order", "names", "struck"),
    [
        ("", ["after-poll"] * 3, None),
        ("after-poll", ["after-admit"], None),
        ("after-poll", ["after-admit", "after-poll"], "after-poll"),
        ("after-poll:2", ["after-poll"], None),
        ("after-poll:2", ["after-poll"] * 2, "after-poll"),
        ("after-poll:3,after-admit:1", ["after-poll", "after-admit", "after-poll"], "after-admit"),
        ("nonsense,after-poll", ["after-poll"], "after-poll"),
    ],
)
def test_whichever_comes_first_strikes_and_is_named(order: str, names: list[str], struck: str | None) -> None:
    ended = passing(order, *names)
    if struck is None:
        assert (ended.returncode, ended.stdout) == (0, "lives\n")
    else:
        assert ended.returncode == -signal.SIGKILL
        assert ended.stderr.startswith(f"{crash.STRUCK}{struck} in ")
