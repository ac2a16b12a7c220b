"""Messages that grow: what people see meanwhile, at which pace, and what is left in the end."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from attrs import define, evolve, field
from trio.testing import MockClock

from telegram_bus.core.envelopes import Target
from telegram_bus.core.errors import ApiError, CommitUnknown, NoLeader, RequestRefused
from telegram_bus.core.text import units
from telegram_bus.followers.messages import Buttons, SentMessage
from telegram_bus.followers.streams import BROKEN_OFF, PRIVATE_PACE, UNFINISHED, Stream, open_stream

GROUP, PRIVATE = -1001, 7
PACE = PRIVATE_PACE[0]


@define
class FakeBus:
    """A bus whose calls take `takes` seconds; `seen` is what happened in the chat, with the time."""

    chat_id: int = GROUP
    takes: float = 0.0
    seen: list[tuple[float, str, str]] = field(factory=list)
    messages: dict[int, str] = field(factory=dict)
    markup: dict[int, Any] = field(factory=dict)
    files: list[str] = field(factory=list)
    under_way: int = 0
    faults: dict[str, list[Exception | None]] = field(factory=dict)
    named: dict[str, SentMessage] = field(factory=dict)
    draftless: set[float] = field(factory=set)
    hints: list[str | None] = field(factory=list)
    left: bool = False
    gone: bool = False
    begun: list[str] = field(factory=list)

    @property
    def target(self) -> Target:
        return Target(chat_id=self.chat_id, thread_id=11)

    async def wait_serving(self) -> None:
        if self.left:
            raise NoLeader("left")
        if self.gone:
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()

    async def call(self, method: str, **params: Any) -> Any:
        assert method == "sendMessageDraft"
        assert params["draft_id"]
        await self._happen("draft", params["text"])
        return True

    async def delete(self, message: SentMessage | int) -> None:
        assert isinstance(message, SentMessage)
        await self._happen("delete", self.messages.pop(message.message_id))

    async def _send_part(
        self, params: dict[str, Any], ids: list[str | None], *, may_fall_back: bool, hint: str | None = None
    ) -> SentMessage:
        if ids[0] in self.named:
            return self.named[ids[0]]
        await self._happen("send", params["text"], hint)
        number = len(self.messages) + 100
        self.messages[number] = params["text"]
        self.markup[number] = params.get("reply_markup")
        sent = SentMessage(chat_id=self.chat_id, message_id=number, thread_id=11, raw={"text": params["text"]})
        if ids[0] is not None:
            self.named[ids[0]] = sent
        return sent

    async def _change(
        self, message: SentMessage, params: dict[str, Any], *, may_fall_back: bool, hint: str | None = None
    ) -> SentMessage:
        await self._happen("edit", params["text"], hint)
        self.messages[message.message_id] = params["text"]
        self.markup[message.message_id] = params.get("reply_markup")
        return evolve(message, raw={"text": params["text"]})

    async def _begin_stream(self, scope: str, once: str) -> bool:
        self.begun.append(once)
        return self.begun.count(once) > 1

    async def _send_text_file(self, file: tuple[str, str], params: dict[str, Any], call_id: str | None) -> SentMessage:
        self.files.append(file[1])
        return SentMessage(chat_id=self.chat_id, message_id=999, thread_id=11, raw={})

    async def _happen(self, what: str, text: str, hint: str | None = None) -> None:
        assert self.under_way == 0, "one call at a time"
        self.under_way += 1
        try:
            await trio.sleep(self.takes)
        finally:
            self.under_way -= 1
        if self.faults.get(what) and (fault := self.faults[what].pop(0)) is not None:
            raise fault
        assert units(text) <= 4_096
        self.hints.append(hint)
        self.seen.append((round(trio.current_time() - self.began, 3), what, text))

    began: float = field(factory=trio.current_time)

    @property
    def shown(self) -> str:
        return "".join(self.messages.values())


def streaming(
    bus: FakeBus, *, once: str | None = None, buttons: Buttons | None = None, markdown: bool = False, parts: int = 8
) -> Any:
    return open_stream(
        bus,
        {"text": None},
        ("", once),
        buttons=buttons,
        markdown=markdown,
        most_parts=parts,
        draftless=bus.draftless,
    )


def api_error(code: int, description: str) -> ApiError:
    return ApiError("any", code, description)


async def words(stream: Stream, count: int, every: float = 0.1) -> None:
    for number in range(count):
        await stream.write(f"w{number} ")
        await trio.sleep(every)


async def test_it_grows_by_edits_at_the_pace_of_a_group(autojump_clock: MockClock) -> None:
    """The newest text each time, and all of it at once when the block ends."""
    bus = FakeBus()
    async with streaming(bus) as stream:
        await words(stream, 80)
    assert [time for time, *_ in bus.seen] == [0, 4, 8]
    assert [what for _, what, _ in bus.seen] == ["send", "edit", "edit"]
    assert bus.seen[0][2] == "w0" + UNFINISHED
    assert bus.seen[1][2].startswith("w0 w1 ")
    assert bus.seen[1][2].endswith("w39" + UNFINISHED)
    assert bus.shown == stream.text
    assert stream.message is not None
    assert stream.message.raw == {"text": stream.text}
    assert bus.hints == [None, "progress", "final"]


async def test_back_pressure_is_that_of_the_leader(autojump_clock: MockClock) -> None:
    """One call at a time, however long it waits for its turn; what was written meanwhile is one edit."""
    bus = FakeBus(takes=20)
    async with streaming(bus) as stream:
        await words(stream, 500)
    assert [time for time, *_ in bus.seen] == [20, 44, 70]
    assert bus.shown == stream.text


async def test_an_edit_that_waits_is_overtaken_by_the_end(autojump_clock: MockClock) -> None:
    """It need not be made any more; a message that is being sent has to be known first."""
    bus = FakeBus()
    async with streaming(bus) as stream:
        await words(stream, 20)
        bus.takes = 100
        await words(stream, 20)
        bus.takes = 1
    assert [(time, what) for time, what, _ in bus.seen] == [(0, "send"), (5, "edit")]
    assert bus.shown == stream.text


async def test_a_text_that_does_not_change_is_not_sent_again(autojump_clock: MockClock) -> None:
    bus = FakeBus()
    async with streaming(bus) as stream:
        await stream.write("all")
        await trio.sleep(100)
    assert [text for *_, text in bus.seen] == ["all" + UNFINISHED, "all"]


async def test_what_is_blank_is_no_message(autojump_clock: MockClock) -> None:
    bus = FakeBus()
    async with streaming(bus) as stream:
        await stream.write("\n ")
        await trio.sleep(5)
    assert (bus.seen, stream.message) == ([], None)


async def test_a_long_one_becomes_several_and_only_the_last_one_grows(autojump_clock: MockClock) -> None:
    bus = FakeBus()
    line = "some words of an answer 🎉\n"
    async with streaming(bus, buttons=[[("Go", "go")]]) as stream:
        for _ in range(400):
            await stream.write(line)
            await trio.sleep(0.05)
    assert stream.message is not None
    assert len(stream.message.parts) == 3
    assert bus.shown == line * 400
    assert [bus.markup[one.message_id] is not None for one in stream.message.parts] == [False, False, True]
    assert [text.count(UNFINISHED) for *_, text in bus.seen].count(1) == len(bus.seen) - sum(
        UNFINISHED not in text for *_, text in bus.seen
    )


async def test_one_that_is_too_long_ends_with_a_file(autojump_clock: MockClock) -> None:
    bus = FakeBus()
    text = "word " * 4_000
    async with streaming(bus, parts=2) as stream:
        await stream.write(text[:12_000])
        await trio.sleep(5)
        await stream.write(text[12_000:])
    assert bus.files == [text]
    assert len(bus.messages) == 2
    assert bus.shown.endswith("…\n\nThe whole text (20 kB) is in answer.txt.")
    assert stream.message is not None
    assert stream.message.parts[-1].message_id == 999


async def test_what_is_far_too_long_is_not_looked_at_again_and_again(autojump_clock: MockClock) -> None:
    """What it shows meanwhile is complete; nothing is lost of the rest."""
    bus = FakeBus()
    async with streaming(bus, parts=2, markdown=True) as stream:
        for _ in range(300):
            await stream.write("word " * 400)
            await trio.sleep(0.1)
    assert bus.files == ["word " * 120_000]
    assert len(bus.seen) < 6
    with pytest.raises(RuntimeError, match="has ended"):
        await stream.write("more")


async def test_markdown_that_is_still_open_is_shown_as_far_as_it_goes(autojump_clock: MockClock) -> None:
    """And messages that the end makes needless go."""
    bus = FakeBus()
    async with streaming(bus, markdown=True) as stream:
        await stream.write("```\n" + "x\n" * 100)
        await trio.sleep(10)
        await stream.write("```\n\n**done**")
    assert bus.seen[0][2] == ("x\n" * 100).rstrip() + UNFINISHED
    assert bus.shown.endswith("x\n\ndone")


# -- drafts


async def test_in_a_private_chat_it_is_a_draft_until_it_is_complete(autojump_clock: MockClock) -> None:
    """Which is sent again before it vanishes."""
    bus = FakeBus(PRIVATE)
    async with streaming(bus) as stream:
        await stream.write("a")
        await trio.sleep(0.5)
        await stream.write("b")
        await trio.sleep(45)
    assert bus.seen == [
        (0, "draft", "a"),
        (PACE, "draft", "ab"),
        (21 + PACE, "draft", "ab"),
        (42 + PACE, "draft", "ab"),
        (45.5, "send", "ab"),
    ]


async def test_what_no_longer_grows_of_a_draft_is_a_message(autojump_clock: MockClock) -> None:
    bus = FakeBus(PRIVATE)
    async with streaming(bus) as stream:
        await stream.write("word " * 1_000)
        await trio.sleep(5)
        assert [what for _, what, _ in bus.seen] == ["send", "draft"]
        assert bus.seen[0][2].endswith(UNFINISHED)
    assert bus.shown == "word " * 1_000


@pytest.mark.parametrize(
    "fault",
    [api_error(400, "Bad Request: TEXTDRAFT_PEER_INVALID"), api_error(404, "Not Found"), RequestRefused("not allowed")],
)
async def test_scenario_95_a_chat_that_refuses_drafts_gets_edits_and_is_remembered(
    autojump_clock: MockClock, fault: Exception
) -> None:
    bus = FakeBus(PRIVATE, faults={"draft": [fault]})
    for _ in range(2):
        async with streaming(bus) as stream:
            await words(stream, 25)
    assert {what for _, what, _ in bus.seen} == {"send", "edit"}
    assert bus.draftless == {PRIVATE}
    assert len(bus.messages) == 2


async def test_a_draft_that_has_to_wait_is_not_refused(autojump_clock: MockClock) -> None:
    bus = FakeBus(PRIVATE, faults={"draft": [api_error(429, "Too Many Requests: retry after 3")]})
    async with streaming(bus) as stream:
        await words(stream, 50)
    assert bus.draftless == set()
    assert {what for _, what, _ in bus.seen} == {"draft", "send"}


async def test_a_stream_without_drafts(autojump_clock: MockClock) -> None:
    bus = FakeBus(PRIVATE)
    async with open_stream(bus, {}, ("", None), buttons=None, markdown=False, most_parts=8, draftless=None) as stream:
        await words(stream, 20)
    assert {what for _, what, _ in bus.seen} == {"send", "edit"}


# -- trouble


async def test_what_fails_meanwhile_does_not_hold_up_the_program_and_the_end_is_tried_all_the_same(
    autojump_clock: MockClock,
) -> None:
    bus = FakeBus(faults={"send": [CommitUnknown("who knows")]})
    async with streaming(bus) as stream:
        await words(stream, 50)
    assert [what for _, what, _ in bus.seen] == ["send"]
    assert bus.shown == stream.text


async def test_limits_that_others_use_up_make_it_slower(autojump_clock: MockClock) -> None:
    bus = FakeBus(faults={"edit": [RequestRefused("the wait would be 25 s"), api_error(429, "retry after 9")]})
    async with streaming(bus) as stream:
        await words(stream, 400)
    assert [time for time, *_ in bus.seen] == [0, 28, 36, 40]
    assert bus.shown == stream.text


async def test_what_fails_at_the_end_is_raised(autojump_clock: MockClock) -> None:
    bus = FakeBus(faults={"edit": [api_error(403, "Forbidden: bot was kicked")]})

    async def write(bus: FakeBus) -> None:
        async with streaming(bus) as stream:
            await words(stream, 20)

    with pytest.raises(ApiError, match="kicked"):
        await write(bus)
    with pytest.raises(NoLeader):
        await write(FakeBus(left=True, faults={"send": [NoLeader("left")]}))


async def test_a_message_that_somebody_deleted_is_sent_anew(autojump_clock: MockClock) -> None:
    gone = api_error(400, "Bad Request: message to edit not found")
    bus = FakeBus(faults={"edit": [gone, gone]})
    async with streaming(bus) as stream:
        await words(stream, 100)
    assert [what for _, what, _ in bus.seen] == ["send", "send"]
    assert list(bus.messages.values())[-1] == stream.text


@pytest.mark.parametrize("chat_id", [GROUP, PRIVATE])
@pytest.mark.parametrize("how", ["fault", "cancel"])
async def test_a_block_that_fails_says_that_it_is_not_all(autojump_clock: MockClock, chat_id: int, how: str) -> None:
    bus = FakeBus(chat_id)

    async def fail() -> None:
        async with streaming(bus) as stream:
            await stream.write("half an ans")
            await trio.sleep(10)
            if how == "fault":
                raise ZeroDivisionError
            await trio.sleep(math.inf)

    if how == "fault":
        with pytest.raises(ZeroDivisionError):
            await fail()
    else:
        with trio.move_on_after(20):
            await fail()
    assert bus.shown == "half an ans" + BROKEN_OFF


async def test_what_was_on_its_way_when_the_block_failed_is_known_and_changed(autojump_clock: MockClock) -> None:
    bus = FakeBus(takes=2)
    with trio.move_on_after(1):
        async with streaming(bus) as stream:
            await stream.write("half")
            await trio.sleep(math.inf)
    assert bus.shown == "half" + BROKEN_OFF


async def test_one_that_failed_before_anything_was_shown_says_nothing(autojump_clock: MockClock) -> None:
    bus = FakeBus()
    with pytest.raises(ZeroDivisionError):
        async with streaming(bus):
            raise ZeroDivisionError
    assert bus.seen == []


async def test_a_block_that_fails_without_a_leader_waits_for_none(autojump_clock: MockClock) -> None:
    bus = FakeBus()
    bus.gone = True

    async def fail() -> None:
        async with streaming(bus) as stream:
            await stream.write("a")
            await trio.sleep(1)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert trio.current_time() - bus.began == 1


async def test_the_farewell_is_bounded(autojump_clock: MockClock) -> None:
    bus = FakeBus()
    with trio.move_on_after(10):
        async with streaming(bus) as stream:
            await stream.write("a")
            await trio.sleep(5)
            bus.takes = math.inf
            await trio.sleep(math.inf)
    assert trio.current_time() - bus.began == 15


async def test_a_predecessors_message_is_gone_on_with(autojump_clock: MockClock) -> None:
    """Whatever it shows: also where its first text is the one that is wanted in the end."""
    bus = FakeBus()
    with trio.move_on_after(4):
        async with streaming(bus, once="x") as stream:
            await stream.write("first")
            await trio.sleep(3.5)
            await stream.write(" and more")
            await trio.sleep(math.inf)
    bus.seen.clear()
    async with streaming(bus, once="x") as stream:
        await stream.write("first")
    assert bus.shown == "first"
    assert [what for _, what, _ in bus.seen] == ["edit"]
