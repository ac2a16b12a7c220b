"""The sender under its budget, on a virtual clock: long pauses, edits that are one, patience, and a hung call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import trio
from attrs import define, field
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.botapi.requests import Outcome, Sent
from telegram_bus.botapi.sender import LONGEST_WAIT, QUEUED, Sender
from telegram_bus.core.errors import ApiError, BusError, NotSent, RequestRefused
from telegram_bus.core.meters import DEFAULT_LIMITS
from tests.botapi.test_sender import FakeTelegram, flood, sending

GROUP = -100
HOUR = 3_600.0


async def heard(work: Callable[[], Any], into: list[Any]) -> None:
    try:
        into.append(await work())
    except BusError as fault:
        into.append(fault)


def send(sender: Sender, text: str, **more: Any) -> Callable[[], Any]:
    return lambda: sender.call("sendMessage", {"text": text}, GROUP, patient=True, **more)


def edit(sender: Sender, text: str, message: int = 5, **more: Any) -> Callable[[], Any]:
    params = {"message_id": message, "text": text}
    return lambda: sender.call("editMessageText", params, GROUP, patient=True, **more)


async def test_a_pause_of_an_hour_parks_what_waits_drops_what_is_stale_and_is_told_afterwards(
    autojump_clock: MockClock,
) -> None:
    told: list[str] = []
    telegram = FakeTelegram([flood(HOUR)], delay=0.1)
    outcomes: dict[str, list[Any]] = {
        name: [] for name in ("first", "second", "final", "edit", "typing", "v1", "progress")
    }
    async with sending(telegram, DEFAULT_LIMITS, report=told.append) as sender, trio.open_nursery() as nursery:
        begun = trio.current_time()
        nursery.start_soon(heard, send(sender, "first", owner="a"), outcomes["first"])
        await trio.sleep(0.2)
        for name, work in {
            "second": send(sender, "second", owner="b"),
            "progress": send(sender, "progress", owner="b", urgency="progress"),
            "final": send(sender, "final", owner="c", urgency="final"),
            "edit": edit(sender, "edit", owner="c"),
            "typing": lambda: sender.call("sendChatAction", {"action": "typing"}, GROUP, owner="d"),
            "v1": lambda: sender.call("sendMessage", {"text": "v1"}, GROUP, owner="e"),
        }.items():
            nursery.start_soon(heard, work, outcomes[name])
        await trio.sleep(1)
        assert outcomes["typing"] == [True]
        assert "36" in str(outcomes["v1"][0])
        assert isinstance(outcomes["v1"][0], RequestRefused)
        assert "only shows progress" in str(outcomes["edit"][0])
        assert sender.pause() is not None
        with pytest.raises(RequestRefused, match="would have to wait 359"):
            sender.check("sendMessage", GROUP)
        sender.check("sendMessage", GROUP, patient=True)
        assert await sender.call("sendMessage", {"text": "elsewhere"}, 7) == "elsewhere"
        await trio.sleep(HOUR)
        assert sender.pause() is None
    assert sorted(text for _, _, text in telegram.calls) == ["elsewhere", "final", "first", "first", "second"]
    assert min(at for at, _, text in telegram.calls if text == "final") - begun >= HOUR
    assert [outcomes[name] for name in ("first", "second", "final")] == [["first"], ["second"], ["final"]]
    [text] = told
    assert "pause for 60 min" in text
    assert "only showed progress" in text


async def test_edits_of_one_message_that_wait_are_one_and_all_who_wait_hear_of_it(autojump_clock: MockClock) -> None:
    telegram, results = FakeTelegram(delay=5), list[Any]()
    noted: list[Outcome] = []

    async def note(outcome: Outcome) -> None:
        await trio.lowlevel.checkpoint()
        noted.append(outcome)

    async with sending(telegram) as sender, trio.open_nursery() as nursery:
        for text in ("1", "2", "3", "4"):
            nursery.start_soon(heard, edit(sender, text, after=note), results)
            await wait_all_tasks_blocked()
        nursery.start_soon(heard, edit(sender, "other", 6), results)
    assert telegram.done == ["1", "4", "other"]
    assert sorted(results) == ["1", "4", "4", "4", "other"]
    assert noted == [Sent("1"), Sent("4"), Sent("4"), Sent("4")]


class Messages(FakeTelegram):
    """Answers with messages."""

    async def call(self, method: str, params: Mapping[str, Any] | None = None, **_: Any) -> Any:
        await super().call(method, params)
        return {"message_id": (params or {}).get("message_id", 5), "text": (params or {}).get("text")}


async def test_an_edit_that_changes_nothing_is_not_sent(autojump_clock: MockClock) -> None:
    telegram = Messages(delay=0)
    async with sending(telegram) as sender:
        await send(sender, "a")()
        assert (await edit(sender, "a")())["text"] == "a"
        await edit(sender, "b")()
        assert (await edit(sender, "b")())["text"] == "b"
        await sender.call("editMessageReplyMarkup", {"message_id": 5, "reply_markup": {}}, GROUP)
        await edit(sender, "b")()
        await sender.call("deleteMessage", {"message_id": 5}, GROUP)
        await edit(sender, "b")()
    assert [text for _, _, text in telegram.calls] == ["a", "b", None, "b", None, "b"]


@pytest.mark.parametrize(
    ("method", "description", "fine"),
    [
        ("editMessageText", "Bad Request: message is not modified: specified new message content and …", True),
        ("editForumTopic", "Bad Request: TOPIC_NOT_MODIFIED", True),
        ("closeForumTopic", "Bad Request: TOPIC_NOT_MODIFIED", True),
        ("editMessageText", "Bad Request: message to edit not found", False),
        ("sendMessage", "Bad Request: message is not modified", False),
    ],
)
async def test_scenario_64_what_is_already_as_it_should_be_is_a_success(
    method: str, description: str, fine: bool, autojump_clock: MockClock
) -> None:
    results: list[Any] = []
    async with sending(FakeTelegram([ApiError(method, 400, description)])) as sender:
        await heard(lambda: sender.call(method, {"message_id": 5, "text": "a"}, GROUP), results)
    assert results == [True] if fine else isinstance(results[0], ApiError)


async def test_a_call_that_is_refused_by_a_429_is_claimed_again_at_its_next_turn(autojump_clock: MockClock) -> None:
    steps: list[str] = []

    def step(name: str) -> Callable[[], Any]:
        async def note() -> None:
            await trio.lowlevel.checkpoint()
            steps.append(name)

        return note

    telegram = FakeTelegram([flood(5)], delay=0)
    async with sending(telegram) as sender:
        await sender.call("sendMessage", {"text": "a"}, GROUP, before=step("claim"), release=step("release"))
    assert steps == ["claim", "release", "claim"]
    assert telegram.times == [0, 5]


async def test_a_hung_call_holds_up_no_other_follower_of_the_chat(autojump_clock: MockClock) -> None:
    telegram, results = FakeTelegram(delay=10**6), list[Any]()
    async with sending(telegram) as sender, trio.open_nursery() as nursery:
        nursery.start_soon(heard, send(sender, "hung", owner="a", after=None), results)
        await wait_all_tasks_blocked()
        telegram.delay = 0.1
        assert await send(sender, "b", owner="b")() == "b"
        assert await edit(sender, "own edit", owner="a")() == "own edit"
        assert await send(sender, "own click", owner="a", urgency="click")() == "own click"
        nursery.cancel_scope.cancel()


async def test_who_has_no_patience_is_refused_before_it_waits_and_who_has_it_waits(autojump_clock: MockClock) -> None:
    telegram, results = FakeTelegram(delay=0), list[Any]()
    async with sending(telegram, DEFAULT_LIMITS) as sender:
        begun = trio.current_time()
        async with trio.open_nursery() as nursery:
            for number in range(18):
                nursery.start_soon(heard, send(sender, str(number), owner=str(number)), results)
            await wait_all_tasks_blocked()
            with pytest.raises(RequestRefused, match="60 s"):
                await sender.call("sendMessage", {"text": "v1"}, GROUP, owner="v1")
            with pytest.raises(RequestRefused):
                sender.check("sendMessage", GROUP, owner="v1")
        assert trio.current_time() == begun
        assert await send(sender, "patient", owner="own")() == "patient"
        assert trio.current_time() - begun == 60.0


async def test_what_waits_longer_than_was_thought_is_refused_after_20_s(autojump_clock: MockClock) -> None:
    telegram = FakeTelegram(delay=30)
    async with sending(telegram) as sender, trio.open_nursery() as nursery:
        nursery.start_soon(heard, send(sender, "slow"), [])
        await wait_all_tasks_blocked()
        begun = trio.current_time()
        with pytest.raises(RequestRefused):
            await sender.call("sendMessage", {"text": "behind"}, GROUP)
        assert trio.current_time() - begun == LONGEST_WAIT
    assert telegram.done == ["slow"]


async def test_a_full_queue_of_one_follower_is_nobody_elses(autojump_clock: MockClock) -> None:
    telegram = FakeTelegram(delay=1)
    async with sending(telegram) as sender, trio.open_nursery() as nursery:
        for number in range(2 * QUEUED):
            nursery.start_soon(heard, send(sender, str(number), owner="busy"), [])
        await wait_all_tasks_blocked()
        shown = sender.queue("busy")
        assert (shown["waiting"], shown["limit"], shown["classes"]["message"]) == (QUEUED, QUEUED, QUEUED)
        assert sender.queue("other")["waiting"] == 0
        begun = trio.current_time()
        assert await send(sender, "other", owner="other")() == "other"
        assert trio.current_time() - begun == 1
    assert len(telegram.done) == 2 * QUEUED + 1


@define
class Notes:
    """A memory that writes down what it is told."""

    said: list[Any] = field(factory=list)

    def started(self, number: int, chat_id: int | None, weight: int) -> None:
        self.said.append(("started", number, chat_id, weight))

    def ended(self, number: int) -> None:
        self.said.append(("ended", number))

    def changed(self, pauses: Mapping[int | None, float], levels: Mapping[int | None, Any], now: float) -> None:
        self.said.append(("changed", {chat: until - now for chat, until in pauses.items()}, dict(levels)))

    async def flush(self) -> None:
        await trio.lowlevel.checkpoint()
        self.said.append("flushed")


async def test_what_counts_is_noted_before_it_leaves(autojump_clock: MockClock) -> None:
    """The number of an edit, which shows progress, is odd."""
    notes, telegram = Notes(), FakeTelegram([flood(3)], delay=0)

    async def claim() -> None:
        await trio.lowlevel.checkpoint()
        notes.said.append("claimed")

    async with sending(telegram, DEFAULT_LIMITS, memory=notes) as sender:
        await sender.call("sendMessage", {"text": "a"}, GROUP, before=claim)
        await edit(sender, "b")()
        await sender.call("deleteMessage", {"message_id": 5}, GROUP)
    assert notes.said == [
        ("started", 2, GROUP, 1), "claimed", ("changed", {GROUP: 3.0}, {GROUP: (10, 1.0)}), ("ended", 2),
        ("started", 4, GROUP, 1), "flushed", ("ended", 4),
        ("started", 7, GROUP, 1), "flushed", ("ended", 7),
    ]  # fmt: skip


async def test_what_waits_at_the_end_was_not_sent_be_it_in_a_place_or_before_one(autojump_clock: MockClock) -> None:
    telegram, results = FakeTelegram(delay=100), list[Any]()
    async with trio.open_nursery() as nursery, sending(telegram) as sender:
        for number in range(QUEUED + 10):
            nursery.start_soon(heard, send(sender, str(number)), results)
        await trio.sleep(150)
    assert sum(isinstance(one, NotSent) for one in results) >= QUEUED
    assert len(results) == QUEUED + 10


async def test_nothing_is_left_of_followers_that_are_gone(autojump_clock: MockClock) -> None:
    async with sending(FakeTelegram(delay=0)) as sender:
        for number in range(50):
            await send(sender, "a", owner=str(number))()
        await trio.sleep(100)
        assert sender._places.rooms == {}
        assert sender.budget._pools == {}


async def test_scenario_52_a_429_that_nobody_hears_of_mutes_nothing(autojump_clock: MockClock) -> None:
    """Whoever asked for a name gives up at once; the chat goes on at the very moment that Telegram named."""
    telegram = FakeTelegram([ApiError("editForumTopic", 429, "Too Many Requests", retry_after=30)], delay=0)
    async with sending(telegram, DEFAULT_LIMITS) as sender:
        with pytest.raises(RequestRefused):
            await sender.call("editForumTopic", {"message_thread_id": 3, "name": "n"}, GROUP)
        begun = trio.current_time()
        assert await send(sender, "a")() == "a"
        assert trio.current_time() - begun == 30
        assert sender.budget.levels == {}
        assert await sender.call("editForumTopic", {"message_thread_id": 3, "name": "n"}, GROUP) is None
