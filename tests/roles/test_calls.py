"""Calls in a follower's name: made once, whoever asks how often, and remembered with whose the messages are."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

import pytest
import trio
from attrs import define, field
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.botapi.sender import Sender
from telegram_bus.core.errors import AnswerLost, ApiError, BusError, CommitUnknown, NotSent, RequestRefused, StateError
from telegram_bus.core.permissions import Allowed, repeatable
from telegram_bus.core.registry import Member, Registry
from telegram_bus.roles.calls import Calls
from tests.fakes import CHAT, FakeTelegram, InlineCommits, admit, fake_files, memory_store


@define(eq=False)
class Rig:
    """The calls of a term over a store in memory and a real sender."""

    telegram: FakeTelegram = field(factory=FakeTelegram)
    earlier: InlineCommits | None = None
    registry: Registry = field(factory=Registry)
    sender: Sender = field(init=False)
    commits: InlineCommits = field(init=False)
    calls: Calls = field(init=False)

    def __attrs_post_init__(self) -> None:
        store, self.commits = memory_store(None if self.earlier is None else self.earlier.db)
        self.sender = Sender(self.telegram, repeatable=repeatable, jitter=lambda: 0.0)
        self.calls = Calls(store=store, sender=self.sender, now_ms=lambda: 1, files=fake_files(self.telegram))

    def member(self, key: str = "nora") -> Member:
        return self.registry.by_key(key) or admit(self.registry, key)

    async def send(
        self, request_id: str = "r1", text: str = "hi", *, key: str = "nora", call_id: str | None = None, **params: Any
    ) -> Any:
        body = {"chat_id": CHAT, "message_thread_id": 11, "text": text, **params}
        return await self.call("sendMessage", body, request_id, key=key, call_id=call_id)

    async def call(
        self,
        method: str,
        body: Mapping[str, Any],
        request_id: str = "r1",
        *,
        key: str = "nora",
        call_id: str | None = None,
    ) -> Any:
        call = Allowed(method="call", args=(method, dict(body)))
        return await self.calls.make(self.member(key), call, request_id, call_id)

    def claims(self) -> list[tuple[str, str, bool]]:
        """Each claimed call: key, request, whether it has an answer."""
        rows = self.commits.db.execute("SELECT key, request_id, answer IS NOT NULL FROM calls ORDER BY request_id")
        return [(key, request, bool(answered)) for key, request, answered in rows]


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    async with trio.open_nursery() as nursery:
        await nursery.start(rig.sender.run)
        await nursery.start(rig.calls.outbox.run)
        yield rig
        nursery.cancel_scope.cancel("the test is over")


async def test_a_call_is_claimed_sent_and_settled_in_this_order(rig: Rig) -> None:
    """The claim is in the store before Telegram hears anything."""
    rig.telegram.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.send)
        await wait_all_tasks_blocked()
        assert rig.telegram.made("sendMessage") == [{"chat_id": CHAT, "message_thread_id": 11, "text": "hi"}]
        assert rig.claims() == [("nora", "r1", False)]
        rig.telegram.gate.set()
    assert rig.claims() == [("nora", "r1", True)]


async def test_a_call_that_waits_for_its_turn_is_not_claimed(rig: Rig) -> None:
    """If the leader dies now it was surely not sent, so the next one sends it; of the one before nobody can tell."""
    rig.telegram.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.send, "r1", "slow")
        await wait_all_tasks_blocked()
        nursery.start_soon(rig.send, "r2", "behind it")
        await wait_all_tasks_blocked()
        assert rig.claims() == [("nora", "r1", False)]
        successor = Rig(FakeTelegram(), rig.commits)
        await nursery.start(successor.sender.run)
        await successor.send("r2", "behind it")
        with pytest.raises(CommitUnknown):
            await successor.send("r1", "slow")
        nursery.cancel_scope.cancel("the first leader is dead")


async def test_the_same_id_again_gets_the_same_result_without_a_call(rig: Rig) -> None:
    """Also from the next leader."""
    first = await rig.send()
    assert await rig.send() == first
    successor = Rig(rig.telegram, rig.commits)  # its sender need not even run
    assert await successor.send() == first
    assert len(rig.telegram.calls) == 1
    assert await rig.send("r2") != first


async def test_one_id_for_two_calls_is_refused(rig: Rig) -> None:
    """Whatever became of the first; another follower's ids are its own."""
    await rig.send()
    with pytest.raises(RequestRefused) as caught:
        await rig.send(text="other")
    assert (caught.value.code, caught.value.method) == ("request-id-collision", "sendMessage")
    await rig.send(text="other", key="otto")
    assert len(rig.telegram.calls) == 2


async def test_a_call_that_has_a_name_is_made_once_for_all_requests(rig: Rig) -> None:
    """Whatever it says by then; the next leader knows it too, and names are no request ids."""
    first = await rig.send("r1", "first words", call_id="answer")
    assert await rig.send("r2", "other words", call_id="answer") == first
    assert await rig.send("r2", "other words") != first
    successor = Rig(rig.telegram, rig.commits)  # its sender need not even run
    assert await successor.send("r9", "yet others", call_id="answer") == first
    assert [call["text"] for call in rig.telegram.made("sendMessage")] == ["first words", "other words"]
    with pytest.raises(RequestRefused) as caught:
        await rig.call("sendPhoto", {"chat_id": CHAT, "photo": "a"}, "r3", call_id="answer")
    assert caught.value.code == "request-id-collision"


async def test_asked_twice_while_it_is_under_way_it_is_made_once(rig: Rig) -> None:
    """Both get the one result."""
    rig.telegram.gate = trio.Event()
    results: list[Any] = []

    async def ask() -> None:
        results.append(await rig.send())

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        assert results == []
        rig.telegram.gate.set()
    assert results == [results[0]] * 3
    assert len(rig.telegram.calls) == 1


async def test_who_asks_again_does_not_inherit_a_cancellation(rig: Rig) -> None:
    """The first one left; what it began goes on, and its result is there for the second."""
    rig.telegram.gate = trio.Event()
    results: list[Any] = []
    first = trio.CancelScope()

    async def leave_early() -> None:
        with first:
            await rig.send()

    async def ask() -> None:
        results.append(await rig.send())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(leave_early)
        await wait_all_tasks_blocked()
        first.cancel("its follower left")
        await wait_all_tasks_blocked()
        nursery.start_soon(ask)
        await wait_all_tasks_blocked()
        rig.telegram.gate.set()
    assert len(rig.telegram.calls) == 1
    assert results == [await rig.send()]


async def test_whose_the_message_is_gets_noted_although_nobody_waits(rig: Rig) -> None:
    """Its buttons and reactions need it."""
    rig.telegram.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.send)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel("its follower left")
    assert rig.calls.store.owner_nowait(CHAT, 101) is None
    rig.telegram.gate.set()
    await wait_all_tasks_blocked()
    assert rig.calls.store.owner_nowait(CHAT, 101) == "nora"
    assert rig.commits.db.execute("SELECT * FROM messages").fetchall() == [(CHAT, 101, 11, "nora", 1)]
    assert rig.claims() == [("nora", "r1", True)]


async def test_all_messages_of_an_album_have_an_owner(rig: Rig) -> None:
    """Also where the chat was given as text."""
    rig.telegram.results["sendMediaGroup"] = [{"message_id": 5}, {"message_id": 6, "chat": {"id": CHAT}}, "odd"]
    await rig.call("sendMediaGroup", {"chat_id": str(CHAT), "media": []})
    assert [rig.calls.store.owner_nowait(CHAT, message) for message in (5, 6)] == ["nora", "nora"]


async def test_what_may_be_repeated_is_not_claimed(rig: Rig) -> None:
    """But whose its result is, is noted: an edit of a message that nobody remembers."""
    rig.telegram.results["editMessageText"] = {"message_id": 7, "chat": {"id": CHAT}}
    for text in "xy":
        await rig.call("editMessageText", {"chat_id": CHAT, "message_id": 7, "text": text})
    assert await rig.call("sendChatAction", {"chat_id": CHAT, "action": "typing"}) is not None
    assert len(rig.telegram.calls) == 3
    assert rig.claims() == []
    assert rig.calls.store.owner_nowait(CHAT, 7) == "nora"


async def test_a_refusal_of_telegram_is_remembered_whole(rig: Rig) -> None:
    """With what it says of waiting and of moving."""
    refusal = ApiError("sendMessage", 400, "Bad Request: x", retry_after=3, migrate_to_chat_id=CHAT)
    rig.telegram.results["sendMessage"] = refusal
    for _ in range(2):
        with pytest.raises(ApiError) as caught:
            await rig.send()
        told = caught.value
        assert (told.method, told.code, told.description) == ("sendMessage", 400, "Bad Request: x")
        assert (told.retry_after, told.migrate_to_chat_id) == (3, CHAT)
    assert len(rig.telegram.calls) == 1


@pytest.mark.parametrize("fault", [NotSent("no network"), RequestRefused("it would have to wait")])
async def test_what_was_surely_not_sent_is_withdrawn(rig: Rig, fault: BusError, autojump_clock: MockClock) -> None:
    """The same id may be used for it again."""
    rig.telegram.results["sendMessage"] = fault
    with pytest.raises(type(fault)):
        await rig.send()
    assert rig.claims() == []
    rig.telegram.results.clear()
    assert (await rig.send())["message_id"]


async def test_what_is_not_known_stays_so(rig: Rig) -> None:
    """Nobody sends it again, neither this leader nor the next."""
    rig.telegram.results["sendMessage"] = AnswerLost("the connection broke")
    for _ in range(2):
        with pytest.raises(CommitUnknown):
            await rig.send()
    successor = Rig(rig.telegram, rig.commits)
    with pytest.raises(CommitUnknown, match="look into the chat"):
        await successor.send()
    assert [call["text"] for call in rig.telegram.made("sendMessage")].count("hi") == 1
    assert ("nora", "r1", False) in rig.claims()


async def test_a_leader_that_ends_withdraws_what_it_had_not_sent() -> None:
    """What was on its way is unknown; the next leader sends the rest when it is asked to."""
    rig = Rig()
    rig.telegram.gate = trio.Event()

    async def send(request_id: str) -> None:
        with suppress(NotSent):
            await rig.send(request_id)

    async with trio.open_nursery() as nursery:
        await nursery.start(rig.sender.run)
        nursery.start_soon(rig.send, "on the way")
        await wait_all_tasks_blocked()
        nursery.start_soon(rig.send, "queued")
        await wait_all_tasks_blocked()
        rig.commits.hold()
        nursery.start_soon(send, "about to be claimed")
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel("the leader ends")
        await wait_all_tasks_blocked_shielded()
        with trio.CancelScope(shield=True):
            await rig.commits.release()
    assert rig.claims() == [("nora", "on the way", False)]


async def wait_all_tasks_blocked_shielded() -> None:
    with trio.CancelScope(shield=True):
        await wait_all_tasks_blocked()


async def test_a_chat_that_has_to_wait_long_is_refused_before_anything_is_claimed(
    rig: Rig, autojump_clock: MockClock
) -> None:
    """Telegram's limit: the follower is told how long."""
    rig.telegram.results["sendMessage"] = ApiError("sendMessage", 429, "Too Many Requests", retry_after=100)
    for request in ("r1", "r2"):
        with pytest.raises(RequestRefused, match="wait 100 s"):
            await rig.send(request)
    assert rig.claims() == []
    assert len(rig.telegram.calls) == 1
    rig.telegram.results.clear()
    await trio.sleep(100)
    assert (await rig.send("r2"))["message_id"]


async def test_a_disk_that_fails_lets_nothing_out(rig: Rig, autojump_clock: MockClock) -> None:
    """A call that cannot be claimed is not made; one whose result cannot be stored says so, and it is stored later."""
    rig.commits.fault = StateError("the disk is full")
    with pytest.raises(StateError):
        await rig.send()
    assert rig.telegram.calls == []
    rig.commits.fault = None
    rig.telegram.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_not_stored, rig)
        await trio.sleep(1)
        rig.commits.fault = StateError("the disk is full")
        rig.telegram.gate.set()
    rig.commits.fault = None
    assert (await rig.send())["message_id"] == 101
    assert len(rig.telegram.calls) == 1


async def _not_stored(rig: Rig) -> None:
    with pytest.raises(StateError):
        await rig.send()


async def test_calls_without_a_chat_wait_for_no_chat(rig: Rig) -> None:
    """Nor does a chat that is no number."""
    rig.telegram.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.send)
        for request, body in (("a", {}), ("b", {"chat_id": "@channel"})):
            nursery.start_soon(rig.call, "copyMessages", body, request)
        await wait_all_tasks_blocked()
        assert len(rig.telegram.calls) == 3
        rig.telegram.gate.set()
