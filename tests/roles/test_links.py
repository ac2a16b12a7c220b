"""The leader's connections to its followers: one each, as long as the follower is a member."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import trio
from attrs import define, field
from trio.testing import wait_all_tasks_blocked

from telegram_bus.core.envelopes import Ack, Envelope, Heartbeat
from telegram_bus.core.errors import AnswerLost, BusError, NotSent
from telegram_bus.roles.links import Links
from telegram_bus.wire.endpoint import open_endpoint
from telegram_bus.wire.server import Answer, Peer, serve_bus
from tests.fakes import ok


@define(eq=False)
class Follower:
    """An endpoint that answers when `gate` is open."""

    path: Path
    gate: trio.Event = field(factory=trio.Event)
    got: list[str] = field(factory=list)
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    gone: trio.Event = field(factory=trio.Event)

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        with self.scope, open_endpoint(self.path) as endpoint:
            serve = partial(serve_bus, endpoint.listener, self._respond, is_known=lambda _: True)
            async with trio.open_nursery() as nursery:
                await nursery.start(serve)
                endpoint.publish()
                task_status.started()
        self.gone.set()

    def _respond(self, envelope: Envelope, _peer: Peer) -> Answer:
        self.got.append(envelope.request_id)
        return partial(self._answer, envelope)

    async def _answer(self, envelope: Envelope) -> Ack:
        await self.gate.wait()
        return ok(envelope, envelope.request_id)


@define(eq=False)
class Rig:
    directory: Path
    nursery: trio.Nursery
    links: Links = field(factory=Links)

    async def follower(self, name: str = "a", *, open_gate: bool = True) -> Follower:
        follower = Follower(self.directory / name)
        if open_gate:
            follower.gate.set()
        await self.nursery.start(follower.run)
        return follower

    async def ask(self, path: Path, request_id: str = "r") -> Ack:
        return await self.links.request(str(path), Heartbeat(request_id=request_id, instance_id="x", sent_at_ms=1))


@pytest.fixture
def directory() -> Iterator[Path]:
    with TemporaryDirectory(prefix="tb-") as directory:
        yield Path(directory)


@pytest.fixture
async def rig(directory: Path) -> AsyncIterator[Rig]:
    async with trio.open_nursery() as nursery:
        rig = Rig(directory, nursery)
        await nursery.start(rig.links.run)
        yield rig
        nursery.cancel_scope.cancel("the test is over")


async def test_requests_to_one_endpoint_share_a_connection(rig: Rig) -> None:
    """Also those that come while it is being made."""
    follower = await rig.follower(open_gate=False)
    acks: list[Ack] = []

    async def ask(number: int) -> None:
        acks.append(await rig.ask(follower.path, f"r{number}"))

    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(ask, number)
        await wait_all_tasks_blocked()
        assert len(rig.links._links) == 1
        follower.gate.set()
    assert sorted(ack.result for ack in acks) == [f"r{number}" for number in range(5)]
    client = rig.links._links[str(follower.path)].client
    await rig.ask(follower.path, "again")
    assert rig.links._links[str(follower.path)].client is client


async def test_endpoints_do_not_wait_for_each_other(rig: Rig) -> None:
    """Each has a connection of its own."""
    slow, fast = await rig.follower("slow", open_gate=False), await rig.follower("fast")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.ask, slow.path)
        assert (await rig.ask(fast.path)).ok
        slow.gate.set()
    assert set(rig.links._links) == {str(slow.path), str(fast.path)}


async def test_nobody_there_is_not_sent_and_later_somebody_is(rig: Rig) -> None:
    """The path is tried anew for each request."""
    with pytest.raises(NotSent):
        await rig.ask(rig.directory / "a")
    follower = await rig.follower("a")
    assert (await rig.ask(follower.path)).ok


async def test_a_follower_that_goes_without_an_answer(rig: Rig) -> None:
    """What it had is lost, and its successor at the same path is found."""
    follower = await rig.follower(open_gate=False)
    faults: list[BusError] = []

    async def ask() -> None:
        try:
            await rig.ask(follower.path)
        except BusError as fault:
            faults.append(fault)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        while not follower.got:  # noqa: ASYNC110 - it comes over a socket
            await trio.sleep(0.001)
        follower.scope.cancel("killed")
    assert [type(fault) for fault in faults] == [AnswerLost]
    await follower.gone.wait()
    await rig.follower()
    assert (await rig.ask(follower.path)).ok


async def test_the_link_of_who_left_is_closed_and_no_other(rig: Rig) -> None:
    """What waits on it fails; a later request makes a new one."""
    stays, leaves = await rig.follower("stays"), await rig.follower("leaves", open_gate=False)
    await rig.ask(stays.path)
    kept = rig.links._links[str(stays.path)]

    async def ask() -> None:
        with pytest.raises(AnswerLost):
            await rig.ask(leaves.path)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        while not leaves.got:  # noqa: ASYNC110
            await trio.sleep(0.001)
        rig.links.keep_only([str(stays.path), "/nobody"])
    await wait_all_tasks_blocked()
    assert rig.links._links == {str(stays.path): kept}
    leaves.gate.set()
    assert (await rig.ask(leaves.path, "new")).ok


async def test_a_link_that_is_closed_before_it_is_made_has_sent_nothing(rig: Rig) -> None:
    """The follower left in the same moment."""
    follower = await rig.follower()

    async def ask() -> None:
        with pytest.raises(NotSent):
            await rig.ask(follower.path)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        while not rig.links._links:
            await trio.lowlevel.cancel_shielded_checkpoint()
        rig.links.keep_only([])
    assert follower.got == []


async def test_a_path_that_no_socket_can_have_is_not_sent(rig: Rig) -> None:
    """A follower may register with anything."""
    for path in ("", "\x00", "x" * 500):
        with pytest.raises(NotSent):
            await rig.links.request(path, Heartbeat(request_id="r", instance_id="x", sent_at_ms=1))
