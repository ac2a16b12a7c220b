"""What a leader cannot help is shown, costs nothing, and passes by itself: no network at its start, a full disk."""

from __future__ import annotations

import json
import resource
import signal

from tests.e2e.rig import PATIENCE, Machine

FULL, ROOM = (0, resource.RLIM_INFINITY), (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def test_without_a_network_at_its_start_a_leader_serves_its_followers_and_says_offline(machine: Machine) -> None:
    leader = machine.lead()
    agent = machine.follow("nora")
    thread = machine.wait_thread("nora")
    machine.say("hello", thread)
    agent.wait_said("done hello")
    agent.kill()
    leader.send_signal(signal.SIGTERM)
    leader.wait(PATIENCE)
    machine.say("while nobody led", thread)
    machine.sandbox.refuse_connections(8.0)
    machine.lead()
    agent = machine.follow("nora")
    agent.wait_said("state serving")
    status = machine.wait_status(lambda status: status["state"] == "offline" and status["followers"])
    assert [(one["name"], one["thread_id"]) for one in status["followers"]] == [("nora", thread)]
    shown = json.loads(machine.run("status", "--json").stdout)
    assert shown["state"] in ("offline", "serving")
    agent.wait_said("done while nobody led")
    assert machine.wait_status(lambda status: status["state"] == "serving")["pid"] == status["pid"]
    assert machine.topics_made() == 1


def test_a_full_disk_is_said_and_what_came_meanwhile_is_done_when_there_is_room(machine: Machine) -> None:
    leader = machine.lead()
    agent = machine.follow("nora")
    thread = machine.wait_thread("nora")
    machine.say("before", thread)
    agent.wait_said("done before")
    resource.prlimit(leader.pid, resource.RLIMIT_FSIZE, FULL)
    machine.say("meanwhile", thread)
    status = machine.wait_status(lambda status: status["state"] == "storage")
    assert status["pid"] == leader.pid
    assert status["detail"]
    machine.sandbox.wait_for_message("(storage)", within=PATIENCE)  # in the chat too: only a person can make room
    polls = machine.sandbox.record(kind="poll")
    newest = max(number for poll in polls for number in poll["result"] or ())
    assert all(int(poll["params"].get("offset") or 0) <= newest for poll in polls)  # it is not confirmed
    assert agent.got() == ["before"]
    resource.prlimit(leader.pid, resource.RLIMIT_FSIZE, ROOM)
    agent.wait_said("done meanwhile")
    assert agent.got() == ["before", "meanwhile"]
    assert machine.wait_status(lambda status: status["state"] == "serving")["epoch"] == status["epoch"]
