"""The benchmarks run: every one is registered, and a quick one prints and writes its figures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.sending import scaled
from telegram_bus.core.meters import DEFAULT_LIMITS

ROOT = Path(__file__).parent.parent


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["roundtrip", "routing"])
def test_a_quick_benchmark_prints_its_figures_and_writes_them_as_json(name: str, tmp_path: Path) -> None:
    written = tmp_path / "figures.json"
    done = bench("--quick", "--only", name, "--json", str(written))
    assert done.returncode == 0, done.stderr
    record = json.loads(written.read_text())
    assert record["quick"] is True
    assert set(record["figures"]) == {"raw", name}
    for figure in record["figures"][name]:
        assert figure["value"] >= 0
        assert figure["name"] in done.stdout
        assert figure["met"] == (
            None
            if figure["target"] is None
            else figure["value"] <= figure["target"]
            if figure["better"] == "less"
            else figure["value"] >= figure["target"]
        )


def test_an_unknown_benchmark_is_a_mistake_that_names_those_there_are() -> None:
    done = bench("--only", "nonsense")
    assert done.returncode == 2
    for name in ("roundtrip", "flood", "routing", "deliveries", "latency", "registration", "members", "follower"):
        assert name in done.stderr


def test_the_benchmark_of_sending_divides_every_window() -> None:
    limits = scaled(DEFAULT_LIMITS, 60)
    assert (limits.group, limits.burst) == ((20, 1.0), 3)
    assert limits.overall.seconds == pytest.approx(1 / 60)
    assert scaled(DEFAULT_LIMITS, 1) == DEFAULT_LIMITS
