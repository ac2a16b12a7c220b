"""Carrying out a fault: late answers, none, half ones, and error pages instead of JSON."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

import trio
from starlette.types import Message, Receive

from telegram_bus.sandbox.engine import Engine
from telegram_bus.sandbox.faults import Order
from telegram_bus.sandbox.http_answer import Exchange, encode_answer, send_answer
from telegram_bus.sandbox.model_types import Json
from telegram_bus.sandbox.record import Entry

__all__ = ["CarryOut", "answer_faultily"]

CarryOut = Callable[[Receive], Awaitable[Json | None]]

_PAGE = (
    "<html>\r\n<head><title>{name}</title></head>\r\n<body>\r\n<center><h1>{name}</h1></center>\r\n"
    "<hr><center>nginx/1.18.0</center>\r\n</body>\r\n</html>\r\n"
)
_NAMES = {413: "Request Entity Too Large", 429: "Too Many Requests", 502: "Bad Gateway", 504: "Gateway Time-out"}


async def answer_faultily(engine: Engine, entry: Entry, order: Order, carry_out: CarryOut, exchange: Exchange) -> None:
    """Do to a call what `order` says. `carry_out` gives its answer, or None when it waited and the client went."""
    gone = trio.Event()

    async def tell_gone() -> Message:
        await gone.wait()
        return {"type": "http.disconnect"}

    async with trio.open_nursery() as nursery:
        nursery.start_soon(_watch, engine, entry, exchange.receive, gone)
        # A request that arrived is carried out, also when its client has gone meanwhile.
        await trio.sleep(order.lag)
        answer = await carry_out(tell_gone) if order.has_effect else _instead(order)
        if answer is not None:
            engine.record.came_to(entry, answer)
            engine.settle()
        with trio.move_on_after(order.delay):
            await gone.wait()
        if order.does == "hang":
            await gone.wait()
        if not gone.is_set():
            # Before it is sent: who goes with the answer in hand has not hung up.
            engine.record.finished(entry, time.monotonic())
            await _answer(engine, order, answer, exchange)
        nursery.cancel_scope.cancel()
    engine.settle()


async def _answer(engine: Engine, order: Order, answer: Json | None, exchange: Exchange) -> None:
    match order.does:
        case "answer" if answer is not None:
            await send_answer(exchange, answer)
        case "refuse" | "answer":
            await send_answer(exchange, order.refusal())
        case "html":
            await _send_page(exchange, order.status)
        case "cut":
            status, headers, body = encode_answer(answer or order.refusal())
            await exchange.start(status, headers)
            await exchange.body(body[: len(body) // 2], more=True)
            engine.gate.cut(exchange.client)
        case _:
            engine.gate.cut(exchange.client)


async def _send_page(exchange: Exchange, status: int) -> None:
    page = _PAGE.format(name=f"{status} {_NAMES.get(status, 'Internal Server Error')}").encode()
    headers = [(b"content-type", b"text/html"), (b"content-length", str(len(page)).encode())]
    await exchange.start(status, headers)
    await exchange.body(page)


async def _watch(engine: Engine, entry: Entry, receive: Receive, gone: trio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    # The end of a connection that we cut ourselves is not the client's doing.
    if entry.ended is None:
        engine.record.hung_up(entry, time.monotonic())
        engine.settle()
    gone.set()


def _instead(order: Order) -> Json | None:
    # What the record says of a call that was not carried out.
    if order.does in {"drop", "hang"}:
        return None
    if order.does == "html":
        return {"ok": False, "error_code": order.status, "description": "an HTML page"}
    return order.refusal()
