"""A follower without a leader finds one, waits for whoever starts one, or starts one: never two at a time."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from telegram_bus import host
from telegram_bus.core.errors import NoLeader
from telegram_bus.home import Home, Profile, atomic_write
from telegram_bus.locks import FileLock
from telegram_bus.log import FILE_MAX
from telegram_bus.roles.detached import last_words
from telegram_bus.roles.holder import Times
from telegram_bus.roles.leadership import hold_leadership
from telegram_bus.roles.record import LeaderRecord
from telegram_bus.roles.settings import load_settings, store_settings
from telegram_bus.roles.starter import LeaderStopped, ensure_leader, start_leader, start_leader_detached
from tests.roles.stand_in_leader import IDENTITY, listen, serve

STAND_IN = Path(__file__).with_name("stand_in_leader.py")
PROJECT = Path(__file__).parents[2]
# as the rules, for leaders that renew every 50 ms; a start may take long on a busy machine
QUICK = Times(lease=0.6, look_every=0.05, probe=0.3, farewell=0.5, patience=30.0)

Configure = Callable[..., Profile]


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    for name in ("TELEGRAM_BUS_HOME", "TELEGRAM_BUS_PROFILE", "TELEGRAM_BUS_PARENT", "TELEGRAM_BOT_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def configure(tmp_path: Path) -> Iterator[Configure]:
    """Makes a profile whose interpreter runs stand-in leaders of the given mode; ends those that were started."""
    profile = Home(tmp_path / "home").profile("work")

    def make(mode: str = "lead", **options: object) -> Profile:
        interpreter = tmp_path / "interpreter"
        interpreter.write_text(
            f'#!/bin/sh\n[ "$1" = -I ] && exec {sys.executable} "$@"\nexec {sys.executable} {STAND_IN} {mode} "$@"\n'
        )
        interpreter.chmod(0o700)
        profile.ensure()
        given = {"chat": "12", "interpreter": interpreter} | options
        store_settings(profile, load_settings(profile, given, {"TELEGRAM_BOT_TOKEN": "123:abcdefgh"}))
        return profile

    yield make
    for facts in starts(profile):
        if host.process_state(facts["pid"], facts["birth"]) == "alive":
            os.kill(facts["pid"], signal.SIGKILL)


def starts(profile: Profile) -> list[dict[str, Any]]:
    """What the leaders that were started noted of themselves."""
    path = profile.logs_dir / "starts"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def wait_for_start(profile: Profile) -> dict[str, Any]:
    with trio.fail_after(30):
        while not starts(profile):  # noqa: ASYNC110 - another process
            await trio.sleep(0.01)
    return starts(profile)[0]


async def wait_for_death(leader: LeaderRecord) -> None:
    with trio.fail_after(30):
        while host.process_state(leader.pid, leader.holder.birth) != "dead":  # noqa: ASYNC110 - another process
            await trio.sleep(0.01)


async def test_a_leader_is_started_and_answers(configure: Configure) -> None:
    profile = configure()
    record = await ensure_leader(profile, times=QUICK)
    assert record.endpoint == str(profile.leader_socket)
    assert [facts["pid"] for facts in starts(profile)] == [record.pid]
    lock = FileLock.try_lock(profile.start_lock)
    assert lock is not None, "the start lock is free again"
    lock.close()


async def test_a_leader_that_answers_is_found_without_starting_one(configure: Configure) -> None:
    profile = configure()
    first = await ensure_leader(profile, times=QUICK)
    assert await ensure_leader(profile, times=QUICK) == first
    assert await start_leader(profile) == first
    assert len(starts(profile)) == 1


async def test_twenty_at_once_start_one_leader(configure: Configure) -> None:
    profile = configure()
    found: list[LeaderRecord] = []

    async def find() -> None:
        found.append(await ensure_leader(profile, times=QUICK))

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(find)
    assert len(found) == 20
    assert len(set(found)) == 1
    assert len(starts(profile)) == 1


async def test_a_detached_leader_is_on_its_own(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    profile = configure()
    for name in ("TELEGRAM_BOT_TOKEN", "TELEGRAM_BUS_CHAT", "TELEGRAM_BUS_PROFILE", "TELEGRAM_BUS_API_ROOT"):
        monkeypatch.setenv(name, "from the follower")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("OTHER", "kept")
    with (PROJECT / "pyproject.toml").open() as inherited:
        os.set_inheritable(inherited.fileno(), True)
        started = await start_leader_detached(profile, str(profile_interpreter(profile)))
    facts = await wait_for_start(profile)
    assert facts["pid"] == started.pid
    assert facts["session"] not in {os.getsid(0), started.pid}, "a session of its own, which it does not lead"
    assert facts["cwd"] == "/"
    assert facts["umask"] == 0o077
    assert facts["stdin"] == "/dev/null"
    assert facts["options"] == ["-P", "-m", "telegram_bus", "leader", "--profile", "work", "--detached"]
    assert facts["descriptors"] == [0, 1, 2, 3], "the last one lists them"
    environment = facts["environment"]
    assert environment["TELEGRAM_BUS_HOME"] == str(profile.home.root)
    assert environment["OTHER"] == "kept"
    assert "from the follower" not in environment.values()
    assert "HTTPS_PROXY" not in environment


def profile_interpreter(profile: Profile) -> Path:
    return load_settings(profile, {"interpreter": profile.home.root.parent / "interpreter"}, {}).interpreter


async def test_a_starter_that_is_cancelled_frees_the_start_lock(configure: Configure) -> None:
    profile = configure("mute")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ensure_leader, profile)
        await wait_for_start(profile)
        assert FileLock.try_lock(profile.start_lock) is None
        nursery.cancel_scope.cancel()
    lock = FileLock.try_lock(profile.start_lock)
    assert lock is not None
    lock.close()


async def test_a_starter_that_dies_is_replaced(configure: Configure) -> None:
    profile = configure()
    other = FileLock.try_lock(profile.start_lock)
    assert other is not None
    said: list[str] = []

    def report(reason: str) -> None:
        said.append(reason)
        other.close()

    record = await ensure_leader(profile, report=report, times=QUICK)
    assert said[0] == "another process is starting a leader"
    assert [facts["pid"] for facts in starts(profile)] == [record.pid]


async def test_a_starter_that_is_suspended_does_not_hold_back_the_others_for_ever(configure: Configure) -> None:
    profile = configure()
    other = FileLock.try_lock(profile.start_lock)
    assert other is not None
    with other:
        os.utime(profile.start_lock, (0, 0))
        record = await ensure_leader(profile, times=QUICK)
        assert FileLock.try_lock(profile.start_lock) is None
    assert [facts["pid"] for facts in starts(profile)] == [record.pid]


async def test_while_stopped_nobody_starts_until_somebody_asks_for_it(configure: Configure) -> None:
    profile = configure()
    atomic_write(profile.stopped, b"")
    with pytest.raises(LeaderStopped, match="telegram-bus start"):
        await ensure_leader(profile, times=QUICK)
    assert starts(profile) == []
    record = await start_leader(profile)
    assert not profile.stopped.exists()
    assert [facts["pid"] for facts in starts(profile)] == [record.pid]


async def test_programs_that_a_follower_wraps_never_start_a_leader(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = configure()
    monkeypatch.setenv("TELEGRAM_BUS_PARENT", "builder")
    with pytest.raises(NoLeader, match="starts none"):
        await ensure_leader(profile, times=QUICK)
    with pytest.raises(NoLeader, match="starts none"):
        await start_leader(profile)
    assert starts(profile) == []


async def test_who_may_not_start_one_says_so(configure: Configure) -> None:
    profile = configure()
    with pytest.raises(NoLeader, match="starts none"):
        await ensure_leader(profile, may_start=False, times=QUICK)
    assert starts(profile) == []


async def test_a_profile_without_settings_has_no_successor(tmp_path: Path) -> None:
    profile = Home(tmp_path / "home").profile("new")
    with pytest.raises(NoLeader, match="run telegram-bus leader once"):
        await ensure_leader(profile, times=QUICK)
    assert not profile.directory.exists(), "looking for a leader leaves nothing behind"


async def test_damaged_settings_are_a_reason_to_try_again_later(configure: Configure) -> None:
    profile = configure()
    profile.config_toml.write_text("chat = = 1")
    with pytest.raises(NoLeader, match=r"none can be started: .*config\.toml is damaged"):
        await ensure_leader(profile, times=QUICK)


async def test_without_a_stored_token_there_is_no_successor(configure: Configure) -> None:
    profile = configure(store_token=False)
    with pytest.raises(NoLeader, match="run telegram-bus leader once"):
        await ensure_leader(profile, times=QUICK)
    assert starts(profile) == []


async def test_a_leader_that_ends_at_once_is_told_with_its_last_words_and_not_started_again_at_once(
    configure: Configure,
) -> None:
    profile = configure("fail")
    with pytest.raises(NoLeader, match="ended at once: the token was revoked"):
        await ensure_leader(profile, times=QUICK)
    for _ in range(3):
        with pytest.raises(NoLeader, match="the token was revoked"):
            await ensure_leader(profile, times=QUICK)
    assert len(starts(profile)) == 1


def test_of_a_fault_in_several_lines_the_first_one_counts(configure: Configure) -> None:
    profile = configure()
    profile.leader_log.write_text("older\ntelegram-bus: no bot token\nor try: telegram-bus demo\n")
    assert last_words(profile, 6).endswith("ended at once: no bot token")
    profile.leader_log.write_text("")
    assert "said nothing" in last_words(profile, 0)


async def test_a_person_who_asks_is_not_held_back_by_an_earlier_failure(configure: Configure) -> None:
    with pytest.raises(NoLeader):
        await ensure_leader(configure("fail"), times=QUICK)
    profile = configure("lead")
    record = await start_leader(profile)
    assert record.pid == starts(profile)[-1]["pid"]
    assert profile.start_lock.read_bytes() == b"", "the failure is forgotten"


@pytest.mark.parametrize("note", ["", "rubbish", "[]", '{"count": "x"}', '{"count": 5, "at": 1e12, "reason": "r"}'])
async def test_rubbish_or_a_time_to_come_in_the_start_lock_holds_nobody_back(configure: Configure, note: str) -> None:
    profile = configure()
    profile.start_lock.write_text(note)
    assert await ensure_leader(profile, times=QUICK)


async def test_an_interpreter_that_is_gone_is_named(configure: Configure) -> None:
    profile = configure(interpreter="/nowhere/python")
    with pytest.raises(NoLeader, match="/nowhere/python"):
        await ensure_leader(profile, times=QUICK)


async def test_a_leader_that_takes_too_long_is_named(configure: Configure) -> None:
    profile = configure("mute")
    with pytest.raises(NoLeader, match=r"did not answer within 0.1 s; look into .*leader\.log"):
        await ensure_leader(profile, times=Times(probe=0.1, patience=0.1))
    await wait_for_start(profile)  # so that it is ended after the test


async def test_a_dead_leader_is_succeeded(configure: Configure) -> None:
    profile = configure()
    first = await ensure_leader(profile, times=QUICK)
    os.kill(first.pid, signal.SIGKILL)
    await wait_for_death(first)  # till then it may answer
    second = await ensure_leader(profile, times=QUICK)
    assert second.pid != first.pid
    assert [facts["pid"] for facts in starts(profile)] == [first.pid, second.pid]


async def test_a_frozen_leader_is_ended_and_succeeded(configure: Configure) -> None:
    profile = configure()
    first = await ensure_leader(profile, times=QUICK)
    os.kill(first.pid, signal.SIGSTOP)

    async def find() -> None:
        await ensure_leader(profile, times=QUICK)

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(find)
    await wait_for_death(first)  # it may have answered once more, woken up to be ended
    second = await ensure_leader(profile, times=QUICK)
    assert [facts["pid"] for facts in starts(profile)] == [first.pid, second.pid]


async def test_a_holder_that_must_not_be_signalled_is_named(configure: Configure) -> None:
    profile = configure()
    settings = load_settings(profile)
    # a leader in this very process, which neither answers nor renews
    async with hold_leadership(profile, settings, times=Times(renew_every=1000.0)) as term:
        listener = await listen(profile.leader_socket)
        async with listener:
            await term.publish_record(profile.leader_socket, IDENTITY)
            with pytest.raises(NoLeader, match=f"this very process; end it by hand: process {os.getpid()}"):
                await ensure_leader(profile, times=QUICK)
    assert starts(profile) == []


async def test_a_leader_that_starts_elsewhere_is_waited_for(configure: Configure) -> None:
    profile = configure()
    settings = load_settings(profile)
    async with hold_leadership(profile, settings) as term, trio.open_nursery() as nursery:
        waits = trio.Event()
        found: list[LeaderRecord] = []

        async def find() -> None:
            found.append(await ensure_leader(profile, report=lambda _: waits.set(), times=QUICK))
            nursery.cancel_scope.cancel()

        nursery.start_soon(find)
        await waits.wait()
        nursery.start_soon(serve, await listen(profile.leader_socket))
        published = await term.publish_record(profile.leader_socket, IDENTITY)
    assert found == [published]
    assert starts(profile) == []


async def test_a_log_that_has_grown_too_long_is_set_aside(configure: Configure) -> None:
    profile = configure()
    with profile.leader_log.open("wb") as log:
        log.truncate(FILE_MAX + 1)
    await ensure_leader(profile, times=QUICK)
    assert profile.leader_log.with_name("leader.log.1").stat().st_size == FILE_MAX + 1
    assert profile.leader_log.stat().st_size < FILE_MAX


async def test_the_log_is_private(configure: Configure) -> None:
    profile = configure()
    await ensure_leader(profile, times=QUICK)
    assert profile.leader_log.stat().st_mode & 0o777 == 0o600
