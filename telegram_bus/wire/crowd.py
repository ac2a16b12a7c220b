"""The bounds that all connections of one server share: who is unknown, who may be read from, who must go."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NoReturn

import trio

if TYPE_CHECKING:
    from telegram_bus.core.envelopes import Envelope
    from telegram_bus.wire.connection import Peer
    from telegram_bus.wire.limits import Limits
    from telegram_bus.wire.session import Session

__all__ = ["Crowd"]

log = logging.getLogger(__name__)

COMPLAINTS: Final = 10  # lines in the log about closed connections for each sweep; the rest is one number


class Crowd:
    """All sessions of one server.

    A session is unknown until a request on it was accepted, or its peer is that of a live registration. Unknown
    ones that say nothing cost a descriptor and no more; to be read from, one of them needs a seat. While work for
    it is under way (it had the right secret, else there were none) it is not read from and needs none.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.sessions: set[Session] = set()
        self.seats = trio.Semaphore(limits.unknown)
        self.lasting: set[type[Envelope]] = set()  # kinds of requests that had to wait, since the last sweep
        self._unknown: dict[Session, float] = {}  # since when, the oldest first
        self._half_lines = 0
        self._left = trio.Event()
        self._complaints = 0

    def join(self, session: Session) -> None:
        self.sessions.add(session)

    def leave(self, session: Session) -> None:
        self.sessions.discard(session)
        self._left.set()
        self._left = trio.Event()

    async def wait_for_room(self) -> None:
        """Wait until one more connection may be open."""
        while len(self.sessions) >= self.limits.connections:
            await self._left.wait()

    def add_unknown(self, session: Session) -> None:
        self._unknown[session] = trio.current_time()
        self._evict_unknown()

    def remove_unknown(self, session: Session) -> None:
        self._unknown.pop(session, None)

    def _evict_unknown(self) -> None:
        """Close the oldest unknown sessions while there are too many, if they had their time."""
        now = trio.current_time()
        while len(self._unknown) > self.limits.unknown:
            session, since = next(iter(self._unknown.items()))
            if session.is_known():
                continue  # it is not among them any more
            if now - since < self.limits.unknown_grace:
                return
            session.end("sent no acceptable request while others wait")

    def count_half_line(self, growth: int) -> None:
        """A half line has grown by so many bytes (or shrunk); close the largest when all are too much."""
        self._half_lines += growth
        while self._half_lines > self.limits.half_lines:
            largest = max(self.sessions, key=lambda session: session.half)
            largest.end("has the longest of too many unfinished lines")

    def complain(self, peer: Peer, reason: str) -> None:
        """Log why a connection is closed, without letting a flood of them flood the log."""
        self._complaints += 1
        if self._complaints <= COMPLAINTS:
            log.warning("closed a connection of process %d: it %s", peer.pid, reason)

    async def sweep(self) -> NoReturn:
        """Look at the times, again and again, of all sessions in one task."""
        limits = self.limits
        while True:
            await trio.sleep(limits.sweep)
            self.lasting.clear()
            now = trio.current_time()
            for session in tuple(self.sessions):
                connection = session.connection
                if session.half and now - session.half_at > limits.half_line_grace:
                    session.end("does not finish its line")
                elif connection.drained is not None and now - connection.progress_at > limits.unsent_grace:
                    session.end("does not read its answers")
            self._evict_unknown()
            if self._complaints > COMPLAINTS:
                log.warning("closed %d more connections for such reasons", self._complaints - COMPLAINTS)
            self._complaints = 0
