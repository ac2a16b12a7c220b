"""The control of the sandbox over HTTP, `/sandbox/…`: its state, the record, and what people do. JSON both ways."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import trio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from telegram_bus.sandbox import model_doings as doings
from telegram_bus.sandbox.engine import Engine
from telegram_bus.sandbox.http_asked import Asked
from telegram_bus.sandbox.http_people import PEOPLE
from telegram_bus.sandbox.http_trouble import TROUBLE, refuse_connections, trouble_state
from telegram_bus.sandbox.model_types import Json, Settings
from telegram_bus.sandbox.model_views import world_state
from telegram_bus.sandbox.record import Wanted

__all__ = ["control_routes"]

MAX_WAIT = 300.0  # seconds that a request of ours may wait

# What no message and no chat shows: who reads the state sees it in these changes. A bot's message ends what it wrote.
PASSING = ("action", "draft", "draft_stopped", "callback", "callback_answer", "message")

Endpoint = Callable[[Request], Awaitable[Response]]


def control_routes(engine: Engine) -> list[Route]:
    """The routes of the control."""
    gets: dict[str, Endpoint] = {
        "/sandbox/state": lambda request: _state(engine, request),
        "/sandbox/changes": lambda request: _changes(engine, request),
        "/sandbox/record": lambda request: _record(engine, request),
        "/sandbox/updates": lambda request: _updates(engine, request),
    }
    routes = [Route(path, _guarded(endpoint), methods=["GET"]) for path, endpoint in gets.items()]
    posts: dict[str, Endpoint] = {
        "refuse-connections": lambda request: refuse_connections(engine, request),
        **{name: _doing(engine, doing) for name, doing in (_DOINGS | PEOPLE).items()},
        **{name: _troubling(engine, doing) for name, doing in TROUBLE.items()},
    }
    routes += [Route(f"/sandbox/{name}", _guarded(endpoint), methods=["POST"]) for name, endpoint in posts.items()]
    return routes


def _guarded(endpoint: Endpoint) -> Endpoint:
    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except (doings.UnknownError, ValueError) as error:
            return JSONResponse({"error": str(error)}, status_code=400)

    return answer


def _doing(engine: Engine, doing: Callable[[Engine, Asked, float], Any]) -> Endpoint:
    async def answer(request: Request) -> Response:
        fields = await request.json()
        if not isinstance(fields, dict):
            raise doings.UnknownError("send a JSON object")
        asked = _asked(engine, fields)
        result = engine.act(lambda now: doing(engine, asked, now))
        return JSONResponse({"result": result})

    return answer


def _troubling(engine: Engine, doing: Callable[[Engine, Json, float], Any]) -> Endpoint:
    async def answer(request: Request) -> Response:
        fields = await request.json()
        if not isinstance(fields, dict):
            raise doings.UnknownError("send a JSON object")
        result = engine.act(lambda now: doing(engine, fields, now))
        return JSONResponse({"result": result})

    return answer


def _asked(engine: Engine, fields: Json) -> Asked:
    # Without user_id the owner does it, without chat_id in that person's private chat.
    world = engine.world
    user_id = fields.get("user_id", world.owner.id)
    chat_id = fields.get("chat_id", user_id)
    if not isinstance(user_id, int) or user_id not in world.users:
        raise doings.UnknownError("no such user_id")
    if not isinstance(chat_id, int) or chat_id not in world.chats:
        raise doings.UnknownError("no such chat_id")
    return Asked(fields, world.chats[chat_id], world.users[user_id])


def _say(engine: Engine, asked: Asked, now: float) -> Json:
    return doings.say(
        engine.world, asked.chat, asked.user, asked.text("text"), now,
        thread_id=asked.number("thread_id"), reply_to=asked.number("reply_to"),
    )  # fmt: skip


def _edit(engine: Engine, asked: Asked, now: float) -> Json:
    return doings.edit(engine.world, asked.chat, asked.user, asked.number("message_id"), asked.text("text"), now)


def _delete(engine: Engine, asked: Asked, _now: float) -> bool:
    doings.delete_message(engine.world, asked.chat, asked.user, asked.number("message_id"))
    return True


def _press(engine: Engine, asked: Asked, now: float) -> str:
    return doings.press(
        engine.world,
        asked.chat,
        asked.user,
        asked.number("message_id"),
        asked.text("data"),
        now,
        accessible=asked.flag("accessible"),
    )


def _react(engine: Engine, asked: Asked, now: float) -> bool:
    doings.react(engine.world, asked.chat, asked.user, asked.number("message_id"), asked.text("emoji"), now)
    return True


def _create_topic(engine: Engine, asked: Asked, now: float) -> Json:
    return doings.create_topic(engine.world, asked.chat, asked.user, asked.text("name"), now)


def _rename_topic(engine: Engine, asked: Asked, now: float) -> Json:
    return doings.rename_topic(engine.world, asked.chat, asked.user, asked.number("thread_id"), asked.text("name"), now)


def _close_topic(engine: Engine, asked: Asked, now: float) -> Json:
    return doings.close_topic(engine.world, asked.chat, asked.user, asked.number("thread_id"), now, closed=True)


def _reopen_topic(engine: Engine, asked: Asked, now: float) -> Json:
    return doings.close_topic(engine.world, asked.chat, asked.user, asked.number("thread_id"), now, closed=False)


def _prune_topic(engine: Engine, asked: Asked, _now: float) -> Json:
    return doings.prune_topic(engine.world, asked.chat, asked.number("thread_id"))


def _delete_topic(engine: Engine, asked: Asked, now: float) -> bool:
    doings.delete_topic(engine.world, asked.chat, asked.number("thread_id"), now)
    return True


def _block(engine: Engine, asked: Asked, now: float) -> bool:
    doings.block(engine.world, asked.user, now, blocked=asked.fields.get("blocked", True) is True)
    return True


def _settings(engine: Engine, asked: Asked, _now: float) -> Json:
    known = {field.name for field in attrs.fields(Settings)}
    chosen = {name: value for name, value in asked.fields.items() if name in known}
    if not chosen or not all(isinstance(value, bool) for value in chosen.values()):
        raise doings.UnknownError(f"give one of {', '.join(sorted(known))} as true or false")
    doings.change_settings(engine.world, **chosen)
    return attrs.asdict(engine.world.settings)


_DOINGS: dict[str, Callable[[Engine, Asked, float], Any]] = {
    "say": _say,
    "edit": _edit,
    "delete": _delete,
    "press": _press,
    "react": _react,
    "topics/create": _create_topic,
    "topics/rename": _rename_topic,
    "topics/close": _close_topic,
    "topics/reopen": _reopen_topic,
    "topics/prune": _prune_topic,
    "topics/delete": _delete_topic,
    "block": _block,
    "settings": _settings,
}


async def _state(engine: Engine, _request: Request) -> Response:
    world = engine.world
    running = {"instance": engine.instance, "now": engine.now()}
    recent = world.changes.recent(PASSING)
    return JSONResponse({**running, **world_state(world), **trouble_state(engine), "recent": recent})


async def _changes(engine: Engine, request: Request) -> Response:
    after = int(request.query_params.get("after", "0"))
    changes = engine.world.changes
    with trio.move_on_after(_seconds(request)):
        while changes.texts_after(after) == []:
            await engine.wait_change()
    found = changes.texts_after(after)
    head = json.dumps({"instance": engine.instance, "seq": changes.last, "reset": found is None})
    body = f'{head[:-1]}, "changes": [{",".join(found or [])}]}}'
    return Response(body, media_type="application/json")


async def _record(engine: Engine, request: Request) -> Response:
    query = dict(request.query_params)
    wanted = _wanted(query)
    count = int(query.get("count", "1"))
    with trio.move_on_after(_seconds(request)):
        await _wait_entries(engine, wanted, count)
    entries = engine.record.find(wanted)
    newest = max(0, int(query.get("newest", "0")))
    shown = [entry.view() for entry in entries[-newest:]]
    record = engine.record
    enough = len(entries) >= count
    return JSONResponse({"entries": shown, "last": record.last, "version": record.version, "enough": enough})


async def _updates(engine: Engine, _request: Request) -> Response:
    return JSONResponse({"updates": engine.world.queue.newest()})


async def _wait_entries(engine: Engine, wanted: Wanted, count: int) -> None:
    record = engine.record
    matching = {entry.n for entry in record.find(wanted)}
    version = record.version
    while len(matching) < count:
        await engine.wait_change()
        for entry in record.changed_since(version):
            (matching.add if wanted.matches(entry) else matching.discard)(entry.n)
        version = record.version


def _wanted(query: dict[str, str]) -> Wanted:
    truths: dict[str, bool | None] = {
        name: query[name] == "true" if name in query else None for name in ("ok", "open", "disconnected")
    }
    params = {name.removeprefix("param."): value for name, value in query.items() if name.startswith("param.")}
    return Wanted(
        after=int(query.get("after", "0")),
        changed_after=int(query.get("changed_after", "0")),
        kind=query.get("kind"),
        method=query.get("method"),
        text=query.get("text"),
        params=params,
        description=query.get("description"),
        search=query.get("search"),
        fault=query.get("fault"),
        flood=query.get("flood"),
        code=int(query["code"]) if "code" in query else None,
        slower=_number(query, "slower"),
        since=_number(query, "since"),
        until=_number(query, "until"),
        **truths,
    )


def _number(query: dict[str, str], name: str) -> float | None:
    return float(query[name]) if name in query else None


def _seconds(request: Request) -> float:
    return max(0.0, min(MAX_WAIT, float(request.query_params.get("wait", "0"))))
