"""Agents whose messages make no sound, in memory as on the disk."""

from __future__ import annotations

import pytest

from telegram_bus.core.errors import StateError
from telegram_bus.roles.muting import Muting
from tests.fakes import memory_store


async def test_what_the_disk_does_not_take_changes_nothing() -> None:
    """Else the next leader would have it otherwise."""
    store, commits = memory_store()
    muting = Muting(store=store, now_ms=lambda: 1)
    await muting.mute("nora", None)
    commits.fault = StateError("the disk is full")
    with pytest.raises(StateError):
        await muting.unmute("nora")
    with pytest.raises(StateError):
        await muting.mute("otto", None)
    assert (muting.muted("nora"), muting.muted("otto")) == (True, False)
    commits.fault = None
    assert await muting.unmute("nora")
    assert not muting.muted("nora")
