"""What a follower sends, as it arrives in the chat: long texts, Markdown, files, and all of it once."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from telegram_bus.agent import Bus, Media, SentMessage, join
from telegram_bus.core.errors import ApiError, CommitUnknown, RequestRefused
from telegram_bus.core.parts import MESSAGE_LENGTH, MOST_PARTS
from telegram_bus.core.text import units
from telegram_bus.followers import uploading
from telegram_bus.home import Profile
from tests.fakes import FakeLeader
from tests.samples import squeezed
from tests.telegram_leader import Telegram

LONG = "".join(f"{number}. line of some words 🎉\n" for number in range(400))  # three messages
CODE = "# Log\n\n```text\n" + "".join(f"line {number}\n" for number in range(1_000)) + "```\n\nDone."


@pytest.fixture
async def telegram(bus_profile: Profile) -> AsyncIterator[Telegram]:
    async with trio.open_nursery() as nursery:
        leader = FakeLeader(bus_profile, nursery)
        telegram = Telegram(leader)
        await leader.start()
        yield telegram
        nursery.cancel_scope.cancel("the test is over")


@pytest.fixture
async def bus(telegram: Telegram) -> AsyncIterator[Bus]:
    async with join("nora", home=telegram.leader.profile.home.root, start_leader=False) as bus:
        await bus.wait_serving()
        yield bus


def refused(description: str) -> ApiError:
    return ApiError("sendMessage", 400, f"Bad Request: {description}")


# -- long texts


async def test_a_text_of_any_length_arrives_whole_and_in_order(bus: Bus, telegram: Telegram) -> None:
    """The answered message stands above the first part, buttons below the last, and each is as quiet as the others."""
    asked = (await bus.send("asked")).message_id
    sent = await bus.send(LONG, reply_to=asked, buttons=[[("Go", "go")]], silent=True)
    parts = telegram.made("sendMessage")[1:]
    assert squeezed("".join(telegram.texts()[1:])) == squeezed(LONG)
    assert [part.message_id for part in sent.parts] == [asked + 1, asked + 2, asked + 3]
    assert all(units(part["text"]) <= MESSAGE_LENGTH and part["disable_notification"] for part in parts)
    assert ["reply_parameters" in part for part in parts] == [True, False, False]
    assert ["reply_markup" in part for part in parts] == [False, False, True]


async def test_a_short_text_is_sent_as_it_is(bus: Bus, telegram: Telegram) -> None:
    """Its markup is Telegram's to read, and to refuse."""
    sent = await bus.send("<b>hi</b>", parse_mode="HTML")
    assert (sent.parts, sent.rest) == ((sent,), ())
    assert telegram.made("sendMessage")[0]["text"] == "<b>hi</b>"
    with pytest.raises(ApiError, match="end tag"):
        await bus.send("<b>hi", parse_mode="HTML")
    with pytest.raises(ApiError, match="non-empty"):
        await bus.send("\n" * 5_000)


async def test_long_markup_is_read_before_it_is_cut(bus: Bus, telegram: Telegram) -> None:
    await bus.send("<b>" + "&lt;x&gt; " * 2_000 + "</b>", parse_mode="HTML")
    first, second = telegram.made("sendMessage")
    assert squeezed(first["text"] + second["text"]) == "<x>" * 2_000
    assert [part["entities"][0]["type"] for part in (first, second)] == ["bold", "bold"]
    assert "parse_mode" not in first
    await bus.send("*" + "a\\. " * 2_000 + "*", parse_mode="MarkdownV2")
    assert squeezed("".join(telegram.texts()[2:])) == "a." * 2_000
    before = len(telegram.calls)
    with pytest.raises(ValueError, match=r"no valid HTML.*end tag"):
        await bus.send("<b>" + "x" * 5_000, parse_mode="HTML")
    assert len(telegram.calls) == before


@pytest.mark.parametrize(
    ("options", "name"),
    [({}, "answer.txt"), ({"markdown": True}, "answer.md"), ({"parse_mode": "HTML"}, "answer.html")],
)
async def test_a_text_of_too_many_messages_is_a_file_with_its_beginning_above(
    bus: Bus, telegram: Telegram, options: Any, name: str
) -> None:
    text = "word " * 1_000 * MOST_PARTS
    sent = await bus.send(text, silent=True, **options)
    head, file = telegram.texts()
    assert len(sent.parts) == 2
    assert head.startswith("word word")
    assert head.endswith(f"…\n\nThe whole text (40 kB) is in {name}.")
    assert file == name
    assert telegram.made("sendDocument")[0]["disable_notification"]


async def test_how_many_messages_are_too_many_is_the_senders_choice(bus: Bus, telegram: Telegram) -> None:
    await bus.send(LONG, most_parts=2)
    assert telegram.texts()[1] == "answer.txt"
    with pytest.raises(ValueError, match="most_parts"):
        await bus.send(LONG, most_parts=0)


# -- Markdown


async def test_markdown_arrives_formatted(bus: Bus, telegram: Telegram) -> None:
    await bus.send("**bold** and `code`", markdown=True)
    sent = telegram.made("sendMessage")[0]
    assert sent["text"] == "bold and code"
    assert [one["type"] for one in sent["entities"]] == ["bold", "code"]
    with pytest.raises(ValueError, match="not both"):
        await bus.send("x", markdown=True, parse_mode="HTML")


async def test_a_block_of_code_that_is_cut_is_code_in_both_messages(bus: Bus, telegram: Telegram) -> None:
    await bus.send(CODE, markdown=True)
    for sent in telegram.made("sendMessage"):
        assert "pre" in [one["type"] for one in sent["entities"]]
        assert all(one["language"] == "text" for one in sent["entities"] if one["type"] == "pre")


async def test_markup_that_telegram_refuses_is_sent_once_more_without_it(bus: Bus, telegram: Telegram) -> None:
    telegram.faults["sendMessage"] = [refused("can't parse entities: bad")]
    sent = await bus.send("**bold**", markdown=True, once="x")
    first, second = telegram.made("sendMessage")
    assert first["entities"]
    assert "entities" not in second
    assert await bus.send("**bold**", markdown=True, once="x") == sent
    assert len(telegram.calls) == 2


async def test_and_not_again_and_not_for_any_other_reason(bus: Bus, telegram: Telegram) -> None:
    telegram.faults["sendMessage"] = [refused("ENTITIES_TOO_LONG"), refused("can't parse entities: bad")]
    with pytest.raises(ApiError):
        await bus.send("**bold**", markdown=True)
    telegram.faults["sendMessage"] = [refused("chat not found")]
    with pytest.raises(ApiError, match="chat not found"):
        await bus.send("**bold**", markdown=True)
    telegram.faults["sendMessage"] = [refused("can't parse entities: bad")]
    with pytest.raises(ApiError, match="bad"):
        await bus.send("<b>bold</b>", parse_mode="HTML")
    assert len(telegram.calls) == 4


# -- once


async def test_a_long_text_goes_on_at_the_part_that_is_missing(bus: Bus, telegram: Telegram) -> None:
    """With the text that was begun, whatever its sender would say by now; the fault says how far it came."""
    first = (await bus.send("before")).message_id
    telegram.faults["sendMessage"] = [CommitUnknown("who knows")]
    with pytest.raises(CommitUnknown):
        await bus.send(LONG, once="unknown")
    telegram.faults["sendMessage"] = [None, RequestRefused("not now")]
    with pytest.raises(RequestRefused) as caught:
        await bus.send(LONG, once="long")
    assert caught.value.__notes__ == ["1 of 3 messages had been sent"]
    sent = await bus.send("something else", once="long")
    assert [part.message_id for part in sent.parts] == [first + 1, first + 2, first + 3]
    assert squeezed("".join(telegram.texts()[1:])) == squeezed(LONG)
    assert await bus.send(LONG, once="long") == sent


async def test_so_does_the_next_process(telegram: Telegram) -> None:
    root = telegram.leader.profile.home.root
    telegram.faults["sendMessage"] = [RequestRefused("not now")]
    async with join("nora", home=root, start_leader=False) as bus:
        with pytest.raises(RequestRefused):
            await bus.send(LONG, once="long")
    async with join("nora", home=root, start_leader=False) as bus:
        sent = await bus.send("reworded", once="long")
    assert len(sent.parts) == 3
    assert squeezed("".join(telegram.texts())) == squeezed(LONG)


async def test_the_first_text_of_a_name_holds_when_the_next_is_longer(bus: Bus, telegram: Telegram) -> None:
    sent = await bus.send("short", once="x")
    assert await bus.send(LONG, once="x") == sent
    assert telegram.texts() == ["short"]


async def test_a_part_has_no_name_that_a_program_could_give(bus: Bus, telegram: Telegram) -> None:
    await bus.send(LONG, once="a")
    for name in ("a#2", "a2", "2"):
        await bus.send(name, once=name)
    assert telegram.texts()[3:] == ["a#2", "a2", "2"]


# -- edits


async def test_an_edit_of_a_long_text_changes_all_its_parts(bus: Bus, telegram: Telegram) -> None:
    sent = await bus.send("short")
    longer = await bus.edit(sent, LONG, buttons=[[("Go", "go")]])
    assert squeezed("".join(telegram.texts())) == squeezed(LONG)
    assert len(longer.parts) == 3
    shorter = await bus.edit(longer, "# end", markdown=True)
    assert telegram.texts() == ["end"]
    assert (shorter.message_id, shorter.rest) == (sent.message_id, ())
    filed = await bus.edit(shorter, "word " * 1_000 * MOST_PARTS)
    assert telegram.texts()[1] == "answer.txt"
    whole = await bus.edit(filed, LONG)
    assert squeezed("".join(telegram.texts())) == squeezed(LONG)
    await bus.delete(whole.rest[0])
    with pytest.raises(ApiError, match="not found"):
        await bus.delete(whole)
    assert telegram.texts() == []


async def test_an_edit_that_changes_nothing_is_a_success(bus: Bus, telegram: Telegram) -> None:
    sent = await bus.send("same")
    assert await bus.edit(sent, "same") == sent
    assert (await bus.edit(sent.message_id, "same")).message_id == sent.message_id
    with pytest.raises(ApiError, match="not found"):
        await bus.edit(77, "same")


async def test_an_edit_whose_markup_is_refused_is_made_without_it(bus: Bus, telegram: Telegram) -> None:
    sent = await bus.send("old")
    telegram.faults["editMessageText"] = [refused("can't parse entities: bad")]
    await bus.edit(sent, "**new**", markdown=True)
    assert telegram.texts() == ["new"]


# -- files


async def test_an_album_is_sent_once(bus: Bus, telegram: Telegram) -> None:
    files = [Media(b"1", "document", name="a.txt"), Media(b"2", "document", name="b.txt")]
    sent = await bus.send_album(files, caption="**c**", once="album", markdown=True)
    assert await bus.send_album(files, caption="c", once="album") == sent
    [made] = telegram.made("sendMediaGroup")
    assert made["media"][0]["caption"] == "c"
    assert made["media"][0]["caption_entities"][0]["type"] == "bold"
    assert "caption" not in made["media"][1]


async def test_another_file_takes_the_place_of_a_message_s(bus: Bus, telegram: Telegram) -> None:
    """With its own caption and buttons; it is the same message."""
    sent = await bus.send_file(b"old", name="old.txt", caption="old", buttons=[[("Yes", "y")]])
    changed = await bus.edit_file(sent, b"new", name="new.mp4", kind="video", caption="**new**", markdown=True)
    assert changed.message_id == sent.message_id
    assert "video" in changed.raw
    assert (changed.raw["caption"], "reply_markup" in changed.raw) == ("new", False)
    [made] = telegram.made("editMessageMedia")
    assert made["media"]["caption_entities"][0]["type"] == "bold"
    assert (await bus.edit_file(sent.message_id, b"x", buttons=[[("No", "n")]])).raw["reply_markup"]
    with pytest.raises(ValueError, match="kind must be one of photo, video, document, audio, animation, not 'voice'"):
        await bus.edit_file(sent, b"x", kind="voice")
    with pytest.raises(ValueError, match="caption"):
        await bus.edit_file(sent, b"x", caption="c" * 1_025)


@pytest.mark.parametrize("mode", ["markdown", "Markdown", "md", ""])
async def test_a_parse_mode_that_is_none_is_refused_with_what_is_meant(bus: Bus, telegram: Telegram, mode: Any) -> None:
    """Telegram would take the first two for its oldest markup, which reads Markdown in its own way."""
    acts: list[Any] = [
        lambda: bus.send("**x**", parse_mode=mode),
        lambda: bus.edit(1, "x", parse_mode=mode),
        lambda: bus.send_file(b"x", caption="x", parse_mode=mode),
    ]
    for act in acts:
        with pytest.raises(ValueError, match=r'"HTML" or "MarkdownV2".*markdown=True'):
            await act()
    assert telegram.calls == []
    await bus.send("<b>x</b>", parse_mode="html")  # type: ignore[arg-type]
    assert telegram.texts() == ["x"]


async def test_a_caption_that_telegram_would_refuse_is_refused_before_anything_travels(
    bus: Bus, telegram: Telegram
) -> None:
    for act in (
        lambda: bus.send_file(b"x", caption="c" * 1_025),
        lambda: bus.send_album([Media(b"x", "document", "c" * 1_025), b"y"]),
        lambda: bus.send_file(b"x", caption="c", markdown=True, parse_mode="HTML"),
    ):
        with pytest.raises(ValueError, match="caption"):
            await act()
    assert telegram.calls == []
    await bus.send_file(b"x", name="n.txt", caption="**c**", markdown=True)
    sent = telegram.made("sendDocument")[0]
    assert (sent["caption"], sent["caption_entities"][0]["type"]) == ("c", "bold")


@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("sendPhoto", {"photo": "/etc/passwd"}, "photo"),
        ("sendDocument", {"document": "file:///etc/passwd"}, "document"),
        ("sendMediaGroup", {"media": [{"type": "photo", "media": "file:///etc/passwd"}]}, "media.0.media"),
        ("editMessageMedia", {"message_id": 1, "media": '{"type": "photo", "media": "../x"}'}, "media"),
    ],
)
async def test_a_path_in_a_field_is_refused_before_anybody_is_asked(
    bus: Bus, telegram: Telegram, method: str, params: Any, field: str
) -> None:
    with pytest.raises(RequestRefused, match=f"{method}: {field} must be a file id"):
        await bus.call(method, **params)
    assert telegram.calls == []


async def test_how_far_a_file_is_can_be_seen(
    bus: Bus, telegram: Telegram, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the program, which is told, and by people; a file of the program's own keeps its position."""
    monkeypatch.setattr(uploading, "LOOK_EVERY", 0.01)
    monkeypatch.setattr(uploading, "SHOWN_AFTER", 0.02)
    path = tmp_path / "file"
    path.write_bytes(b"x" * 1_000)
    told: list[tuple[int, int]] = []
    seen = trio.Event()

    async def slow(envelope: Any) -> Any:
        await seen.wait()
        return await finish(envelope)  # type: ignore[misc]

    async def act(envelope: Any) -> Any:
        seen.set()
        return await call(envelope)  # type: ignore[misc]

    finish, call = telegram.leader.replies["x.file.send"], telegram.leader.replies["follower.callApi"]
    telegram.leader.replies |= {"x.file.send": slow, "follower.callApi": act}
    with path.open("rb") as file:
        await bus.send_file(file, name="n.bin", progress=lambda *far: told.append(far))
        assert file.tell() == 0
        assert isinstance(file, io.BufferedReader)
    assert told == [(0, 1_000), (1_000, 1_000)]
    assert telegram.made("sendChatAction")[0]["action"] == "upload_document"


def test_a_message_of_before_is_made_as_before() -> None:
    """Its fields are those that programs know."""
    message = SentMessage(chat_id=1, message_id=2, thread_id=None, raw={})
    assert message.parts == (message,)
