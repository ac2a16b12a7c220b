"""A leader dies at each durable step of a thread's life: its successor leaves one thread, or none, as was wanted."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from telegram_bus import crash
from telegram_bus.core.bindings import CleanUp, Creation
from tests.fakes import BOT, CHAT
from tests.roles.thread_rig import Rig, running


class Killed(BaseException):
    """The process is gone at this moment: nothing of it catches that."""


def kill_at(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Die at the point, once."""

    def point(passed: str) -> None:
        if passed == name:
            monkeypatch.setattr(crash, "point", lambda _: None)
            raise Killed(name)

    monkeypatch.setattr(crash, "point", point)


def news(rig: Rig) -> list[dict[str, object]]:
    """The service messages of all topics."""
    return [
        {
            "message": {
                "message_thread_id": thread,
                "is_topic_message": True,
                "chat": {"id": CHAT},
                "from": {"id": BOT},
                "forum_topic_created": {"name": name},
            }
        }
        for thread, name in rig.telegram.topics.items()
    ]


async def come(rig: Rig) -> None:
    """The agent registers until it has a place, as followers do."""
    while True:
        try:
            await rig.agent("nora")
        except Exception:  # noqa: BLE001 - as its member loop does
            await trio.sleep(5)
        else:
            return


@pytest.mark.parametrize("point", ["after-intend-thread", "after-make-thread", "after-bind-thread"])
async def test_a_thread_is_there_once_whenever_its_maker_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock, point: str
) -> None:
    """Before the call, before its answer was stored, or after; the service message comes to the successor."""
    first = Rig(tmp_path)
    kill_at(monkeypatch, point)
    with pytest.raises(Killed):
        await first.agent("nora")
    successor = await first.successor()
    async with running(successor):
        await successor.threads.heard(news(successor), BOT)
        began = trio.current_time()
        await come(successor)
        assert (trio.current_time() - began > 100) == (point == "after-intend-thread")
    [thread] = successor.telegram.topics
    assert successor.threads.of_thread(CHAT, thread) == "nora"
    assert not [row for row in await successor.stored() if isinstance(row, Creation)]


@pytest.mark.parametrize("point", ["after-intend-clean-up", "before-clean-up", "after-clean-up"])
async def test_a_thread_that_was_to_go_is_gone_whenever_its_remover_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """And its agent, when it is back, has another one; nothing of the intent is left."""
    first = Rig(tmp_path, policy="delete")
    old = await first.agent("nora")
    await first.agent("otto")
    kill_at(monkeypatch, point)

    async def live_and_die() -> None:
        await first.leave("nora")
        await first.clean_ups.carry_out(first.threads.book.clean_ups[old])

    with pytest.raises(Killed):
        await live_and_die()
    successor = await first.successor()
    await successor.clean_ups.replay()
    assert old not in successor.telegram.topics
    assert not [row for row in await successor.stored() if isinstance(row, CleanUp)]
    assert await successor.agent("nora", run=2) != old


async def test_a_parked_thread_stays_parked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is made anew once, by the successor."""
    first = Rig(tmp_path)
    old = await first.agent("nora")
    await first.agent("otto")
    del first.telegram.topics[old]
    kill_at(monkeypatch, "after-park-thread")
    with pytest.raises(Killed):
        await first.visibility.judge(old, "not found")
    successor = await first.successor()
    assert await successor.agent("nora", run=2) == old
    made = await successor.threads.before_output("nora", "nora:2")
    assert made is not None
    assert made.thread_id in successor.telegram.topics
    assert len(successor.telegram.topics) == 2
