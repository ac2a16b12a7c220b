"""Buses of real processes: one for a test alone, or one that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from telegram_bus.cli.demo_bus import DemoBus, open_demo_bus
from telegram_bus.sandbox.client import Client
from tests.e2e.rig import Machine, open_machine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A sandbox and a home for a bus; the test starts leader and followers."""
    with open_machine(tmp_path) as machine:
        yield machine


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoBus]:
    """One bus with its leader for all tests of a module; each follower has a thread of its own."""
    with open_demo_bus(tmp_path_factory.mktemp("bus")) as running:
        yield running


@pytest.fixture
def person(demo: DemoBus) -> Client:
    """Who writes to the agents of `demo`."""
    return Client(demo.person.address)
