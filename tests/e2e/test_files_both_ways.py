"""Files both ways: a person's sandbox, a real leader, and followers in this process that pass open descriptors."""

from __future__ import annotations

import io
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import trio

import telegram_bus
from telegram_bus import Media
from telegram_bus.cli.asking import ask
from telegram_bus.cli.demo_bus import DemoBus
from telegram_bus.sandbox.client import Client
from tests.e2e.rig import PATIENCE, with_bus
from tests.samples import png


def thread_of(bus: telegram_bus.Bus) -> int:
    assert bus.target is not None
    assert isinstance(bus.target.thread_id, int)
    return bus.target.thread_id


def test_a_follower_sends_files_of_every_source(demo: DemoBus, person: Client, tmp_path: Path) -> None:
    content = os.urandom(300_000)
    report = tmp_path / "report.bin"
    report.write_bytes(content)

    async def work(bus: telegram_bus.Bus) -> None:
        sent = await bus.send_file(report, caption="here", buttons=[[("OK", "ok")]], silent=True)
        document = sent.raw["document"]
        assert (document["file_name"], document["file_size"]) == ("report.bin", len(content))
        assert sent.thread_id == thread_of(bus)
        assert sent.raw["caption"] == "here"
        assert sent.raw["reply_markup"]["inline_keyboard"][0][0]["callback_data"] == "ok"
        assert person.file(document["file_id"]) == content
        with report.open("rb") as file:
            file.seek(299_990)
            tail = await bus.send_file(file, name="../tail\x00.bin", reply_to=sent.message_id)
        assert person.file(tail.raw["document"]["file_id"]) == content[-10:]
        assert tail.raw["document"]["file_name"] == "tail.bin"
        assert tail.raw["reply_to_message"]["message_id"] == sent.message_id
        for source in (b"bytes", io.BytesIO(b"bytes")):
            assert (await bus.send_file(source)).raw["document"]["file_size"] == 5
        with report.open("rb") as file:
            assert (await bus.send_file(file)).raw["document"]["file_name"] == "report.bin"
        picture = await bus.send_file(png(8, 8), kind="photo")
        assert picture.raw["photo"]

    with_bus(demo, "sources", work)


def test_a_file_takes_the_place_of_another(demo: DemoBus, person: Client) -> None:
    async def work(bus: telegram_bus.Bus) -> None:
        sent = await bus.send_file(b"draft", name="draft.txt")
        changed = await bus.edit_file(sent, b"final", name="final.txt", caption="done")
        assert changed.message_id == sent.message_id
        assert changed.raw["document"]["file_name"] == "final.txt"
        assert person.file(changed.raw["document"]["file_id"]) == b"final"
        path = await bus.download(changed.raw["document"]["file_id"])  # it is ours
        assert path.read_bytes() == b"final"

    with_bus(demo, "editor", work)


def test_an_album_is_one_group(demo: DemoBus, person: Client) -> None:
    async def work(bus: telegram_bus.Bus) -> None:
        first, second = await bus.send_album([png(4, 4), Media(png(5, 5), caption="two")], caption="one")
        assert first.raw["media_group_id"] == second.raw["media_group_id"]
        assert (first.raw["caption"], second.raw["caption"]) == ("one", "two")
        with pytest.raises(ValueError, match="2 to 10"):
            await bus.send_album([b"x"])

    with_bus(demo, "album", work)


def test_a_file_is_sent_once_under_a_name(demo: DemoBus) -> None:
    async def work(bus: telegram_bus.Bus) -> None:
        first = await bus.send_file(b"one", once="report")
        assert await bus.send_file(b"another", once="report") == first

    with_bus(demo, "once", work)


def test_a_person_s_file_comes_down_under_a_harmless_name(demo: DemoBus, person: Client, tmp_path: Path) -> None:
    content = os.urandom(700_000)

    async def work(bus: telegram_bus.Bus) -> None:
        await trio.to_thread.run_sync(
            lambda: person.send_file(content, "../../evil name.txt", thread_id=thread_of(bus), caption="look")
        )
        update = await anext(aiter(bus))
        [file] = update.files
        assert (file.kind, file.size) == ("document", len(content))
        assert update.text == "look"
        path = await update.download()
        assert path == demo.profile.files(bus.key) / "evil name.txt"
        assert path.read_bytes() == content
        assert path.stat().st_mode & 0o777 == 0o600
        again = await update.download(into=tmp_path)
        second = await bus.download(file.file_id, into=tmp_path)
        assert again.name == "evil name.txt"
        assert second.parent == tmp_path
        assert second.read_bytes() == content
        assert sorted(tmp_path.iterdir()) == sorted([again, second])  # noqa: ASYNC240
        with pytest.raises(ValueError, match="no file"):
            await telegram_bus.Update(id="1", kind="message", raw={}, bus=bus).download()
        await update.done()

    with_bus(demo, "reader", work)


def test_nobody_fetches_another_s_files_and_a_new_leader_knows_whose_they_are(demo: DemoBus, person: Client) -> None:
    ids: list[str] = []

    async def give(bus: telegram_bus.Bus) -> None:
        await trio.to_thread.run_sync(lambda: person.send_file(b"secret", "s.txt", thread_id=thread_of(bus)))
        update = await anext(aiter(bus))
        ids.append(update.files[0].file_id)
        ids.append((await bus.send_file(b"mine")).raw["document"]["file_id"])
        await update.done()

    async def steal(bus: telegram_bus.Bus) -> None:
        for file_id in ids:
            with pytest.raises(telegram_bus.RequestRefused, match="not sent to this follower"):
                await bus.download(file_id)
        assert list(demo.profile.files(bus.key).iterdir()) == []

    async def fetch_again(bus: telegram_bus.Bus) -> None:
        assert [(await bus.download(file_id)).read_bytes() for file_id in ids] == [b"secret", b"mine"]

    with_bus(demo, "giver", give)
    with_bus(demo, "thief", steal)
    with_bus(demo, "giver", fetch_again)
    demo.processes["leader"].kill()
    demo.processes.pop("leader").wait()
    with_bus(demo, "giver", fetch_again)  # which starts a leader


def test_what_cannot_be_sent_is_refused_with_a_reason(demo: DemoBus, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "empty").touch()
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(2_000_000_001)

    async def work(bus: telegram_bus.Bus) -> None:
        with pytest.raises(FileNotFoundError):
            await bus.send_file(tmp_path / "absent")
        with pytest.raises(OSError, match="no regular file"):
            await bus.send_file(tmp_path / "fifo")
        with pytest.raises(TypeError, match="path, bytes"):
            await bus.send_file(5)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="kind"):
            await bus.send_file(b"x", kind="sticker")  # type: ignore[arg-type]
        with pytest.raises(telegram_bus.RequestRefused, match="empty"):
            await bus.send_file(tmp_path / "empty")
        with pytest.raises(telegram_bus.RequestRefused, match="2000 MB at most"):
            await bus.send_file(tmp_path / "huge")

    with_bus(demo, "refused", work)


def test_a_flood_limit_in_the_middle_costs_nothing_but_time(demo: DemoBus, person: Client) -> None:
    person.refuse("sendDocument", 429, "Too Many Requests: retry after 1", parameters={"retry_after": 1}, times=1)

    async def work(bus: telegram_bus.Bus) -> None:
        sent = await bus.send_file(b"patient " * 50_000)
        assert person.file(sent.raw["document"]["file_id"]) == b"patient " * 50_000

    with_bus(demo, "patient", work)


def test_a_leader_that_dies_in_the_middle_leaves_no_second_copy(demo: DemoBus, person: Client) -> None:
    """Nobody knows whether the file arrived, and that is what its sender hears; the next file goes out by the next."""

    async def work(bus: telegram_bus.Bus) -> None:
        fault = person.hang("sendDocument", effect=True, times=1)
        before = len(person.record(method="sendDocument"))

        async def kill() -> None:
            await trio.to_thread.run_sync(
                lambda: person.wait_for_record(before + 1, method="sendDocument", within=PATIENCE)
            )
            os.kill(leader_pid(demo), signal.SIGKILL)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(kill)
            with pytest.raises(telegram_bus.CommitUnknown):
                await bus.send_file(b"perhaps", name="perhaps.txt")
        person.cancel_faults(fault)
        assert (await bus.send_file(b"surely")).message_id
        names = [message["document"]["file_name"] for message in documents(person, thread_of(bus))]
        assert names.count("perhaps.txt") <= 1

    with_bus(demo, "unlucky", work)


def leader_pid(demo: DemoBus) -> int:
    return int(ask(demo.profile, "x.status.get", demo.profile.follower_secret)["pid"])


def documents(person: Client, thread: int) -> list[dict[str, Any]]:
    return [message for message in person.messages(thread_id=thread) if "document" in message]
