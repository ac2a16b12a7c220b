"""Work that changes hands, as the leader sees it: what was decided once stands, whoever asks again and when."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from telegram_bus.core.errors import RequestRefused
from telegram_bus.core.extensions import HandedPart, UpdateHand
from telegram_bus.core.registry import Member
from telegram_bus.core.updates import describe
from telegram_bus.roles.handing import hand_over
from tests.fakes import admit, message
from tests.roles.term_rig import Rig, running

PART = HandedPart(kind="message", body=message(1, text="build it")["message"])


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running(Rig()) as rig:
        await rig.agent("nora", 11)
        admit(rig.term.registry, "otto", thread=12)  # without a binding: its thread may be cleaned up behind it
        rig.term.note_given(describe({"update_id": 1, "message": PART.body}), "nora")
        yield rig


def member(rig: Rig, key: str) -> Member:
    found = rig.term.registry.by_key(key)
    assert found is not None
    return found


async def hand(rig: Rig, to: str, *, token: int = 7) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "request_id": "r",
        "auth": "s",
        "instance_id": "i",
        "registration_generation": "g",
        "sent_at_ms": 1,
    }
    return await hand_over(
        rig.term, member(rig, "nora"), UpdateHand(**fields, to=to, token=token, parts=(PART,), note=None)
    )


async def test_work_that_is_given_again_with_the_same_token_goes_nowhere_else(rig: Rig) -> None:
    first = await hand(rig, "otto")
    assert first == {"key": "otto", "name": "otto", "present": True}
    await rig.agent("emil", 13)
    assert await hand(rig, "emil") == first
    assert [owner for _, owner, _ in rig.rows()] == ["otto"]


async def test_work_that_was_given_stays_given_where_nobody_bears_that_name_any_more(rig: Rig) -> None:
    await hand(rig, "otto")
    rig.term.registry.remove(member(rig, "otto"))
    with pytest.raises(RequestRefused, match="no agent is called otto"):
        await hand(rig, "otto", token=8)
    assert await hand(rig, "otto") == {"key": "otto", "name": "otto", "present": False}
    rig.commits.db.execute("DELETE FROM updates")  # a day later
    assert (await hand(rig, "otto"))["key"] == "otto"
    assert rig.rows() == []
