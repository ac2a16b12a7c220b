"""Scenario 103: whatever bytes a peer sends, in whatever pieces, costs only that peer."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from telegram_bus.wire.limits import Limits
from tests.effort import examples
from tests.wire.bus_peers import RawPeer, Server, call, heartbeat

NEST = 5_000
BOUND = 64 << 10
"""What an unknown peer may have lying with the server before it goes."""

lines = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=9), st.lists, max_leaves=9)
    .map(lambda value: {"kind": "follower.heartbeat", "requestId": value, "instanceId": value, "sentAtMs": value})
    .map(lambda value: json.dumps(value).encode()),
    st.sampled_from([
        heartbeat(auth="wrong"),
        call(auth=None),
        b"[" * NEST,
        b'{"a":' * NEST,
        b'{"kind":"bus.ack","requestId":"1","ok":true}',
        b'{"kind":"follower.heartbeat","requestId":"1",' + b'"x":1,' * 1_000,
        b"\xef\xbb\xbf{}",
        b"NaN",
        b'"\\ud800"',
        b"9" * 5_000,
        b"x" * BOUND,
    ]),
)  # fmt: skip
"""Lines, halves of them, and what a decoder may choke on."""

pieces = st.lists(st.tuples(lines, st.sampled_from([b"", b"\n", b"\r\n", b"\n\n"])), max_size=30)


@given(floods=st.lists(pieces, min_size=1, max_size=3), cut=st.integers(1, 4_000))
@settings(max_examples=examples(60), deadline=None)
def test_scenario_103_a_peer_that_sends_anything_costs_nobody_else_anything(
    floods: list[list[tuple[bytes, bytes]]], cut: int
) -> None:
    trio.run(_flood, floods, cut)


async def _flood(floods: list[list[tuple[bytes, bytes]]], cut: int) -> None:
    with tempfile.TemporaryDirectory(prefix="tb-", dir="/tmp") as name:
        async with trio.open_nursery() as nursery:
            server = await Server(Path(name, "s"), nursery).start(limits=Limits())
            try:
                good = await server.connect()
                assert (await good.ask(heartbeat("before")))["ok"]
                async with trio.open_nursery() as senders:
                    for flood in floods:
                        senders.start_soon(_send, await server.connect(), b"".join(b"".join(one) for one in flood), cut)
                for number in range(3):
                    assert (await good.ask(heartbeat(f"after-{number}")))["ok"]
                late = await server.connect()
                assert (await late.ask(heartbeat("late")))["ok"]
            finally:
                with trio.CancelScope(shield=True):
                    await server.aclose()


async def _send(peer: RawPeer, data: bytes, cut: int) -> None:
    """In pieces of so many bytes; what the server says is read, and it may hang up at any time."""
    async with trio.open_nursery() as nursery:

        async def read() -> None:
            for ack in await peer.answers_until_closed():
                assert ack["kind"] == "bus.ack"
                assert ack["ok"] is False or ack["requestId"] != "invalid"

        nursery.start_soon(read)
        try:
            for at in range(0, len(data), cut):
                await peer.stream.send_all(data[at : at + cut])
            await peer.stream.send_eof()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return


@pytest.mark.parametrize("bad", [b"x" * (32 << 20), b'{"a":' * (4 << 20)], ids=["no newline", "nested"])
async def test_scenario_103_a_line_without_an_end_is_not_kept(server: Server, bad: bytes) -> None:
    await server.start()
    peer, good = await server.connect(), await server.connect()
    with suppress(trio.BrokenResourceError):
        await peer.stream.send_all(bad)
    assert all(not ack["ok"] for ack in await peer.answers_until_closed())
    assert (await good.ask(heartbeat("still")))["ok"]
