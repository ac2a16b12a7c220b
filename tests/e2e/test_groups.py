"""A group without topics, with a real bus: agents share it, also when it becomes another group under their feet."""

from __future__ import annotations

import os
import signal
import sys
import tomllib
from pathlib import Path

from telegram_bus.cli.demo_bus import BUS, open_demo_bus
from telegram_bus.sandbox.client import Client
from tests.e2e.rig import PATIENCE, until


def test_scenario_74_a_plain_group_becomes_a_supergroup_and_everything_goes_on_there(tmp_path: Path) -> None:
    """What people chose holds there, each message is answered once, and the next leader knows the new chat."""
    with open_demo_bus(tmp_path, place="group") as bus:
        person, group = Client(bus.person.address), bus.person.address["group_id"]
        person.set_bot(group, "administrator")
        bus.start("echo", [sys.executable, "-m", "telegram_bus.cli.demo_agent"])
        bus.start("cat", [*BUS, "follower", "--name", "cat", "--", "cat"])
        until(lambda: len(bus.followers()) == 2)
        person.say("/use echo", chat_id=group)
        person.wait_for_message("You write to echo now", chat_id=group, within=PATIENCE)
        person.say("hello", chat_id=group)
        person.wait_for_message("echo: You said: hello", chat_id=group, within=PATIENCE)
        new = person.migrate(group)
        person.say("still there?", chat_id=new)
        person.wait_for_message("echo: You said: still there?", chat_id=new, within=PATIENCE)
        until(lambda: not any(one["sending"] for one in bus.followers()))  # what was sent is known to be
        os.kill(bus.processes["leader"].pid, signal.SIGKILL)
        person.say("and you?", chat_id=new)
        person.wait_for_message("echo: You said: and you?", chat_id=new, within=PATIENCE)
        assert tomllib.loads(bus.profile.config_toml.read_text())["chat"] == new
        answers = [message["text"] for message in person.messages(chat_id=new, by_bot=True)]
        assert sorted(text for text in answers if text.startswith("echo:")) == sorted(
            ["echo: You said: still there?", "echo: You said: and you?"]
        )
