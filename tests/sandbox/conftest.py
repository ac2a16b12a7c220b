"""Sandboxes in processes of their own, and Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from telegram_bus.testing import Sandbox
from tests.browser import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A sandbox that nobody used before."""
    with Sandbox() as running:
        yield running


@pytest.fixture(scope="module")
def shared() -> Iterator[Sandbox]:
    """A sandbox for tests that leave no traces which others would mind."""
    with Sandbox() as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser, sandbox: Sandbox) -> Iterator[Page]:
    """The page, opened; it must not complain about anything."""
    complaints: list[str] = []
    # Without animations: a click waits until what it hits stands still.
    context = browser.new_context(viewport={"width": 1200, "height": 800}, reduced_motion="reduce")
    opened = context.new_page()
    opened.set_default_timeout(15_000)
    opened.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(sandbox.page)
    opened.wait_for_selector(".thread")
    yield opened
    context.close()
    assert complaints == []
