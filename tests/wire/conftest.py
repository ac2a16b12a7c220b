"""Short directories for sockets, and servers in them that end with the test."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import trio

from tests.wire.bus_peers import FakeServer, Server


@pytest.fixture
def directory() -> Iterator[Path]:
    """A private directory whose paths fit into a socket address, which those of `tmp_path` may not."""
    with tempfile.TemporaryDirectory(prefix="tb-", dir="/tmp") as name:
        yield Path(name)


@pytest.fixture
async def server(directory: Path) -> AsyncIterator[Server]:
    """A server that listens but does not serve before its `start`."""
    async with trio.open_nursery() as nursery:
        server = Server(directory / "s", nursery)
        try:
            yield server
        finally:
            with trio.CancelScope(shield=True):
                await server.aclose()


@pytest.fixture
async def fake_server(directory: Path) -> AsyncIterator[FakeServer]:
    async with trio.open_nursery() as nursery:
        yield FakeServer(directory / "f", nursery)
        nursery.cancel_scope.cancel()
