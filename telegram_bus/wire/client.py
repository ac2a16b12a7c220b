"""The client side of the bus: one connection that many requests share, and a one-shot mode."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import outcome
import trio
from attrs import define, field

from telegram_bus.core.codec import decode, encode
from telegram_bus.core.envelopes import Ack, CallApi, Envelope, OfferQueueHandoff, RouteAgentMessage
from telegram_bus.core.errors import (
    AnswerLost,
    BusError,
    CommitUnknown,
    InvalidEnvelope,
    LineTooLong,
    NotSent,
    RequestRefused,
)
from telegram_bus.core.extensions import FileExpect, FileSend
from telegram_bus.core.permissions import repeatable
from telegram_bus.wire.connection import Connection, Peer, credentials_of, is_trusted
from telegram_bus.wire.descriptors import MAX_DESCRIPTORS, Descriptors
from telegram_bus.wire.limits import DEFAULT_LIMITS, MIB

__all__ = ["BusClient", "is_repeatable", "open_client", "request_once"]

log = logging.getLogger(__name__)

Locate = Callable[[], str | os.PathLike[str]]
"""Where the server is; raises OSError or a BusError when there is none."""

REQUEST_MAX: Final = DEFAULT_LIMITS.line
ANSWER_MAX: Final = 32 * MIB  # twice what a server takes: an answer may quote a request, and we trust the server
UNSENT_MAX: Final = 1 * MIB  # requests that the server has not taken; with more of them the next ones wait
BUSY_FIRST: Final = 0.005  # a full listen backlog is EAGAIN, which nothing wakes us from
BUSY_LONGEST: Final = 0.1
BUSY_ATTEMPTS: Final = 40  # 3.5 s in all


def is_repeatable(envelope: Envelope) -> bool:
    """Whether doing the request twice does no harm, so that a lost answer leaves nothing in doubt."""
    if isinstance(envelope, CallApi):
        # `call` and `callMultipart` name the API's method first; `downloadFile` only reads
        called = envelope.args[0] if envelope.args else None
        return envelope.method == "downloadFile" or (isinstance(called, str) and repeatable(called))
    return not isinstance(envelope, OfferQueueHandoff | RouteAgentMessage | FileSend)


@asynccontextmanager
async def open_client(
    locate: Locate, *, credentials: Callable[[socket.socket], Peer] = credentials_of
) -> AsyncIterator[BusClient]:
    """A client of the server whose path `locate` returns; it is asked anew for each connection.

    Nothing is connected before the first request. At the end the connection is closed, and requests that still
    wait get AnswerLost (NotSent, CommitUnknown).
    """
    client = BusClient(locate, credentials)
    fault: BaseException | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.run_reader)
        nursery.start_soon(client.run_writer)
        try:
            yield client
        except BaseException as error:  # noqa: BLE001 - raised again below, where no nursery makes a group of it
            fault = error
        client.abandon("the client was closed")
        nursery.cancel_scope.cancel("the client was closed")
    if fault is not None:
        raise fault


async def request_once(path: str | os.PathLike[str], envelope: Envelope) -> Ack:
    """Send one request over a connection of its own; raises as `BusClient.request` does."""
    async with open_client(lambda: path) as client:
        return await client.request(envelope)


@define(eq=False)
class _Waiting:
    """A request whose answer is not there yet: where its line begins in the stream, and who waits."""

    envelope: Envelope
    begin: int
    task: trio.lowlevel.Task | None = None
    result: outcome.Outcome[Ack] | None = None  # when it came before the task could wait

    def settle(self, result: outcome.Outcome[Ack]) -> None:
        if self.task is not None:
            trio.lowlevel.reschedule(self.task, result)
        else:
            self.result = result


@define(eq=False)
class _Attempt:
    """An attempt to connect that several requests may wait for."""

    done: trio.Event = field(factory=trio.Event)
    fault: str | None = None


class BusClient:
    """Requests to one server over one connection, made when it is needed and again after it was lost."""

    def __init__(self, locate: Locate, credentials: Callable[[socket.socket], Peer]) -> None:
        self._locate = locate
        self._credentials = credentials
        self._connection: Connection | None = None
        self._waiting: dict[str, _Waiting] = {}
        self._attempt: _Attempt | None = None
        self._attempt_wanted = trio.Event()
        self._lost = trio.Event()
        self._undrained = trio.Event()
        self._in_company = True  # whether several answers came at once the last time, or may have waited to ask
        self._abandoned: str | None = None

    async def request(self, envelope: Envelope, descriptors: Sequence[int] = ()) -> Ack:
        """Send a request and wait for its ack, which may be a refusal (`ok` false). The caller limits the time.

        `descriptors` are open files that travel beside it; they stay the caller's, open until this returns.

        A request that is cancelled has lost interest in its answer; it may be carried out all the same. Raises
        RequestRefused (too long for any server), NotSent (nothing left this process: ask again at will), AnswerLost
        (it did, and the answer will not come), and CommitUnknown, an AnswerLost, for what must not be repeated.
        """
        line = encode(envelope)
        if len(line) > REQUEST_MAX:  # the server would close the connection, and asking again would not help
            raise RequestRefused(f"a request of {len(line)} bytes is too long: at most {REQUEST_MAX} are taken")
        connection = self._connection or await self._connect()
        while connection.unsent > UNSENT_MAX:
            await connection.wait_drained()
            if connection is not self._connection:
                raise NotSent("the connection was lost before the request could be sent")
        if descriptors and not connection.expected:
            await self._announce_files(connection, envelope)
        waiting = self._put(connection, envelope, line, descriptors)
        await self._flush(connection)
        if waiting.result is not None:
            return waiting.result.unwrap()

        def drop_interest(_: object) -> trio.lowlevel.Abort:
            self._waiting.pop(envelope.request_id, None)
            return trio.lowlevel.Abort.SUCCEEDED

        waiting.task = trio.lowlevel.current_task()
        ack: Ack = await trio.lowlevel.wait_task_rescheduled(drop_interest)
        return ack

    @property
    def connected(self) -> bool:
        """Whether there is a connection at this moment."""
        return self._connection is not None

    async def wait_lost(self) -> None:
        """Wait until the connection of this moment is lost; where there is none, it is lost already."""
        if self._connection is None:
            await trio.lowlevel.checkpoint()
        else:
            await self._lost.wait()

    def abandon(self, reason: str) -> None:
        """Close the connection for good; requests that wait fail, and later ones are NotSent."""
        self._abandoned = reason
        if self._attempt is not None:
            self._attempt.fault = reason
            self._attempt.done.set()
            self._attempt = None
        if self._connection is not None:
            self._lose(self._connection, reason)

    async def _announce_files(self, connection: Connection, envelope: Envelope) -> None:
        """Have the server look for open files on this connection, which costs it a little with each line."""
        asked = FileExpect(request_id=f"{envelope.request_id}:files", auth=envelope.auth)
        try:
            ack = await self.request(asked)
        except AnswerLost as lost:
            raise NotSent(f"the files were not sent: {lost}") from lost
        if not ack.ok:
            raise RequestRefused(ack.message or "the server takes no files")
        if connection is not self._connection:
            raise NotSent("the connection was lost before the request could be sent")
        connection.expected = True

    # requests

    def _put(self, connection: Connection, envelope: Envelope, line: bytes, descriptors: Sequence[int]) -> _Waiting:
        if envelope.request_id in self._waiting:
            raise NotSent(f"a request with the id {envelope.request_id!r} is under way: each has an id of its own")
        beside = _duplicates(descriptors) if descriptors else None
        waiting = _Waiting(envelope, connection.put(line, beside))
        self._waiting[envelope.request_id] = waiting
        return waiting

    async def _flush(self, connection: Connection) -> None:
        """Send what was put: at once when nobody else seems to be about to, else with all that do in this turn."""
        together = len(self._waiting) > 1 or self._in_company
        if not (await connection.flush_soon() if together else connection.flush()):
            self._undrained.set()

    async def _connect(self) -> Connection:
        if self._abandoned is not None:
            raise NotSent(self._abandoned)
        attempt = self._attempt
        if attempt is None:
            attempt = self._attempt = _Attempt()
            self._attempt_wanted.set()
        await attempt.done.wait()
        if self._connection is None:
            raise NotSent(attempt.fault or "the connection was lost before the request could be sent")
        return self._connection

    # tasks of the context manager

    async def run_reader(self) -> None:
        """Connect when asked to, and read answers until the connection is lost; for ever."""
        while True:
            await self._attempt_wanted.wait()
            self._attempt_wanted = trio.Event()
            connection, fault = None, None
            try:
                connection = await self._open()
            except (BusError, OSError, ValueError) as error:  # ValueError: what a peer named as a path is none
                fault = str(error)
            attempt, self._attempt = self._attempt, None
            if connection is not None:
                self._connection = connection
                self._lost = trio.Event()
                self._in_company = True
            if attempt is not None:
                attempt.fault = fault
                attempt.done.set()
            if connection is not None:
                await self._read(connection)

    async def _open(self) -> Connection:
        """Connect to where the server is now; raises OSError, ValueError and BusError."""
        path = Path(self._locate())
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            await _connect(sock, path)
            server = self._credentials(sock)
        except BaseException:
            sock.close()
            raise
        if not is_trusted(server):
            sock.close()
            raise NotSent(f"{path} is served by user {server.uid}, not by us")
        return Connection(sock, ANSWER_MAX)

    async def run_writer(self) -> None:
        """Send what a server that is slow to read has not taken yet; for ever."""
        while True:
            await self._undrained.wait()
            self._undrained = trio.Event()
            if self._connection is not None and self._connection.drained is not None:
                await self._connection.drain()

    async def _read(self, connection: Connection) -> None:
        reason = "the server closed the connection"
        try:
            while (lines := await connection.receive()) is not None:
                if lines:
                    self._in_company = len(lines) > 1
                    for line in lines:
                        self._take(line)
        except trio.ClosedResourceError:
            reason = "the connection broke"
        except LineTooLong as fault:
            reason = f"the server's answer was refused: {fault}"
        finally:
            self._lose(connection, reason)

    def _take(self, line: bytes) -> None:
        try:
            ack = decode(line)
        except InvalidEnvelope as fault:
            log.warning("the server sent an invalid line: %s", fault)
            return
        if not isinstance(ack, Ack):
            log.warning("the server sent a %s in place of an answer", ack.KIND)
        elif (waiting := self._waiting.pop(ack.request_id, None)) is not None:
            waiting.settle(outcome.Value(ack))
        elif ack.request_id == "invalid":
            log.warning("the server did not understand a request: %s", ack.message)

    def _lose(self, connection: Connection, reason: str) -> None:
        connection.close()
        if self._connection is not connection:
            return
        self._connection = None
        waiting, self._waiting = self._waiting, {}
        for one in waiting.values():
            one.settle(outcome.Error(_fault(one, connection.sent, reason)))
        self._lost.set()


def _duplicates(descriptors: Sequence[int]) -> Descriptors:
    if len(descriptors) > MAX_DESCRIPTORS:
        raise RequestRefused(f"{len(descriptors)} files are too many for one request: {MAX_DESCRIPTORS} at most")
    try:
        return Descriptors.duplicates(descriptors)
    except OSError as error:
        raise NotSent(f"the open files cannot be sent along: {error.strerror}") from error


def _fault(waiting: _Waiting, sent: int, reason: str) -> BusError:
    kind = waiting.envelope.KIND
    if sent <= waiting.begin:
        return NotSent(f"the {kind} was not sent: {reason}")
    if is_repeatable(waiting.envelope):
        return AnswerLost(f"the {kind} was sent, but not answered: {reason}")
    return CommitUnknown(f"the {kind} was sent, and whether it was carried out is not known: {reason}")


async def _connect(sock: socket.socket, path: Path) -> None:
    pause = BUSY_FIRST
    for _ in range(BUSY_ATTEMPTS):
        try:
            sock.connect(os.fsencode(path))
        except BlockingIOError:
            await trio.sleep(pause)
            pause = min(pause * 2, BUSY_LONGEST)
        except OSError as error:
            raise NotSent(f"nobody listens at {path}: {error.strerror or error}") from error
        else:
            return
    raise NotSent(f"the server at {path} is too busy to take a connection")
