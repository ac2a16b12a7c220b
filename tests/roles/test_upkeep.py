"""What a leader looks after once a second."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from telegram_bus.core.errors import StateError
from telegram_bus.core.registry import Registry
from telegram_bus.roles import upkeep as upkeep_module
from telegram_bus.roles.upkeep import AWAY_MS, PRUNE_EVERY, Upkeep


async def test_who_could_not_be_heard_while_the_machine_slept_has_a_moment_to_speak(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """A leader that was stopped for some seconds throws nobody out before it has read what they sent."""
    looks: list[float] = []
    slept_ms = 0

    async def findable(_: Upkeep) -> None:
        pass

    def prune() -> tuple[()]:
        looks.append(trio.current_time() - began)
        return ()

    monkeypatch.setattr(upkeep_module, "now_ms", lambda: round(trio.current_time() * 1000) + slept_ms)
    monkeypatch.setattr(Upkeep, "_stay_findable", findable)
    parts: dict[str, Any] = dict.fromkeys(("identity", "endpoint", "settings", "clean_ups", "absences"))
    upkeep = Upkeep(
        term=SimpleNamespace(registry=Registry()),  # type: ignore[arg-type]
        lease=SimpleNamespace(check=lambda: None),  # type: ignore[arg-type]
        requests=SimpleNamespace(prune=prune),  # type: ignore[arg-type]
        **parts,
    )
    async with trio.open_nursery() as nursery:
        began = trio.current_time()
        nursery.start_soon(upkeep.prune)
        await trio.sleep(2.5 * PRUNE_EVERY)
        slept_ms += 2 * AWAY_MS
        await trio.sleep(2 * PRUNE_EVERY)
        nursery.cancel_scope.cancel("the test is over")
    assert looks == [1, 2, 4]


async def test_settings_that_the_disk_does_not_take_are_stored_as_soon_as_it_does(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """As of a group that became a supergroup: a successor would otherwise serve the chat that is no more."""
    full, stored = True, []

    async def findable(_: Upkeep) -> None:
        pass

    def store(profile: object, settings: object) -> None:
        if full:
            raise StateError("the disk is full")
        stored.append((profile, settings))

    monkeypatch.setattr(upkeep_module, "store_settings", store)
    monkeypatch.setattr(Upkeep, "_stay_findable", findable)
    parts: dict[str, Any] = dict.fromkeys(("identity", "endpoint", "settings", "clean_ups", "absences"))
    upkeep = Upkeep(
        term=SimpleNamespace(registry=Registry()),  # type: ignore[arg-type]
        lease=SimpleNamespace(check=lambda: None, profile="profile"),  # type: ignore[arg-type]
        requests=SimpleNamespace(prune=lambda: ()),  # type: ignore[arg-type]
        **parts,
    )
    upkeep.store_settings("new")  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(upkeep.prune)
        await trio.sleep(3.5 * PRUNE_EVERY)
        assert stored == []
        full = False
        await trio.sleep(3 * PRUNE_EVERY)
        nursery.cancel_scope.cancel("the test is over")
    assert stored == [("profile", "new")]
    assert len([record for record in caplog.records if "stored later" in record.message]) == 1
