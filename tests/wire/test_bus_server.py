"""The server answers what it is asked; what goes wrong with one request or peer costs no other anything."""

from __future__ import annotations

import errno
import os
import resource
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from telegram_bus.core.envelopes import Ack, CallApi, Envelope
from telegram_bus.core.errors import RequestRefused
from telegram_bus.wire.connection import Peer
from telegram_bus.wire.limits import KIB, MIB
from telegram_bus.wire.server import Answer
from tests.wire.bus_peers import RawPeer, Server, Work, call, everybody, heartbeat, line, ok

settle = trio.testing.wait_all_tasks_blocked


async def test_each_request_gets_an_answer_with_its_id(server: Server) -> None:
    await server.start()
    peer = await server.connect()
    await peer.send(heartbeat("a"), heartbeat("b"))
    assert [(await peer.answer())["requestId"] for _ in range(2)] == ["a", "b"]
    assert (await peer.ask(heartbeat("c")))["ok"] is True


async def test_a_request_in_pieces_is_one_request(server: Server) -> None:
    await server.start()
    peer = await server.connect()
    for byte in heartbeat("a"):
        await peer.send(bytes([byte]))
    assert (await peer.answer())["requestId"] == "a"


async def test_the_responder_learns_who_asks(server: Server) -> None:
    seen: list[Peer] = []

    def respond(envelope: Envelope, peer: Peer) -> Ack:
        seen.append(peer)
        return ok(envelope, peer)

    await server.start(respond)
    await (await server.connect()).ask(heartbeat())
    assert seen == [Peer(os.getpid(), os.getuid())]


@pytest.mark.parametrize(
    "invalid", [b"\n", b"{}\n", b"[1]\n", b"\xff\n", b"nonsense\n", line({"kind": "what", "requestId": "x"})]
)
async def test_an_invalid_line_is_answered_and_the_connection_goes_on(server: Server, invalid: bytes) -> None:
    await server.start()
    peer = await server.connect()
    ack = await peer.ask(invalid)
    assert (ack["requestId"], ack["ok"]) == ("invalid", False)
    assert ack["message"]
    assert (await peer.ask(heartbeat("a")))["requestId"] == "a"


async def test_work_that_waits_holds_up_nobody(server: Server) -> None:
    work = Work(result=7)
    await server.start(work, is_known=everybody)
    peer = await server.connect()
    await peer.send(call("slow"))
    assert (await peer.ask(heartbeat("fast")))["requestId"] == "fast"
    await work.let_go()
    assert await peer.answer() == {"kind": "bus.ack", "requestId": "slow", "ok": True, "result": 7}


@pytest.mark.parametrize("deferred", [False, True])
@pytest.mark.parametrize(
    ("fault", "message"),
    [(RequestRefused("your thread is another"), "your thread is another"), (KeyError("x"), "failed: KeyError")],
)
async def test_a_failing_responder_is_a_refusal(
    server: Server, fault: Exception, message: str, deferred: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> Ack:
        raise fault

    def respond(envelope: Envelope, peer: Peer) -> Answer:
        if not isinstance(envelope, CallApi):
            return ok(envelope, peer)
        if deferred:
            return fail
        raise fault

    await server.start(respond)
    peer = await server.connect()
    ack = await peer.ask(call("c"))
    assert (ack["requestId"], ack["ok"]) == ("c", False)
    assert message in ack["message"]
    assert (await peer.ask(heartbeat("a")))["ok"] is True
    assert "follower.callApi" in caplog.text
    assert ("Traceback" in caplog.text) is isinstance(fault, KeyError), "what a peer brings about fills no log"


async def test_a_result_that_json_cannot_say_is_a_refusal(server: Server) -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]

    results = {"deep": deep, "no JSON": object()}

    def respond(envelope: Envelope, peer: Peer) -> Ack:
        return Ack(request_id=envelope.request_id, ok=True, result=results[envelope.request_id])

    await server.start(respond)
    peer = await server.connect()
    for request_id in results:
        ack = await peer.ask(heartbeat(request_id))
        assert (ack["requestId"], ack["ok"]) == (request_id, False)


async def test_answers_of_one_turn_go_out_together(server: Server) -> None:
    await server.start()
    peer = await server.connect()
    await peer.send(*[heartbeat(str(n)) for n in range(10)])
    data = await peer.stream.receive_some()
    assert data.count(b"\n") == 10


async def test_late_answers_of_one_turn_go_out_together(server: Server) -> None:
    work = Work()
    await server.start(work, is_known=everybody)
    peer = await server.connect()
    await peer.send(*[call(str(n)) for n in range(10)])
    await work.let_go()
    data = await peer.stream.receive_some()
    assert data.count(b"\n") == 10


async def test_a_peer_that_leaves_does_not_stop_its_work(server: Server) -> None:
    work = Work()
    await server.start(work)
    peer = await server.connect()
    await peer.send(call("a"))
    await settle()
    await peer.stream.aclose()
    await work.let_go()
    await settle()
    assert work.ended == ["a"]
    assert (await (await server.connect()).ask(heartbeat()))["ok"] is True


async def test_a_peer_that_only_stops_sending_still_gets_its_answers(server: Server) -> None:
    work = Work()
    await server.start(work)
    peer = await server.connect()
    await peer.send(call("a"))
    await peer.stream.send_eof()
    await work.let_go()
    assert [ack["requestId"] for ack in await peer.answers_until_closed()] == ["a"]


async def test_cancelling_the_server_ends_everything(server: Server) -> None:
    work = Work()
    await server.start(work)
    waiting, idle, half = [await server.connect() for _ in range(3)]
    await waiting.send(call("a"))
    await half.send(b"{")
    await settle()
    server.scope.cancel()
    for peer in (waiting, idle, half):
        assert await peer.answers_until_closed() == []
    assert (work.started, work.ended) == (["a"], [])
    await settle()
    assert not server.nursery.child_tasks


async def test_a_peer_of_another_user_is_closed_at_once(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    strangers: list[Peer] = []
    await server.start(credentials=lambda _: Peer(7, os.getuid() + 1), stranger=strangers.append)
    peer = await server.connect()
    assert await peer.answers_until_closed() == []
    assert strangers == [Peer(7, os.getuid() + 1)]
    assert f"user {os.getuid() + 1}" in caplog.text


async def test_root_may_always_ask(server: Server) -> None:
    await server.start(credentials=lambda _: Peer(7, 0))
    assert (await (await server.connect()).ask(heartbeat()))["ok"] is True


async def test_no_more_than_16_requests_of_a_peer_are_handled_in_a_turn(server: Server) -> None:
    ticks = 0
    handled: dict[int, int] = {}

    def respond(envelope: Envelope, peer: Peer) -> Ack:
        handled[ticks] = handled.get(ticks, 0) + 1
        return ok(envelope, peer)

    async def tick() -> None:
        nonlocal ticks
        while True:
            await trio.lowlevel.checkpoint()
            ticks += 1

    await server.start(respond)
    peer = await server.connect()
    await peer.send(*[heartbeat(str(n)) for n in range(64)])
    server.nursery.start_soon(tick)
    for n in range(64):
        assert (await peer.answer())["requestId"] == str(n)
    # the observer runs before or after the server in a turn of the loop, so one of its ticks may see two turns
    assert max(handled.values()) <= 32
    assert len(handled) >= 2


async def test_a_lack_of_descriptors_is_survived(
    server: Server, mock_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    late = await server.connect()  # it waits in the backlog
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        await server.start()
        await settle()
        assert os.strerror(errno.EMFILE) in caplog.text
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    mock_clock.jump(1)
    assert (await late.ask(heartbeat("late")))["requestId"] == "late"


async def test_a_fault_of_one_peer_leaves_the_others_alone(server: Server) -> None:
    """One floods without a newline, one sends garbage, one resets its connection, one is silent."""
    await server.start()
    honest = await server.connect()
    await honest.ask(heartbeat())
    silent, flooder, garbler, leaver = [await server.connect() for _ in range(4)]

    async def keep_sending(peer: RawPeer, what: bytes) -> None:
        with suppress(trio.BrokenResourceError):
            while True:
                await peer.send(what)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_sending, flooder, b"x" * 64 * KIB)
        nursery.start_soon(keep_sending, garbler, b"garbage\n" * 10)
        await leaver.send(*[heartbeat() for _ in range(100)])
        await leaver.stream.aclose()
        for n in range(200):
            assert (await honest.ask(heartbeat(str(n))))["requestId"] == str(n)
    assert (await silent.ask(heartbeat()))["ok"] is True


async def test_a_thousand_may_register_at_once(server: Server) -> None:
    """Though only 64 connections may be unknown: nobody fails, and all stay connected."""
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    count = min(1000, (soft - 100) // 2)
    answers: list[dict[str, Any]] = []

    async def provision(envelope: Envelope) -> Ack:
        for _ in range(5):
            await trio.lowlevel.checkpoint()
        return Ack(request_id=envelope.request_id, ok=True)

    def respond(envelope: Envelope, peer: Peer) -> Answer:
        return partial(provision, envelope)

    await server.start(respond)

    async def register(n: int, peer: RawPeer) -> None:
        answers.append(await peer.ask(call(str(n))))

    peers = [await server.connect() for _ in range(count)]
    async with trio.open_nursery() as nursery:
        for n, peer in enumerate(peers):
            nursery.start_soon(register, n, peer)
    assert all(ack["ok"] for ack in answers)
    assert len(answers) == count
    assert (await peers[0].ask(call("again")))["ok"] is True


async def test_a_large_answer_reaches_a_peer_that_reads_slowly(server: Server) -> None:
    work = Work(result="x" * 8 * MIB)
    await server.start(work, is_known=everybody)
    peer = await server.connect()
    await peer.send(call("large"))
    await work.let_go()
    await settle()
    assert (await peer.ask(heartbeat("small")))["requestId"] == "large"
    assert (await peer.answer())["requestId"] == "small"


async def test_work_that_does_not_wait_is_done_by_who_reads_and_starts_no_task(server: Server) -> None:
    tasks: list[trio.lowlevel.Task] = []

    async def work(envelope: Envelope) -> Ack:
        tasks.append(trio.lowlevel.current_task())
        return Ack(request_id=envelope.request_id, ok=True)

    await server.start(lambda envelope, _peer: partial(work, envelope), is_known=everybody)
    peer = await server.connect()
    await peer.send(*[call(str(n)) for n in range(40)])
    assert [(await peer.answer())["requestId"] for _ in range(40)] == [str(n) for n in range(40)]
    assert len(set(tasks)) == 1


async def test_requests_behind_one_that_waits_are_answered_before_it(server: Server) -> None:
    """Whether they came in one piece with it or later, and whether more of them have to wait."""
    work = Work()
    await server.start(work, is_known=everybody)
    peer = await server.connect()
    for round_ in range(3):
        await peer.send(call("slow"), heartbeat("a"), call("slower"), heartbeat("b"))
        assert [(await peer.answer())["requestId"] for _ in range(2)] == ["a", "b"]
        assert (await peer.ask(heartbeat("c")))["requestId"] == "c"
        await settle()
        assert set(work.started[2 * round_ :]) == {"slow", "slower"}
        await work.let_go()
        assert {(await peer.answer())["requestId"] for _ in range(2)} == {"slow", "slower"}


async def test_work_is_not_cut_when_its_peer_is_closed_for_a_fault(server: Server) -> None:
    """Also where the task that does it is the one that read its request."""
    work = Work()
    await server.start(work, is_known=everybody)
    peer = await server.connect()
    await peer.send(call("a"))
    await settle()
    await peer.send(call("b"))
    await settle()
    await peer.send(b"nonsense\n" * 101)
    await peer.wait_closed()
    assert work.ended == []
    await work.let_go()
    await settle()
    assert sorted(work.ended) == ["a", "b"]


async def test_work_that_fails_after_it_has_waited_is_a_refusal(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> Ack:
        await trio.lowlevel.checkpoint()
        raise KeyError("not any more")

    await server.start(lambda envelope, peer: fail if isinstance(envelope, CallApi) else ok(envelope, peer))
    peer = await server.connect()
    await peer.ask(heartbeat("a"))
    ack = await peer.ask(call("c"))
    assert (ack["requestId"], ack["ok"], ack["message"]) == ("c", False, "the request failed: KeyError")
    assert "follower.callApi" in caplog.text


async def test_an_answer_before_work_that_waits_does_not_wait_with_it(server: Server) -> None:
    """Both in one write: a heartbeat that was answered late would look like a leader that keeps silent."""
    work = Work()
    await server.start(work, is_known=everybody)
    peer = await server.connect()
    await peer.ask(heartbeat("known"))
    await peer.send(heartbeat("fast") + call("slow"))
    with trio.fail_after(10):
        assert (await peer.answer())["requestId"] == "fast"
    await work.let_go()
    assert (await peer.answer())["requestId"] == "slow"
