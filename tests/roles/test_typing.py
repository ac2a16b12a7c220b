"""Typing as a lease (scenario 94): it is shown while its owner works, and never after that."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.core.errors import ApiError, RequestRefused
from telegram_bus.core.extensions import TypingHold
from telegram_bus.followers.typing import LEASE_MS, typing_for
from telegram_bus.roles.typing import EVERY, LONGEST_MS
from telegram_bus.roles.watched import Watched
from tests.fakes import CHAT
from tests.roles.term_rig import Rig, running
from tests.roles.test_keyboards import Seat

CLIENT_SHOWS = 5.0


class Worker(Seat):
    """A follower with a connection to a leader."""

    def __init__(self, rig: Rig) -> None:
        super().__init__(rig, "nora")
        self.session: Watched[object | None] = Watched(object())


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running(Rig()) as rig:
        await rig.agent("nora", 11, here=False)
        yield rig


@pytest.fixture
async def nora(rig: Rig) -> Worker:
    worker = Worker(rig)
    worker.come()
    return worker


def shown(rig: Rig) -> int:
    """How often it was shown."""
    return len(rig.telegram.made("sendChatAction"))


async def is_over(rig: Rig) -> bool:
    """Whether nothing more is shown, however long one waits."""
    await wait_all_tasks_blocked()
    before = shown(rig)
    await trio.sleep(1_000)
    return shown(rig) == before


async def test_it_is_shown_for_as_long_as_the_block_runs(rig: Rig, nora: Worker, autojump_clock: MockClock) -> None:
    """Without a gap that a person sees, in the follower's own thread."""
    async with typing_for(nora, 600, "typing"):  # type: ignore[arg-type]
        await trio.sleep(100)
        assert shown(rig) >= 100 / CLIENT_SHOWS
        assert shown(rig) <= 100 / EVERY + 2
    assert await is_over(rig)
    assert rig.telegram.made("sendChatAction")[0] == {"chat_id": CHAT, "message_thread_id": 11, "action": "typing"}


async def test_it_ends_when_its_owner_dies(rig: Rig, nora: Worker, autojump_clock: MockClock) -> None:
    """At once when the leader notices; a lease that nobody asks for again runs out by itself."""
    await nora.ask(lambda fields: TypingHold(**fields, lease="a", ttl_ms=LEASE_MS))
    await trio.sleep(6)
    rig.term.registry.remove(nora.member)
    assert await is_over(rig)
    nora.come()
    await nora.ask(lambda fields: TypingHold(**fields, lease="b", ttl_ms=10_000_000))
    await trio.sleep(LONGEST_MS / 1000 + EVERY)
    assert await is_over(rig)


async def test_it_ends_when_its_owner_sends_something(rig: Rig, nora: Worker, autojump_clock: MockClock) -> None:
    """And the same work shows it no more; the next work does."""
    typing = rig.term.typing

    async def make() -> str:
        await trio.lowlevel.checkpoint()
        return "made"

    async with typing_for(nora, 600, "typing"):  # type: ignore[arg-type]
        await trio.sleep(6)
        for method in ("sendChatAction", "sendMessageDraft", "editMessageText", "setMessageReaction"):
            assert await typing.made("nora", method, make) == "made"
        await typing.made("otto", "sendMessage", make)
        before = shown(rig)
        await trio.sleep(20)
        assert shown(rig) > before
        await typing.made("nora", "sendMessage", make)
        assert await is_over(rig)
    before = shown(rig)
    async with typing_for(nora, 600, "typing"):  # type: ignore[arg-type]
        await trio.sleep(1)
    assert shown(rig) == before + 1


async def test_it_ends_after_its_time(rig: Rig, nora: Worker, autojump_clock: MockClock) -> None:
    async with typing_for(nora, 33, "upload_document"):  # type: ignore[arg-type]
        await trio.sleep(33)
        assert await is_over(rig)
    assert 33 / EVERY - 1 <= shown(rig) <= 33 / EVERY + 2


async def test_a_new_leader_shows_it_at_once(rig: Rig, nora: Worker, autojump_clock: MockClock) -> None:
    async with typing_for(nora, 600, "typing"):  # type: ignore[arg-type]
        await trio.sleep(6)
        successor = Rig(earlier=rig.commits)
        async with running(successor):
            rig.term.registry.remove(nora.member)
            nora.rig = successor
            nora.come()
            nora.session.set(object())
            await trio.sleep(0.1)
            assert shown(successor) == 1
            assert await is_over(rig)


async def test_what_telegram_refuses_is_tried_again(rig: Rig, nora: Worker, autojump_clock: MockClock) -> None:
    """A flood or an outage passes; nobody is told."""
    rig.telegram.results["sendChatAction"] = ApiError("sendChatAction", 429, "Too Many Requests", retry_after=3)
    async with typing_for(nora, 600, "typing"):  # type: ignore[arg-type]
        await trio.sleep(20)
    assert shown(rig) >= 4


@pytest.mark.parametrize("action", ["dance", "x" * 100])
async def test_an_action_is_one_of_telegrams(nora: Worker, action: str) -> None:
    with pytest.raises(RequestRefused, match="action"):
        await nora.ask(lambda fields: TypingHold(**fields, lease="a", ttl_ms=1, action=action))


async def test_a_fault_of_the_work_leaves_the_block_as_it_is(rig: Rig, nora: Worker, autojump_clock: MockClock) -> None:
    """No group around it."""

    async def work() -> None:
        async with typing_for(nora, 600, "typing"):  # type: ignore[arg-type]
            await trio.sleep(1)
            _ = 1 / 0

    with pytest.raises(ZeroDivisionError):
        await work()
    assert await is_over(rig)


async def test_a_lease_is_its_owners(rig: Rig, nora: Worker, autojump_clock: MockClock) -> None:
    """Another name ends the one before; the end of one that is over ends nothing."""

    async def hold(lease: str, ttl_ms: int) -> Any:
        ack = await nora.ask(lambda fields: TypingHold(**fields, lease=lease, ttl_ms=ttl_ms))
        return ack.result["held"]

    assert await hold("a", 50_000)
    assert await hold("b", 50_000)
    assert not await hold("a", 0)
    await trio.sleep(10)
    assert not await is_over(rig) or shown(rig) > 3
    assert not await hold("b", 0)
    assert await is_over(rig)
