"""Open files beside requests: they arrive with their own request, and none is left open."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest
import trio

from telegram_bus.core.codec import encode
from telegram_bus.core.envelopes import Ack, Envelope
from telegram_bus.core.errors import CommitUnknown, NotSent, RequestRefused
from telegram_bus.core.extensions import FileExpect, FileGet, FilePart, FileSend
from telegram_bus.wire.client import open_client
from telegram_bus.wire.descriptors import MAX_DESCRIPTORS, Descriptors
from telegram_bus.wire.limits import Limits
from telegram_bus.wire.server import Answer, Peer
from tests.wire.bus_peers import SECRET, RawPeer, Server, beat, everybody, heartbeat, nobody


def upload(request_id: str, count: int = 1) -> FileSend:
    parts = tuple(FilePart(field=f"file{number}", name="x") for number in range(count))
    return FileSend(
        request_id=request_id,
        auth=SECRET,
        instance_id="one",
        sent_at_ms=1,
        method="sendDocument",
        params={},
        files=parts,
    )


def download(request_id: str) -> FileGet:
    return FileGet(request_id=request_id, auth=SECRET, instance_id="one", sent_at_ms=1, file_id="f")


@contextmanager
def file_with(content: bytes) -> Iterator[IO[bytes]]:
    with tempfile.NamedTemporaryFile(prefix="beside-") as file:
        file.write(content)
        file.flush()
        yield file


def open_files() -> set[tuple[str, str]]:
    """What this process has open: number and what it is."""
    found = set()
    for number in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))  # noqa: PTH115
        except FileNotFoundError:  # the directory itself
            continue
    return found


def temporaries() -> int:
    return sum("beside-" in what for _, what in open_files())


class Reads:
    """A responder that answers with what it reads from the files beside a request, and keeps none of them."""

    def __init__(self) -> None:
        self.inheritable: list[bool] = []

    def __call__(self, envelope: Envelope, peer: Peer) -> Answer:
        beside = peer.descriptors

        async def work() -> Ack:
            await trio.lowlevel.checkpoint()
            return Ack(request_id=envelope.request_id, ok=True, result=self._read(beside))

        return work if isinstance(envelope, FileSend | FileGet) else Ack(request_id=envelope.request_id, ok=True)

    def _read(self, beside: Descriptors | None) -> list[str] | str:
        if beside is None:
            return "none came"
        if beside.refused:
            return "no regular file"
        self.inheritable += [os.get_inheritable(number) for number in beside.numbers()]
        return [os.pread(number, 99, 0).decode() for number in beside.numbers()]


async def test_files_arrive_with_their_own_request_and_are_closed(server: Server) -> None:
    reads = Reads()
    await server.start(reads, is_known=everybody)
    results = {}
    async with open_client(lambda: server.path) as client:
        await client.request(beat())

        async def send(number: int) -> None:
            with file_with(f"content {number}".encode()) as file:
                results[number] = (await client.request(upload(str(number)), [file.fileno()])).result

        async with trio.open_nursery() as nursery:
            for number in range(40):
                nursery.start_soon(send, number)
                nursery.start_soon(client.request, beat(f"h{number}"))
    assert results == {number: [f"content {number}"] for number in range(40)}
    assert not any(reads.inheritable)
    assert temporaries() == 0


async def test_an_album_brings_its_files_in_order(server: Server) -> None:
    await server.start(Reads(), is_known=everybody)
    async with open_client(lambda: server.path) as client:
        with file_with(b"a") as first, file_with(b"b") as second:
            ack = await client.request(upload("1", 2), [first.fileno(), second.fileno()])
    assert ack.result == ["a", "b"]


async def test_a_request_longer_than_the_socket_takes_brings_its_files_too(server: Server) -> None:
    await server.start(Reads(), is_known=everybody)
    async with open_client(lambda: server.path) as client:
        with file_with(b"long") as file:
            long = upload("1")
            long.params["caption"] = "x" * 3_000_000
            ack = await client.request(long, [file.fileno()])
    assert ack.result == ["long"]


async def test_what_is_no_regular_file_is_not_kept(server: Server) -> None:
    await server.start(Reads(), is_known=everybody)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        async with open_client(lambda: server.path) as client:
            with file_with(b"x") as file:
                ack = await client.request(upload("1", 2), [file.fileno(), ours.fileno()])
    assert ack.result == "no regular file"
    assert temporaries() == 0


async def test_from_an_unknown_peer_no_file_is_taken(server: Server) -> None:
    await server.start(Reads(), is_known=nobody)
    async with open_client(lambda: server.path) as client:
        with file_with(b"x") as file:
            with pytest.raises(RequestRefused, match="once a request on this connection was accepted"):
                await client.request(upload("1"), [file.fileno()])
            await client.request(beat())  # the answer to it makes the peer a known one
            assert (await client.request(upload("2"), [file.fileno()])).result == ["x"]


async def test_from_a_peer_that_does_not_announce_them_none_is_taken(server: Server) -> None:
    await server.start(Reads(), is_known=everybody)
    peer = await server.connect()
    assert (await peer.ask(heartbeat()))["ok"]
    with file_with(b"x") as file:
        socket.send_fds(_blocking(peer.stream), [encode(upload("1"))], [file.fileno()])
    assert (await peer.answer())["result"] == "none came"


async def test_files_that_no_request_wants_are_closed(server: Server) -> None:
    await server.start(Reads(), is_known=everybody)
    peer = await expecting(server)
    with file_with(b"x") as file:
        socket.send_fds(_blocking(peer.stream), [heartbeat()], [file.fileno()])
    assert (await peer.answer())["ok"]
    assert (await peer.ask(encode(upload("1"))))["result"] == "none came"
    assert temporaries() == 0


async def test_an_invalid_line_costs_the_files_that_came_with_it(server: Server) -> None:
    """So that no other request gets them."""
    await server.start(Reads(), is_known=everybody)
    peer = await expecting(server)
    with file_with(b"x") as file:
        socket.send_fds(_blocking(peer.stream), [b"{}\n" + encode(upload("1"))], [file.fileno()])
    assert not (await peer.answer())["ok"]
    assert (await peer.answer())["result"] == "none came"


async def test_files_without_end_end_the_connection(server: Server) -> None:
    await server.start(Reads(), is_known=everybody)
    peer = await expecting(server)
    with file_with(b"x") as file:
        for _ in range(20):
            try:
                socket.send_fds(_blocking(peer.stream), [b"{"], [file.fileno()])
            except BrokenPipeError:
                break
            await trio.testing.wait_all_tasks_blocked()
    await peer.wait_closed()
    assert temporaries() == 0


async def test_more_files_than_an_album_has_are_refused_on_both_sides(server: Server) -> None:
    await server.start(Reads(), is_known=everybody)
    peer = await expecting(server)
    with file_with(b"x") as file:
        many = [file.fileno()] * (MAX_DESCRIPTORS + 1)
        async with open_client(lambda: server.path) as client:
            with pytest.raises(RequestRefused, match="too many"):
                await client.request(upload("1"), many)
            with pytest.raises(NotSent, match="cannot be sent along"):
                await client.request(upload("2"), [9_999])
        assert (await peer.ask(heartbeat()))["ok"]
        socket.send_fds(_blocking(peer.stream), [encode(upload("1"))], many)
    await peer.wait_closed()
    assert temporaries() == 0


async def test_a_file_beside_a_request_that_was_never_sent_is_closed(server: Server, directory: Path) -> None:
    """Its connection is full, and then lost."""
    await server.start(Reads(), is_known=everybody)
    with file_with(b"x") as file:
        async with open_client(lambda: server.path) as client, trio.open_nursery() as nursery:
            await client.request(beat())
            server.scope.cancel()

            async def send() -> None:
                long = upload("1")
                long.params["caption"] = "x" * 10_000_000
                with pytest.raises((NotSent, CommitUnknown)):
                    await client.request(long, [file.fileno()])

            nursery.start_soon(send)
    assert temporaries() == 0


async def test_a_peer_with_many_open_files_waits_until_some_are_closed(server: Server) -> None:
    """While its first ones are worked on, no more are read."""
    gate = trio.Event()
    working = 0

    def respond(envelope: Envelope, peer: Peer) -> Answer:
        async def work() -> Ack:
            nonlocal working
            working += 1
            await gate.wait()
            return Ack(request_id=envelope.request_id, ok=True)

        return work if isinstance(envelope, FileSend) else Ack(request_id=envelope.request_id, ok=True)

    await server.start(respond, is_known=everybody, limits=Limits(descriptors=4))
    async with open_client(lambda: server.path) as client:
        with file_with(b"x") as file:
            async with trio.open_nursery() as nursery:
                for number in range(30):
                    nursery.start_soon(client.request, upload(str(number)), [file.fileno()])
                await trio.testing.wait_all_tasks_blocked(0.01)
                assert working == 5
                gate.set()
    assert temporaries() == 0


async def expecting(server: Server) -> RawPeer:
    """A peer from which files are taken."""
    peer = await server.connect()
    assert (await peer.ask(encode(FileExpect(request_id="e", auth=SECRET))))["ok"]
    return peer


def _blocking(stream: trio.SocketStream) -> socket.socket:
    """The socket below a stream, for what Trio's has no method for."""
    return stream.socket._sock  # type: ignore[attr-defined,no-any-return]
