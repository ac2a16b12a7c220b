"""A leader is killed: a follower starts the next one, and the conversation goes on in the same threads."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.e2e.rig import Machine, until


def test_three_followers_go_on_in_their_threads_when_the_leader_is_killed(machine: Machine) -> None:
    machine.lead()
    machine.wait_status()
    agents = {name: machine.follow(name) for name in ("one", "two", "three")}
    threads = {name: machine.wait_thread(name) for name in agents}
    first = machine.wait_status(lambda status: len(status["followers"]) == 3)
    for name, thread in threads.items():
        machine.say(f"hello {name}", thread)
        machine.wait_answer(f"{name} got: hello {name}", thread)
    for name, agent in agents.items():  # its answer is settled on both sides
        agent.wait_said(f"done hello {name}")

    os.kill(first["pid"], signal.SIGKILL)
    for name, thread in threads.items():  # at once: these arrive while nobody leads
        machine.say(f"still there, {name}?", thread)
    for name, thread in threads.items():
        machine.wait_answer(f"{name} got: still there, {name}?", thread)

    second = machine.wait_status(lambda status: len(status["followers"]) == 3)
    assert second["pid"] != first["pid"]
    assert second["epoch"] == first["epoch"] + 1
    before = {f["key"]: (f["thread_id"], f["slot"]) for f in first["followers"]}
    after = {f["key"]: (f["thread_id"], f["slot"]) for f in second["followers"]}
    assert before == after
    assert machine.topics_made() == 3
    answers = [
        m["text"]
        for thread in threads.values()
        for m in machine.sandbox.messages(thread_id=thread)
        if m["from"]["is_bot"] and "text" in m
    ]
    assert len(answers) == len(set(answers)) == 6


def leaders_of(machine: Machine) -> set[int]:
    """All leader processes of the machine's home, spares included."""
    found = set()
    for directory in Path("/proc").iterdir():
        try:
            words = (directory / "cmdline").read_bytes().split(b"\0")
            environ = (directory / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"leader" in words and f"TELEGRAM_BUS_HOME={machine.root}".encode() in environ:
            found.add(int(directory.name))
    return found


def test_a_spare_leader_takes_over_at_once_and_goes_when_the_bus_is_stopped(machine: Machine) -> None:
    machine.variables["TELEGRAM_BUS_SPARE"] = "yes"
    machine.lead()
    machine.wait_status()
    machine.follow("one")
    thread = machine.wait_thread("one")
    first = machine.wait_status(lambda status: status["standby"])
    # where two were started at once, one goes
    [spare] = until(lambda: found if len(found := leaders_of(machine) - {first["pid"]}) == 1 else set())
    os.kill(first["pid"], signal.SIGKILL)
    machine.say("still there?", thread)
    machine.wait_answer("one got: still there?", thread)
    second = machine.wait_status(lambda status: len(status["followers"]) == 1 and status["standby"])
    assert second["pid"] == spare

    os.kill(spare, signal.SIGTERM)  # a leader that is told to end while it is needed is missed as well
    machine.say("and now?", thread)
    machine.wait_answer("one got: and now?", thread)
    third = machine.wait_status(lambda status: len(status["followers"]) == 1)
    assert third["pid"] not in (first["pid"], spare)
    assert third["epoch"] == first["epoch"] + 2

    assert machine.run("stop").returncode == 0
    # the first one is this process's child, and not yet waited for
    until(lambda: not leaders_of(machine) - {first["pid"]})
