"""Giving work away, as the donor sees it, when its leader refuses and its disk fails."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import trio
from attrs import define, field

from telegram_bus.core.errors import RequestRefused, StateError
from telegram_bus.followers.handing import Handing
from telegram_bus.roles.member import Member
from telegram_bus.roles.unread import Unread
from telegram_bus.store.inbox import Inbox, open_inbox


@define
class FailingInbox:
    """An inbox on a disk that fails whatever `fails` names."""

    inbox: Inbox
    fails: set[str] = field(factory=set)

    def __getattr__(self, name: str) -> Any:
        if name in self.fails:
            raise StateError("the disk is full")
        return getattr(self.inbox, name)


@define
class Donor:
    """As much of a member as giving away needs; its leader refuses."""

    inbox: FailingInbox
    unread: Unread

    async def ask(self, build: Callable[[dict[str, Any]], object]) -> Any:
        await trio.lowlevel.checkpoint()
        raise RequestRefused("no agent is called otto")


async def say(text: str, name: str) -> None:
    pytest.fail("there is nothing to say")


@pytest.mark.parametrize(("fails", "fault"), [("thaw", StateError), ("item", StateError), ("nothing", RequestRefused)])
async def test_a_disk_that_fails_ends_neither_the_program_nor_the_wait(
    tmp_path: Path, fails: str, fault: type[Exception]
) -> None:
    async with open_inbox(tmp_path / "db") as inbox, trio.open_nursery() as nursery:
        await inbox.append("d1", "message", 1, b'{"text": "build it"}')
        failing = FailingInbox(inbox)
        donor = Donor(failing, Unread(inbox=inbox))
        handing = Handing(member=cast(Member, donor), say=say)
        nursery.start_soon(handing.run)
        failing.fails.add(fails)
        with pytest.raises(fault):
            await handing.give("d1", "otto", None)
        assert [one.item for one in await inbox.frozen()] == ([] if fails == "nothing" else ["d1"])
        failing.fails.clear()  # there is room again
        with pytest.raises(RequestRefused):
            await handing.give("d1", "otto", None)
        assert await inbox.frozen() == []
        nursery.cancel_scope.cancel("the test is over")
