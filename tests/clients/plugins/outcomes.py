"""A pytest plugin that writes what became of each test, as JSON lines, to the file that OUTCOMES names."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

_LONGEST = 4000  # characters of a failure's text


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write one line for each phase that says something: the reader keeps a test's worst."""
    outcome = report.outcome if not hasattr(report, "wasxfail") else "xfailed"
    if (report.when != "call" and outcome == "passed") or "PYTEST_XDIST_WORKER" in os.environ:
        return  # a worker's reports come to the main process, too
    line = {"id": report.nodeid, "outcome": outcome, "phase": report.when, "text": report.longreprtext[-_LONGEST:]}
    with Path(os.environ["OUTCOMES"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
