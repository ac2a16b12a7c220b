"""One connection of a server: requests in, answers out, within its bounds."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs
import trio

from telegram_bus.core.codec import decode, encode
from telegram_bus.core.envelopes import Ack, Envelope
from telegram_bus.core.errors import BusError, InvalidEnvelope, LineTooLong
from telegram_bus.core.extensions import Carrying, FileExpect
from telegram_bus.wire.connection import Connection, Peer
from telegram_bus.wire.descriptors import Descriptors, TooManyDescriptors
from telegram_bus.wire.resuming import resumed

if TYPE_CHECKING:
    from telegram_bus.wire.crowd import Crowd

__all__ = ["Answer", "Responder", "Session"]

log = logging.getLogger(__name__)

Answer = Ack | Callable[[], Awaitable[Ack]]
"""An ack, given at once, or work that ends in one; nothing of its connection waits for it."""

Responder = Callable[[Envelope, Peer], Answer]


class Asked(NamedTuple):
    """A request that is worked on: the work, and how many bytes its line has."""

    envelope: Envelope
    work: Callable[[], Awaitable[Ack]]
    size: int


INVALID: Final = "invalid"  # the request id of an answer to a line that has none (protocol section 1)


class Session:
    """What a server knows about one peer, from accept to close; a fault of the peer ends it and no other."""

    def __init__(
        self,
        connection: Connection,
        peer: Peer,
        crowd: Crowd,
        respond: Responder,
        is_known: Callable[[Peer], bool],
    ) -> None:
        self.connection = connection
        self.half = 0  # bytes of an unfinished line, as the crowd counts them
        self.half_at = 0.0  # when it last grew
        self._peer = peer
        self._crowd = crowd
        self._limits = crowd.limits
        self._respond = respond
        self._is_known = is_known
        self._known = False
        self._seated = False
        self._ended = False
        self._reading = trio.CancelScope()
        self._in_flight = 0
        self._in_flight_bytes = 0
        self._files_in_flight = 0
        self._finished: trio.Event | None = None  # while somebody waits for the end of work
        self._refused = 0
        crowd.join(self)
        if not self.is_known():
            crowd.add_unknown(self)

    def is_known(self) -> bool:
        """Whether the connection is known, which its peer may have become by another one."""
        if not self._known and self._is_known(self._peer):
            self._become_known()
        return self._known

    async def run(self) -> None:
        """Answer until the peer leaves or is closed, and the work it asked for has ended."""
        try:
            async with trio.open_nursery() as nursery:
                await self._read_on(nursery, self._reading, [])
        finally:
            self._forget()
            self.connection.close()
            self._crowd.leave(self)

    def end(self, reason: str) -> None:
        """Close the connection for a fault of its peer; the work it asked for goes on, unanswered."""
        if not self._ended:
            self._crowd.complain(self._peer, reason)
        self._forget()
        self.connection.close()
        self._reading.cancel(reason)

    def _forget(self) -> None:
        """Take nothing any longer of what the crowd bounds."""
        self._ended = True
        self._leave_unknown()
        half, self.half = self.half, 0
        if half:
            self._crowd.count_half_line(-half)

    # reading

    async def _read_on(self, nursery: trio.Nursery, scope: trio.CancelScope, lines: list[bytes]) -> None:
        """Answer these lines and those that come, until the peer is gone or another task reads on in this one's place.

        `scope` is the scope of who reads: this task may have work to do that is not cut with the reading.
        """
        with scope:
            await self._read(nursery, lines)
        if self._reading is scope:
            self._forget()

    async def _read(self, nursery: trio.Nursery, lines: list[bytes] | None) -> None:
        connection = self.connection
        try:
            while True:
                if self._overfull:
                    await self._catch_up(nursery)
                if not lines:
                    if self._known or not await self._take_seat():
                        await connection.wait_readable()
                    lines = connection.receive_nowait()
                    if lines is None:
                        return
                    if self.half or connection.lines.pending:
                        self._note_half_line(connection.lines.pending)
                if lines and not await self._handle(lines, nursery):
                    return
                lines = None
                if connection.held and not connection.lines.pending:
                    connection.drop_held()  # their lines have come, and did not want them
        except trio.ClosedResourceError:
            return
        except (LineTooLong, TooManyDescriptors) as fault:
            self.end(f"was refused: {fault}")

    async def _take_seat(self) -> bool:
        """Wait until this unknown connection may be read from; True when it has said something by then.

        One that says nothing needs no seat.
        """
        while self._in_flight:  # what it asked for decides whether it is known
            await self._wait_finished()
        if self.is_known() or self._seated:
            return False
        await self.connection.wait_readable()
        if not self.is_known():
            await self._crowd.seats.acquire()
            self._seated = True
        return True

    def _note_half_line(self, pending: int) -> None:
        growth = pending - self.half
        self.half = pending
        self.half_at = trio.current_time()
        self._crowd.count_half_line(growth)

    async def _handle(self, lines: list[bytes], nursery: trio.Nursery) -> bool:
        """Answer these lines; False where this task does work meanwhile and another one goes on with the rest."""
        limits = self._limits
        turn = 0
        eager = len(lines) > limits.in_flight
        for number, line in enumerate(lines, 1):
            if turn == limits.turn:
                turn = 0
                self._flush(nursery)
                if eager:  # a real pause: the others' processes need time of the machine too
                    await trio.sleep(limits.eager_pause)
                else:
                    await trio.lowlevel.checkpoint()
            turn += 1
            asked = self._answer(line, nursery, alone=len(lines) == 1)
            if asked is not None and (rest := self._begin(asked)) is not None:
                self._hand_over(asked, nursery, lines[number:])
                await self._give_late(await self._go_on(asked, *rest), nursery)
                return False
            if self._ended:
                return True
            if self._overfull:
                await self._catch_up(nursery)
        self._flush(nursery)
        return True

    @property
    def _overfull(self) -> bool:
        """Whether the peer has to wait for answers, or take some, before it may ask for more."""
        limits = self._limits
        return (
            self._in_flight >= limits.in_flight
            or self._in_flight_bytes > limits.in_flight_bytes
            or self._files_in_flight > limits.descriptors
            or self.connection.unsent > limits.unsent_pause
        )

    async def _catch_up(self, nursery: trio.Nursery) -> None:
        """Let work end, and let the peer take its answers, before it may ask for more."""
        limits = self._limits
        self._flush(nursery)
        while (
            self._in_flight >= limits.in_flight
            or self._in_flight_bytes > limits.in_flight_bytes
            or self._files_in_flight > limits.descriptors
        ):
            await self._wait_finished()
        if self.connection.unsent > limits.unsent_pause:
            await self.connection.wait_drained()

    # answering

    def _answer(self, line: bytes, nursery: trio.Nursery, *, alone: bool) -> Asked | None:
        """Answer the line, or have its work done; work that may be over at once is returned, for this task to do.

        One that is read `alone` keeps no other one waiting should it take longer.
        """
        try:
            envelope = decode(line)
        except InvalidEnvelope as fault:
            self.connection.drop_held()  # nobody knows any more which line they belong to
            self._give_now(_failure(INVALID, fault))
            return None
        if isinstance(envelope, FileExpect):
            self._expect_files(envelope)
            return None
        peer, beside = self._peer, None
        if self.connection.held and isinstance(envelope, Carrying):
            beside = self.connection.held.popleft()
            peer = attrs.evolve(peer, descriptors=beside)
        try:
            answer = self._respond(envelope, peer)
        except BusError as fault:  # of its peer's making, which shall not fill the log with where it was noticed
            log.warning("a %s failed: %s", envelope.KIND, fault)
            answer = _failure(envelope.request_id, fault)
        except Exception as fault:  # a fault in answering one request must not cost the others theirs
            log.exception("cannot answer a %s", envelope.KIND)
            answer = _failure(envelope.request_id, fault)
        if isinstance(answer, Ack):
            if beside is not None:
                beside.close()
            self._give_now(answer)
            return None
        if beside is not None:
            answer = self._closing(answer, beside)
        asked = Asked(envelope, answer, len(line))
        self._in_flight += 1
        self._in_flight_bytes += asked.size
        if self._known and (alone or type(envelope) not in self._crowd.lasting):
            return asked
        self._leave_unknown()
        nursery.start_soon(self._work, asked, nursery)
        return None

    def _closing(self, work: Callable[[], Awaitable[Ack]], beside: Descriptors) -> Callable[[], Awaitable[Ack]]:
        """The work, and then the end of the open files that nobody took over."""
        count = len(beside)
        self._files_in_flight += count

        async def closing() -> Ack:
            try:
                return await work()
            finally:
                self._files_in_flight -= count
                beside.close()

        return closing

    def _expect_files(self, envelope: FileExpect) -> None:
        """A matter of the connection alone: who has had a request accepted may bring files."""
        known = self.is_known()
        self.connection.takes = known
        message = None if known else "open files are taken once a request on this connection was accepted"
        self._give_now(Ack(request_id=envelope.request_id, ok=known, message=message))

    def _begin(self, asked: Asked) -> tuple[Coroutine[Any, Any, Ack], Any] | None:
        """Do work in the task that reads, as far as it need not wait: what is over then has cost no other task.

        Otherwise returns the rest of it, and what it waits for.
        """
        work = self._outcome(asked)
        try:
            return work, work.send(None)
        except StopIteration as end:
            self._note_finished(asked)
            if not self.connection.closed:
                self._give(end.value)
                if self.connection.backlog > self._limits.unsent:
                    self.end("does not read its answers")
            return None

    def _hand_over(self, asked: Asked, nursery: trio.Nursery, lines: list[bytes]) -> None:
        """Have another task read on, and before that answer these lines: this one has to wait for its work."""
        self._flush(nursery)  # what was answered before waits for nobody
        self._crowd.lasting.add(type(asked.envelope))
        self._reading = trio.CancelScope()
        nursery.start_soon(self._read_on, nursery, self._reading, lines)

    async def _go_on(self, asked: Asked, work: Coroutine[Any, Any, Ack], wanted: Any) -> Ack:
        """The answer of work that `_begin` has begun."""
        try:
            return await resumed(work, wanted)
        finally:
            self._note_finished(asked)

    async def _work(self, asked: Asked, nursery: trio.Nursery) -> None:
        """Do work in a task of its own."""
        try:
            ack = await self._outcome(asked)
        finally:
            self._note_finished(asked)
        await self._give_late(ack, nursery)

    async def _outcome(self, asked: Asked) -> Ack:
        try:
            return await asked.work()
        except BusError as fault:  # as above
            log.warning("a %s failed: %s", asked.envelope.KIND, fault)
            return _failure(asked.envelope.request_id, fault)
        except Exception as fault:  # as above
            log.exception("cannot answer a %s", asked.envelope.KIND)
            return _failure(asked.envelope.request_id, fault)

    def _note_finished(self, asked: Asked) -> None:
        self._in_flight -= 1
        self._in_flight_bytes -= asked.size
        if self._finished is not None:
            self._finished.set()
            self._finished = None

    async def _wait_finished(self) -> None:
        """Wait until some work has ended."""
        if self._finished is None:
            self._finished = trio.Event()
        await self._finished.wait()

    async def _give_late(self, ack: Ack, nursery: trio.Nursery) -> None:
        """Send an answer that others may have been given before: with theirs, if any may come in this turn."""
        if self.connection.closed:
            return
        self._give(ack)
        if not (self._known or self._in_flight or self._ended):
            self._crowd.add_unknown(self)
        if self.connection.backlog > self._limits.unsent:
            self.end("does not read its answers")
        elif not (await self.connection.flush_soon() if self._in_flight else self.connection.flush()):
            nursery.start_soon(self.connection.drain)

    def _give_now(self, ack: Ack) -> None:
        self._give(ack)
        if ack.ok:
            self._refused = 0
            return
        self._refused += 1
        if self._refused >= self._limits.refused_in_a_row:
            self.connection.flush()
            self.end(f"sent {self._refused} invalid or refused lines in a row")

    def _give(self, ack: Ack) -> None:
        try:
            line = encode(ack)
        except (InvalidEnvelope, TypeError, ValueError) as fault:  # a result that JSON cannot say
            log.exception("cannot encode an answer")
            line = encode(_failure(ack.request_id, fault))
        self.connection.put(line)
        if ack.ok and not self._known:
            self._become_known()

    def _flush(self, nursery: trio.Nursery) -> None:
        if not self.connection.flush():
            nursery.start_soon(self.connection.drain)

    # being known

    def _become_known(self) -> None:
        self._known = True
        self.connection.lines.limit = self._limits.line
        self._leave_unknown()

    def _leave_unknown(self) -> None:
        self._crowd.remove_unknown(self)
        if self._seated:
            self._seated = False
            self._crowd.seats.release()


def _failure(request_id: str, fault: Exception) -> Ack:
    text = str(fault) if isinstance(fault, BusError) else f"the request failed: {type(fault).__name__}"
    return Ack(request_id=request_id, ok=False, message=text)
