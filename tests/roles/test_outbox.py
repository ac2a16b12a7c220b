"""Calls with an id: durable from their acceptance, sent by whoever leads, told of when nobody knows their outcome."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from hashlib import sha256
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.core.codec import dumps
from telegram_bus.core.errors import AnswerLost, ApiError, BusError, CommitUnknown, NotSent, RequestRefused, StateError
from telegram_bus.core.permissions import Allowed
from telegram_bus.roles.buttons import Press
from telegram_bus.roles.files import Enclosed
from tests.fakes import CHAT, FakeTelegram
from tests.roles.test_calls import Rig

BLOCKED = ApiError("sendMessage", 403, "Forbidden: bot was blocked by the user")
SUPERGROUP = -100777
GONE = ApiError("sendMessage", 400, "Bad Request: message thread not found")


@asynccontextmanager
async def leading(rig: Rig) -> AsyncIterator[Rig]:
    """A leader at work; what it left under way when the block ends is what a kill leaves."""
    async with trio.open_nursery() as nursery:
        await nursery.start(rig.sender.run)
        await nursery.start(rig.calls.outbox.run)
        yield rig
        rig.commits.fault = StateError("it is dead")  # so that its end tidies nothing up
        nursery.cancel_scope.cancel("killed")


def successor(rig: Rig, telegram: FakeTelegram | None = None) -> Rig:
    return Rig(rig.telegram if telegram is None else telegram, rig.commits)


def states(rig: Rig) -> dict[str, str]:
    return dict(rig.commits.db.execute("SELECT request_id, state FROM calls WHERE key != '' ORDER BY seq"))


def texts(telegram: FakeTelegram) -> list[str]:
    return [call["text"] for call in telegram.made("sendMessage")]


async def fails(rig: Rig, fault: type[BusError], name: str, text: str = "hi", **more: Any) -> str:
    with pytest.raises(fault) as caught:
        await rig.send(f"request of {name}", text, call_id=name, **more)
    return str(caught.value)


async def test_what_was_accepted_is_sent_by_the_next_leader_unasked_and_in_order(autojump_clock: MockClock) -> None:
    first = Rig()
    first.telegram.results["sendMessage"] = NotSent("no network")
    async with leading(first), trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(partial(first.send, f"r{number}", f"part {number}", call_id=f"k{number}"))
            await trio.sleep(0.1)
        await trio.sleep(60)
        assert set(states(first).values()) == {"accepted"}  # and not claimed: it was surely not sent
        first.commits.fault = StateError("it is dead")
        nursery.cancel_scope.cancel("its follower died")
    first.commits.fault = None
    async with leading(successor(first, FakeTelegram())) as second:
        await trio.sleep(60)
        assert texts(second.telegram) == ["part 0", "part 1", "part 2"]
        assert set(states(second).values()) == {"settled"}
        assert (await second.send("r9", "other words", call_id="k1"))["message_id"]
        assert len(texts(second.telegram)) == 3
        assert second.calls.store.owner_nowait(CHAT, 101) == "nora"


async def test_who_asks_again_joins_what_the_next_leader_is_sending(autojump_clock: MockClock) -> None:
    rig = Rig()
    await rig.calls.store.accept_call(
        "nora", "named:k", _digest(), 1, ("sendMessage", b'{"chat_id":-1001234,"text":"a"}')
    )
    rig = successor(rig)
    rig.telegram.gate = trio.Event()
    async with leading(rig), trio.open_nursery() as nursery:
        await wait_all_tasks_blocked()
        nursery.start_soon(lambda: rig.send("r2", "b", call_id="k"))
        nursery.start_soon(lambda: rig.send("r3", "behind", call_id="other"))
        await wait_all_tasks_blocked()
        rig.telegram.gate.set()
        await trio.sleep(5)
        assert texts(rig.telegram) == ["a", "behind"]


def _digest() -> str:
    return sha256(dumps(["sendMessage"])).hexdigest()


async def test_what_was_surely_not_sent_is_retried_for_as_long_as_it_takes(autojump_clock: MockClock) -> None:
    """Its program waits, and need not: what was accepted goes out when the network is back."""
    rig = Rig()
    rig.telegram.results["sendMessage"] = NotSent("no network")
    async with leading(rig):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: rig.send("r1", "patient", call_id="k1"))
            with trio.move_on_after(600):
                await rig.send("r2", "left", call_id="k2")
            assert rig.calls.outbox.waiting("nora") == 2
            rig.telegram.results.clear()
            rig.telegram.calls.clear()
        await trio.sleep(60)
        assert sorted(texts(rig.telegram)) == ["left", "patient"]
        assert states(rig) == {"named:k1": "settled", "named:k2": "settled"}
        assert not rig.calls.outbox.busy


async def test_a_full_disk_delays_an_accepted_call_and_loses_nothing(autojump_clock: MockClock) -> None:
    """One whose result cannot be stored is stored later; one that cannot be accepted is refused."""
    rig = Rig()
    async with leading(rig), trio.open_nursery() as nursery:
        rig.telegram.gate = trio.Event()
        nursery.start_soon(lambda: rig.send("r1", "first", call_id="k1"))
        await trio.sleep(1)
        rig.commits.fault = StateError("the disk is full")
        rig.telegram.gate.set()
        await fails(rig, StateError, "k2")
        await trio.sleep(100)
        rig.commits.fault = None
        await trio.sleep(100)
        assert states(rig) == {"named:k1": "settled"}
        assert texts(rig.telegram) == ["first"]


async def test_scenario_31_unknown_is_told_once_and_sent_again_by_one_press(autojump_clock: MockClock) -> None:
    """By this leader or by the next one, which finds only that it was claimed."""
    rig = Rig()
    rig.telegram.results["sendMessage"] = AnswerLost("the connection broke")
    async with leading(rig):
        await fails(rig, CommitUnknown, "k", "the answer")
        assert states(rig) == {"named:k": "unknown"}
        rig.telegram.results.clear()
        await trio.sleep(60)
        [original, notice] = rig.telegram.made("sendMessage")
        assert "the answer" in notice["text"]
        assert (notice["chat_id"], notice["message_thread_id"]) == (original["chat_id"], original["message_thread_id"])
        [[button]] = notice["reply_markup"]["inline_keyboard"]
        assert rig.calls.outbox.status()["unknown"] == 1
        await fails(rig, CommitUnknown, "k", "the answer")  # still not sent blindly
    rig.commits.fault = None
    async with leading(successor(rig)) as second:
        await trio.sleep(60)
        assert len(texts(second.telegram)) == 2  # told once over all leaders
        press = Press(
            button["callback_data"].removeprefix("tb:again:"),
            {"message_id": 9, "chat": {"id": CHAT}, "text": notice["text"]},
            {"id": 7},
            "q",
        )
        assert await second.calls.outbox.doubts.pressed(press) == "It is sent again."
        assert "already" in await second.calls.outbox.doubts.pressed(press)
        await trio.sleep(60)
        assert texts(second.telegram)[2:] == ["the answer"]
        assert (await second.send("r7", "words", call_id="k"))["message_id"]
        assert second.calls.outbox.status()["unknown"] == 0
        assert second.telegram.made("editMessageText")[0]["text"].endswith("Sent again.")


async def test_what_a_dead_leader_had_claimed_is_unknown_and_told_by_the_next_one(autojump_clock: MockClock) -> None:
    """Named or not, with files or not; of the notice itself nobody is told."""
    rig = Rig()
    for request, body in (("named:k", b'{"chat_id":-1001234,"text":"a"}'), ("r", b'{"chat_id":-1001234,"__files":1}')):
        await rig.calls.store.claim_call("nora", request, "d", 1, ("sendMessage", body))
    await rig.calls.store.claim_call("", "doubt:9.0", "d", 1, ("sendMessage", b'{"chat_id":-1001234,"text":"b"}'))
    rig = successor(rig)
    async with leading(rig):
        await trio.sleep(60)
        assert ["reply_markup" in call for call in rig.telegram.made("sendMessage")] == [True, False]
        assert rig.calls.outbox.doubts.count("nora") == 2


@pytest.mark.parametrize("rest", ["", "1", "1.x", "٣.0", "9.0", "1.1", "1" * 50 + ".0", "-1.0"])
async def test_a_button_that_means_nothing_does_nothing(rest: str) -> None:
    async with leading(Rig()) as rig:
        press = Press(rest, {}, {"id": 7}, "q")
        assert "already" in await rig.calls.outbox.doubts.pressed(press)
        assert texts(rig.telegram) == []


async def test_scenario_32_a_long_answer_goes_on_at_the_part_that_failed(autojump_clock: MockClock) -> None:
    """Its program died behind part 3, and begins anew with other words at the next leader."""
    rig = Rig()
    async with leading(rig):
        for part in (1, 2):
            await rig.send(f"a{part}", f"part {part}", call_id=f"answer#{part}")
        rig.telegram.results["sendMessage"] = ApiError("sendMessage", 429, "Too Many Requests", retry_after=5)
        with trio.move_on_after(2):
            await rig.send("a3", "part 3", call_id="answer#3")
        assert states(rig)["named:answer#3"] == "accepted"
    rig.commits.fault = None
    async with leading(successor(rig, FakeTelegram())) as second:
        for part in range(1, 6):
            await second.send(f"b{part}", f"part {part} anew", call_id=f"answer#{part}")
        assert texts(second.telegram) == ["part 3", "part 4 anew", "part 5 anew"]


@pytest.mark.parametrize("thread", [None, 12])
async def test_scenario_61_a_message_in_another_thread_is_deleted_and_its_owner_hears_of_it(
    thread: int | None, autojump_clock: MockClock
) -> None:
    rig, missing = Rig(), []
    rig.calls.outbox.passage.thread_missing = lambda *facts: missing.append(facts)
    stray = {"message_id": 77, "chat": {"id": CHAT}, "text": "hi"}
    rig.telegram.results["sendMessage"] = stray if thread is None else {**stray, "message_thread_id": thread}
    async with leading(rig):
        assert "thread 11, which is gone" in await fails(rig, RequestRefused, "k")
        await trio.sleep(5)
        assert missing == [(CHAT, 11, "elsewhere")]
        assert rig.telegram.made("deleteMessage") == [{"chat_id": CHAT, "message_id": 77}]
        assert rig.calls.store.owner_nowait(CHAT, 77) is None
        assert "which is gone" in await fails(rig, RequestRefused, "k")
        assert len(texts(rig.telegram)) == 1


async def test_scenario_62_a_refused_thread_is_never_left_out(autojump_clock: MockClock) -> None:
    rig, missing = Rig(), []
    rig.calls.outbox.passage.thread_missing = lambda *facts: missing.append(facts)
    rig.telegram.results["sendMessage"] = GONE
    async with leading(rig):
        assert "message thread not found" in await fails(rig, ApiError, "k")
        with pytest.raises(ApiError):
            await rig.send("unnamed")
        await trio.sleep(600)
        assert [call.get("message_thread_id") for call in rig.telegram.made("sendMessage")] == [11, 11]
        assert missing == [(CHAT, 11, "not found")] * 2


@pytest.mark.parametrize("call_id", ["k", None])
async def test_scenario_74_a_call_into_an_upgraded_group_goes_out_once_in_the_supergroup(
    call_id: str | None, autojump_clock: MockClock
) -> None:
    rig, told = Rig(Upgraded()), []

    async def migrated(old: int, new: int) -> bool:
        told.append((old, new))
        return True

    rig.calls.outbox.passage.chat_migrated = migrated
    async with leading(rig):
        assert (await rig.send("r1", "hi", call_id=call_id))["chat"] == {"id": SUPERGROUP}
        assert told == [(CHAT, SUPERGROUP)]
        assert (await rig.send("r1", "hi", call_id=call_id))["chat"] == {"id": SUPERGROUP}
        await rig.send("r2", "later", call_id="k2")
        assert [call["chat_id"] for call in rig.telegram.made("sendMessage")] == [CHAT, SUPERGROUP, SUPERGROUP]


async def test_scenario_74_what_is_about_a_message_of_the_old_group_is_not_made_in_the_new_one(
    autojump_clock: MockClock,
) -> None:
    """Where another message may have its id: an edit is refused, a reply is a message of its own."""
    async with leading(Rig(Upgraded())) as rig:
        with pytest.raises(ApiError, match="upgraded"):
            await rig.call("editMessageText", {"chat_id": CHAT, "message_id": 7, "text": "x"}, "r3")
        assert [call["chat_id"] for call in rig.telegram.made("editMessageText")] == [CHAT]
    async with leading(Rig(Upgraded())) as rig:
        body = {"chat_id": CHAT, "text": "x", "reply_parameters": {"message_id": 7}}
        await rig.call("sendMessage", body, "r4")
        assert rig.telegram.made("sendMessage")[-1] == {"chat_id": SUPERGROUP, "text": "x"}


class Upgraded(FakeTelegram):
    """The group has become a supergroup."""

    async def call(self, method: str, params: Any = None, *args: Any, **more: Any) -> Any:
        if params.get("chat_id") == CHAT:
            self.calls.append((method, dict(params)))
            await trio.lowlevel.checkpoint()
            raise ApiError(method, 400, "Bad Request: group chat was upgraded", migrate_to_chat_id=SUPERGROUP)
        return await super().call(method, params, *args, **more)


async def test_scenario_76_a_blocked_chat_is_parked_until_its_person_writes_again(autojump_clock: MockClock) -> None:
    """Nothing is sent there, also not by the next leader; then the same id sends what it could not."""
    rig = Rig()
    rig.telegram.results["sendMessage"] = BLOCKED
    async with leading(rig):
        assert "blocked" in await fails(rig, ApiError, "k")
        for method in ("sendMessage", "sendChatAction"):
            with pytest.raises(RequestRefused, match="has blocked the bot; it is tried again once somebody writes"):
                await rig.call(method, {"chat_id": CHAT, "text": "x"}, method, call_id=method)
        assert len(rig.telegram.calls) == 1
        assert rig.calls.outbox.status()["parked"] == [{"chat_id": CHAT, "why": "the person has blocked the bot"}]
    rig.commits.fault = None
    async with leading(successor(rig, FakeTelegram())) as second:
        await fails(second, RequestRefused, "k")
        assert second.telegram.calls == []
        assert await second.calls.outbox.parking.opened(CHAT)
        assert not await second.calls.outbox.parking.opened(CHAT)
        assert (await second.send("r5", call_id="k"))["message_id"]
    second.commits.fault = None
    assert (await second.calls.store.begin_calls(1)).parked == {}


async def test_what_waits_for_a_closed_chat_goes_out_when_it_is_open_and_keeps_no_leader(
    autojump_clock: MockClock,
) -> None:
    rig = Rig()
    await rig.calls.store.accept_call("nora", "named:k", "d", 1, ("sendMessage", b'{"chat_id":-1001234,"text":"a"}'))
    await rig.calls.store.park(CHAT, "the person has blocked the bot", 1)
    async with leading(successor(rig)) as second:
        await trio.sleep(600)
        assert second.telegram.calls == []
        assert not second.calls.outbox.busy
        await second.calls.outbox.parking.opened(CHAT)
        await trio.sleep(600)
        assert texts(second.telegram) == ["a"]


async def test_a_call_that_could_not_be_sent_for_two_days_is_refused(autojump_clock: MockClock) -> None:
    rig = Rig()
    rig.telegram.results["sendMessage"] = NotSent("no network")
    hours = 0.0
    rig.calls.outbox.now_ms = rig.calls.outbox.passage.now_ms = lambda: round(hours * 3_600_000)
    said: list[str] = []

    async def send() -> None:
        said.append(await fails(rig, RequestRefused, "k"))

    async with leading(rig), trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await trio.sleep(600)
        hours = 47.9
        await trio.sleep(600)
        assert states(rig) == {"named:k": "accepted"}
        hours = 48.1
        await trio.sleep(600)
        assert states(rig) == {"named:k": "settled"}
    assert "two days" in said[0]


async def test_uploads_are_claimed_only_for_they_end_with_the_leader(autojump_clock: MockClock) -> None:
    """What is accepted has to be sendable by a successor."""
    rig = Rig()
    call = Allowed(method="call", args=("sendPhoto", {"chat_id": CHAT}))
    async with leading(rig):
        await rig.calls.outbox.once(("nora", "named:p"), call, ["p"], durable=False, files=Enclosed().take)
        assert states(rig) == {"named:p": "settled"}


async def test_one_follower_cannot_fill_the_outbox(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("telegram_bus.roles.outbox.MOST", 3)
    rig = Rig()
    rig.telegram.gate = trio.Event()
    async with leading(rig), trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(partial(rig.send, f"r{number}", call_id=f"k{number}"))
        await trio.sleep(1)
        assert "wait" in await fails(rig, RequestRefused, "k9")
        await trio.sleep(1)
        rig.telegram.gate.set()
    assert len(states(rig)) == 3
