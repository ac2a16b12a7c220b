"""An edit of what still waits changes it, one of what the agent may have comes beside it, and none runs a command."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from telegram_bus.core.codec import loads
from telegram_bus.core.errors import StateError
from telegram_bus.store import Store, StoredUpdate
from tests.fakes import CHAT, OWNER, admit, message
from tests.roles.term_rig import Rig, running


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running(Rig()) as rig:
        yield rig


def edit(update_id: int, of: int, text: str, **fields: Any) -> dict[str, Any]:
    edited = message(of, text=text, **fields)["message"]
    return {"update_id": update_id, "edited_message": edited | {"edit_date": edited["date"]}}


def texts(rig: Rig) -> list[str]:
    return [forwarded.message["text"] for forwarded in rig.envelopes]  # type: ignore[attr-defined]


async def come(rig: Rig, key: str = "nora", thread: int = 11) -> None:
    admit(rig.term.registry, key, thread=thread)
    rig.term.deliveries.wake([key])
    await wait_all_tasks_blocked()


async def test_an_edit_changes_what_waits_for_an_absent_agent(rig: Rig) -> None:
    await rig.agent("nora", 11, here=False)
    await rig.take(message(1, text="delete all"))
    await rig.take(edit(2, 1, "delete nothing"), edit(3, 1, "keep all"))
    assert [loads(row[0])["message"]["text"] for row in rig.commits.db.execute("SELECT body FROM updates")] == [
        "keep all"
    ]
    await come(rig)
    assert rig.got == [("nora", 1)]
    assert texts(rig) == ["keep all"]
    assert rig.term.deliveries.total_waiting() == 0


async def test_a_message_and_its_edits_in_one_batch_are_one(rig: Rig) -> None:
    await rig.agent("nora", 11)
    await rig.take(message(1, text="a"), message(2, text="other"), edit(3, 1, "b"), edit(4, 1, "c"))
    assert rig.got == [("nora", 1), ("nora", 2)]
    assert texts(rig) == ["c", "other"]
    await rig.take(edit(3, 1, "b"), edit(4, 1, "c"))  # repeated: seen
    assert len(rig.got) == 2


async def test_an_edit_of_what_was_delivered_is_delivered_too(rig: Rig) -> None:
    await rig.agent("nora", 11)
    await rig.take(message(1, text="a"))
    await rig.take(edit(2, 1, "b"))
    assert rig.got == [("nora", 1), ("nora", 2)]
    assert [envelope.KIND for envelope in rig.envelopes][-1] == "leader.forwardEditedMessage"


async def test_what_the_agent_may_have_is_not_changed_behind_its_back(rig: Rig) -> None:
    await rig.agent("nora", 11)
    rig.down = True
    await rig.take(message(1, text="a"))  # tried, and nobody knows whether it arrived
    rig.down = False
    await rig.take(edit(2, 1, "b"))
    await come(rig)
    assert [update for _, update in rig.got] == [1, 2]
    assert texts(rig)[-2:] == ["a", "b"]


async def test_what_an_earlier_leader_may_have_delivered_is_not_changed(rig: Rig) -> None:
    await rig.agent("nora", 11, here=False)
    await rig.take(message(1, text="a"))
    async with running(Rig(earlier=rig.commits)) as successor:
        await successor.take(edit(2, 1, "b"))
        await come(successor)
        assert texts(successor) == ["a", "b"]


async def test_an_edit_of_what_does_not_fit_into_memory_changes_it_too(rig: Rig) -> None:
    await rig.agent("nora", 11, here=False)
    await rig.take(*(message(number, text=str(number)) for number in range(1, 301)))
    await rig.take(edit(301, 290, "new"))
    await come(rig)
    assert [update for _, update in rig.got] == list(range(1, 301))
    assert texts(rig)[289] == "new"


async def test_a_full_disk_delays_an_edit_and_loses_nothing(rig: Rig) -> None:
    await rig.agent("nora", 11, here=False)
    await rig.take(message(1, text="a"))
    waiting = rig.commits.run

    async def fail_to_admit(operation: Any) -> Any:
        if operation.__qualname__.startswith("Store.admit_batch"):
            raise StateError("full")
        return await waiting(operation)

    rig.commits.run = fail_to_admit  # type: ignore[method-assign]
    with pytest.raises(StateError):
        await rig.take(edit(2, 1, "b"))
    rig.commits.run = waiting  # type: ignore[method-assign]
    await rig.take(edit(2, 1, "b"))  # the poll was not confirmed, so it comes again
    await come(rig)
    assert texts(rig) == ["b"]


async def test_an_edit_never_runs_a_command_of_the_leader(rig: Rig) -> None:
    await rig.take(edit(1, 1, "/status", thread=None))
    assert rig.said == []


async def test_an_unknown_kind_of_ours_is_kept_and_logged(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    chat = {"id": CHAT, "type": "supergroup"}
    unknown = {"update_id": 5, "message_of_the_future": {"chat": chat, "from": {"id": OWNER}, "spark": 1}}
    with caplog.at_level("INFO"):
        await rig.take(unknown, {"update_id": 6, "poll": {"id": "x"}})
    assert rig.rows() == [(5, None, "dropped")]
    assert "no follower takes" in caplog.text
    assert rig.said == []


async def test_an_edit_of_what_an_earlier_leader_gave_waits_until_that_is_known(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new leader serves before it has read that: an edit without a thread may be anybody's until then."""
    await rig.agent("nora", 11)
    await rig.term.store.record_messages("nora", [(CHAT, 900, 11)], 1)
    await rig.take(message(1, thread=None, text="a", reply_to_message={"message_id": 900}))
    assert rig.got == [("nora", 1)]
    known, read = trio.Event(), Store.recent

    async def late(store: Store, limit: int) -> list[StoredUpdate]:
        await known.wait()
        return await read(store, limit)

    monkeypatch.setattr(Store, "recent", late)
    async with running(Rig(earlier=rig.commits)) as second, trio.open_nursery() as nursery:
        await come(second)
        nursery.start_soon(second.take, edit(2, 1, "b", thread=None))
        await wait_all_tasks_blocked()
        assert second.got == []
        known.set()
        await wait_all_tasks_blocked()
        assert second.got == [("nora", 2)]
