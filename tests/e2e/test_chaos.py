"""A short run of the chaos benchmark: real processes are killed and frozen under load, and no promise is broken."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mode", ["all", "handoff"])
def test_nothing_is_lost_or_done_twice_when_processes_die(mode: str) -> None:
    options = ["--seconds", "5", "--seed", "7", "--rate", "20", "--kills", "6", "--mode", mode, "--extra", "60"]
    command = [sys.executable, "-m", "benchmarks.chaos", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    counts = json.loads(done.stdout.splitlines()[-1])
    assert counts["violations"] == 0
    assert counts["updates"] >= 100
    assert counts["handed"] >= counts["updates"]
    assert counts["handed_over"] > 0
    assert counts["sends"] > 0  # answers, and the lines about what was handed over
    assert counts["kills"] + counts["disk"] + counts["told"] >= 6
