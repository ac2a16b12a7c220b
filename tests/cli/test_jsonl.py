"""Real programs that speak JSON lines, and a bus in memory: what they get, and how it ends."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, field

from telegram_bus.agent import Bus, SentMessage, Update
from telegram_bus.cli import jsonl
from telegram_bus.cli import main as command_line
from telegram_bus.cli.jsonl import _shown, serve_jsonl
from telegram_bus.cli.program import Program, open_program
from telegram_bus.core.errors import RequestRefused
from telegram_bus.core.jsonl import _DOINGS, error_of
from telegram_bus.core.values import Target
from telegram_bus.roles.member import MemberState
from tests.cli.fake_thread import PATIENCE


@define(eq=False)
class FakeBus:
    """As much of a bus as these programs ask for; `gate` holds up what is sent."""

    key: str = "it"
    name: str = "it"
    target: Target | None = None
    state: str = "no leader"
    reason: str | None = None
    sent: list[str] = field(factory=list)
    finished: list[str] = field(factory=list)
    gate: trio.Event = field(factory=trio.Event)
    updates: Any = field(factory=lambda: trio.open_memory_channel[Update](2_000))

    def __attrs_post_init__(self) -> None:
        self.gate.set()

    def __aiter__(self) -> AsyncIterator[Update]:
        channel: trio.MemoryReceiveChannel[Update] = self.updates[1]
        return channel.__aiter__()

    async def states(self) -> AsyncIterator[MemberState]:
        yield MemberState(phase="no leader")
        await trio.sleep_forever()

    async def send(self, text: str) -> SentMessage:
        await self.gate.wait()
        if text == "refuse":
            raise RequestRefused("no")
        self.sent.append(text)
        return SentMessage(chat_id=1, message_id=len(self.sent), thread_id=2, raw={})

    async def finish(self, update: Update) -> None:
        self.finished.append(update.id)

    def write(self, ident: str) -> None:
        self.updates[0].send_nowait(Update(id=ident, kind="message", raw={"text": ident}, bus=self))  # type: ignore[arg-type]


@asynccontextmanager
async def running(bus: FakeBus, code: str) -> AsyncIterator[tuple[Program, list[int]]]:
    """The program at work beside the block; its end is waited for, and its status stands in the list then."""
    statuses: list[int] = []
    prelude = "import sys, json, os, time\ndef ask(**f): print(json.dumps(f), flush=True)\n"

    async def serve(program: Program) -> None:
        statuses.append(await serve_jsonl(bus, program))  # type: ignore[arg-type]

    with trio.fail_after(PATIENCE):
        async with (
            open_program(
                [sys.executable, "-c", prelude + code],
                environ={"PATH": os.environ["PATH"]},
                terminal=False,
                errors=None,
            ) as program,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(serve, program)
            yield program, statuses


async def test_what_a_program_asks_for_at_its_end_is_done() -> None:
    """Also without a newline behind it, and though it has ended by then."""
    bus = FakeBus()
    bus.gate = trio.Event()
    code = 'ask(do="send", text="one"); sys.stdout.write(json.dumps({"do": "send", "text": "two"})); sys.exit(3)'
    async with running(bus, code) as (program, statuses):
        await program.process.wait()
        bus.gate.set()
    assert (bus.sent, statuses) == (["one", "two"], [3])


def test_a_program_sees_what_belongs_together_as_one() -> None:
    bus: Any = FakeBus()
    plain = _shown(Update(id="1", kind="message", raw={"text": "hi"}, bus=bus))
    assert not {"parts", "follows", "raw"} & plain.keys()
    more = ({"document": {"file_id": "f"}}, {"document": {"file_id": "g"}, "caption": "look"})
    album = _shown(Update(id="2", kind="message", raw=more[0], more=more[1:], follows="1", bus=bus))
    assert (album["text"], album["message"], album["parts"]) == ("look", more[0], list(more))
    assert [file["file_id"] for file in album["files"]] == ["f", "g"]
    assert album["follows"] == "1"


async def test_a_program_hears_what_happens_in_order() -> None:
    """The greeting first; failures only are told where no id was given."""
    bus = FakeBus()
    code = """
ask(do="send", text="refuse"); ask(do="send", text="hi"); ask(do="send", text="ho", id="a"); print("oops", flush=True)
heard = [json.loads(sys.stdin.readline()) for _ in range(5)]
ask(do="send", text=json.dumps(heard))
"""
    async with running(bus, code):
        pass
    first, *others = json.loads(bus.sent[2])
    assert first == {"event": "hello", "protocol": 1, "key": "it", "name": "it"}
    answers = [one for one in others if one["event"] == "answer"]
    assert sorted((one["id"] or "", one["ok"]) for one in answers) == [("", False), ("", False), ("a", True)]
    assert {one["error"]["code"] for one in answers if not one["ok"]} == {"refused", "bad-request"}
    assert next(one for one in answers if one["ok"])["result"]["message_id"] == 2
    assert bus.sent[:2] == ["hi", "ho"]


async def test_updates_stop_while_too_many_are_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "OPEN_UPDATES", 3)
    bus = FakeBus()
    for number in range(5):
        bus.write(str(number))
    code = """
seen = []
for line in sys.stdin:
    event = json.loads(line)
    if event["event"] == "update":
        seen.append(event["id"])
    if seen == ["0", "1", "2"]:
        ask(do="done", update="1"); ask(do="done", update="1"); seen.append("-")
    if seen[-1:] == ["3"]:
        break
ask(do="send", text=" ".join(seen))
"""
    async with running(bus, code):
        pass
    assert bus.sent == ["0 1 2 - 3"]
    assert bus.finished == ["1"]


async def test_a_line_without_end_ends_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "LONGEST_LINE", 100_000)
    bus = FakeBus()
    async with running(bus, 'sys.stdout.write("x" * 200_000); sys.stdout.flush(); time.sleep(1000)') as (_, statuses):
        pass
    assert statuses == [-15]


async def test_a_program_that_does_not_read_is_served_as_far_as_it_goes() -> None:
    bus = FakeBus()
    for number in range(1_500):
        bus.write(str(number) * 20)
    async with running(bus, 'os.close(0); [ask(do="send", text=str(n)) for n in range(100)]'):
        pass
    assert bus.sent == [str(number) for number in range(100)]


async def test_what_holds_its_output_open_does_not_hold_up_the_end() -> None:
    bus = FakeBus()
    code = 'import subprocess; subprocess.Popen(["sleep", "1000"]); ask(do="send", text="bye")'
    async with running(bus, code) as (_, statuses):
        pass
    assert (bus.sent, statuses) == (["bye"], [0])


def test_json_lines_need_pipes(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["follower", "--name", "x", "--jsonl", "--pty", "--", "true"]) == 2
    assert "--jsonl and --pty do not go together" in capsys.readouterr().err


def test_every_request_has_a_method() -> None:
    """And the other way round."""
    desk = jsonl._Desk(None, None, None)  # type: ignore[arg-type]
    assert set(desk._doings) == set(_DOINGS)
    assert set(_DOINGS) > jsonl.IN_ORDER
    assert {name for name in dir(Bus) if not name.startswith("_")} - {
        "key", "name", "target", "state", "reason", "states", "wait_serving", "finish", "ask_person", "typing_for",
    } <= set(_DOINGS)  # fmt: skip


def documented(heading: str) -> dict[str, str]:
    """The rows of the first table under a heading of docs/jsonl.md: the word in the first column, and the rest."""
    text = (Path(__file__).parents[2] / "docs" / "jsonl.md").read_text("utf-8")
    section = re.split(r"^## ", text, flags=re.MULTILINE)
    table = next(part for part in section if part.startswith(f"{heading}\n"))
    body = table.partition("| --- |")[2]
    return dict(re.findall(r"^\| `(\w[\w-]*)` \|(.*)$", body, re.MULTILINE))


def test_the_document_lists_every_request_with_its_fields() -> None:
    rows = documented("Requests")
    assert list(rows) == list(_DOINGS)
    for do, doing in _DOINGS.items():
        fields = rows[do].split("|")[0]
        for name in doing.required:
            assert re.search(rf"`{name}`(?!\?)", fields), (do, name)
        for name in doing.optional:
            assert f"`{name}`" in fields, (do, name)
        named = set(re.findall(r"`(\w+)`", fields)) - {"callback", "serving"}
        assert named <= {*doing.required, *doing.optional}


def test_the_document_lists_every_event_and_every_code() -> None:
    source = inspect.getsource(jsonl)
    events = {*re.findall(r'tell\("(\w+)"', source)}
    assert set(documented("Events")) == events
    codes = {*re.findall(r'"code": (?:fault.code or )?"([\w-]+)"', inspect.getsource(error_of))}
    assert set(documented("Answers")) == codes
