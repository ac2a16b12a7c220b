"""Each bound of the server, with small numbers and a clock that the test moves."""

from __future__ import annotations

import attrs
import pytest
import trio
import trio.testing

from telegram_bus.core.envelopes import Ack, Envelope
from telegram_bus.wire.connection import Peer
from telegram_bus.wire.limits import KIB, MIB, Limits
from tests.wire.bus_peers import Server, Work, call, everybody, heartbeat, line, ok

settle = trio.testing.wait_all_tasks_blocked
Clock = trio.testing.MockClock


def wrong(request_id: str = "w") -> bytes:
    return heartbeat(request_id, auth="wrong")


def padded(size: int, request_id: str = "p") -> bytes:
    """A heartbeat whose line has so many bytes."""
    bare = heartbeat(request_id, padding="")
    return heartbeat(request_id, padding="x" * (size - len(bare) + 1))


async def pass_time(clock: Clock, seconds: float) -> None:
    """Let time pass in steps, as it does: the sweep runs once for each second."""
    for _ in range(int(seconds)):
        await settle()
        clock.jump(1)
    await settle()


def test_the_bounds_are_those_of_the_specification() -> None:
    assert attrs.asdict(Limits()) == {
        "connections": 8192,
        "unknown": 64,
        "unknown_grace": 5,
        "unknown_line": 64 * KIB,
        "line": 16 * MIB,
        "half_lines": 64 * MIB,
        "half_line_grace": 30,
        "turn": 16,
        "eager_pause": 0.001,
        "in_flight": 64,
        "descriptors": 40,
        "in_flight_bytes": 16 * MIB,
        "refused_in_a_row": 100,
        "unsent_pause": 64 * KIB,
        "unsent": MIB,
        "unsent_grace": 10,
        "sweep": 1,
    }


# connections


async def test_one_more_connection_waits_until_another_ends(server: Server) -> None:
    await server.start(limits=Limits(connections=2))
    first, second, third = [await server.connect() for _ in range(3)]
    await third.send(heartbeat("third"))
    await settle()
    await first.ask(heartbeat())
    await second.ask(heartbeat())
    with pytest.raises(trio.WouldBlock):
        nothing_yet(third.stream)
    await first.stream.aclose()
    assert (await third.answer())["requestId"] == "third"


def nothing_yet(stream: trio.SocketStream) -> None:
    """Raises WouldBlock when nothing was received."""
    try:
        stream.socket._sock.recv(1)  # type: ignore[attr-defined]
    except BlockingIOError:
        raise trio.WouldBlock from None


# unknown peers


async def test_only_so_many_unknown_peers_are_read_from_and_the_oldest_goes(server: Server, mock_clock: Clock) -> None:
    await server.start(limits=Limits(unknown=2, unknown_grace=5))
    first, second, third = [await server.connect() for _ in range(3)]
    for peer in (first, second):
        await peer.send(b"{")
    await settle()
    await third.send(heartbeat("third"))
    await pass_time(mock_clock, 4)
    with pytest.raises(trio.WouldBlock):
        nothing_yet(third.stream)
    await pass_time(mock_clock, 3)
    await first.wait_closed()
    assert (await third.answer())["requestId"] == "third"
    await pass_time(mock_clock, 20)
    with pytest.raises(trio.WouldBlock):
        nothing_yet(second.stream)  # there is room, so it may stay


async def test_an_unknown_peer_that_says_nothing_takes_no_room(server: Server, mock_clock: Clock) -> None:
    await server.start(limits=Limits(unknown=2, unknown_grace=5))
    silent = [await server.connect() for _ in range(20)]
    await settle()
    assert (await (await server.connect()).ask(heartbeat()))["ok"] is True
    await pass_time(mock_clock, 7)
    for peer in silent[:18]:
        await peer.wait_closed()
    for peer in silent[18:]:
        assert (await peer.ask(heartbeat()))["ok"] is True


async def test_a_peer_whose_work_is_under_way_is_not_an_idle_unknown_one(server: Server, mock_clock: Clock) -> None:
    """Registering may take long: a thread is made, under Telegram's limits."""
    work = Work()
    await server.start(work, limits=Limits(unknown=1, unknown_grace=5))
    registering = [await server.connect() for _ in range(3)]
    for n, peer in enumerate(registering):
        await peer.send(call(str(n)))
    await pass_time(mock_clock, 20)
    assert sorted(work.started) == ["0", "1", "2"]
    await work.let_go()
    for n, peer in enumerate(registering):
        assert (await peer.answer())["requestId"] == str(n)


async def test_a_refused_peer_is_unknown_again_after_its_work(server: Server, mock_clock: Clock) -> None:
    async def refuse(request_id: str) -> Ack:
        return Ack(request_id=request_id, ok=False)

    await server.start(lambda envelope, _: lambda: refuse(envelope.request_id), limits=Limits(unknown=1))
    first, second = [await server.connect() for _ in range(2)]
    assert (await first.ask(call()))["ok"] is False
    assert (await second.ask(call()))["ok"] is False
    await pass_time(mock_clock, 7)
    await first.wait_closed()
    assert (await second.ask(call()))["ok"] is False


async def test_a_registered_pid_is_known_on_every_connection(server: Server, mock_clock: Clock) -> None:
    known: set[Peer] = set()

    def respond(envelope: Envelope, peer: Peer) -> Ack:
        known.add(peer)
        return ok(envelope, peer)

    await server.start(respond, is_known=known.__contains__, limits=Limits(unknown=1, unknown_line=200, line=1000))
    silent = [await server.connect() for _ in range(5)]
    await (await server.connect()).ask(heartbeat())
    await pass_time(mock_clock, 10)
    for peer in silent:
        assert (await peer.ask(padded(1000)))["ok"] is True


# lines


async def test_a_line_may_be_long_only_from_a_known_peer(server: Server) -> None:
    await server.start(limits=Limits(unknown_line=200, line=100_000))
    stranger, friend = await server.connect(), await server.connect()
    assert (await friend.ask(padded(200)))["ok"] is True
    assert (await friend.ask(padded(100_000)))["ok"] is True
    await stranger.send(padded(201))
    await stranger.wait_closed()
    await friend.send(padded(100_001))
    assert await friend.answers_until_closed() == []


async def test_a_refused_request_makes_nobody_known(server: Server) -> None:
    await server.start(limits=Limits(unknown_line=200))
    peer = await server.connect()
    assert (await peer.ask(wrong()))["ok"] is False
    await peer.send(padded(201))
    await peer.wait_closed()


async def test_a_stream_without_a_newline_ends_at_the_limit(server: Server) -> None:
    await server.start(is_known=everybody, limits=Limits(line=1000))
    peer = await server.connect()
    await peer.send(b"x" * 1000)
    await settle()
    with pytest.raises(trio.WouldBlock):
        nothing_yet(peer.stream)
    await peer.send(b"x")
    await peer.wait_closed()


async def test_the_largest_half_line_goes_when_all_are_too_much(server: Server) -> None:
    await server.start(is_known=everybody, limits=Limits(half_lines=1000))
    small, large, last = [await server.connect() for _ in range(3)]
    await small.send(padded(300)[:-1])
    await large.send(padded(500)[:-1])
    await settle()
    await last.send(padded(201)[:-1])
    await large.wait_closed()
    for peer in (small, last):
        assert (await peer.ask(b"\n"))["ok"] is True
    third = await server.connect()
    await third.send(padded(1000)[:-1])  # what was finished or closed does not count any more
    assert (await third.ask(b"\n"))["ok"] is True


async def test_a_half_line_that_does_not_grow_for_30_s_goes(server: Server, mock_clock: Clock) -> None:
    await server.start(is_known=everybody)
    stuck, growing, idle = [await server.connect() for _ in range(3)]
    await stuck.send(b"{")
    await growing.send(heartbeat()[:5])
    await pass_time(mock_clock, 20)
    await growing.send(heartbeat()[5:10])
    await pass_time(mock_clock, 12)
    await stuck.wait_closed()
    assert (await growing.ask(heartbeat()[10:]))["ok"] is True
    await pass_time(mock_clock, 40)
    assert (await growing.ask(heartbeat()))["ok"] is True, "no half line, no limit"
    assert (await idle.ask(heartbeat()))["ok"] is True


# refusals


@pytest.mark.parametrize("bad", [b"garbage\n", wrong(), line({"kind": "x.y.z", "requestId": "r"})])
async def test_so_many_bad_lines_in_a_row_close_the_connection(server: Server, bad: bytes) -> None:
    await server.start(limits=Limits(refused_in_a_row=3))
    peer = await server.connect()
    await peer.send(bad, bad, heartbeat("good"), bad, bad, bad, heartbeat("too late"))
    answers = await peer.answers_until_closed()
    assert [ack["ok"] for ack in answers] == [False, False, True, False, False, False]


async def test_a_wrong_secret_leaves_nothing_behind(server: Server) -> None:
    """100 refused lines close a connection; the next one starts anew, and others never notice."""
    await server.start()
    honest = await server.connect()
    for _ in range(5):
        stranger = await server.connect()
        await stranger.send(wrong() * 150)
        assert len(await stranger.answers_until_closed()) == 100
        assert (await honest.ask(heartbeat()))["ok"] is True


async def test_refused_work_does_not_count(server: Server) -> None:
    """Telegram may refuse a follower's calls for long, which is not the follower's fault as a peer."""

    async def refuse(request_id: str) -> Ack:
        return Ack(request_id=request_id, ok=False)

    await server.start(
        lambda envelope, _: lambda: refuse(envelope.request_id),
        is_known=everybody,
        limits=Limits(refused_in_a_row=3),
    )
    peer = await server.connect()
    for n in range(10):
        assert (await peer.ask(call(str(n))))["requestId"] == str(n)


# work in flight


async def test_who_sends_more_at_once_than_may_be_in_flight_pauses_after_each_turn(
    server: Server, mock_clock: Clock
) -> None:
    handled: list[str] = []

    def respond(envelope: Envelope, peer: Peer) -> Ack:
        handled.append(envelope.request_id)
        return ok(envelope, peer)

    await server.start(respond, is_known=everybody, limits=Limits(turn=2, in_flight=4))
    eager, other = await server.connect(), await server.connect()
    await eager.send(*[heartbeat(f"eager {n}") for n in range(5)])
    await settle()
    assert handled == ["eager 0", "eager 1"]
    await other.send(*[heartbeat(f"other {n}") for n in range(4)])
    await settle()
    assert handled[2:] == [f"other {n}" for n in range(4)]
    for _ in range(2):
        mock_clock.jump(0.001)
        await settle()
    assert handled[6:] == [f"eager {n}" for n in range(2, 5)]


async def test_so_many_requests_of_a_connection_are_worked_on(server: Server) -> None:
    work = Work()
    await server.start(work, is_known=everybody, limits=Limits(in_flight=3))
    peer, other = await server.connect(), await server.connect()
    await peer.send(*[call(str(n)) for n in range(5)], heartbeat("behind"))
    await settle()
    assert len(work.started) == 3
    assert (await other.ask(heartbeat()))["ok"] is True
    await work.let_go()
    await work.let_go()
    assert {(await peer.answer())["requestId"] for _ in range(6)} == {*"01234", "behind"}


async def test_long_requests_that_are_worked_on_are_bounded_in_bytes(server: Server) -> None:
    work = Work()
    await server.start(work, is_known=everybody, limits=Limits(in_flight_bytes=3000))
    peer = await server.connect()
    await peer.send(*[call(str(n), padding="x" * 2000) for n in range(4)])
    await settle()
    assert len(work.started) == 2, "the one that passes the bound is the last"
    for _ in range(4):
        await work.let_go()
        await settle()
    assert sorted(work.ended) == [*"0123"]


# peers that do not read


async def test_a_peer_that_never_reads_is_not_read_from_and_goes(server: Server, mock_clock: Clock) -> None:
    asked = 0

    def respond(envelope: Envelope, _peer: Peer) -> Ack:
        nonlocal asked
        asked += 1
        return Ack(request_id=envelope.request_id, ok=True, result="x" * 10 * KIB)

    await server.start(respond, is_known=everybody)
    peer, other = await server.connect(), await server.connect()
    await peer.send(*[heartbeat(str(n)) for n in range(60)])
    await settle()
    # the kernel holds some of it, 208 KiB on Linux, and 64 KiB more are the bound
    assert asked < 50
    await pass_time(mock_clock, 9)
    assert (await other.ask(heartbeat()))["ok"] is True
    await pass_time(mock_clock, 3)
    answers = await peer.answers_until_closed()
    assert len(answers) < 50


async def test_a_peer_that_reads_again_in_time_misses_nothing(server: Server, mock_clock: Clock) -> None:
    await server.start(
        lambda envelope, _: Ack(request_id=envelope.request_id, ok=True, result="x" * 10 * KIB), is_known=everybody
    )
    peer = await server.connect()
    await peer.send(*[heartbeat(str(n)) for n in range(60)])
    await pass_time(mock_clock, 8)
    for n in range(60):
        assert (await peer.answer())["requestId"] == str(n)
    await pass_time(mock_clock, 20)
    assert (await peer.ask(heartbeat("after")))["requestId"] == "after"


async def test_late_answers_that_nobody_reads_end_at_a_bound(server: Server) -> None:
    """Above one large answer; their work was taken on before anyone could know."""
    work = Work(result="x" * MIB)
    await server.start(work, is_known=everybody)
    patient, deaf = await server.connect(), await server.connect()
    await patient.send(call("large"))
    await deaf.send(*[call(str(n)) for n in range(10)])
    await work.let_go()
    await settle()
    assert (await patient.answer())["requestId"] == "large"
    assert len(await deaf.answers_until_closed()) < 10


async def test_a_flood_of_closed_connections_does_not_flood_the_log(
    server: Server, mock_clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    await server.start(limits=Limits(unknown_line=10))
    for _ in range(50):
        peer = await server.connect()
        await peer.send(b"x" * 11)
        await peer.wait_closed()
    assert len(caplog.records) == 10
    await pass_time(mock_clock, 2)
    assert len(caplog.records) == 11
    assert "40 more" in caplog.records[-1].getMessage()
