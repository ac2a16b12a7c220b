"""Each named point that no other test dies at: the conversation goes on, and each thing is done once."""

from __future__ import annotations

import signal
import time
from contextlib import suppress

import pytest

from telegram_bus import crash
from telegram_bus.testing import SandboxError
from tests.e2e.rig import PATIENCE, Machine, until

AGENT = """
import trio, telegram_bus

async def main():
    async with telegram_bus.join(name="nora") as bus:
        async for update in bus:
            print("got", update.text, flush=True)
            if update.text == "ask":
                print("answer", await bus.ask_person("Well?", ["yes", "no"], once="well"), flush=True)
            await update.done()
            print("done", update.text, flush=True)

trio.run(main)
"""

AT_START = ("after-begin", "after-epoch", "after-record", "after-publish")
ON_THE_WAY = (
    *("after-poll", "after-admit", "before-forward", "after-forward", "after-settle"),
    *("after-hold", "after-give", "before-show-answer"),
)
OTHERS = ("before-commit:40", "after-commit:40", "before-call:3", "after-call:3")


@pytest.mark.parametrize("point", [*AT_START, *ON_THE_WAY, *OTHERS])
def test_a_leader_dies_there_and_everything_is_done_once(machine: Machine, point: str) -> None:
    machine.variables[crash.VARIABLE] = point
    dying = machine.lead()
    del machine.variables[crash.VARIABLE]
    if point in AT_START:
        assert dying.wait(PATIENCE) == -signal.SIGKILL
        machine.lead()
    agent = machine.start(AGENT)
    thread = machine.wait_thread("nora")
    if dying.poll() is not None and not machine.profile.config_toml.exists():
        machine.lead()  # it died before it knew that its token is one: nobody else can go on with it
    machine.say("hello", thread)
    agent.wait_said("done hello")
    stray = machine.sandbox.create_topic("stray")
    machine.say("stray", stray)
    until(lambda: give(machine, stray) or "done stray" in agent.said())
    agent.wait_said("done stray")
    machine.say("ask", thread)
    message = machine.wait_answer("Well?", thread)
    machine.sandbox.press(message, "yes")
    agent.wait_said("done ask")
    machine.wait_answer("yes", thread)
    machine.say("last", thread)
    agent.wait_said("done last")
    assert dying.wait(PATIENCE) == -signal.SIGKILL
    assert crash.STRUCK + point.partition(":")[0] in machine.log(0).read_text()
    assert agent.got() == ["hello", "stray", "ask", "last"]
    assert [line for line in agent.said() if line.startswith("answer")] == ["answer yes"]
    assert machine.topics_made() == 1
    asked = [one for one in machine.sandbox.messages(thread_id=thread, by_bot=True) if "Well?" in one.get("text", "")]
    assert len(asked) == 1


@pytest.mark.parametrize("point", ["after-register", "after-done", "before-commit:9", "after-commit:9"])
def test_a_follower_dies_there_and_sees_again_only_what_it_had_not_done(machine: Machine, point: str) -> None:
    machine.lead()
    dying = machine.start(AGENT, **{crash.VARIABLE: point})
    thread = machine.wait_thread("nora")
    texts = [f"{number}." for number in range(8)]
    for text in texts:
        machine.say(text, thread)
    assert dying.process.wait(PATIENCE) == -signal.SIGKILL
    after = machine.start(AGENT)
    after.wait_said(f"done {texts[-1]}")
    seen = dying.got() + after.got()
    assert [text for place, text in enumerate(seen) if text not in seen[:place]] == texts
    assert len(seen) <= len(texts) + (point not in ("after-register", "after-done"))  # what was done is not seen again
    assert machine.topics_made() == 1


def give(machine: Machine, thread: int) -> bool:
    """Press the button of the agent, or the one that looks for it again; a person is patient."""
    for message in machine.sandbox.messages(thread_id=thread, by_bot=True)[-1:]:
        keys = [key for row in (message.get("reply_markup") or {}).get("inline_keyboard", []) for key in row]
        for key in [key for key in keys if key["text"] in ("nora", "↻ Look again")][:1]:
            with suppress(SandboxError):
                machine.sandbox.press(message, key["callback_data"])
    time.sleep(0.5)
    return False
