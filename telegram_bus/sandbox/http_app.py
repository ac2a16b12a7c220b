"""The whole sandbox as one ASGI application: the Bot API, the control, the events and the page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.resources import files

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from telegram_bus.sandbox.engine import Engine
from telegram_bus.sandbox.http_bot import BotApi
from telegram_bus.sandbox.http_control import control_routes
from telegram_bus.sandbox.http_events import EventStream
from telegram_bus.sandbox.http_files import download, shown_file
from telegram_bus.sandbox.http_guard import SECURITY_HEADERS, objection

__all__ = ["make_app"]

_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def make_app(engine: Engine, port: int) -> ASGIApp:
    """The application that serves `engine` on `127.0.0.1:port`."""
    bot_api, events = BotApi(engine), EventStream(engine)
    pages = Starlette(routes=[*control_routes(engine), *_page_routes()])

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await pages(scope, receive, send)
        elif scope["path"].startswith("/bot"):
            await bot_api(scope, receive, send)
        elif scope["path"].startswith("/file/bot"):
            await download(engine.world, scope)(scope, receive, send)
        elif (reason := objection(scope["method"], scope["headers"], port)) is not None:
            await JSONResponse({"error": reason}, status_code=403)(scope, receive, send)
        elif scope["path"] == "/sandbox/events":
            await events(scope, receive, send)
        elif scope["path"].startswith("/sandbox/file/"):
            await shown_file(engine.world, scope)(scope, receive, _secured(send))
        elif scope["path"] == "/" or scope["path"].startswith(("/sandbox/", "/page/")):
            await pages(scope, receive, _secured(send))
        else:
            # What Telegram's server says to a path that is no call (H5).
            answer = {"ok": False, "error_code": 404, "description": "Not Found"}
            await JSONResponse(answer, status_code=404)(scope, receive, send)

    return app


def _secured(send: Send) -> Send:
    extra = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]

    async def secured(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *extra]}
        await send(message)

    return secured


def _page_routes() -> list[Route]:
    # A handful of small files, read once: serving them needs no file system.
    folder = files("telegram_bus.sandbox") / "page"
    routes = []
    for item in folder.iterdir():
        suffix = "." + item.name.rpartition(".")[2]
        if suffix in _TYPES:
            path = "/" if item.name == "index.html" else f"/page/{item.name}"
            routes.append(Route(path, _static(item.read_bytes(), _TYPES[suffix]), methods=["GET"]))
    return routes


def _static(body: bytes, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_request: Request) -> Response:
        return Response(body, media_type=media_type)

    return answer
