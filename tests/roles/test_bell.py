"""The bell of whoever stands by: followers that wait for it find the next leader the moment it can be found."""

from __future__ import annotations

import socket
from contextlib import suppress

import pytest
import trio
import trio.testing

from telegram_bus.core import identity
from telegram_bus.home import Profile
from telegram_bus.locks import FileLock
from telegram_bus.roles import starter
from telegram_bus.roles.bell import Bell, listen, open_bell
from telegram_bus.roles.holder import probe, this_process
from telegram_bus.roles.record import ENDED, LeaderRecord, stage_leader
from telegram_bus.roles.starter import ensure_leader


def record(profile: Profile, instance: str, state: str = "leading") -> LeaderRecord:
    """One whose endpoint nobody serves: whoever gets it back has not asked there."""
    record = LeaderRecord(
        holder=this_process(),
        instance=instance,
        epoch=1,
        endpoint=str(profile.run_dir / "nobody.sock"),
        protocol=identity.ours("1.2.3"),
        state=state,
        since=0.0,
    )
    stage_leader(profile, record).publish()
    return record


async def ended(stream: trio.SocketStream) -> None:
    with suppress(trio.BrokenResourceError):
        assert await stream.receive_some(1) == b""


async def test_whoever_listens_hears_it_ring_once(bus_profile: Profile) -> None:
    assert await listen(bus_profile) is None
    with open_bell(bus_profile) as bell:
        assert await listen(bus_profile) is None
        bell.hang()
        bell.hang()
        heard: list[int] = []

        async def wait(number: int) -> None:
            stream = await listen(bus_profile)
            assert stream is not None
            async with stream:
                await ended(stream)
            heard.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(wait, number)
            await trio.testing.wait_all_tasks_blocked()
            assert heard == []
            bell.ring()
        assert sorted(heard) == [0, 1, 2, 3, 4]
        assert await listen(bus_profile) is None
    assert list(bus_profile.run_dir.iterdir()) == []


async def test_a_bell_that_was_taken_down_is_hung_up_again(bus_profile: Profile) -> None:
    with open_bell(bus_profile) as bell:
        bell.hang()
        for path in bus_profile.run_dir.iterdir():
            path.unlink()
        assert await listen(bus_profile) is None
        bell.hang()
        stream = await listen(bus_profile)
        assert stream is not None
        await stream.aclose()


@pytest.fixture
def stands_by(bus_profile: Profile) -> FileLock:
    record(bus_profile, "the one before")
    lock = FileLock.try_lock(bus_profile.standby_lock)
    assert lock is not None
    return lock


async def test_a_new_leader_that_rings_is_believed(bus_profile: Profile, stands_by: FileLock) -> None:
    with stands_by, open_bell(bus_profile) as bell:
        bell.hang()
        async with trio.open_nursery() as nursery:
            found: list[LeaderRecord] = []

            async def find() -> None:
                found.append(await ensure_leader(bus_profile))

            nursery.start_soon(find)
            await trio.testing.wait_all_tasks_blocked()
            assert found == []
            expected = record(bus_profile, "the next one")
            bell.ring()
        assert found == [expected]


@pytest.mark.parametrize(
    ("instance", "state"), [("the one before", "leading"), ("the next one", ENDED), (None, "leading")]
)
async def test_a_bell_that_ends_without_a_leader_is_nothing(
    bus_profile: Profile, stands_by: FileLock, instance: str | None, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A standby that dies, one that is not needed: who waits looks and finds nobody, and goes on."""
    asked = trio.Event()

    async def nobody(*_: object) -> None:
        asked.set()

    with stands_by, open_bell(bus_profile) as bell:
        bell.hang()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ensure_leader, bus_profile)
            await trio.testing.wait_all_tasks_blocked()
            monkeypatch.setattr(starter, "answering_leader", nobody)
            if instance is None:
                bus_profile.leader_json.unlink()
            else:
                record(bus_profile, instance, state)
            bell.ring()
            with trio.fail_after(30):
                await asked.wait()
            nursery.cancel_scope.cancel()


async def test_a_follower_that_found_a_leader_listens_no_more(bus_profile: Profile, stands_by: FileLock) -> None:
    bell = Bell(bus_profile)
    bell.hang()
    assert bell._endpoint is not None
    with stands_by, trio.move_on_after(0.05):
        await ensure_leader(bus_profile)
    connection, _ = bell._endpoint.listener.accept()
    with connection:
        connection.setblocking(True)
        assert connection.recv(1) == b""
    bell.ring()


async def test_a_server_that_hangs_up_is_asked_once(bus_profile: Profile) -> None:
    """As a leader that is just dying: it takes connections for a moment longer than it answers them."""
    path = bus_profile.run_dir / "dying.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as raw:
        raw.bind(str(path))
        raw.listen()
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(raw.dup()))
        taken = 0

        async def hang_up(stream: trio.SocketStream) -> None:
            nonlocal taken
            taken += 1
            await stream.socket.recv(1, socket.MSG_PEEK)  # what is not read makes the end a reset
            await stream.aclose()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, hang_up, [listener])
            assert await probe(str(path), 30.0) == "unreachable"
            nursery.cancel_scope.cancel()
    assert taken == 1
