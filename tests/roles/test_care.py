"""What whoever looks after the bus can ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.core.errors import RequestRefused
from telegram_bus.core.extensions import OperatorPurge, OperatorStop, UpdatesDrop, UpdatesList, UpdatesRetry
from tests.fakes import admit, message
from tests.roles.term_rig import Rig, running


@pytest.fixture
async def rig(mock_clock: MockClock) -> AsyncIterator[Rig]:
    async with running(Rig()) as rig:
        yield rig


async def test_updates_are_shown_retried_and_dropped(rig: Rig) -> None:
    await rig.agent("nora", 11, here=False)
    await rig.take(message(1, text="first"), message(2, text="x" * 500), message(3))
    await rig.term.store.settle(1, "rejected", 5, "it refused")
    listed = await rig.term.operate(UpdatesList(request_id="r"))
    assert (listed["waiting"], listed["set_aside"]) == (2, 1)
    first, second, _ = listed["updates"]
    assert {name: first[name] for name in ("id", "update_id", "key", "text", "outcome", "reason", "thread_id")} == {
        "id": 1,
        "update_id": 1,
        "key": "nora",
        "text": "first",
        "outcome": "rejected",
        "reason": "it refused",
        "thread_id": 11,
    }
    assert (second["outcome"], len(second["text"])) == (None, 200)
    assert await rig.term.operate(UpdatesDrop(request_id="r", ids=(2, 99))) == {"done": [2], "unknown": [99]}
    assert await rig.term.operate(UpdatesRetry(request_id="r", ids=(1, 3))) == {"done": [1], "unknown": [3]}
    admit(rig.term.registry, "nora", thread=11)
    rig.term.deliveries.wake(["nora"])
    await wait_all_tasks_blocked()
    assert sorted(update for _, update in rig.got) == [1, 3]
    assert len((await rig.term.operate(UpdatesList(request_id="r", limit=1)))["updates"]) == 0


async def test_what_was_dealt_with_can_be_deleted_at_once(rig: Rig) -> None:
    await rig.agent("nora", 11)
    await rig.agent("away", 12, here=False)
    await rig.take(message(1), message(2, thread=12))
    assert await rig.term.operate(OperatorPurge(request_id="r", settled=True)) == {"rows": 1}
    assert [row[0] for row in rig.rows()] == [2]
    await rig.take(message(1))
    assert rig.got == [("nora", 1)]  # its id is still known


async def test_what_is_none_of_these_is_refused(rig: Rig) -> None:
    with pytest.raises(RequestRefused):
        await rig.term.operate(OperatorStop(request_id="r"))
