"""The bus for threads and for asyncio, against a sandbox and a real leader."""

from __future__ import annotations

import inspect
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import telegram_bus
from telegram_bus import agent, blocking
from telegram_bus.cli.demo_bus import DemoBus
from telegram_bus.home import Home
from telegram_bus.sandbox.client import Client
from tests.e2e.rig import PATIENCE

EXAMPLE = Path(__file__).parents[2] / "examples" / "asyncio_agent.py"

LOOP = """
import sys
from telegram_bus import blocking
try:
    with blocking.join("loop") as bus:
        heavy = {"telegram", "httpx", "asyncio", "rich", "starlette", "hypercorn"}
        bus.send(f"heavy modules: {sorted(heavy & set(sys.modules))}")
        for update in bus:
            update.reply("back")
            update.done()
except KeyboardInterrupt:
    sys.exit(7)
"""

FORK = """
import os
from telegram_bus import blocking
with blocking.join("forker", start_leader=False) as bus:
    if os.fork() == 0:
        try:
            bus.send("x")
        except RuntimeError as error:
            print(error, flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture
def bus(demo: DemoBus) -> Iterator[blocking.Bus]:
    with blocking.join("blocker", home=demo.profile.home.root) as bus, blocking.time_limit(PATIENCE):
        bus.wait_serving()
        yield bus
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("telegram-bus")] == []


def thread_of(bus: blocking.Bus) -> int:
    assert bus.target is not None
    assert isinstance(bus.target.thread_id, int)
    return bus.target.thread_id


def test_a_message_that_grows(bus: blocking.Bus, person: Client) -> None:
    thread = thread_of(bus)
    with bus.stream(markdown=True) as stream:
        stream.write("**grow")
        stream.write("ing**")
        assert (stream.text, stream.message) == ("**growing**", None)
    assert stream.message is not None
    assert stream.message.raw["text"] == "growing"

    def fail() -> None:
        with bus.stream(drafts=False) as stream:
            stream.write("half")
            person.wait_for_message("half …", thread_id=thread, within=PATIENCE)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    person.wait_for_message("half\n\n(This is not all: it was broken off.)", thread_id=thread, within=PATIENCE)


def test_a_conversation(bus: blocking.Bus, person: Client, tmp_path: Path) -> None:
    thread = thread_of(bus)
    assert (bus.key, bus.name, bus.state, bus.reason) == ("blocker", "blocker", "serving", None)
    question = bus.send("Go?", buttons=[[("Go", "go")]])
    bus.typing()
    bus.react(question, "👀")
    person.press(question.raw, "go")
    pressed = bus.next_update()
    assert pressed is not None
    assert (pressed.kind, pressed.data, pressed.text) == ("callback", "go", "Go?")
    pressed.answer("gone")
    bus.edit(question, "Gone.")
    bus.finish(pressed)
    person.send_file(b"content", "a.txt", thread_id=thread)
    for update in bus:
        assert update.sender is not None
        assert [file.name for file in update.files] == ["a.txt"]
        assert update.download(into=tmp_path).read_bytes() == b"content"
        assert update.reply("thanks").raw["reply_to_message"]["message_id"] == update.message["message_id"]
        update.done()
        break
    sent = bus.send_file(b"mine", name="b.txt", kind="document")
    assert bus.download(sent.raw["document"]["file_id"], into=tmp_path).read_bytes() == b"mine"
    album = bus.send_album([telegram_bus.Media(one, kind="document") for one in (b"1", b"2")])
    assert len(album) == 2
    bus.delete(sent)
    assert bus.call("getMe")["is_bot"]
    assert [member.key for member in bus.members()] == ["blocker"]
    assert next(iter(bus.watch_members()))[0].key == "blocker"
    assert next(iter(bus.states())).phase == "serving"
    with pytest.raises(telegram_bus.RequestRefused):
        bus.tell("nobody", "x")


def test_a_person_is_asked(bus: blocking.Bus, person: Client) -> None:
    """While it is shown that something is done; without an answer in time the question is taken back."""
    thread = thread_of(bus)
    answers: list[Any] = []

    def ask() -> None:
        with blocking.time_limit(PATIENCE), bus.typing_for():
            answers.append(bus.ask_person("Which?", [("One", 1), ("Two", 2)], allow_text=True))

    asking = threading.Thread(target=ask)
    asking.start()
    question = person.wait_for_message("Which?", thread_id=thread, within=PATIENCE)
    time.sleep(
        1
    )  # as people do: a reply that overtakes Telegram's answer to the leader is about a message unknown to it
    person.say("neither", thread_id=thread, reply_to=question["message_id"])
    asking.join(PATIENCE)
    assert answers == ["neither"]
    assert answers[0].sender["id"] == person.chat_id
    person.wait_for_message("✔ neither — ", thread_id=thread, within=PATIENCE)
    assert person.record(method="sendChatAction")
    with pytest.raises(TimeoutError), blocking.time_limit(1):
        bus.ask_person("Nobody?", ["Yes"])
    person.wait_for_message("⌛ not needed any more", thread_id=thread, within=PATIENCE)


def test_the_end_of_patience(bus: blocking.Bus) -> None:
    assert list(bus.updates(0.05)) == []
    assert bus.next_update(0) is None
    with pytest.raises(TimeoutError), blocking.time_limit(0.05):
        for _ in bus:
            pass
    with pytest.raises(TimeoutError), blocking.time_limit(0):
        bus.send("too late")


def test_many_threads_share_the_bus(bus: blocking.Bus, person: Client) -> None:
    thread = thread_of(bus)
    seen: list[str] = []

    def work() -> None:
        for update in bus.updates():
            seen.append(update.text)
            update.done()
            if update.text == "end":
                return

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for number in range(8):
        person.say(str(number), thread_id=thread)
    for _ in workers:
        person.say("end", thread_id=thread)
    for worker in workers:
        worker.join(PATIENCE)
    assert sorted(seen) == sorted([*map(str, range(8)), *["end"] * 4])


def test_who_waits_when_the_bus_is_left_goes_on(demo: DemoBus) -> None:
    """And whoever asks later hears that it was left."""
    ended: list[Any] = []
    with blocking.join("leaver", home=demo.profile.home.root) as bus, blocking.time_limit(PATIENCE):
        bus.wait_serving()
        waiting = [threading.Thread(target=lambda: ended.append(list(bus))) for _ in range(2)]
        for thread in waiting:
            thread.start()
    for thread in waiting:
        thread.join(PATIENCE)
    assert ended == [[], []]
    assert bus.state == "left"
    with pytest.raises(telegram_bus.NoLeader, match="left the bus"):
        bus.send("x")
    assert list(bus) == []
    assert list(bus.states()) == []


def test_what_cannot_work_is_raised_where_it_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(telegram_bus.SettingsError, match="profile name"), blocking.join("x", profile="../x"):
        pass
    with pytest.raises(LookupError), blocking.join("x", home=tmp_path, start_leader=False):
        raise LookupError
    lock = Home(tmp_path).profile("default").inbox_lock("x")
    assert lock.exists()


def test_the_methods_are_those_of_the_asynchronous_bus() -> None:
    """With the same parameters."""
    for ours, theirs in ((blocking.Bus, agent.Bus), (blocking.Update, agent.Update)):
        names = {name for name in dir(theirs) if not name.startswith("_")}
        assert names <= set(dir(ours))
        for name in names:
            if inspect.isfunction(method := getattr(theirs, name)):
                mine = inspect.signature(getattr(ours, name))
                assert list(mine.parameters) == list(inspect.signature(method).parameters), name
    assert list(inspect.signature(blocking.join).parameters) == list(inspect.signature(agent.join).parameters)


def test_a_forked_child_has_no_bus(demo: DemoBus, tmp_path: Path) -> None:
    script = tmp_path / "fork.py"
    script.write_text(FORK)
    environ = demo.environ | {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, str(script)], env=environ, capture_output=True, text=True, check=True, timeout=60
    )
    assert "does not survive a fork" in done.stdout


def test_ctrl_c_ends_a_program_in_order(demo: DemoBus, person: Client, tmp_path: Path) -> None:
    """It imports nothing heavy, asyncio least of all; its thread and its seat are free at once."""
    script = tmp_path / "loop.py"
    script.write_text(LOOP)
    demo.start("loop", [sys.executable, str(script)])
    thread = demo.thread_of("loop")
    assert person.wait_for_message("heavy", thread_id=thread, within=PATIENCE)["text"] == "heavy modules: []"
    person.say("there", thread_id=thread)
    person.wait_for_message("back", thread_id=thread, within=PATIENCE)
    os.kill(demo.processes["loop"].pid, signal.SIGINT)
    assert demo.processes.pop("loop").wait(PATIENCE) == 7
    assert "loop" not in [follower["name"] for follower in demo.followers()]


def test_an_asyncio_program_goes_on_while_it_waits(demo: DemoBus, person: Client) -> None:
    demo.start("ticker", [sys.executable, str(EXAMPLE)])
    thread = demo.thread_of("ticker")
    counts = []
    for _ in range(2):
        said = person.say("how many", thread_id=thread)
        answer = person.wait_for_message("ticks so far", thread_id=thread, after=said, within=PATIENCE)
        counts.append(int(re.findall(r"\d+", answer["text"])[0]))
    assert counts[0] < counts[1]
    os.kill(demo.processes["ticker"].pid, signal.SIGINT)
    assert demo.processes.pop("ticker").wait(PATIENCE) == 0
    assert "bye" in demo.log("ticker").read_text()
