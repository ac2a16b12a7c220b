"""What holds for all tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from telegram_bus.home import Home, Profile
from tests.browser import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# A spare leader comes at a time of its own, some seconds after a leader; tests of spares ask for one.
os.environ["TELEGRAM_BUS_SPARE"] = "no"

# The sandbox has no limits unless a test switches them on; what a leader keeps to has tests of its own.
os.environ["TELEGRAM_BUS_LIMITS"] = "overall=1000000/1 private=1000000/1 group=1000000/1 typing=1000000/1 burst=1000000"

# Who runs the tests in the background of a shell has SIGINT ignored, and so would all processes that are started here.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    with chromium() as started:
        yield started


@pytest.fixture
def bus_profile(monkeypatch: pytest.MonkeyPatch) -> Iterator[Profile]:
    """A profile in a short directory, so that the sockets stand in it; nothing in the environment leads elsewhere."""
    with TemporaryDirectory(prefix="tb-") as directory:
        monkeypatch.setenv("XDG_STATE_HOME", directory)
        for name in ("TELEGRAM_BUS_HOME", "TELEGRAM_BUS_PROFILE", "TELEGRAM_BUS_PARENT"):
            monkeypatch.delenv(name, raising=False)
        profile = Home(Path(directory, "home")).profile("default")
        profile.ensure()
        yield profile
