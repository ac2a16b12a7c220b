"""Sandboxes in processes of their own, and their page in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from telegram_bus.testing import Sandbox
from tests.browser import opened

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


@pytest.fixture
def calm(shared: Sandbox) -> Sandbox:
    """The shared sandbox without any trouble."""
    shared.cancel_faults()
    shared.flood_control(False, overall=30, private=1, burst=3, group=20)
    shared.flood(forget=True)
    return shared


@pytest.fixture
def page(browser: Browser, sandbox: Sandbox) -> Iterator[Page]:
    """The page, opened; it must not complain about anything."""
    with opened(browser, sandbox.page) as page:
        page.set_default_timeout(15_000)
        yield page
