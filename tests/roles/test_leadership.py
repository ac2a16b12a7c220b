"""One holder at a time, which notices the loss of its locks, and is ended only when it is provably frozen."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio
import trio.testing
from attrs import evolve

from telegram_bus import host
from telegram_bus.core.election import Frozen, Healthy, Judgement
from telegram_bus.core.errors import LeadershipLost, StateError
from telegram_bus.home import Home, Profile
from telegram_bus.locks import FileLock
from telegram_bus.roles.holder import Times, describe, probe, this_process, watch_holder
from telegram_bus.roles.leadership import hold_leadership
from telegram_bus.roles.locking import NotNeeded, bot_lock_path
from telegram_bus.roles.record import LeaderRecord, read_leader, stage_leader
from telegram_bus.roles.settings import Settings, load_settings, store_settings
from tests.roles.stand_in_leader import IDENTITY, listen, serve

STAND_IN = Path(__file__).with_name("stand_in_leader.py")
# as the rules, for processes that renew every 50 ms
QUICK = Times(renew_every=0.05, lease=0.6, look_every=0.05, probe=0.2, farewell=0.5, patience=0.1)

Spawn = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Profile:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TELEGRAM_BUS_HOME", str(tmp_path / "home"))
    return Home().profile("work")


@pytest.fixture
def settings(profile: Profile) -> Settings:
    profile.ensure()
    loaded = load_settings(profile, {"chat": "12"}, {"TELEGRAM_BOT_TOKEN": "123:abcdefgh"})
    store_settings(profile, loaded)
    return loaded


@pytest.fixture
def spawn(settings: Settings) -> Iterator[Spawn]:
    """Starts a stand-in leader of the profile in a mode, waits until it leads, and ends it after the test."""
    with ExitStack() as stack:

        def start(mode: str = "lead", *, wait: bool = True) -> subprocess.Popen[str]:
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, str(STAND_IN), mode, "--profile", "work"],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    cwd=Path(__file__).parents[2],
                )
            )
            stack.callback(process.kill)
            if wait:
                assert process.stdout is not None
                assert process.stdout.readline() == "leading\n"
            return process

        yield start


def holds_nothing(profile: Profile, settings: Settings) -> bool:
    for path in (profile.leader_lock, bot_lock_path(settings)):
        lock = FileLock.try_lock(path)
        if lock is None:
            return False
        lock.close()
    return True


async def test_a_leader_holds_both_locks_and_frees_them_at_the_end(profile: Profile, settings: Settings) -> None:
    async with hold_leadership(profile, settings) as term:
        assert FileLock.try_lock(profile.leader_lock) is None
        assert FileLock.try_lock(bot_lock_path(settings)) is None
        term.check()
    assert holds_nothing(profile, settings)


async def test_nothing_is_left_of_a_term(profile: Profile, settings: Settings) -> None:
    async with hold_leadership(profile, settings):
        pass  # what is opened once and stays is open now
    before = sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208
    tasks = trio.lowlevel.current_statistics().tasks_living
    for _ in range(3):
        async with hold_leadership(profile, settings):
            pass
    assert sorted(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
    assert trio.lowlevel.current_statistics().tasks_living == tasks


async def test_the_lease_is_renewed_by_the_times_of_the_lock_file(profile: Profile, settings: Settings) -> None:
    async with hold_leadership(profile, settings, times=Times(renew_every=0.001)):
        for _ in range(2):
            os.utime(profile.leader_lock, ns=(0, 0))
            while profile.leader_lock.stat().st_mtime_ns == 0:  # noqa: ASYNC110 - a file sets no event
                await trio.sleep(0.001)


async def test_the_record_says_who_leads_and_where(profile: Profile, settings: Settings) -> None:
    async with hold_leadership(profile, settings) as term:
        term.epoch = 7
        written = await term.publish_record("/run/x.sock", IDENTITY)
        assert read_leader(profile) == written
        assert written.holder == this_process()
        assert (written.epoch, written.endpoint, written.protocol) == (7, "/run/x.sock", IDENTITY)
        assert written.instance == term.instance


@pytest.mark.parametrize("content", ["", "[]", "{}", "{", "null", '{"version": 2}', "\0", "[" * 100_000])
def test_rubbish_in_the_place_of_the_record_is_no_leader_and_is_logged(
    profile: Profile, settings: Settings, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    profile.leader_json.write_text(content)
    assert read_leader(profile) is None
    assert str(profile.leader_json) in caplog.text


def test_no_record_is_no_leader_and_no_news(profile: Profile, caplog: pytest.LogCaptureFixture) -> None:
    assert read_leader(profile) is None
    assert not caplog.records


@pytest.mark.parametrize("field", ["pid", "bootId", "pidNamespace", "uid", "instance", "epoch", "endpoint", "protocol"])
def test_a_record_with_an_ill_typed_field_is_no_leader(profile: Profile, settings: Settings, field: str) -> None:
    stage_leader(profile, record_of_ours(profile)).publish()
    assert read_leader(profile) is not None
    text = profile.leader_json.read_text()
    profile.leader_json.write_text(text.replace(f'"{field}":', f'"{field}": true, "_{field}":'))
    assert read_leader(profile) is None


def record_of_ours(profile: Profile) -> LeaderRecord:
    return LeaderRecord(
        holder=this_process(),
        instance="leader:1",
        epoch=1,
        endpoint=str(profile.leader_socket),
        protocol=IDENTITY,
        state="leading",
        since=1.5,
    )


async def test_what_the_block_raises_comes_out_as_it_is(profile: Profile, settings: Settings) -> None:
    with pytest.raises(ZeroDivisionError):
        async with hold_leadership(profile, settings):
            raise ZeroDivisionError
    assert holds_nothing(profile, settings)


async def test_cancelling_from_outside_frees_the_locks(profile: Profile, settings: Settings) -> None:
    with trio.CancelScope() as scope:
        async with hold_leadership(profile, settings):
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert holds_nothing(profile, settings)


@pytest.mark.parametrize("which", ["profile", "bot"])
async def test_a_removed_lock_file_ends_the_term_and_cancels_the_block(
    profile: Profile, settings: Settings, which: str
) -> None:
    path = profile.leader_lock if which == "profile" else bot_lock_path(settings)
    cancelled = False

    async def lead() -> None:
        nonlocal cancelled
        async with hold_leadership(profile, settings, times=QUICK):
            path.unlink()
            try:
                await trio.sleep_forever()
            finally:
                cancelled = True

    with pytest.raises(LeadershipLost, match="removed or replaced"):
        await lead()
    assert cancelled


async def test_a_replaced_lock_file_keeps_the_record_from_being_published(profile: Profile, settings: Settings) -> None:
    async def lead() -> None:
        async with hold_leadership(profile, settings) as term:
            profile.leader_lock.rename(profile.directory / "aside")
            profile.leader_lock.touch()
            await term.publish_record("/x", IDENTITY)

    with pytest.raises(LeadershipLost, match="removed or replaced"):
        await lead()
    assert read_leader(profile) is None


async def test_a_term_can_be_ended_with_a_reason(profile: Profile, settings: Settings) -> None:
    async def lead() -> None:
        async with hold_leadership(profile, settings) as term:
            term.lose("a later epoch")
            await trio.sleep_forever()

    with pytest.raises(LeadershipLost, match="a later epoch"):
        await lead()


async def test_where_a_leader_answers_a_second_one_is_refused_by_name(profile: Profile, settings: Settings) -> None:
    async with hold_leadership(profile, settings) as term, trio.open_nursery() as nursery:
        nursery.start_soon(serve, await listen(profile.leader_socket))
        await term.publish_record(profile.leader_socket, IDENTITY)
        with pytest.raises(LeadershipLost, match=f"process {os.getpid()}, profile work"):
            async with hold_leadership(profile, settings):
                pytest.fail("there are two leaders")
        nursery.cancel_scope.cancel()


async def test_a_second_leader_waits_for_the_answer_of_one_that_starts(profile: Profile, settings: Settings) -> None:
    refused = trio.Event()

    async def second() -> None:
        with pytest.raises(LeadershipLost):
            async with hold_leadership(profile, settings, times=Times(look_every=0.02)):
                pytest.fail("there are two leaders")
        refused.set()

    async with hold_leadership(profile, settings) as term, trio.open_nursery() as nursery:
        nursery.start_soon(second)
        await trio.testing.wait_all_tasks_blocked()
        assert not refused.is_set()
        nursery.start_soon(serve, await listen(profile.leader_socket))
        await term.publish_record(profile.leader_socket, IDENTITY)
        await refused.wait()
        nursery.cancel_scope.cancel()


async def test_one_bot_has_one_leader_whatever_the_profile_and_the_home(
    profile: Profile, settings: Settings, tmp_path: Path
) -> None:
    other = Home(tmp_path / "another home").profile("spare")
    async with hold_leadership(profile, settings):
        with pytest.raises(LeadershipLost, match=f"profile work in {profile.home.root}"):
            async with hold_leadership(other, settings, times=QUICK):
                pytest.fail("one bot has two leaders")
        lock = FileLock.try_lock(other.leader_lock)
        assert lock is not None, "who is refused holds nothing"
        lock.close()


async def test_a_bot_of_another_server_is_another_bot(profile: Profile, settings: Settings, tmp_path: Path) -> None:
    other = Home(tmp_path / "another home").profile("spare")
    elsewhere = load_settings(
        other, {"chat": "12", "api_root": "http://127.0.0.1:8081"}, {"TELEGRAM_BOT_TOKEN": "123:abcdefgh"}
    )
    async with hold_leadership(profile, settings), hold_leadership(other, elsewhere):
        assert bot_lock_path(settings).name.startswith("123-")
        assert len(list(bot_lock_path(settings).parent.iterdir())) == 2


async def test_a_standby_leads_as_soon_as_the_leader_has_ended(profile: Profile, settings: Settings) -> None:
    said: list[str] = []
    taken = trio.Event()

    async def stand_by() -> None:
        async with hold_leadership(profile, settings, standby=True, report=said.append):
            taken.set()

    async with trio.open_nursery() as nursery:
        async with hold_leadership(profile, settings):
            nursery.start_soon(stand_by)
            await trio.testing.wait_all_tasks_blocked()
            assert not taken.is_set()
        await taken.wait()
    assert said[0].startswith("standing by; the bot is held by")


@pytest.mark.parametrize("record", [None, b"rubbish", b'{"version": 1, "pid": "x"}', b"\xff\x00"])
async def test_a_lock_that_no_leader_holds_is_named_with_the_way_out(
    profile: Profile, settings: Settings, record: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    if record is not None:
        profile.leader_json.write_bytes(record)
    lock = FileLock.try_lock(profile.leader_lock)
    assert lock is not None
    with pytest.raises(LeadershipLost, match=f"lsof {profile.leader_lock}"):
        async with hold_leadership(profile, settings, times=QUICK):
            pytest.fail("there are two leaders")
    lock.close()
    bot_lock_path(settings).parent.mkdir(parents=True, mode=0o700)
    shared = FileLock.try_lock(bot_lock_path(settings))
    assert shared is not None
    with pytest.raises(LeadershipLost, match=f"lsof {bot_lock_path(settings)}"):
        async with hold_leadership(profile, settings, times=QUICK):
            pytest.fail("there are two leaders")
    shared.close()
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) <= 2
    assert (profile.leader_json.read_bytes() if profile.leader_json.exists() else None) == record


async def test_who_is_refused_reads_how_to_end_the_leader_of_the_other_profile(
    profile: Profile, settings: Settings, spawn: Spawn, tmp_path: Path
) -> None:
    spawn()
    other = Home(tmp_path / "another home").profile("spare")
    for asked, command in (
        (profile, "telegram-bus stop"),
        (other, f"telegram-bus --home {profile.home.root} --profile work stop"),
    ):
        with pytest.raises(LeadershipLost, match=f"end that leader with {command}, "):
            async with hold_leadership(asked, settings):
                pytest.fail("one bot has two leaders")


async def test_a_leader_is_asked_to_end_and_replaced(profile: Profile, settings: Settings, spawn: Spawn) -> None:
    leader = spawn("obey")
    said: list[str] = []
    async with hold_leadership(profile, settings, replace=True, report=said.append) as term:
        term.check()
    assert leader.wait() == 0
    assert said[0].startswith(f"asking the leader to end: process {leader.pid}")
    start = FileLock.try_lock(profile.start_lock)  # it was held so that no follower starts one in between
    assert start is not None
    start.close()


async def test_a_frozen_leader_is_replaced_as_one_is_that_nobody_waits_for(
    profile: Profile, settings: Settings, spawn: Spawn
) -> None:
    leader = spawn()
    leader.send_signal(signal.SIGSTOP)
    times = evolve(QUICK, farewell=30.0, patience=30.0)
    async with hold_leadership(profile, settings, replace=True, times=times) as term:
        term.check()
    assert leader.wait() == 0


async def test_a_leader_that_refuses_to_end_stays(profile: Profile, settings: Settings, spawn: Spawn) -> None:
    leader = spawn()  # it answers, and does not know what an operator is
    with pytest.raises(LeadershipLost, match="--replace"):
        async with hold_leadership(profile, settings, replace=True, times=QUICK):
            pytest.fail("there are two leaders")
    assert leader.poll() is None


async def test_who_leads_in_the_place_of_the_one_that_was_asked_is_asked_as_well(
    profile: Profile, settings: Settings, spawn: Spawn, caplog: pytest.LogCaptureFixture
) -> None:
    leader = spawn("obey")  # a spare, say, whose leader died before it could end in order
    record = read_leader(profile)
    assert record is not None
    stage_leader(profile, evolve(record, instance="leader:0", endpoint=str(profile.run_dir / "none"))).publish()
    async with trio.open_nursery() as nursery:

        async def publish() -> None:
            while "could not be asked" not in caplog.text:  # noqa: ASYNC110 - a log sets no event
                await trio.sleep(0.01)
            stage_leader(profile, record).publish()

        nursery.start_soon(publish)
        async with hold_leadership(profile, settings, replace=True, times=evolve(QUICK, patience=30.0)) as term:
            term.check()
    assert leader.wait() == 0


async def test_where_nobody_leads_there_is_nobody_to_replace(profile: Profile, settings: Settings) -> None:
    async with hold_leadership(profile, settings, replace=True) as term:
        term.check()


async def test_a_standby_that_is_cancelled_holds_nothing(profile: Profile, settings: Settings) -> None:
    async with hold_leadership(profile, settings):
        with trio.move_on_after(0.05) as limit:
            async with hold_leadership(profile, settings, standby=True):
                pytest.fail("there are two leaders")
    assert limit.cancelled_caught
    assert holds_nothing(profile, settings)


@pytest.mark.parametrize(("standby", "replace"), [(True, False), (False, True), (False, False)])
async def test_who_waits_for_a_leader_ends_when_it_is_told_to(
    profile: Profile, settings: Settings, spawn: Spawn, *, standby: bool, replace: bool
) -> None:
    leader = spawn("mute")  # it does not answer, so that nobody is refused at once
    stop = trio.Event()
    async with trio.open_nursery() as nursery:

        async def wait() -> None:
            with pytest.raises(NotNeeded, match="told to stop"):
                async with hold_leadership(profile, settings, standby=standby, replace=replace, stop=stop):
                    pytest.fail("there are two leaders")

        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        stop.set()
    assert leader.poll() is None
    assert not FileLock.is_held(profile.standby_lock)
    assert not FileLock.is_held(profile.start_lock)


async def test_a_killed_leader_is_succeeded_at_once(profile: Profile, settings: Settings, spawn: Spawn) -> None:
    leader = spawn()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stand_by_and_lead, profile, settings)
        await trio.testing.wait_all_tasks_blocked()
        leader.send_signal(signal.SIGKILL)


async def stand_by_and_lead(profile: Profile, settings: Settings) -> None:
    async with hold_leadership(profile, settings, standby=True, times=QUICK) as term:
        term.check()


@pytest.mark.parametrize(("mode", "farewell", "end"), [("lead", 30.0, 0), ("deaf", 0.3, -signal.SIGKILL)])
async def test_a_frozen_leader_is_ended_in_order_or_else_by_force(
    profile: Profile, settings: Settings, spawn: Spawn, mode: str, farewell: float, end: int
) -> None:
    leader = spawn(mode)
    leader.send_signal(signal.SIGSTOP)
    async with hold_leadership(profile, settings, standby=True, times=evolve(QUICK, farewell=farewell)) as term:
        term.check()
    assert leader.wait() == end


async def test_a_foreground_leader_replaces_a_frozen_one_too(
    profile: Profile, settings: Settings, spawn: Spawn
) -> None:
    leader = spawn()
    leader.send_signal(signal.SIGSTOP)
    async with hold_leadership(profile, settings, times=evolve(QUICK, farewell=30.0, patience=30.0)) as term:
        term.check()
    assert leader.wait() == 0


async def spared(profile: Profile, settings: Settings, leader: subprocess.Popen[str], words: str) -> bool:
    """Whether a standby reports `words` about the leader, and then leaves it alone."""
    birth = host.process_birth_id(leader.pid)
    with trio.CancelScope() as scope:

        def report(line: str) -> None:
            if words in line:
                scope.cancel()

        async with hold_leadership(profile, settings, standby=True, report=report, times=QUICK):
            return False
    return host.process_state(leader.pid, birth) == "alive"


def unname(profile: Profile, leader: subprocess.Popen[str], gone: subprocess.Popen[str] | None) -> None:
    """As if the leader had only its locks yet: the record is of one before it, or there is none."""
    record = read_leader(profile)
    assert record is not None
    assert record.pid == leader.pid
    if gone is None:
        profile.leader_json.unlink()
    else:
        gone.wait()
        earlier = evolve(record, holder=evolve(record.holder, pid=gone.pid), endpoint="/nowhere")
        stage_leader(profile, earlier).publish()
    assert "a process that has not said who it is" in describe(profile, living=True)


@pytest.mark.parametrize("first", [True, False])
async def test_a_leader_that_froze_before_it_said_who_it_is_is_ended(
    profile: Profile, settings: Settings, spawn: Spawn, first: bool
) -> None:
    """The kernel names who holds the lock, and that it is stopped."""
    leader = spawn()
    leader.send_signal(signal.SIGSTOP)
    unname(profile, leader, None if first else spawn("fail", wait=False))
    async with hold_leadership(profile, settings, standby=True, times=evolve(QUICK, farewell=30.0)) as term:
        term.check()
    assert leader.wait() == 0


async def test_a_leader_that_has_not_said_yet_who_it_is_but_runs_is_left_alone(
    profile: Profile, settings: Settings, spawn: Spawn
) -> None:
    leader = spawn("still")
    unname(profile, leader, None)
    assert await spared(profile, settings, leader, "has not said yet that it leads, and runs")


async def test_where_the_kernel_names_nobody_a_leader_without_a_record_is_not_taken_for_the_one_before_it(
    profile: Profile, settings: Settings, spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "lock_holder", lambda _: None)
    leader = spawn()
    leader.send_signal(signal.SIGSTOP)
    unname(profile, leader, spawn("fail", wait=False))
    assert await spared(profile, settings, leader, f"lsof {profile.leader_lock}")


async def watched(profile: Profile, times: Times, enough: Callable[[list[Judgement]], bool]) -> None:
    """Watch the holder, ready to end it, until the judgements are enough."""
    judgements: list[Judgement] = []
    with trio.CancelScope() as scope:

        def report(judgement: Judgement, _: LeaderRecord | None) -> None:
            judgements.append(judgement)
            if enough(judgements):
                scope.cancel()

        await watch_holder(profile, report, times=times)


async def test_a_leader_that_answers_is_not_ended_though_it_does_not_renew(profile: Profile, spawn: Spawn) -> None:
    leader = spawn("still")
    # healthy when first seen, and again only by its answer
    await watched(profile, QUICK, lambda seen: seen.count(Healthy()) == 2)
    assert leader.poll() is None


async def test_a_mute_leader_that_renews_is_not_ended(profile: Profile, spawn: Spawn) -> None:
    leader = spawn("mute")
    await watched(profile, evolve(QUICK, lease=2.0), lambda seen: seen.count(Healthy()) == 20)
    assert leader.poll() is None


async def test_nobody_is_ended_by_one_who_may_not(profile: Profile, spawn: Spawn) -> None:
    leader = spawn()
    leader.send_signal(signal.SIGSTOP)
    with trio.CancelScope() as scope:

        def report(judgement: Judgement, _: LeaderRecord | None) -> None:
            if isinstance(judgement, Frozen):
                scope.cancel()

        await watch_holder(profile, report, may_end=lambda: False, times=QUICK)
    assert scope.cancelled_caught
    assert leader.poll() is None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"pidNamespace": ', '"pidNamespace": 9', "container"),
        ('"bootId": "', '"bootId": "x', "booted"),
        (":start:", ":start:9", "not the process"),
        ('"endpoint": "', '"endpoint": "/nowhere', "cannot be reached"),
    ],
)
async def test_a_frozen_leader_that_may_be_another_process_is_named_and_spared(
    profile: Profile, settings: Settings, spawn: Spawn, old: str, new: str, words: str
) -> None:
    leader = spawn()
    text = profile.leader_json.read_text()
    assert old in text
    profile.leader_json.write_text(text.replace(old, new))
    leader.send_signal(signal.SIGSTOP)
    assert await spared(profile, settings, leader, words)


async def test_of_twenty_that_start_at_once_exactly_one_leads(
    profile: Profile, settings: Settings, spawn: Spawn
) -> None:
    processes = [spawn(wait=False) for _ in range(20)]
    ended: list[subprocess.Popen[str]] = []

    async def wait(process: subprocess.Popen[str]) -> None:
        await trio.to_thread.run_sync(process.wait, abandon_on_cancel=True)
        ended.append(process)
        if len(ended) == 19:
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for process in processes:
            nursery.start_soon(wait, process)
    (leader,) = [process for process in processes if process not in ended]
    record = read_leader(profile)
    assert record is not None
    assert record.pid == leader.pid
    assert {process.returncode for process in ended} == {1}
    leader.terminate()
    assert leader.wait() == 0


async def test_a_directory_that_is_not_ours_alone_is_no_place_for_locks(profile: Profile, settings: Settings) -> None:
    bot_lock_path(settings).parent.mkdir(parents=True)
    bot_lock_path(settings).parent.chmod(0o777)
    with pytest.raises(StateError, match="anybody may write"):
        async with hold_leadership(profile, settings):
            pytest.fail("it leads with a lock that anybody can remove")
    assert FileLock.try_lock(profile.leader_lock) is not None


async def test_a_full_disk_is_said_by_the_name_of_the_record(profile: Profile, settings: Settings) -> None:
    async with hold_leadership(profile, settings) as term:
        profile.leader_json.mkdir()
        with pytest.raises(StateError, match=r"leader\.json"):
            await term.publish_record("/x", IDENTITY)


async def test_a_lease_that_cannot_be_renewed_is_said_once_and_loses_nothing(
    profile: Profile, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    async with hold_leadership(profile, settings) as term:
        lock = term._locks[0]
        ours, lock.descriptor = lock.descriptor, os.open(lock.path, os.O_PATH)  # by which no times can be set
        term.renew()
        term.renew()
        os.close(lock.descriptor)
        lock.descriptor = ours
    assert caplog.text.count("cannot look at or renew") == 1


@pytest.mark.parametrize("endpoint", ["/nowhere/at/all", "/tmp/" + "x" * 200, "/tmp/\0"])
async def test_where_no_socket_can_be_there_is_nobody_who_keeps_us_waiting(endpoint: str) -> None:
    assert await probe(endpoint, 60.0) == "unreachable"
