"""The control's part for trouble: flood limits, faults to order, ids that restart, batches that come again, outages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import attrs
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from telegram_bus.sandbox.engine import Engine
from telegram_bus.sandbox.faults import MAX_SECONDS, Order
from telegram_bus.sandbox.model_types import Json

__all__ = ["TROUBLE", "refuse_connections", "trouble_state"]

MAX_REPEATS = 1_000

T = TypeVar("T")


def trouble_state(engine: Engine) -> Json:
    """Flood control with its violations, and the faults that are still to come."""
    return {"flood": engine.flood.state(), "faults": engine.faults.state(engine.now())}


async def refuse_connections(engine: Engine, request: Request) -> Response:
    """Close the listener for `seconds` and cut all connections, but for this request's."""
    fields = await request.json()
    seconds = fields.get("seconds", 1.0) if isinstance(fields, dict) else None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= MAX_SECONDS:
        raise ValueError(f"seconds must be a number above 0 and up to {MAX_SECONDS:.0f}")
    host, port = request.scope["client"]
    engine.gate.refuse(seconds, (host, port))
    return JSONResponse({"result": {"seconds": seconds}}, headers={"connection": "close"})


def _flood(engine: Engine, fields: Json, _now: float) -> Json:
    known = attrs.asdict(engine.flood.limits)
    unknown = fields.keys() - known.keys() - {"forget"}
    if unknown:
        raise ValueError(f"flood control has no {', '.join(sorted(unknown))}; it has {', '.join(known)} and forget")
    if fields.get("forget") is True:
        engine.flood.forget_violations()
    chosen = {name: fields[name] for name in known if name in fields}
    if chosen:
        engine.flood.change(_made(attrs.evolve, engine.flood.limits, **chosen))
    engine.world.changes.add("flood", flood=engine.flood.state())
    return engine.flood.state()


def _order(engine: Engine, fields: Json, now: float) -> Json:
    known = [field.name for field in attrs.fields(Order)]
    unknown = fields.keys() - set(known)
    if unknown:
        raise ValueError(f"a fault has no {', '.join(sorted(unknown))}; it has {', '.join(known)}")
    number = engine.faults.order(_made(Order, **fields), now)
    return {"id": number, "faults": _tell(engine, now)}


def _cancel(engine: Engine, fields: Json, now: float) -> Json:
    return {"cancelled": engine.faults.cancel(_whole(fields, "id", 0)), "faults": _tell(engine, now)}


def _restart(engine: Engine, fields: Json, _now: float) -> Json:
    start = _whole(fields, "start", 0)
    engine.world.queue.restart(start or None)
    return {"waiting": len(engine.world.queue)}


def _repeat(engine: Engine, fields: Json, now: float) -> Json:
    times = _whole(fields, "times", 1)
    if not 0 <= times <= MAX_REPEATS:
        raise ValueError(f"times must be from 0 to {MAX_REPEATS}")
    return {"updates": engine.world.polls.repeat(times, now)}


def _made(make: Callable[..., T], *values: Any, **fields: Any) -> T:
    try:
        return make(*values, **fields)
    except TypeError as error:
        # The message of attrs comes first, with objects behind it.
        raise ValueError(str(error.args[0])) from error


def _tell(engine: Engine, now: float) -> list[Json]:
    faults = engine.faults.state(now)
    engine.world.changes.add("faults", faults=faults)
    return faults


def _whole(fields: Json, name: str, default: int) -> int:
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise ValueError(f"{name} must be a whole number")
    return value


# By the path below /sandbox/: what a POST does with its fields at a time.
TROUBLE: dict[str, Callable[[Engine, Json, float], Any]] = {
    "flood": _flood,
    "faults/order": _order,
    "faults/cancel": _cancel,
    "updates/restart": _restart,
    "updates/repeat": _repeat,
}
