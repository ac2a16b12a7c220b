"""Running a suite that others wrote against a sandbox, once, and what became of each of its tests."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

__all__ = ["Outcome", "run_suite"]

PLUGINS = Path(__file__).parent / "plugins"
LIMIT = 240.0  # seconds for a whole suite on a busy machine; alone it takes a small part of that


@attrs.frozen
class Outcome:
    """What became of a test: "passed", "failed", "skipped" or "xfailed", and why."""

    outcome: str
    text: str = ""


def run_suite(
    python: Path, folder: Path, arguments: Sequence[str], environment: Mapping[str, str], scratch: Path
) -> dict[str, Outcome]:
    """Run pytest in `folder` with our plugins at hand; returns the outcomes by test id.

    Raises AssertionError with pytest's output when no test ran at all.
    """
    report = scratch / "outcomes.jsonl"
    command = [str(python), "-m", "pytest", "-q", "-p", "outcomes", "-p", "no:cacheprovider", "--tb=native", *arguments]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "GITHUB"))}
    surroundings = inherited | {"PYTHONPATH": str(PLUGINS), "OUTCOMES": str(report), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=folder, env=surroundings | dict(environment), capture_output=True, text=True, timeout=LIMIT,
        check=False,
    )  # fmt: skip
    assert report.exists(), f"the suite did not run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return _outcomes(report)


def _outcomes(report: Path) -> dict[str, Outcome]:
    found: dict[str, Outcome] = {}
    for line in report.read_text(encoding="utf-8").splitlines():
        entry: dict[str, Any] = json.loads(line)
        # A passed test whose clean-up fails afterwards has not passed.
        if found.get(entry["id"], Outcome("passed")).outcome == "passed":
            found[entry["id"]] = Outcome(entry["outcome"], entry["text"])
    return found
