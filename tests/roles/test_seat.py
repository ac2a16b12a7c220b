"""The place of a follower process: a key that no other live process has, and that is free again after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from telegram_bus import host
from telegram_bus.core.errors import StateError
from telegram_bus.home import Profile
from telegram_bus.locks import FileLock
from telegram_bus.roles import seat as seat_module
from telegram_bus.roles.seat import hold_seat


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_a_seat_says_who_sits_there(bus_profile: Profile) -> None:
    with hold_seat(bus_profile, "Büilder One") as seat:
        assert seat.key == "builder-one"
        assert seat.pid == os.getpid()
        assert seat.birth_id == host.process_birth_id(seat.pid)
        key, pid, started, tail = seat.instance_id.split(":")
        assert (key, pid) == (seat.key, str(seat.pid))
        assert started.isdecimal()
        assert len(tail) == 8
        assert bus_profile.files(seat.key).is_dir()


def test_the_lock_is_held_as_long_as_the_seat(bus_profile: Profile) -> None:
    """Whoever can take it knows that nobody sits there."""
    with hold_seat(bus_profile, "nora") as seat:
        assert FileLock.try_lock(bus_profile.inbox_lock(seat.key)) is None
    lock = FileLock.try_lock(bus_profile.inbox_lock("nora"))
    assert lock is not None
    lock.close()


def test_processes_of_one_name_get_the_first_free_keys(bus_profile: Profile, held: ExitStack) -> None:
    """Also one between that became free."""
    assert held.enter_context(hold_seat(bus_profile, "nora")).key == "nora"
    with hold_seat(bus_profile, "nora") as second:
        assert held.enter_context(hold_seat(bus_profile, "NORA")).key == "nora-3"
        assert second.key == "nora-2"
    assert held.enter_context(hold_seat(bus_profile, "nora")).key == "nora-2"


def test_each_joining_is_a_new_instance(bus_profile: Profile) -> None:
    """Of the same key."""
    with hold_seat(bus_profile, "nora") as first:
        pass
    with hold_seat(bus_profile, "nora") as second:
        assert second.key == first.key
        assert second.instance_id != first.instance_id


def test_a_fault_in_the_block_frees_the_seat(bus_profile: Profile) -> None:
    with pytest.raises(RuntimeError), hold_seat(bus_profile, "nora"):
        raise RuntimeError
    with hold_seat(bus_profile, "nora") as seat:
        assert seat.key == "nora"


def test_a_program_that_starts_itself_for_ever_is_stopped(
    bus_profile: Profile, held: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seat_module, "MAX_SAME_NAME", 3)
    for _ in range(3):
        held.enter_context(hold_seat(bus_profile, "nora"))
    with pytest.raises(StateError, match="another name"), hold_seat(bus_profile, "nora"):
        pass


@pytest.mark.parametrize("name", ["", "/", "..", "日本", "a" * 300, "\ud83d"])
def test_any_name_has_a_key(bus_profile: Profile, name: str) -> None:
    """Which is the same each time, and no path."""
    with hold_seat(bus_profile, name) as seat, hold_seat(bus_profile, name) as second:
        assert bus_profile.follower_dir(seat.key).parent == bus_profile.followers_dir
        assert second.key == f"{seat.key}-2"
