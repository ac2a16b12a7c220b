"""What goes wrong on a machine: files vanish, the store is lost, followers are killed, Telegram refuses."""

from __future__ import annotations

import shutil

from tests.e2e.rig import PATIENCE, Machine, until


def test_a_killed_follower_handles_again_what_was_not_done_and_nothing_else(machine: Machine) -> None:
    machine.lead()
    agent = machine.follow("nora")
    thread = machine.wait_thread("nora")
    machine.say("first", thread)
    agent.wait_said("done first")
    machine.say("hang", thread)
    agent.wait_said("got hang")
    agent.kill()
    later = [f"later {number}" for number in range(20)]
    for text in later:
        machine.say(text, thread)

    second = machine.follow("nora", "patient")
    second.wait_said("done later 19")
    assert second.got() == ["hang", *later]
    second.kill()
    third = machine.follow("nora")
    machine.say("last", thread)
    third.wait_said("done last")
    assert third.got() == ["last"]
    assert machine.topics_made() == 1


def test_what_something_removed_from_the_profile_is_made_anew(machine: Machine) -> None:
    leader = machine.lead()
    old = machine.follow("old")
    old.wait_said("state serving")
    shutil.rmtree(machine.profile.run_dir)
    machine.profile.leader_json.unlink()
    new = machine.follow("new")
    new.wait_said("state serving")
    for name in ("old", "new"):
        thread = machine.wait_thread(name)
        machine.say("hello", thread)
        machine.wait_answer(f"{name} got: hello", thread)
    assert machine.wait_status()["pid"] == leader.pid


def test_a_lost_store_loses_no_thread_and_no_message(machine: Machine) -> None:
    machine.lead()
    agents = {name: machine.follow(name) for name in ("one", "two")}
    threads = {name: machine.wait_thread(name) for name in agents}
    for name, thread in threads.items():
        machine.say("hello", thread)
        agents[name].wait_said("done hello")
    machine.kill_leader()
    for name in ("bus.sqlite3", "bus.sqlite3-wal", "bus.sqlite3-shm"):
        (machine.profile.directory / name).unlink(missing_ok=True)
    for thread in threads.values():
        machine.say("again", thread)
    for name, thread in threads.items():  # the message that it answers is one that the new leader never saw
        assert "reply_to_message" not in machine.wait_answer(f"{name} got: again", thread)
        assert agents[name].got() == ["hello", "again"]
    assert machine.topics_made() == 2


def test_a_stop_is_not_undone_by_who_was_just_about_to_lead(machine: Machine) -> None:
    machine.lead()
    agent = machine.follow("nora")
    agent.wait_said("state serving")
    machine.kill_leader()
    agent.wait_said("state no leader starting a leader")
    assert machine.run("stop").returncode == 0
    agent.wait_said("state stopped")
    until(lambda: machine.status() is None)
    assert machine.run("start").returncode == 0
    assert machine.status() is not None

    standby = machine.lead("--standby")
    until(lambda: "standing by" in machine.log(1).read_text())
    assert machine.run("stop").returncode == 0
    assert standby.wait(PATIENCE) == 0
    assert machine.status() is None


def test_where_there_are_no_threads_it_says_which_switch_to_turn_and_makes_them_once_it_is_turned(
    machine: Machine,
) -> None:
    machine.sandbox.settings(threaded_mode=False)
    machine.lead(hasty={"telegram_bus.roles.sharing.LOOK_AGAIN": 0.5})
    agent = machine.follow("nora")
    agent.wait_said("state serving")
    machine.sandbox.wait_for_message("switch on Threaded Mode", within=PATIENCE)
    machine.sandbox.settings(threaded_mode=True)
    thread = machine.wait_thread("nora")
    machine.say("hello", thread)
    machine.wait_answer("nora got: hello", thread)


def test_what_a_person_outside_the_list_does_leaves_no_trace(machine: Machine) -> None:
    machine.lead()
    agent = machine.follow("nora")
    agent.wait_said("state serving")
    before = len(machine.sandbox.record(kind="call"))
    people = [user["id"] for user in machine.sandbox.state()["users"] if not user.get("is_bot")]
    stranger = next(person for person in people if person != machine.sandbox.chat_id)
    machine.sandbox.say("a stranger's words", user_id=stranger)
    thread = machine.wait_thread("nora")
    machine.say("hello", thread)  # updates come in order: when this is answered the stranger's has been seen
    machine.wait_answer("nora got: hello", thread)
    made = machine.sandbox.record(kind="call")[before:]
    assert [call["method"] for call in made if call["method"] != "getMe"] == ["sendMessage"]
    kept = b"".join(path.read_bytes() for path in machine.root.rglob("*") if path.is_file() and not path.is_socket())
    assert b"hello" in kept
    assert b"a stranger's words" not in kept
