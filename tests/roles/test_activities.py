"""What agents say they do, as people see it."""

from __future__ import annotations

from typing import Any

import pytest

from telegram_bus.core.errors import RequestRefused, StateError
from telegram_bus.core.extensions import ActivitySet
from telegram_bus.roles import overview
from tests.fakes import admit, message
from tests.roles.term_rig import Rig, running


def says(text: str | None = None, *, needs_person: bool | None = None) -> ActivitySet:
    return ActivitySet(
        request_id="r", auth="", instance_id="nora:1", sent_at_ms=1, text=text, needs_person=needs_person
    )


def shown(rig: Rig) -> Any:
    """In the status of the command line."""
    (nora,) = rig.term.registry
    return overview.follower(rig.term, nora)["activity"]


async def test_it_is_shown_until_it_is_replaced_or_the_process_is_another() -> None:
    """The next leader knows it too; the same words again do not begin anew."""
    async with running(Rig()) as rig:
        await rig.agent("nora", 11)
        nora = rig.term.registry.by_key("nora")
        assert nora is not None
        first = await rig.term.serve(nora, says(" running\n tests "))
        again = await rig.term.serve(nora, says("running tests"))
        assert first == again
        assert first["activity"]["text"] == "running tests"
        await rig.take(message(1, thread=None, text="/status"))
        assert "nora — running tests, for" in rig.said[-1]
        assert shown(rig) == first["activity"]
        async with running(Rig(earlier=rig.commits)) as successor:
            admit(successor.term.registry, "nora", thread=11)
            assert shown(successor) == first["activity"]
            admit(successor.term.registry, "nora", thread=11, instance="nora:2")
            assert shown(successor) is None
            nora = successor.term.registry.by_key("nora")
            assert nora is not None
            await successor.term.serve(nora, says(needs_person=True))
            await successor.take(message(2, thread=None, text="/agents"))
            assert "waits for you" in successor.said[-1]
            assert await successor.term.serve(nora, says()) == {"activity": None}


async def test_a_novel_is_refused_with_its_length() -> None:
    async with running(Rig()) as rig:
        await rig.agent("nora", 11)
        nora = rig.term.registry.by_key("nora")
        assert nora is not None
        with pytest.raises(RequestRefused, match="201"):
            await rig.term.serve(nora, says("x" * 201))


async def test_what_the_disk_does_not_take_is_not_so_and_can_be_said_again() -> None:
    """Else the next leader would never hear of it: the same words again are no change."""
    async with running(Rig()) as rig:
        await rig.agent("nora", 11)
        nora = rig.term.registry.by_key("nora")
        assert nora is not None
        await rig.term.serve(nora, says("running tests"))
        before = shown(rig)
        for said in (says("deploying"), says()):
            rig.commits.fault = StateError("the disk is full")
            with pytest.raises(StateError):
                await rig.term.serve(nora, said)
            assert shown(rig) == before
        rig.commits.fault = None
        await rig.term.serve(nora, says("deploying"))
        async with running(Rig(earlier=rig.commits)) as successor:
            admit(successor.term.registry, "nora", thread=11)
            assert shown(successor)["text"] == "deploying"
