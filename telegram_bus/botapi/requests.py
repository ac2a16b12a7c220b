"""A call on its way through the sender: what it is, who waits for it, and what became of it."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

import trio
from attrs import define, field, frozen

from telegram_bus.botapi.uploads import Upload
from telegram_bus.core.errors import BusError, CommitUnknown, NotSent, RequestRefused
from telegram_bus.core.turns import Ticket
from telegram_bus.core.urgency import Urgency, content

__all__ = ["After", "Before", "CallApi", "Failed", "Memory", "Outcome", "Request", "Sent", "Shown"]

REMEMBERED: Final = 512
"""Messages whose content is known, so that an edit which changes nothing is not sent (some 0.5 MB)."""


class CallApi(Protocol):
    """What the sender needs of `BotApi`."""

    async def call(
        self, method: str, params: Mapping[str, Any] | None = None, *, files: tuple[Upload, ...] = ()
    ) -> Any:
        """Make the call; raises ApiError, NotSent, AnswerLost."""


class Memory(Protocol):
    """What outlives the sender: what counts, and until when Telegram wants us to pause. Only `flush` waits."""

    def started(self, number: int, chat_id: int | None, weight: int) -> None:
        """A call that counts is about to leave; `number` is odd where it only shows progress."""

    def ended(self, number: int) -> None:
        """It was answered, or will not be."""

    def changed(
        self, pauses: Mapping[int | None, float], levels: Mapping[int | None, tuple[int, float]], now: float
    ) -> None:
        """Pauses (until a time of the sender's clock) and lowered limits by chat, None being all."""

    async def flush(self) -> None:
        """Return once what was said is on the disk."""


@frozen
class Sent:
    """Telegram carried the call out."""

    result: Any


@frozen
class Failed:
    """It did not, or nobody knows (CommitUnknown)."""

    fault: BusError


Outcome = Sent | Failed

After = Callable[[Outcome], Awaitable[None]]
Before = Callable[[], Awaitable[None]]


@define(eq=False)
class Request:
    """A call; `absorbed` are those that it took the place of, which get its outcome."""

    ticket: Ticket
    params: Mapping[str, Any]
    patient: bool
    deadline: float = math.inf
    after: After | None = None
    before: Before | None = None
    release: Before | None = None
    files: tuple[Upload, ...] = ()
    absorbed: list[Request] = field(factory=list)
    on_the_way: bool = False
    claimed: bool = False
    has_place: bool = False
    lost: int = 0
    number: int = 0  # in the memory of what counts, while it is there
    outcome: Outcome | None = None
    finished: trio.Event = field(factory=trio.Event)

    @property
    def method(self) -> str:
        return self.ticket.method

    def finish(self, outcome: Outcome) -> None:
        """Tell whoever waits."""
        self.outcome = outcome
        self.finished.set()

    def not_sent(self, why: str) -> Failed:
        """It surely was not carried out."""
        return Failed(NotSent(f"{self.method} was not sent: {why}"))

    def too_long(self, wait: float) -> Failed:
        """It would wait for longer than its requester shall."""
        words = f"{self.method} would have to wait {wait:.0f} s for Telegram's limits; ask again after that"
        return Failed(RequestRefused(words, method=self.method))

    def stale(self, wait: float) -> Failed:
        """What shows progress is not worth showing after a long pause."""
        words = f"{self.method} was dropped: Telegram wants a pause of {wait:.0f} s, and it only shows progress"
        return Failed(RequestRefused(words, method=self.method))

    def after_pause(self, wait: float, now: float, longest: float) -> Outcome | None:
        """What becomes of it at once where Telegram wants a pause of `wait` seconds; None: it waits that out."""
        urgency = self.ticket.nature.urgency
        if wait > longest and urgency is Urgency.TYPING:
            return Sent(True)  # nobody misses it, and nobody could see to it
        if wait > longest and self.patient and urgency is Urgency.PROGRESS:
            return self.stale(wait)
        if (wait > longest and not self.patient) or now + max(0.0, wait) > self.deadline:
            return self.too_long(wait)
        return None

    def unknown(self, why: str) -> CommitUnknown:
        """Nobody knows whether it was carried out."""
        return CommitUnknown(f"nobody knows whether {self.method} was carried out, and it is not repeated: {why}")

    def broken(self) -> Failed:
        """What to tell of a call over which the sender itself made a mistake."""
        if self.on_the_way:
            return Failed(self.unknown("the leader made a mistake meanwhile, of which its log says more"))
        words = f"{self.method} was not sent: the leader made a mistake before that, of which its log says more"
        return Failed(RequestRefused(words, method=self.method))

    def interrupted(self) -> Failed:
        """What to tell of a call that ended with the sender."""
        why = "the leader stopped before it was answered"
        return Failed(self.unknown(why)) if self.on_the_way else self.not_sent(why)


class Shown:
    """What messages show as far as we know: of the last ones that were sent or edited as text."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int | None, int], tuple[tuple[Any, ...], Any]] = OrderedDict()

    def same(self, request: Request) -> Sent | None:
        """The result that the message has already, where the call would change nothing."""
        place = _place(request)
        known = None if place is None else self._known.get(place)
        if known is None or known[0] != content(request.method, request.params):
            return None
        return Sent(known[1])

    def note(self, request: Request, outcome: Outcome) -> None:
        """What a message shows after this call."""
        name = request.method.lower()
        if not name.startswith(("edit", "delete", "send", "stop")):
            return
        result = outcome.result if isinstance(outcome, Sent) else None
        place = _place(request)
        if place is None and name == "sendmessage" and isinstance(result, dict):
            place = _key(request.ticket.chat_id, result.get("message_id"))
        for one in request.params.get("message_ids") or () if name == "deletemessages" else ():
            self._known.pop((request.ticket.chat_id, one), None)
        if place is None:
            return
        self._known.pop(place, None)
        shown = content(request.method, request.params)
        if shown is not None and isinstance(result, dict):
            self._known[place] = (shown, result)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)


def _place(request: Request) -> tuple[int | None, int] | None:
    return None if request.method.lower().startswith("send") else _key(request.ticket.chat_id, _message(request))


def _message(request: Request) -> Any:
    return request.params.get("message_id")


def _key(chat_id: int | None, message_id: Any) -> tuple[int | None, int] | None:
    if isinstance(message_id, str) and message_id.isdecimal():
        message_id = int(message_id)
    return (chat_id, message_id) if isinstance(message_id, int) else None
