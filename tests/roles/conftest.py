"""Two agents of a term: what most of its tests begin with; a module that begins with something else says so."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.roles.term_rig import Rig, running


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    """A term with nora and otto, who are here; others than they come with the test."""
    async with running(Rig()) as rig:
        await rig.agent("nora", 11)
        await rig.agent("otto", 12)
        yield rig
