"""A profile in a short directory, so that the sockets stand in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from telegram_bus.home import Home, Profile


@pytest.fixture
def bus_profile(monkeypatch: pytest.MonkeyPatch) -> Iterator[Profile]:
    """A profile of a home of its own; nothing in the environment leads elsewhere."""
    with TemporaryDirectory(prefix="tb-") as directory:
        monkeypatch.setenv("XDG_STATE_HOME", directory)
        for name in ("TELEGRAM_BUS_HOME", "TELEGRAM_BUS_PROFILE", "TELEGRAM_BUS_PARENT"):
            monkeypatch.delenv(name, raising=False)
        profile = Home(Path(directory, "home")).profile("default")
        profile.ensure()
        yield profile
