"""Agents that share a plain group reach each other there; what they have asked goes along into a supergroup."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import trio

import telegram_bus
from telegram_bus.cli.demo_bus import DemoBus, open_demo_bus
from telegram_bus.sandbox.client import Client

WITHIN = 30.0


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[DemoBus]:
    with open_demo_bus(tmp_path, place="group") as bus:
        yield bus


def run(bus: DemoBus, names: list[str], work: Callable[..., Awaitable[None]]) -> None:
    """Runs `work` with a follower for each name."""

    async def main() -> None:
        with trio.fail_after(WITHIN):
            await join(names, ())

    async def join(names: list[str], joined: tuple[telegram_bus.Bus, ...]) -> None:
        if not names:
            return await work(*joined)
        async with telegram_bus.join(names[0], home=bus.profile.home.root) as follower:
            await follower.wait_serving()
            return await join(names[1:], (*joined, follower))

    trio.run(main)


def test_what_an_agent_tells_another_one_stands_in_the_group_and_is_answered_there(bus: DemoBus) -> None:
    person = Client(bus.person.address)
    group = bus.person.address["group_id"]

    async def work(nora: telegram_bus.Bus, otto: telegram_bus.Bus) -> None:
        told = await nora.tell("Otto", "look at this")
        update = await anext(aiter(otto))
        assert (update.text, update.sender["first_name"]) == ("look at this", "nora")  # type: ignore[index]
        answer = await update.reply("I see")
        assert answer.raw["reply_to_message"]["message_id"] == told.message_id
        await update.done()
        with pytest.raises(telegram_bus.RequestRefused, match="no other agent is called emil; here are: nora, otto"):
            await nora.tell("emil", "and you?")

    run(bus, ["nora", "otto"], work)
    said = [message["text"] for message in person.messages(chat_id=group, by_bot=True)]
    assert said[-2:] == ["nora: to otto: look at this", "otto: I see"]


def test_scenario_74_a_question_that_is_open_is_asked_again_in_the_supergroup(bus: DemoBus) -> None:
    person = Client(bus.person.address)
    group = bus.person.address["group_id"]
    answers: list[str] = []

    async def work(nora: telegram_bus.Bus) -> None:
        async with trio.open_nursery() as nursery:

            async def ask() -> None:
                answers.append(await nora.ask_person("Deploy?", ["Yes", "No"]))

            nursery.start_soon(ask)
            await trio.to_thread.run_sync(lambda: person.wait_for_message("nora: Deploy?", chat_id=group))
            new = await trio.to_thread.run_sync(person.migrate, group)
            asked = await trio.to_thread.run_sync(lambda: person.wait_for_message("nora: Deploy?", chat_id=new))
            await trio.to_thread.run_sync(lambda: person.press(asked, "Yes"))
            await trio.to_thread.run_sync(lambda: person.wait_for_message("✔ Yes", chat_id=new))

    run(bus, ["nora"], work)
    assert answers == ["Yes"]
