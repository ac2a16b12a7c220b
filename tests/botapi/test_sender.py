"""The sender on a virtual clock: order, pauses, retries, and calls that outlive their requesters."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing
from attrs import define, field
from trio.testing import MockClock

from telegram_bus.botapi.sender import QUEUED, Failed, Outcome, Sender, Sent
from telegram_bus.botapi.uploads import Upload
from telegram_bus.core.errors import AnswerLost, ApiError, CommitUnknown, NotSent, RequestRefused, StateError
from telegram_bus.core.meters import Limits, Rate
from telegram_bus.core.turns import CHATLESS_AT_ONCE


def flood(seconds: float | None) -> ApiError:
    return ApiError("sendMessage", 429, "Too Many Requests", retry_after=seconds)


@define
class FakeTelegram:
    """Answers each call with its parameters after `delay`; `faults` are raised first, in order."""

    faults: list[Exception] = field(factory=list)
    delay: float = 1.0
    calls: list[tuple[float, str, Any]] = field(factory=list)
    done: list[Any] = field(factory=list)
    running: int = 0
    most: int = 0

    async def call(
        self, method: str, params: Mapping[str, Any] | None = None, *, files: tuple[Upload, ...] = ()
    ) -> Any:
        text = (params or {}).get("text")
        self.calls.append((trio.current_time(), method, text))
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await trio.sleep(self.delay)
        finally:
            self.running -= 1
        if self.faults:
            raise self.faults.pop(0)
        self.done.append(text)
        return text

    @property
    def times(self) -> list[float]:
        return [time - self.calls[0][0] for time, _, _ in self.calls]


NO_LIMITS = Limits(Rate(10**6, 1.0), Rate(10**6, 1.0), 10**6, Rate(10**6, 1.0), Rate(10**6, 1.0))


@asynccontextmanager
async def sending(telegram: FakeTelegram, limits: Limits = NO_LIMITS, **more: Any) -> AsyncIterator[Sender]:
    sender = Sender(
        telegram, repeatable=lambda method: not method.startswith("send"), jitter=lambda: 1.0, limits=limits, **more
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(sender.run)
        yield sender
        nursery.cancel_scope.cancel()


async def send(sender: Sender, text: Any, chat_id: int | None = 1, *, patient: bool = False) -> Any:
    return await sender.call("sendMessage", {"text": text}, chat_id, patient=patient)


async def test_calls_of_one_chat_go_out_one_at_a_time_in_order(autojump_clock: MockClock) -> None:
    telegram = FakeTelegram()
    async with sending(telegram) as sender, trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(send, sender, number)
            await trio.testing.wait_all_tasks_blocked()
    assert telegram.done == list(range(10))
    assert telegram.most == 1


async def test_chats_do_not_wait_for_each_other(autojump_clock: MockClock) -> None:
    telegram = FakeTelegram()
    begun = trio.current_time()
    async with sending(telegram) as sender, trio.open_nursery() as nursery:
        for chat in range(20):
            nursery.start_soon(send, sender, chat, chat)
    assert trio.current_time() - begun == 1.0


async def test_calls_without_a_chat_run_side_by_side_up_to_a_bound(autojump_clock: MockClock) -> None:
    telegram = FakeTelegram()
    async with sending(telegram) as sender, trio.open_nursery() as nursery:
        for number in range(3 * CHATLESS_AT_ONCE):
            nursery.start_soon(send, sender, number, None)
    assert telegram.most == CHATLESS_AT_ONCE
    assert len(telegram.done) == 3 * CHATLESS_AT_ONCE


async def test_a_cancelled_caller_does_not_cut_its_call(autojump_clock: MockClock) -> None:
    telegram = FakeTelegram()
    outcomes: list[Outcome] = []

    async def settle(outcome: Outcome) -> None:
        await trio.lowlevel.checkpoint()
        outcomes.append(outcome)

    async with sending(telegram) as sender:
        for text in ("under way", "queued"):
            with trio.move_on_after(0.25) as scope:
                await sender.call("sendMessage", {"text": text}, 1, after=settle)
            assert scope.cancelled_caught
        assert await send(sender, "later") == "later"
    assert telegram.done == ["under way", "queued", "later"]
    assert outcomes == [Sent("under way"), Sent("queued")]


async def test_what_cannot_be_stored_of_an_outcome_is_told_to_the_caller_and_the_chat_goes_on(
    autojump_clock: MockClock,
) -> None:
    async def settle(_outcome: Outcome) -> None:
        await trio.lowlevel.checkpoint()
        raise StateError("no space left")

    async with sending(FakeTelegram()) as sender:
        with pytest.raises(StateError, match="no space"):
            await sender.call("sendMessage", {"text": 1}, 1, after=settle)
        assert await send(sender, 2) == 2


async def test_a_mistake_in_storing_one_outcome_ends_nobody_elses_calls(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def settle(_outcome: Outcome) -> None:
        await trio.lowlevel.checkpoint()
        raise TypeError("not JSON")

    async with sending(FakeTelegram()) as sender:
        assert await sender.call("sendMessage", {"text": 1}, 1, after=settle) == 1
        assert await send(sender, 2) == 2
    assert "the outcome of sendMessage could not be stored" in caplog.text


async def test_after_is_told_of_a_refusal_too(autojump_clock: MockClock) -> None:
    outcomes: list[Outcome] = []

    async def settle(outcome: Outcome) -> None:
        await trio.lowlevel.checkpoint()
        outcomes.append(outcome)

    fault = ApiError("sendMessage", 400, "Bad Request: message thread not found")
    async with sending(FakeTelegram([fault])) as sender:
        with pytest.raises(ApiError):
            await sender.call("sendMessage", {}, 1, after=settle)
    assert outcomes == [Failed(fault)]


async def test_a_flooded_chat_waits_exactly_as_long_as_told_and_repeats(autojump_clock: MockClock) -> None:
    telegram = FakeTelegram([flood(7), flood(3)], delay=0)
    async with sending(telegram) as sender:
        assert await send(sender, "a") == "a"
    assert telegram.times == [0, 7, 10]


async def test_a_flooded_chat_does_not_hold_up_another(autojump_clock: MockClock) -> None:
    telegram = FakeTelegram([flood(15)], delay=0)
    begun = trio.current_time()
    async with sending(telegram) as sender, trio.open_nursery() as nursery:
        nursery.start_soon(send, sender, "a", 1)
        await trio.testing.wait_all_tasks_blocked()
        assert await send(sender, "b", 2) == "b"
        assert trio.current_time() == begun


async def test_a_wait_that_is_too_long_is_refused_with_its_time_for_all_that_queue(autojump_clock: MockClock) -> None:
    telegram = FakeTelegram([flood(3600)])
    refused = []

    async def expect_refusal(sender: Sender, number: int) -> None:
        with pytest.raises(RequestRefused, match=r"36\d\d s|3599 s"):
            await send(sender, number)
        refused.append(number)

    async with sending(telegram) as sender:
        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(expect_refusal, sender, number)
        with pytest.raises(RequestRefused, match="sendMessage would have to wait"):
            sender.check("sendMessage", 1)
        sender.check("sendMessage", 2)
        assert len(telegram.calls) == 1
        await trio.sleep(3600)
        sender.check("sendMessage", 1)
        assert await send(sender, "again") == "again"
    assert sorted(refused) == list(range(5))


async def test_a_chat_that_is_flooded_again_and_again_is_given_up(autojump_clock: MockClock) -> None:
    telegram = FakeTelegram([flood(15) for _ in range(20)], delay=0)
    async with sending(telegram) as sender:
        with pytest.raises(RequestRefused):
            await send(sender, "a")
    assert telegram.times == [0, 15]


async def test_what_was_surely_not_sent_is_tried_again_up_to_a_bound(autojump_clock: MockClock) -> None:
    telegram = FakeTelegram([NotSent("no route") for _ in range(4)], delay=0)
    async with sending(telegram) as sender:
        assert await send(sender, "a") == "a"
        assert telegram.times == [0, 0.5, 1.5, 3.5, 7.5]
        telegram.faults = [NotSent("no route") for _ in range(5)]
        with pytest.raises(NotSent, match="no route"):
            await send(sender, "b")


async def test_a_lost_answer_is_not_repeated_where_that_might_do_it_twice(autojump_clock: MockClock) -> None:
    telegram = FakeTelegram([AnswerLost("cut off")])
    async with sending(telegram) as sender:
        with pytest.raises(CommitUnknown, match=r"sendMessage.*cut off"):
            await send(sender, "a")
        assert len(telegram.calls) == 1
        assert await send(sender, "b") == "b"


async def test_a_lost_answer_of_a_repeatable_call_is_asked_for_again(autojump_clock: MockClock) -> None:
    telegram = FakeTelegram([AnswerLost("cut"), AnswerLost("cut")])
    async with sending(telegram) as sender:
        assert await sender.call("editMessageText", {"text": "a"}, 1) == "a"
        telegram.faults = [AnswerLost("cut") for _ in range(3)]
        with pytest.raises(AnswerLost) as caught:
            await sender.call("editMessageText", {"text": "b"}, 1)
        assert type(caught.value) is AnswerLost


async def test_an_answer_that_trickles_for_ever_ends_and_the_chat_goes_on(autojump_clock: MockClock) -> None:
    telegram = FakeTelegram(delay=1_000_000)
    async with sending(telegram) as sender:
        with pytest.raises(CommitUnknown):
            await send(sender, "a")
        telegram.delay = 1
        assert await send(sender, "b") == "b"


async def test_a_full_queue_makes_callers_wait_and_a_cancelled_one_of_them_sends_nothing(
    autojump_clock: MockClock,
) -> None:
    telegram = FakeTelegram()
    async with sending(telegram) as sender, trio.open_nursery() as nursery:
        for number in range(QUEUED + 1):
            nursery.start_soon(partial(send, sender, number, patient=True))
            await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(0.5) as scope:
            await send(sender, "no place")
        assert scope.cancelled_caught
    assert telegram.done == list(range(QUEUED + 1))


async def test_whoever_gives_up_before_there_was_a_place_has_it_noted_that_nothing_was_sent(
    autojump_clock: MockClock,
) -> None:
    outcomes: list[Outcome] = []

    async def settle(outcome: Outcome) -> None:
        await trio.sleep(0.1)
        outcomes.append(outcome)

    async with sending(FakeTelegram(delay=100)) as sender, trio.open_nursery() as nursery:
        for number in range(QUEUED + 1):
            nursery.start_soon(send, sender, number)
            await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(0.5):
            await sender.call("sendMessage", {}, 1, after=settle)
        nursery.cancel_scope.cancel()
    assert [type(outcome.fault) for outcome in outcomes if isinstance(outcome, Failed)] == [NotSent]


async def test_at_the_end_every_outcome_is_noted_as_far_as_it_is_known(autojump_clock: MockClock) -> None:
    outcomes: dict[str, type[Exception]] = {}

    async def ask(sender: Sender, text: str) -> None:
        async def settle(outcome: Outcome) -> None:
            await trio.sleep(0.1)
            assert isinstance(outcome, Failed)
            outcomes[text] = type(outcome.fault)

        await sender.call("sendMessage", {"text": text}, 1, after=settle)

    async with sending(FakeTelegram(delay=100)) as sender, trio.open_nursery() as nursery:
        for text in ("under way", "queued"):
            nursery.start_soon(ask, sender, text)
            await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert outcomes == {"under way": CommitUnknown, "queued": NotSent}


async def test_storing_that_hangs_does_not_hold_up_the_chat_for_ever(autojump_clock: MockClock) -> None:
    async def settle(_outcome: Outcome) -> None:
        await trio.sleep_forever()

    async with sending(FakeTelegram()) as sender:
        assert await sender.call("sendMessage", {"text": 1}, 1, after=settle) == 1
        assert await send(sender, 2) == 2


async def test_draining_finishes_what_was_taken_and_takes_nothing_more(autojump_clock: MockClock) -> None:
    telegram = FakeTelegram()
    async with sending(telegram) as sender, trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(send, sender, number)
        await trio.testing.wait_all_tasks_blocked()
        await sender.drain()
        assert sorted(telegram.done) == list(range(5))
        with pytest.raises(NotSent, match="stopping"):
            await send(sender, "late")
        await sender.drain()


async def test_draining_keeps_its_callers_deadline(autojump_clock: MockClock) -> None:
    async with sending(FakeTelegram(delay=100)) as sender, trio.open_nursery() as nursery:
        nursery.start_soon(send, sender, 1)
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(2) as scope:
            await sender.drain()
        assert scope.cancelled_caught
        nursery.cancel_scope.cancel()


async def test_at_the_end_every_caller_hears_what_is_known_of_its_call(autojump_clock: MockClock) -> None:
    telegram = FakeTelegram(delay=5)
    heard: dict[str, type[BaseException]] = {}

    async def ask(sender: Sender, text: str, chat_id: int | None) -> None:
        with pytest.raises((NotSent, CommitUnknown)) as caught:
            await send(sender, text, chat_id)
        heard[text] = type(caught.value)

    async with trio.open_nursery() as nursery:
        async with sending(telegram) as sender:
            for text, chat_id in (("a", 1), ("behind a", 1), ("b", None)):
                nursery.start_soon(ask, sender, text, chat_id)
                await trio.testing.wait_all_tasks_blocked()
            await trio.sleep(1)
        await trio.testing.wait_all_tasks_blocked()
        assert heard == {"a": CommitUnknown, "behind a": NotSent, "b": CommitUnknown}
        with pytest.raises(NotSent, match="stopped"):
            await send(sender, "after the end")


async def test_a_call_that_waits_for_its_turn_at_the_end_was_not_sent(autojump_clock: MockClock) -> None:
    telegram = FakeTelegram([flood(15)])
    heard: list[Exception] = []

    async def ask(sender: Sender) -> None:
        with pytest.raises((NotSent, AnswerLost)) as caught:
            await send(sender, "a")
        heard.append(caught.value)

    async with trio.open_nursery() as nursery, sending(telegram) as sender:
        nursery.start_soon(ask, sender)
        await trio.sleep(5)
    assert [type(fault) for fault in heard] == [NotSent]
