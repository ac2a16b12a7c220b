"""A whole leader in this process, against the sandbox: what it starts, and that nothing of it is left."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import trio

from telegram_bus import agent
from telegram_bus.core.errors import LeadershipLost
from telegram_bus.home import Home, Profile
from telegram_bus.roles import leading, member
from telegram_bus.roles.leader import run_leader
from telegram_bus.roles.settings import Settings, load_settings
from telegram_bus.testing import Sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as running:
        yield running


def settings_for(sandbox: Sandbox, profile: Profile) -> Settings:
    given = {"api_root": sandbox.api_root, "chat": str(sandbox.chat_id), "linger": "1"}
    return load_settings(profile, given, {"TELEGRAM_BOT_TOKEN": sandbox.token})


def descriptors() -> set[str]:
    """What this process has open, by what it is; numbers may be used again."""
    found = set()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found.add(str(entry.readlink()))
        except FileNotFoundError:  # the directory of this very listing
            continue
    return found


async def test_cancelling_the_leader_leaves_no_task_socket_thread_or_descriptor(
    sandbox: Sandbox, bus_profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trio._core._thread_cache, "IDLE_TIMEOUT", 0.05)  # so that idle worker threads end at once
    settings = settings_for(sandbox, bus_profile)
    before = descriptors()
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(run_leader, bus_profile, settings))
        async with agent.join("guest", home=bus_profile.home.root) as bus:
            await bus.wait_serving()
            assert any(bus_profile.run_dir.iterdir())
            waiting = trio.Event()

            async def wait_for_members() -> None:
                waiting.set()
                async for _ in bus.watch_members():  # a request that is in flight when the leader ends
                    pass

            nursery.start_soon(wait_for_members)
            await waiting.wait()
            await bus.send("here I am")
            nursery.cancel_scope.cancel("the test has seen enough")
    root = trio.lowlevel.current_root_task()
    assert root is not None
    tasks = {task.name for nursery in root.child_nurseries for task in nursery.child_tasks}
    assert not [name for name in tasks if "telegram_bus" in name and "tests" not in name]
    while [thread for thread in threading.enumerate() if thread.name.startswith("Trio thread")]:  # noqa: ASYNC110
        await trio.sleep(0.02)
    assert descriptors() <= before
    assert not [path for path in bus_profile.run_dir.iterdir() if not path.is_symlink()]


async def test_a_leader_that_is_told_to_stop_says_why_it_ended(sandbox: Sandbox, bus_profile: Profile) -> None:
    stop, reasons = trio.Event(), []

    async def lead(task_status: trio.TaskStatus[object]) -> None:
        reasons.append(
            await run_leader(bus_profile, settings_for(sandbox, bus_profile), stop=stop, task_status=task_status)
        )

    async with trio.open_nursery() as nursery:
        await nursery.start(lead)
        stop.set()
    assert reasons == ["it was told to stop"]


async def test_a_detached_leader_ends_when_its_last_follower_has_been_gone_for_its_linger(
    sandbox: Sandbox, bus_profile: Profile
) -> None:
    reasons = []

    async def lead(task_status: trio.TaskStatus[object]) -> None:
        settings = settings_for(sandbox, bus_profile)
        reasons.append(await run_leader(bus_profile, settings, detached=True, task_status=task_status))

    async with (
        trio.open_nursery() as nursery,
        agent.join("guest", home=bus_profile.home.root, start_leader=False) as bus,
    ):
        await nursery.start(lead)
        await bus.wait_serving()
        await trio.sleep(1.5)  # longer than the linger: with a follower here it stays
        assert reasons == []
    assert reasons == ["no follower was left"]


async def test_a_second_leader_of_one_bot_is_refused_in_another_profile_too(
    sandbox: Sandbox, bus_profile: Profile
) -> None:
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(run_leader, bus_profile, settings_for(sandbox, bus_profile)))
        other = Home(bus_profile.home.root.parent / "other").profile("work")
        other.ensure()
        with pytest.raises(LeadershipLost, match=f"process {os.getpid()}"):
            await run_leader(other, settings_for(sandbox, other))
        nursery.cancel_scope.cancel("seen")


async def test_followers_return_to_fifty_leaders_one_after_another(
    sandbox: Sandbox, bus_profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scenario 20: each is cut off in the middle of its work, and everybody comes back with its key and its thread."""
    monkeypatch.setattr(member, "LONGEST_PAUSE", 0.05)  # these leaders live for less than a second
    names = ("one", "two", "three")
    threads: dict[str, set[object]] = {name: set() for name in names}
    serving: dict[str, int] = dict.fromkeys(names, 0)
    settings = settings_for(sandbox, bus_profile)
    made = len(sandbox.record(kind="call", method="createForumTopic"))

    async def stay(name: str) -> None:
        async with agent.join(name, home=bus_profile.home.root, start_leader=False) as bus:
            async for state in bus.states():
                if state.phase == "serving":
                    serving[name] += 1
                    threads[name].add(bus.target.thread_id if bus.target is not None else None)

    async with trio.open_nursery() as followers:
        for name in names:
            followers.start_soon(stay, name)
        for number in range(1, 51):
            async with trio.open_nursery() as nursery:
                await nursery.start(partial(run_leader, bus_profile, settings))
                with trio.fail_after(60):
                    while min(serving.values()) < number:  # noqa: ASYNC110 - followers of real sockets
                        await trio.sleep(0.01)
                nursery.cancel_scope.cancel("its term is cut off")
        followers.cancel_scope.cancel("seen")
    assert set(serving.values()) == {50}
    assert all(len(found) == 1 for found in threads.values())
    assert len(sandbox.record(kind="call", method="createForumTopic")) == made + 3


async def test_a_standby_that_takes_over_stores_its_settings_at_once(
    sandbox: Sandbox, bus_profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rehearsal has shown that the token is right: who dies in its first seconds shall have a successor."""
    monkeypatch.setattr(leading, "KNOWN_FOR", 3_600.0)
    async with trio.open_nursery() as nursery:
        lead = partial(run_leader, bus_profile, settings_for(sandbox, bus_profile), standby=True)
        term = await nursery.start(lead)
        assert term.bot.username
        with trio.fail_after(60):
            while not bus_profile.config_toml.exists():  # noqa: ASYNC110 - a file
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel("seen")
