"""The code in docs/python.md runs as it stands there, and `status` prints the documented fields: with a real leader."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from telegram_bus.cli.demo_bus import BUS, DemoBus
from tests.e2e.rig import PATIENCE, run

DOCS = Path(__file__).parents[2] / "docs"

TOUR = """
import json, sys

async def tour():
    async with telegram_bus.join(name="tour") as bus, trio.open_nursery() as nursery:
        await report(bus)
        nursery.start_soon(watch, bus)
        await careful(bus)
        await announce(bus)
        assert (await rename(bus)).endswith("bot")
        await reports(bus, Path(sys.argv[0]))
        await answer(bus)
        await think(bus)
        await deploy(bus)
        await consult(bus, "what is the answer")
        await order(bus)
        heavy = {"telegram", "httpx", "asyncio", "rich", "starlette", "hypercorn"}
        await bus.send(f"heavy modules: {sorted(heavy & set(sys.modules))}")
        nursery.cancel_scope.cancel()

trio.run(tour)
serve()
"""


def blocks() -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (DOCS / "python.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)


def test_the_first_follower_answers(demo: DemoBus, tmp_path: Path) -> None:
    script = tmp_path / "first.py"
    script.write_text(blocks()[0])
    demo.start("echo", [sys.executable, str(script)])
    thread = demo.thread_of("echo")
    seen = demo.person.say("hello", thread)
    assert demo.person.reply(thread, seen, PATIENCE)["text"] == "you said: hello"


def test_every_other_piece_does_what_it_says(demo: DemoBus, tmp_path: Path) -> None:
    demo.start("expert", [*BUS, "follower", "--name", "expert", "--", "cat"])
    expert = demo.thread_of("expert")
    script = tmp_path / "tour.py"
    script.write_text("\n".join(["import trio", "import telegram_bus", *blocks()[1:], TOUR]))
    demo.start("tour", [sys.executable, str(script)])
    thread = demo.thread_of("tour")
    person = demo.person
    assert person.reply(thread, 0, PATIENCE)["text"] == "The build is done."
    approval = person.reply(thread, 0, PATIENCE, containing="version 7")
    person.press(approval["message_id"], approval["reply_markup"]["inline_keyboard"][0][0]["callback_data"])
    assert person.reply(expert, 0, PATIENCE, containing="what is")["text"] == "from tour: what is the answer"
    question = person.reply(thread, 0, PATIENCE, containing="Deploy?")
    seen = person.say("what now", thread)
    assert person.reply(thread, seen, PATIENCE, containing="button")["text"] == "Please press a button."
    person.press(question["message_id"], "deploy:yes")
    assert person.reply(thread, seen, PATIENCE, containing="deploy:yes")["text"] == "Deploy: deploy:yes"
    assert person.reply(thread, seen, PATIENCE, containing="heavy")["text"] == "heavy modules: []"
    assert demo.processes.pop("tour").wait(PATIENCE) == 0
    printed = demo.log("tour").read_text()
    assert "serving" in printed
    assert "messages, from" in printed
    assert "approved by " in printed
    assert re.search(r"\[.*'tour'.*\]", printed)


def test_the_fields_of_the_status_are_the_documented_ones(demo: DemoBus) -> None:
    demo.start("cat", [*BUS, "follower", "--name", "cat", "--", "cat"])
    demo.thread_of("cat")
    status: dict[str, Any] = json.loads(run(demo, "status", "--json").stdout)
    text = (DOCS / "commands.md").read_text("utf-8")
    status_fields, follower_fields = text.split("\n| field | what |\n")[1].split("\n| field of a follower | what |\n")
    assert documented(status_fields) == set(status)
    assert [documented(follower_fields)] * len(status["followers"]) == [set(each) for each in status["followers"]]
    assert status["followers"]


def documented(text: str) -> set[str]:
    """The names in the first column of the table that the text begins with."""
    table = re.match(r"(?:\|.*\n)+", text)
    assert table
    return {name for line in table.group().splitlines()[1:] for name in re.findall(r"`(\w+)`", line.split("|")[1])}
