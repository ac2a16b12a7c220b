"""Chromium without a window, for tests that look at the chat page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.require import missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["chromium", "opened"]

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


@contextmanager
def opened(browser: Browser, address: str) -> Iterator[Page]:
    """The page at that address; it must not complain about anything."""
    complaints: list[str] = []
    # Without animations: a click waits until what it hits stands still.
    context = browser.new_context(viewport={"width": 1200, "height": 800}, reduced_motion="reduce")
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        page.goto(address)
        page.wait_for_selector(".thread")
        yield page
    finally:
        context.close()
    assert complaints == []


def _has_playwright() -> bool:
    try:
        import playwright.sync_api  # noqa: F401, PLC0415 - asks whether it is there
    except ImportError:
        return False
    return True
