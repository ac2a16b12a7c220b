"""Scenarios 59, 65, 67, 68 and 70 with real processes: one thread a program, whoever is killed, whatever is lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any

import pytest

from telegram_bus.crash import VARIABLE
from tests.e2e.rig import PATIENCE, Machine, until

# Starts ten children as a wrapped program does, which try to join; says how each of them fared, and stays
# until nobody can write to it any more.
PARENT = """
import os, subprocess, sys
child = "import trio, telegram_bus\\nasync def main():\\n async with telegram_bus.join(): pass\\ntrio.run(main)"
children = [subprocess.Popen([sys.executable, "-c", child], stderr=subprocess.PIPE, text=True) for _ in range(10)]
for one in children:
    print(one.communicate()[1].strip().splitlines()[-1][:120], flush=True)
sys.stdin.read()
"""

# Says something ten times a second, and how it fared.
TALKER = """
import trio, telegram_bus

async def main():
    async with telegram_bus.join(name="talker") as bus:
        for number in range(10_000):
            try:
                print("sent", (await bus.send(f"number {number}")).thread_id, flush=True)
            except telegram_bus.BusError as fault:
                print("fault", type(fault).__name__, fault, flush=True)
            await trio.sleep(0.1)

trio.run(main)
"""


def listed(machine: Machine) -> dict[str, Any]:
    """What `threads list` knows; nothing while nobody leads."""
    done = machine.run("threads", "list", "--json")
    return dict(json.loads(done.stdout)) if done.returncode == 0 else {"threads": [], "clean_ups": []}


def threads(machine: Machine) -> dict[str, dict[str, Any]]:
    return {one["key"]: one for one in listed(machine)["threads"]}


def test_scenario_59_a_wave_of_refusals_costs_no_thread(machine: Machine) -> None:
    machine.lead()
    names = ("one", "two", "three", "four")
    agents = {name: machine.follow(name) for name in names}
    own = {name: machine.wait_thread(name) for name in names}
    for name, agent in agents.items():
        agent.wait_said("state serving")
        machine.say("first", own[name])
        agent.wait_said("done first")
    wave = machine.sandbox.lose_threads()
    for name in names:
        machine.run("status")
        machine.say("lost", own[name])
    until(lambda: "nothing is sent into threads" in machine.log(0).read_text())
    machine.sandbox.cancel_faults(wave)
    assert {key: one["thread_id"] for key, one in threads(machine).items()} == own
    assert {one["state"] for one in threads(machine).values()} == {"open"}
    assert machine.topics_made() == len(names)


@pytest.mark.parametrize("point", ["after-make-thread", "after-bind-thread"])
def test_scenario_65_a_leader_killed_while_it_makes_a_thread_leaves_one(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setenv(VARIABLE, point)
    leader = machine.lead()
    monkeypatch.delenv(VARIABLE)
    machine.wait_status()
    agent = machine.follow("nora")
    assert leader.wait(PATIENCE) == -9
    agent.wait_said("state serving")
    thread = machine.wait_thread("nora")
    machine.say("hello", thread)
    agent.wait_said("done hello")
    assert machine.topics_made() == 1
    assert threads(machine)["nora"]["thread_id"] == thread


def test_scenario_65_a_thread_whose_answer_was_lost_is_not_made_twice(machine: Machine) -> None:
    machine.sandbox.drop_answer("createForumTopic", times=1)
    machine.lead()
    agent = machine.follow("nora")
    agent.wait_said("state serving")
    thread = machine.wait_thread("nora")
    machine.say("hello", thread)
    agent.wait_said("done hello")
    assert machine.topics_made() == 1


def test_scenario_67_children_share_the_thread_and_a_clean_up_survives_a_kill(machine: Machine) -> None:
    machine.lead("--clean-up", "delete", "--clean-up-dead", "yes", hasty={"telegram_bus.roles.clean_up.AGAIN": 0.5})
    machine.wait_status()
    machine.follow("other").wait_said("state serving")  # who starts the next leader
    script = machine.root / "parent.py"
    script.write_text(PARENT)
    command = [sys.executable, "-m", "telegram_bus", "follower", "--name", "family", "--", sys.executable, str(script)]
    log = machine.root / "family.log"
    with log.open("wb") as stderr:
        family = subprocess.Popen(command, env=machine.environ, stdin=subprocess.DEVNULL, stderr=stderr)
    try:
        thread = machine.wait_thread("family")

        def said() -> str:
            return "\n".join(one.get("text", "") for one in machine.sandbox.messages(thread_id=thread, by_bot=True))

        until(lambda: said().count("has its thread") == 10)
        assert machine.topics_made() == 2
    finally:
        family.kill()
        family.wait()
    until(lambda: [one["key"] for one in listed(machine)["clean_ups"]] == ["family"])
    machine.kill_leader()
    until(lambda: thread not in {topic["thread_id"] for topic in machine.sandbox.topics()})
    until(lambda: list(threads(machine)) == ["other"])
    assert machine.topics_made() == 2


def test_scenario_68_two_with_one_name_and_directory_have_two_threads(machine: Machine) -> None:
    machine.lead()
    machine.wait_status()
    agents = [machine.follow("nora"), machine.follow("nora")]
    for agent in agents:
        agent.wait_said("state serving")
    found = threads(machine)
    assert sorted(found) == ["nora", "nora-2"]
    assert sorted(one["name"] for one in found.values()) == ["nora", "nora 2"]
    assert len({one["thread_id"] for one in found.values()}) == 2
    for number, one in enumerate(found.values()):
        machine.say(f"to {number}", one["thread_id"])
    until(lambda: sorted(text for agent in agents for text in agent.got()) == ["to 0", "to 1"])


def test_scenario_70_who_is_restarted_has_its_thread_and_another_one_has_not(machine: Machine) -> None:
    machine.lead()
    machine.wait_status()
    first = machine.follow("nora")
    thread = machine.wait_thread("nora")
    first.wait_said("state serving")
    machine.sandbox.rename_topic(thread, "My Nora")
    until(lambda: threads(machine)["nora"]["name"] == "My Nora")
    first.kill()
    second = machine.follow("nora")
    second.wait_said("state serving")
    other = machine.follow("otto")
    other.wait_said("state serving")
    found = threads(machine)
    assert found["nora"]["thread_id"] == thread
    assert found["nora"]["name"] == "My Nora"
    assert found["otto"]["thread_id"] != thread
    machine.say("still you?", thread)
    second.wait_said("done still you?")
    assert machine.topics_made() == 2
    assert len(machine.sandbox.record(kind="call", method="editForumTopic")) == 0


def test_a_deleted_thread_is_made_anew_with_the_next_thing_that_is_said(machine: Machine) -> None:
    machine.lead()
    agent = machine.follow("nora")
    thread = machine.wait_thread("nora")
    machine.follow("otto").wait_said("state serving")
    machine.say("first", thread)
    agent.wait_said("done first")
    machine.sandbox.delete_topic(thread)
    done = machine.run("threads", "sync", "--json")
    assert json.loads(done.stdout) == {"there": ["otto"], "gone": ["nora"], "unknown": []}
    assert done.returncode == 1
    assert threads(machine)["nora"]["state"] == "deleted"
    dry = machine.run("threads", "clean", "--how", "delete", "--dry-run")
    assert dry.stdout == "would delete 0 threads\n"
    unbound = machine.run("threads", "unbind", "nora")
    assert "has no longer the thread" in unbound.stdout
    until(lambda: threads(machine).get("nora", {}).get("state") == "open")
    new = threads(machine)["nora"]["thread_id"]
    assert new != thread
    machine.say("second", new)
    agent.wait_said("done second")


def test_an_agent_whose_thread_a_person_deletes_goes_on_in_a_new_one_and_stops_when_that_is_deleted_too(
    machine: Machine,
) -> None:
    machine.lead()
    machine.follow("otto").wait_said("state serving")
    talker = machine.start(TALKER)
    first = machine.wait_thread("talker")
    talker.wait_said(f"sent {first}")
    machine.sandbox.delete_topic(first)
    talker.wait_said("fault ApiError")
    second = machine.wait_thread("talker")
    talker.wait_said(f"sent {second}")
    machine.sandbox.wait_for_message("The thread of talker was deleted", within=PATIENCE)
    assert not [one for one in machine.sandbox.messages(thread_id=0) if "number" in one.get("text", "")]
    machine.sandbox.delete_topic(second)
    talker.wait_said("deleted again")
    machine.sandbox.wait_for_message("threads unbind talker", within=PATIENCE)
    assert machine.topics_made() == 3


def test_in_a_forum_a_thread_is_closed_behind_its_agent_and_opened_for_it_whoever_leads(machine: Machine) -> None:
    state = machine.sandbox.state()
    forum, owner = state["forum_id"], state["owner_id"]
    place = ("--chat", str(forum), "--allow", str(owner))
    machine.sandbox.drop_answer("createForumTopic", times=1)
    names = ("--thread-names", "{name} @ {project}")
    machine.lead(*place, *names, "--clean-up", "close", hasty={"telegram_bus.roles.clean_up.GRACE": 0.5})

    def closed() -> dict[str, bool]:
        return {topic["name"]: topic["closed"] for topic in machine.sandbox.topics(chat_id=forum)}

    agent = machine.follow("nora")
    agent.wait_said("state serving")
    [name] = closed()
    assert name.startswith("nora @ ")
    agent.process.send_signal(signal.SIGINT)
    assert agent.process.wait(PATIENCE) == -signal.SIGINT
    until(lambda: closed() == {name: True})
    machine.kill_leader()
    machine.follow("nora").wait_said("state serving")
    until(lambda: closed() == {name: False})
    assert machine.topics_made() == 1
