"""Scenarios 1, 20, 22, 26, 28 and 29 with real processes: one poller, leaders that end, and what waits meanwhile."""

from __future__ import annotations

import signal
from itertools import pairwise

from tests.e2e.rig import PATIENCE, Machine, until

OVERLAP = 0.05  # seconds for the sandbox to notice that a connection has ended


def test_scenario_1_many_that_start_at_once_have_one_poller(machine: Machine) -> None:
    machine.lead()
    until(machine.profile.config_toml.exists)  # Telegram knows the token, so that others can go on with it
    machine.kill_leader()
    machine.leaders[0].wait()
    agents = [machine.follow(f"agent-{number}") for number in range(5)]
    for agent in agents:
        agent.wait_said("state serving")
    assert len(machine.wait_status()["followers"]) == len(agents)
    for number, agent in enumerate(agents):  # each of these makes at least one more poll
        machine.say("hello", machine.wait_thread(f"agent-{number}"))
        agent.wait_said("done hello")
    polls = sorted(machine.sandbox.record(kind="poll"), key=lambda poll: float(poll["began"]))
    assert all(poll["code"] != 409 for poll in polls)
    assert len(polls) > len(agents)
    for before, after in pairwise(polls):
        ends = [at for at in (before["ended"], before["disconnected"]) if at is not None]
        assert ends, "a poll was open when the next one came"
        assert min(ends) <= after["began"] + OVERLAP


def test_scenario_20_followers_return_whatever_becomes_of_their_leader(machine: Machine) -> None:
    machine.lead()
    agent = machine.follow("nora")
    thread = machine.wait_thread("nora")
    for number in range(5):
        agent.wait_said("state serving")
        machine.kill_leader()
        machine.say(f"after {number}", thread)
        agent.wait_said(f"done after {number}")  # a leader killed while it sends leaves the outcome unknown
    assert agent.got() == [f"after {number}" for number in range(5)]
    assert machine.topics_made() == 1


def test_scenario_22_a_leader_whose_terminal_closes_ends(machine: Machine) -> None:
    leader = machine.lead()
    machine.wait_status()
    leader.send_signal(signal.SIGHUP)
    assert leader.wait(PATIENCE) == 0
    assert "Traceback" not in machine.log(0).read_text()


def test_scenario_26_a_batch_that_comes_again_is_handled_once(machine: Machine) -> None:
    machine.lead()
    agent = machine.follow("nora")
    thread = machine.wait_thread("nora")
    machine.say("one", thread)
    agent.wait_said("done one")
    assert machine.sandbox.repeat_batch() == 1
    machine.say("two", thread)
    agent.wait_said("done two")
    assert agent.got() == ["one", "two"]


def test_scenario_28_a_backlog_is_kept_with_its_age_or_dropped_by_choice(machine: Machine) -> None:
    thread = machine.sandbox.create_topic("early")
    machine.say("before anybody polled", thread)
    leader = machine.lead("--drop-backlog")
    agent = machine.follow("nora")
    own = machine.wait_thread("nora")
    machine.say("now", own)
    agent.wait_said("done now")
    assert not [
        one for one in machine.sandbox.messages(thread_id=thread, by_bot=True) if "No agent" in one.get("text", "")
    ]
    leader.send_signal(signal.SIGTERM)
    assert leader.wait(PATIENCE) == 0
    assert "dropped what waited" in machine.log(0).read_text()


def test_scenario_29_what_comes_while_its_owner_is_away_is_kept_and_told_once(machine: Machine) -> None:
    machine.lead()
    agent = machine.follow("nora")
    thread = machine.wait_thread("nora")
    agent.wait_said("state serving")
    agent.kill()
    for number in range(3):
        machine.say(f"kept {number}", thread)
    machine.wait_answer("Kept for nora, away since", thread)
    again = machine.follow("nora")
    again.wait_said("done kept 2")
    machine.wait_answer("nora is back and gets 3 kept messages", thread)
    assert again.got() == ["kept 0", "kept 1", "kept 2"]
    told = [one for one in machine.sandbox.messages(thread_id=thread) if "Kept for" in one.get("text", "")]
    assert len(told) == 1
