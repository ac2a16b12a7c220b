"""The client shares one connection, makes a lost one anew, and says exactly what became of each request."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from telegram_bus.core.envelopes import Ack, AgentMessage, Envelope, RouteAgentMessage, Target
from telegram_bus.core.errors import AnswerLost, CommitUnknown, NoLeader, NotSent
from telegram_bus.wire.client import is_repeatable, open_client, request_once
from telegram_bus.wire.connection import Peer
from telegram_bus.wire.limits import MIB
from tests.wire.bus_peers import FakeServer, Server, Work, api_call, beat, everybody, line

settle = trio.testing.wait_all_tasks_blocked


async def lines_of(stream: trio.SocketStream) -> list[dict[str, Any]]:
    """What comes in one piece."""
    return [json.loads(one) for one in (await stream.receive_some(MIB)).splitlines()]


def ack(request_id: str, **fields: Any) -> bytes:
    return line({"kind": "bus.ack", "requestId": request_id, "ok": True, **fields})


async def answer_all(stream: trio.SocketStream) -> None:
    while requests := await lines_of(stream):
        await stream.send_all(b"".join(ack(request["requestId"]) for request in requests))


async def hang_up(stream: trio.SocketStream) -> None:
    """Close once a request has come."""
    await stream.receive_some(1)


async def test_requests_share_a_connection_and_each_gets_its_own_answer(server: Server) -> None:
    peers = []
    work = Work()

    def count(peer: Peer) -> bool:
        peers.append(peer)
        return True

    await server.start(work, is_known=count)
    answers: list[str] = []
    async with open_client(lambda: server.path) as client, trio.open_nursery() as nursery:

        async def ask(request: Envelope) -> None:
            answers.append((await client.request(request)).request_id)

        for n in range(20):
            nursery.start_soon(ask, api_call(f"slow {n}", "getMe"))
            nursery.start_soon(ask, beat(f"fast {n}"))
        await settle()
        assert sorted(answers) == sorted(f"fast {n}" for n in range(20))
        await work.let_go()
    assert len(answers) == 40
    assert len(peers) == 1


async def test_a_refusal_is_an_answer(server: Server) -> None:
    await server.start(lambda envelope, _: Ack(request_id=envelope.request_id, ok=False, message="no"))
    async with open_client(lambda: server.path) as client:
        answer = await client.request(beat())
    assert (answer.ok, answer.message) == (False, "no")


async def test_requests_made_in_one_turn_go_out_together(fake_server: FakeServer) -> None:
    pieces: list[int] = []

    async def serve(stream: trio.SocketStream) -> None:
        while requests := await lines_of(stream):
            pieces.append(len(requests))
            await stream.send_all(b"".join(ack(request["requestId"]) for request in requests))

    await fake_server.start(serve)
    async with open_client(lambda: fake_server.path) as client:

        async def ask_twice(name: str) -> None:
            await client.request(beat(f"{name} 1"))
            await client.request(beat(f"{name} 2"))

        async with trio.open_nursery() as nursery:
            for n in range(50):
                nursery.start_soon(ask_twice, str(n))
        assert pieces[-1] == 50, "the answers came together, so the next requests go together"
        await client.request(beat("alone"))
    assert sum(pieces) == 101


async def test_nothing_is_connected_before_the_first_request() -> None:
    async with open_client(lambda: pytest.fail("nobody asked for it")):
        await settle()


@pytest.mark.parametrize("path", ["/nowhere/at/all", "/tmp/\0", "/tmp/" + "x" * 200, "/tmp/\udc80\ud800"])
async def test_a_server_that_is_not_there_means_not_sent(path: str) -> None:
    async with open_client(lambda: path) as client:
        with pytest.raises(NotSent):
            await client.request(beat())


async def test_a_server_that_cannot_be_located_means_not_sent() -> None:
    def locate() -> Path:
        raise NoLeader("no leader runs")

    async with open_client(locate) as client:
        for _ in range(2):
            with pytest.raises(NotSent, match="no leader runs"):
                await client.request(beat())


async def test_a_server_of_another_user_gets_nothing(server: Server) -> None:
    asked = Work()
    await server.start(asked)
    async with open_client(lambda: server.path, credentials=lambda _: Peer(7, 12345)) as client:
        with pytest.raises(NotSent, match="user 12345"):
            await client.request(api_call("a", "getMe"))
    await settle()
    assert asked.started == []


async def test_a_full_backlog_is_waited_for(server: Server, mock_clock: trio.testing.MockClock) -> None:
    server.listener.listen(0)  # Linux takes one more than this
    waiting = [trio.socket.socket(trio.socket.AF_UNIX) for _ in range(3)]
    for sock in waiting[:1]:
        await sock.connect(str(server.path))
    with socket.socket(socket.AF_UNIX) as another:
        another.setblocking(False)
        with pytest.raises(BlockingIOError):
            another.connect(str(server.path))
    async with open_client(lambda: server.path) as client, trio.open_nursery() as nursery:
        nursery.start_soon(client.request, beat())
        await settle()
        await server.start()
        mock_clock.autojump_threshold = 0
    for sock in waiting:
        sock.close()


async def test_a_lost_answer_to_a_repeatable_request(fake_server: FakeServer) -> None:
    await fake_server.start(hang_up)
    async with open_client(lambda: fake_server.path) as client:
        with pytest.raises(AnswerLost) as caught:
            await client.request(beat())
        assert not isinstance(caught.value, CommitUnknown)


async def test_a_lost_answer_to_a_request_that_must_not_be_repeated(fake_server: FakeServer) -> None:
    await fake_server.start(hang_up)
    async with open_client(lambda: fake_server.path) as client:
        with pytest.raises(CommitUnknown, match=r"follower\.callApi"):
            await client.request(api_call("a", "sendMessage", {"chat_id": 1, "text": "x"}))


def test_what_may_be_repeated() -> None:
    message = AgentMessage(target=Target(chat_id=1, thread_id=2), message_id=3, text="x")
    assert is_repeatable(beat())
    assert is_repeatable(api_call("a", "editMessageText", {}))
    assert is_repeatable(api_call("a", "file", method="downloadFile"))
    assert not is_repeatable(api_call("a", "sendMessage", {}))
    assert not is_repeatable(api_call("a", "sendPhoto", {}, method="callMultipart"))
    assert not is_repeatable(api_call("a"))
    assert not is_repeatable(RouteAgentMessage(request_id="a", instance_id="one", sent_at_ms=1, message=message))


async def test_what_was_still_waiting_to_be_sent_was_not_sent(fake_server: FakeServer) -> None:
    """The first request fills the socket; the second stands behind it in our own buffer."""
    gate = trio.Event()

    async def serve(stream: trio.SocketStream) -> None:
        await gate.wait()

    await fake_server.start(serve)
    faults: dict[str, Exception] = {}
    async with open_client(lambda: fake_server.path) as client, trio.open_nursery() as nursery:

        async def ask(request: Envelope) -> None:
            try:
                await client.request(request)
            except (NotSent, AnswerLost) as fault:
                faults[request.request_id] = fault

        nursery.start_soon(ask, api_call("large", "sendMessage", {"text": "x" * MIB}))
        await settle()
        nursery.start_soon(ask, api_call("second", "sendMessage", {"text": "x"}))
        await settle()
        nursery.start_soon(ask, api_call("held back", "sendMessage", {"text": "x"}))
        await settle()
        gate.set()
    assert {name: type(fault) for name, fault in faults.items()} == {
        "large": CommitUnknown,
        "second": NotSent,
        "held back": NotSent,
    }


async def test_requests_wait_while_too_much_is_unsent(fake_server: FakeServer) -> None:
    gate = trio.Event()
    received = 0

    async def serve(stream: trio.SocketStream) -> None:
        nonlocal received
        await gate.wait()
        buffer = b""
        while data := await stream.receive_some():
            buffer += data
            *requests, buffer = buffer.split(b"\n")
            received += len(requests)
            for request in requests:
                await stream.send_all(ack(json.loads(request)["requestId"]))

    await fake_server.start(serve)
    async with open_client(lambda: fake_server.path) as client, trio.open_nursery() as nursery:
        for n in range(20):
            nursery.start_soon(client.request, api_call(str(n), "sendMessage", {"text": "x" * MIB}))
        await settle()
        connection = client._connection
        assert connection is not None
        assert connection.unsent < 3 * MIB
        small = beat("small")
        nursery.start_soon(client.request, small)
        await settle()
        assert small.request_id not in client._waiting
        gate.set()
    assert received == 21


async def test_a_lost_connection_is_made_anew_where_the_server_is_by_then(
    fake_server: FakeServer, server: Server
) -> None:
    await fake_server.start(hang_up)
    await server.start()
    paths = iter([fake_server.path, server.path])
    async with open_client(lambda: next(paths)) as client:
        with pytest.raises(AnswerLost):
            await client.request(beat())
        for n in range(3):
            assert (await client.request(beat(str(n)))).ok


async def test_all_requests_of_a_lost_connection_fail_and_nobody_else(fake_server: FakeServer) -> None:
    await fake_server.start(hang_up)
    faults = []
    async with open_client(lambda: fake_server.path) as client:

        async def ask(n: int) -> None:
            with pytest.raises(AnswerLost) as caught:
                await client.request(beat(str(n)))
            faults.append(caught.value)

        async with trio.open_nursery() as nursery:
            for n in range(10):
                nursery.start_soon(ask, n)
    assert len(faults) == 10


async def test_a_cancelled_request_only_loses_interest(server: Server) -> None:
    work = Work()
    await server.start(work, is_known=everybody)
    async with open_client(lambda: server.path) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.request, api_call("a", "getMe"))
            await settle()
            nursery.cancel_scope.cancel()
        await work.let_go()
        await settle()
        assert work.ended == ["a"], "it was carried out"
        assert (await client.request(beat())).ok, "the late answer disturbs nobody"
        assert client._waiting == {}


async def test_cancelling_one_of_many_requests_does_not_stop_the_others(server: Server) -> None:
    """The one that is cancelled is the one that sends for all."""
    await server.start()
    answers = []
    async with open_client(lambda: server.path) as client:
        await client.request(beat())

        async def ask(n: int) -> None:
            answers.append(await client.request(beat(str(n))))

        async with trio.open_nursery() as nursery:
            for n in range(10):
                scope = trio.CancelScope()

                async def ask_within(scope: trio.CancelScope, n: int) -> None:
                    with scope:
                        await ask(n)

                if n < 5:
                    scope.cancel()
                nursery.start_soon(ask_within, scope, n)
    assert {answer.request_id for answer in answers} == set("56789")


async def test_an_id_may_be_under_way_only_once(server: Server) -> None:
    work = Work()
    await server.start(work, is_known=everybody)
    async with open_client(lambda: server.path) as client, trio.open_nursery() as nursery:
        nursery.start_soon(client.request, api_call("a", "getMe"))
        await settle()
        with pytest.raises(NotSent, match="'a' is under way"):
            await client.request(beat("a"))
        await work.let_go()


async def test_answers_that_nobody_waits_for_are_ignored_and_odd_lines_logged(
    fake_server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await lines_of(stream)
        odd = [ack("unknown"), ack("invalid", ok=False, message="too odd"), b"garbage\n"]
        request = {"kind": "follower.heartbeat", "requestId": "h", "instanceId": "x", "sentAtMs": 1}
        await stream.send_all(b"".join([*odd, line(request), ack("h", result=1)]))
        await trio.sleep_forever()

    await fake_server.start(serve)
    async with open_client(lambda: fake_server.path) as client:
        assert (await client.request(beat("h"))).result == 1
    assert "too odd" in caplog.text
    assert "invalid line" in caplog.text
    assert "follower.heartbeat" in caplog.text
    assert len(caplog.records) == 3


async def test_an_endless_answer_ends_the_connection(fake_server: FakeServer) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some(1)
        try:
            while True:
                await stream.send_all(b"x" * MIB)
        except trio.BrokenResourceError:
            pass

    await fake_server.start(serve)
    async with open_client(lambda: fake_server.path) as client:
        with pytest.raises(AnswerLost, match="more than"):
            await client.request(beat())


async def test_the_loss_of_a_connection_can_be_waited_for(fake_server: FakeServer) -> None:
    gate = trio.Event()

    async def serve(stream: trio.SocketStream) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer_all, stream)
            await gate.wait()
            nursery.cancel_scope.cancel()

    await fake_server.start(serve)
    async with open_client(lambda: fake_server.path) as client:
        await client.wait_lost()  # there is none yet
        await client.request(beat())
        lost = []

        async def wait() -> None:
            await client.wait_lost()
            lost.append(True)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await settle()
            assert not lost
            gate.set()
        await client.wait_lost()


async def test_faults_come_out_of_the_client_as_they_are(server: Server) -> None:
    """The context manager has a nursery, which nobody else needs to know."""
    with pytest.raises(KeyError):
        async with open_client(lambda: server.path):
            raise KeyError
    with pytest.raises(NotSent):
        async with open_client(lambda: "/nowhere/at/all") as client:
            await client.request(beat())


async def test_a_closed_client_leaves_nobody_waiting(server: Server) -> None:
    await server.start(Work(), is_known=everybody)
    async with trio.open_nursery() as nursery:

        async def ask() -> None:
            with pytest.raises(AnswerLost, match="closed"):
                await client.request(api_call("a", "getMe"))

        async with open_client(lambda: server.path) as client:
            nursery.start_soon(ask)
            await settle()
        with pytest.raises(NotSent, match="closed"):
            await client.request(beat("late"))
        await client.wait_lost()


async def test_one_request_on_a_connection_of_its_own(server: Server) -> None:
    await server.start()
    assert (await request_once(server.path, beat("a"))).request_id == "a"
    with pytest.raises(NotSent):
        await request_once("/nowhere/at/all", beat())
