"""Faults to order: which calls go wrong, how, and how often. Pure; `http_faults` carries them out."""

from __future__ import annotations

import math
from typing import Any, Final

import attrs

from telegram_bus.sandbox import kinds
from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.model_types import Json

__all__ = ["DOINGS", "Faults", "Order"]

DOINGS: Final = ("answer", "refuse", "drop", "hang", "cut", "html")
# Whether the call is carried out all the same, unless the order says otherwise.
_WITH_EFFECT = frozenset({"answer", "drop", "cut"})
MAX_ORDERS = 1_000
MAX_SECONDS = 3_600.0
_TEXTS: Final = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden: bot was blocked by the user",
    404: "Not Found",
    409: "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running",
    413: "Request Entity Too Large",
    429: "Too Many Requests: retry after {retry_after}",
    500: "Internal Server Error",
    502: "Bad Gateway",
    504: "Gateway Timeout",
}


def _seconds(_order: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_SECONDS:
        raise ValueError(f"{attribute.name} must be a number of seconds from 0 to {MAX_SECONDS:.0f}")


def _whole(_order: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{attribute.name} must be a whole number")


_text = attrs.validators.instance_of(str)
_truth = attrs.validators.instance_of(bool)


@attrs.frozen(kw_only=True)
class Order:
    """One fault. Raises ValueError or TypeError for what cannot be.

    `does`: "answer" as usual (with a delay), "refuse" with `code`, `description` and `parameters`, "drop" the
    connection, "hang" (no answer until the client goes), "cut" the answer's body in the middle, "html" (an error page
    of a proxy with status `code`). `effect` says whether the call is carried out all the same; None means yes for
    answer, drop and cut. Which calls: `method` (see `kinds.matches`), `chat_id` (0: all), `thread_id` (0: all),
    `threads` (only those with a thread), `text` (contained in the call's text). The first `skip` of them pass, then
    `times` go wrong (0: all), for `seconds` at most (0: for ever). `lag` seconds pass before the call is carried out,
    `delay` seconds before it is answered.
    """

    does: str = attrs.field(default="refuse", validator=attrs.validators.in_(DOINGS))
    method: str = attrs.field(default="calls", validator=_text)
    chat_id: int = attrs.field(default=0, validator=_whole)
    thread_id: int = attrs.field(default=0, validator=_whole)
    threads: bool = attrs.field(default=False, validator=_truth)
    text: str = attrs.field(default="", validator=_text)
    skip: int = attrs.field(default=0, validator=_whole)
    times: int = attrs.field(default=1, validator=_whole)
    seconds: float = attrs.field(default=0, validator=_seconds)
    code: int = attrs.field(default=0, validator=_whole)
    description: str = attrs.field(default="", validator=_text)
    parameters: Json = attrs.field(factory=dict, validator=attrs.validators.instance_of(dict))
    lag: float = attrs.field(default=0, validator=_seconds)
    delay: float = attrs.field(default=0, validator=_seconds)
    effect: bool | None = attrs.field(default=None, validator=attrs.validators.optional(_truth))

    def __attrs_post_init__(self) -> None:
        if self.code and not 400 <= self.code <= 599:
            raise ValueError("code must be a status from 400 to 599")
        if self.times < 0 or self.skip < 0:
            raise ValueError("times and skip cannot be negative")

    @property
    def has_effect(self) -> bool:
        """Whether the call is carried out."""
        return self.does in _WITH_EFFECT if self.effect is None else self.effect

    @property
    def status(self) -> int:
        """The HTTP status of the refusal or of the error page."""
        return self.code or (502 if self.does == "html" else 500)

    def refusal(self) -> Json:
        """The answer's JSON object."""
        said = _TEXTS.get(self.status, "Internal Server Error")
        description = self.description or said.format(retry_after=self.parameters.get("retry_after", 1))
        answer: Json = {"ok": False, "error_code": self.status, "description": description}
        if self.status == 429:
            answer["parameters"] = {"retry_after": 1, **self.parameters}
        elif self.parameters:
            answer["parameters"] = self.parameters
        return answer

    def concerns(self, method: str, args: Args) -> bool:
        """Whether a call is one of those that go wrong."""
        thread_id = args.integer("message_thread_id")
        return (
            kinds.matches(self.method, method)
            and self.chat_id in {0, args.integer("chat_id")}
            and self.thread_id in {0, thread_id}
            and (thread_id != 0 or not self.threads)
            and self.text in args.text("text")
        )


@attrs.define(kw_only=True)
class _Running:
    id: int
    order: Order
    until: float
    passed: int = 0
    struck: int = 0

    def is_over(self, now: float) -> bool:
        return now >= self.until or (self.order.times > 0 and self.struck >= self.order.times)

    def state(self) -> Json:
        shown = attrs.asdict(self.order, filter=lambda field, value: value not in (field.default, {}))
        return {"id": self.id, "does": self.order.does, "method": self.order.method, **shown, "struck": self.struck}


class Faults:
    """The orders that are not used up, the oldest first; the first that concerns a call strikes it."""

    def __init__(self) -> None:
        self._running: dict[int, _Running] = {}
        self._last = 0
        self.version = 0  # grows with each change, a strike among them

    def order(self, order: Order, now: float) -> int:
        """Add an order; returns its id. Raises ValueError when there are too many."""
        self._forget_past(now)
        if len(self._running) >= MAX_ORDERS:
            raise ValueError(f"there are {MAX_ORDERS} faults on order already")
        self._last += 1
        until = now + order.seconds if order.seconds else math.inf
        self._running[self._last] = _Running(id=self._last, order=order, until=until)
        self.version += 1
        return self._last

    def cancel(self, number: int = 0) -> int:
        """Take back one order, or all (0); returns how many that were."""
        gone = [item for item in self._running if number in {0, item}]
        for item in gone:
            del self._running[item]
        self.version += len(gone)
        return len(gone)

    def strike(self, method: str, args: Args, now: float) -> tuple[int, Order] | None:
        """The fault that a call meets now, with the order's id; it counts as used."""
        if not self._running:
            return None
        self._forget_past(now)
        for item in self._running.values():
            if not item.order.concerns(method, args):
                continue
            item.passed += 1
            if item.passed <= item.order.skip:
                continue
            item.struck += 1
            self.version += 1
            if item.is_over(now):
                del self._running[item.id]
            return item.id, item.order
        return None

    def state(self, now: float) -> list[Json]:
        """What is still to come, with how often it `struck` so far."""
        self._forget_past(now)
        return [item.state() for item in self._running.values()]

    def _forget_past(self, now: float) -> None:
        for item in [item for item in self._running.values() if item.is_over(now)]:
            del self._running[item.id]
            self.version += 1
