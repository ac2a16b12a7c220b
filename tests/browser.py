"""Chromium without a window, for tests that look at the chat page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.require import missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser

__all__ = ["chromium"]

# Without the flags for background work Chromium asks for hosts that a closed network refuses, many at a time.
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser; where there is none, the test is skipped with a line that says what to install."""
    playwright = pytest.importorskip("playwright.sync_api") if _has_playwright() else None
    if playwright is None:
        missing("Playwright", "pip install playwright")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        missing("Chromium", "apt install chromium")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=program, args=FLAGS)
        yield started
        started.close()


def _has_playwright() -> bool:
    try:
        import playwright.sync_api  # noqa: F401, PLC0415 - asks whether it is there
    except ImportError:
        return False
    return True
