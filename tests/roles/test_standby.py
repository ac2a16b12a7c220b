"""A spare leader: when it is kept ready, and when nobody needs it any more."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from attrs import define, evolve, field

from telegram_bus import _version
from telegram_bus.botapi.transport import open_api
from telegram_bus.core import identity
from telegram_bus.core.errors import NoLeader
from telegram_bus.home import Profile
from telegram_bus.locks import FileLock
from telegram_bus.roles.holder import this_process
from telegram_bus.roles.leadership import hold_leadership
from telegram_bus.roles.locking import NotNeeded, Standby
from telegram_bus.roles.record import ENDED, LeaderRecord, stage_leader
from telegram_bus.roles.rehearsal import REHEARSAL, rehearse
from telegram_bus.roles.settings import Settings, load_settings, store_settings
from telegram_bus.roles.standby import SPARE_AFTER, SPARE_LAST, Relevance, keep_spare
from telegram_bus.testing import Sandbox

OURS = identity.ours("1.2.3")


def settings_of(profile: Profile, **options: object) -> Settings:
    return load_settings(profile, {"chat": "12", "spare": "yes"} | options, {"TELEGRAM_BOT_TOKEN": "123:abcdefgh"})


def record(profile: Profile, *, version: str = "1.2.3", state: str = "leading") -> LeaderRecord:
    record = LeaderRecord(
        holder=this_process(),
        instance="leader:1",
        epoch=1,
        endpoint=str(profile.leader_socket),
        protocol=identity.ours(version),
        state=state,
        since=0.0,
    )
    stage_leader(profile, record).publish()
    return record


@pytest.fixture
def relevance(bus_profile: Profile) -> Relevance:
    store_settings(bus_profile, settings_of(bus_profile))
    record(bus_profile)
    return Relevance(bus_profile, OURS.runtime_build)


def test_a_spare_is_needed_while_nothing_has_changed(bus_profile: Profile, relevance: Relevance) -> None:
    assert relevance.lost() is None
    store_settings(bus_profile, settings_of(bus_profile))  # as each leader does
    record(bus_profile)
    assert relevance.lost() is None
    bus_profile.leader_json.unlink()
    assert relevance.lost() is None


def test_a_spare_is_of_no_use_once_the_bus_was_stopped(bus_profile: Profile, relevance: Relevance) -> None:
    bus_profile.stopped.touch()
    assert relevance.lost() == "the bus was stopped"


def test_a_spare_with_other_settings_than_the_leader_is_of_no_use(bus_profile: Profile, relevance: Relevance) -> None:
    store_settings(bus_profile, settings_of(bus_profile, chat="13"))
    assert relevance.lost() == "the settings have changed"
    bus_profile.config_toml.unlink()
    assert relevance.lost() == "the settings have changed"


def test_a_spare_of_another_version_than_the_leader_is_of_no_use(bus_profile: Profile, relevance: Relevance) -> None:
    record(bus_profile, version="1.3.0")
    assert relevance.lost() == "the leader is telegram_bus/1.3.0, and this is telegram_bus/1.2.3"


def test_a_spare_does_not_take_the_place_of_a_leader_that_nobody_misses(
    bus_profile: Profile, relevance: Relevance
) -> None:
    record(bus_profile, state=ENDED)
    assert relevance.lost() == "the leader has ended, and nobody misses it"


def test_a_spare_of_what_was_installed_before_is_of_no_use(
    bus_profile: Profile, relevance: Relevance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "_version.py"
    installed.write_text("another")
    monkeypatch.setattr(_version, "__file__", str(installed))
    assert relevance.lost() == "telegram_bus was updated"


def test_a_spare_that_finds_another_one_is_of_no_use(bus_profile: Profile, relevance: Relevance) -> None:
    assert relevance.lost_at_start() is None
    with FileLock.try_lock(bus_profile.standby_lock) or pytest.fail("it is held"):
        assert relevance.lost_at_start() == "another one stands by"
    bus_profile.stopped.touch()
    assert relevance.lost_at_start() == "the bus was stopped"


async def test_who_stands_by_lets_it_be_known_and_goes_when_it_is_not_needed(bus_profile: Profile) -> None:
    settings = settings_of(bus_profile)
    reason: str | None = None
    async with hold_leadership(bus_profile, settings), trio.open_nursery() as nursery:

        async def stand_by() -> None:
            with pytest.raises(NotNeeded, match="it rains"):
                async with hold_leadership(bus_profile, settings, standby=Standby(lost=lambda: reason)):
                    pytest.fail("there are two leaders")

        assert not FileLock.is_held(bus_profile.standby_lock)
        nursery.start_soon(stand_by)
        await trio.testing.wait_all_tasks_blocked()
        assert FileLock.is_held(bus_profile.standby_lock)
        reason = "it rains"
    assert not FileLock.is_held(bus_profile.standby_lock)


@define
class Starts:
    """What would start spares, and when it was asked to."""

    times: list[float] = field(factory=list)
    fault: Exception | None = None

    async def __call__(self, profile: Profile, interpreter: str) -> None:
        await trio.lowlevel.checkpoint()
        self.times.append(trio.current_time())
        if self.fault is not None:
            raise self.fault


@pytest.mark.parametrize("fault", [NoLeader("the interpreter starts nothing"), FileNotFoundError("leader.log")])
async def test_a_leader_with_followers_keeps_a_spare_and_tries_less_and_less_often(
    bus_profile: Profile,
    relevance: Relevance,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
    fault: Exception,
) -> None:
    starts, wanted = Starts(fault=fault), False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            lambda: keep_spare(bus_profile, settings_of(bus_profile), wanted=lambda: wanted, start=starts)
        )
        await trio.sleep(10 * SPARE_AFTER)
        assert starts.times == []
        wanted = True
        await trio.sleep(10 * SPARE_LAST)
        nursery.cancel_scope.cancel()
    pauses = [later - earlier for earlier, later in pairwise(starts.times)]
    assert pauses[:3] == [5, 10, 20]
    assert pauses[-1] == SPARE_LAST
    assert len(caplog.records) == 1


async def test_no_spare_is_started_without_settings_or_behind_a_leader_older_than_the_package(
    bus_profile: Profile,
    relevance: Relevance,
    autojump_clock: trio.testing.MockClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts, settings = Starts(), settings_of(bus_profile)
    bus_profile.config_toml.unlink()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: keep_spare(bus_profile, settings, wanted=lambda: True, start=starts))
        await trio.sleep(10 * SPARE_AFTER)
        assert starts.times == []
        store_settings(bus_profile, settings)
        await trio.sleep(2 * SPARE_AFTER)
        assert len(starts.times) == 1
        monkeypatch.setattr(_version, "__file__", str(tmp_path / "another.py"))
        await trio.sleep(SPARE_LAST)
        assert len(starts.times) == 1
        nursery.cancel_scope.cancel()


async def test_no_second_spare_is_started_where_one_stands_by(
    bus_profile: Profile, relevance: Relevance, autojump_clock: trio.testing.MockClock
) -> None:
    starts = Starts()
    lock = FileLock.try_lock(bus_profile.standby_lock)
    assert lock is not None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: keep_spare(bus_profile, settings_of(bus_profile), wanted=lambda: True, start=starts))
        await trio.sleep(100)
        assert starts.times == []
        lock.close()  # the one that stood by has gone, or leads
        await trio.sleep(5)
        assert len(starts.times) == 1
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("change", [{"spare": False}, {"store_token": False}, {"token_command": "pass bot"}])
async def test_no_spare_is_kept_against_a_persons_will_or_where_it_cannot_get_the_token(
    bus_profile: Profile, change: dict[str, Any], autojump_clock: trio.testing.MockClock
) -> None:
    starts, settings = Starts(), evolve(settings_of(bus_profile), **change)
    with trio.move_on_after(1000):
        await keep_spare(bus_profile, settings, wanted=lambda: True, start=starts)
    assert starts.times == []


async def test_a_rehearsal_learns_who_the_bot_is_and_polls_nothing(bus_profile: Profile) -> None:
    with Sandbox() as sandbox:
        given = {"chat": str(sandbox.chat_id), "api_root": sandbox.api_root}
        settings = load_settings(bus_profile, given, {"TELEGRAM_BOT_TOKEN": sandbox.token})
        async with open_api(sandbox.token, root=sandbox.api_root) as api:
            facts = await rehearse(settings, api, trio.Event())
        assert facts is not None
        assert facts.id == settings.bot_id
        assert {entry["method"] for entry in sandbox.record(kind="call")} <= {"getMe", "getChat"}
    assert not bus_profile.database.exists()


async def test_a_rehearsal_without_a_network_is_no_fault(bus_profile: Profile) -> None:
    settings = settings_of(bus_profile, api_root="http://127.0.0.1:9")
    async with open_api("123:abcdefgh", root="http://127.0.0.1:9") as api:
        with trio.fail_after(60):
            assert await rehearse(settings, api, trio.Event()) is None


async def test_a_rehearsal_ends_when_it_is_told_to(bus_profile: Profile) -> None:
    settings = settings_of(bus_profile, api_root="http://127.0.0.1:9")
    stop = trio.Event()
    async with open_api("123:abcdefgh", root="http://127.0.0.1:9") as api:
        with trio.fail_after(REHEARSAL * 0.8):  # else it waits that long for the network
            async with trio.open_nursery() as nursery:
                nursery.start_soon(rehearse, settings, api, stop)
                await trio.testing.wait_all_tasks_blocked()
                stop.set()
