"""Long texts, Markdown and growing messages on their whole way: a follower, a real leader, and a strict sandbox."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

import telegram_bus
from telegram_bus.cli.demo_bus import DemoBus
from telegram_bus.followers import uploading
from telegram_bus.sandbox.client import Client
from tests.e2e.rig import PATIENCE, with_bus
from tests.samples import squeezed

LONG = (
    "# Report 🎉\n\n| file | lines |\n| --- | --- |\n"
    + "".join(f"| part{number}.py | {number} |\n" for number in range(60))
    + "\n```python\n"
    + "".join(f"def part{number}():\n    return '🎉' * {number}\n\n" for number in range(160))
    + "```\n\n"
    + "שלום **עולם**, and *so on*. " * 80
)


def in_thread(person: Client, bus: telegram_bus.Bus) -> list[dict[str, Any]]:
    """The messages that stand in the follower's thread."""
    assert bus.target is not None
    return [
        message
        for message in person.messages(thread_id=int(bus.target.thread_id or 0))
        if "forum_topic_created" not in message
    ]


async def seen(wait: Callable[[], object]) -> None:
    """Until a person sees something."""
    await trio.to_thread.run_sync(wait)


def test_scenario_85_a_long_answer_in_markdown_arrives_whole_and_formatted(demo: DemoBus, person: Client) -> None:
    async def work(bus: telegram_bus.Bus) -> None:
        sent = await bus.send(LONG, markdown=True, buttons=[[("OK", "ok")]], once="report")
        shown = in_thread(person, bus)
        assert [one.message_id for one in sent.parts] == [one["message_id"] for one in shown]
        text = "".join(one["text"] for one in shown)
        assert all(f"part{number}.py" in text for number in range(60))
        assert all(f"return'🎉'*{number}" in squeezed(text) for number in range(160))
        assert squeezed(text).endswith(squeezed("שלום עולם, and so on. ") * 80)
        code = [one for message in shown for one in message["entities"] if one["type"] == "pre"]
        assert [one.get("language") for one in code].count("python") >= 2
        assert "reply_markup" in shown[-1]
        assert await bus.send(LONG, markdown=True, once="report") == sent
        assert len(in_thread(person, bus)) == len(shown)

    with_bus(demo, "reporter", work)


def test_scenario_86_raw_text_above_32_kib_is_cut_before_its_markup_is_read(demo: DemoBus, person: Client) -> None:
    async def work(bus: telegram_bus.Bus) -> None:
        await bus.send("&lt;" * 25_600, parse_mode="HTML")
        assert "".join(one["text"] for one in in_thread(person, bus)) == "<" * 25_600

    with_bus(demo, "escaper", work)


def test_a_growing_message_is_a_draft_in_a_private_chat(demo: DemoBus, person: Client) -> None:
    async def work(bus: telegram_bus.Bus) -> None:
        async with bus.stream(markdown=True) as stream:
            await stream.write("**grow")
            await seen(lambda: person.wait_for_record(method="sendMessageDraft", text="grow", within=PATIENCE))
            await stream.write("ing**")
        [message] = in_thread(person, bus)
        assert (message["text"], message["entities"][0]["type"]) == ("growing", "bold")
        drafts = person.record(method="sendMessageDraft", text="grow")
        assert drafts
        assert all(one["ok"] for one in drafts)

    with_bus(demo, "drafter", work)


def test_scenario_95_a_chat_that_refuses_drafts_sees_the_message_grow_by_edits(demo: DemoBus, person: Client) -> None:
    async def work(bus: telegram_bus.Bus) -> None:
        person.refuse("sendMessageDraft", 400, "Bad Request: TEXTDRAFT_PEER_INVALID", times=0)
        try:
            for text in ("one and more", "two and more"):
                async with bus.stream() as stream:
                    await stream.write(text[:3])
                    await seen(partial(person.wait_for_message, f"{text[:3]} …", within=PATIENCE))
                    await stream.write(text[3:])
        finally:
            person.cancel_faults()
        assert [one["text"] for one in in_thread(person, bus)] == ["one and more", "two and more"]
        assert all("edit_date" in one for one in in_thread(person, bus))
        refused = [one for one in person.record(method="sendMessageDraft") if not one["ok"]]
        assert len(refused) == 1

    with_bus(demo, "editor", work)


def test_a_program_sees_how_far_its_file_is(demo: DemoBus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By the position that it shares with the leader; the program's own file keeps its own."""
    monkeypatch.setattr(uploading, "LOOK_EVERY", 0.002)
    size = 30_000_000
    path = tmp_path / "large"
    path.write_bytes(b"\1" * size)

    async def work(bus: telegram_bus.Bus) -> None:
        told: list[tuple[int, int]] = []
        with path.open("rb") as file:
            await bus.send_file(file, progress=lambda *far: told.append(far))
            assert file.tell() == 0
        assert told[-1] == (size, size)
        assert any(0 < sent < size for sent, _ in told)
        assert told == sorted(told)

    with_bus(demo, "uploader", work)
