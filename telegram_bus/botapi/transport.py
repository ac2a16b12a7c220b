"""HTTP to the Bot API through python-telegram-bot's request class; nothing that leaves here shows the token."""

from __future__ import annotations

import logging
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, Final, Self, cast
from urllib.parse import quote, unquote, urlsplit

import httpx
import trio
from attrs import define, field, frozen
from telegram.error import NetworkError
from telegram.request import HTTPXRequest, RequestData

from telegram_bus.botapi.answers import begin_of, form, read_answer
from telegram_bus.botapi.proxy import environment_proxy, shown
from telegram_bus.botapi.uploads import PIECE, FileBody, Upload, as_form_files, seconds_for
from telegram_bus.core.errors import AnswerLost, ApiError, BusError, NotSent, RequestRefused, SettingsError

__all__ = ["BotApi", "open_api", "tls_context"]

CONNECT_SECONDS: Final = 10.0
POOL_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 30.0
"""Telegram answers in well under a second; uploads and its own delays (up to 3 s) fit."""

POLL_GRACE_SECONDS: Final = 10.0
"""How much longer than its window a poll may stay silent."""

UPLOAD_ANSWER_SECONDS: Final = 90.0
"""After the last byte of a file Telegram looks at it (a video takes longest) before it answers."""

CALL_CONNECTIONS: Final = 64
FILE_CONNECTIONS: Final = 8
KEEPALIVE_SECONDS: Final = 15.0
"""Telegram keeps idle connections for 75 s or so; leaving well before avoids writing into one that just closes."""

CLOSING_SECONDS: Final = 1.0

_METHOD: Final = re.compile(r"[A-Za-z][A-Za-z0-9]{1,63}")
_TOKEN: Final = re.compile(r"[0-9]{1,20}:[A-Za-z0-9_-]{1,128}")
_UNSENT: Final = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)
_NO_SUCH_PART: Final = (httpx.codes.PARTIAL_CONTENT, httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE)
"""Answers to who asked for the rest of a file, and does not get it: another part, or none."""

_LOGGERS: Final = ("httpx", "httpcore", *(f"httpcore.{part}" for part in ("connection", "http11", "proxy", "socks")))
"""They log addresses, and so the token, at INFO and DEBUG."""

SHORTEST_SECRET: Final = 16
"""@BotFather's have 35 characters; anything much shorter would blot out innocent text."""

log = logging.getLogger(__name__)

_retry_after: ContextVar[str | None] = ContextVar("retry_after", default=None)
"""The header of the answer that was read last in this task; python-telegram-bot passes on only status and body."""


@frozen
class _Form:
    """The two documented attributes of `telegram.request.RequestData` that a request is made from."""

    json_parameters: dict[str, str]
    multipart_data: Mapping[str, Any] | None = None


@define(eq=False)
class _Client:
    """An HTTP client, how many calls are using it, and whether it has been replaced."""

    request: HTTPXRequest
    users: int = 0
    spoiled: bool = False


@define(eq=False)
class _Line:
    """A client that is replaced when it can no longer be trusted; the old one is closed by its last user.

    A cancelled call may have leaked its place in the pool for good (httpcore issue 1093), and a pool that times
    out is full of such places.
    """

    _build: Callable[[], HTTPXRequest]
    _current: _Client = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._current = _Client(self._build())

    async def post(
        self, url: str, params: dict[str, str], read_seconds: float, files: tuple[Upload, ...] = ()
    ) -> tuple[int, bytes]:
        client = self._current
        client.users += 1
        data = cast("RequestData", _Form(params, as_form_files(files) or None))
        try:
            return await client.request.do_request(url, "POST", data, read_timeout=read_seconds)
        except Exception as fault:
            if isinstance(fault.__cause__, httpx.PoolTimeout):
                self._spoil(client)
            raise
        except BaseException:  # cancelled
            self._spoil(client)
            raise
        finally:
            client.users -= 1
            if client.spoiled and not client.users:
                await _shut(client.request)

    async def aclose(self) -> None:
        client, self._current.spoiled = self._current, True
        if not client.users:
            await _shut(client.request)

    def _spoil(self, client: _Client) -> None:
        if not client.spoiled:
            client.spoiled = True
            self._current = _Client(self._build())


@define(eq=False, repr=False)
class BotApi:
    """Bot API methods by name; `call` for everything but getUpdates, `poll` for that, `download` for files.

    Calls, uploads, polls and downloads each have connections of their own. All raise ApiError (Telegram refused),
    NotSent (surely nothing left), AnswerLost (it may have been carried out).
    Whoever cancels a call costs the client its connections: give calls to a `Sender` instead.
    """

    _token: str
    _root: str
    _proxy: str | None
    _calls: _Line
    _polls: _Line
    _files: _Line
    _tls: ssl.SSLContext

    async def call(
        self, method: str, params: Mapping[str, Any] | None = None, *, files: tuple[Upload, ...] = ()
    ) -> Any:
        """Post the method and return its `result` as plain JSON values.

        Raises RequestRefused too, for a file that became shorter on the way: then nothing was carried out.
        """
        if files:
            return await self._post(self._files, method, params or {}, UPLOAD_ANSWER_SECONDS, files)
        return await self._post(self._calls, method, params or {}, ANSWER_SECONDS)

    async def download(
        self, path: str, write: Callable[[int, bytes], Awaitable[None]], most: int, start: int = 0
    ) -> int:
        """Give a file to `write`, piece by piece with its place in it; `path` is what getFile said.

        Returns the file's size. Begins at `start` where the server can (HTTP Range), else at 0. Raises RequestRefused
        for more than `most` bytes, and what `write` raises.
        """
        url = f"{self._root}/file/bot{self._token}/{quote(path)}"
        try:
            with trio.move_on_after(ANSWER_SECONDS + seconds_for(most)):
                return await self._fetch(url, write, most, start)
        except BusError:
            raise
        except Exception as raised:  # noqa: BLE001 - as in `_post`
            fault: BusError = self._told("download", raised)
        else:
            fault = AnswerLost("download: it took too long")
        raise fault

    async def _fetch(self, url: str, write: Callable[[int, bytes], Awaitable[None]], most: int, start: int) -> int:
        seconds = httpx.Timeout(ANSWER_SECONDS, connect=CONNECT_SECONDS)
        options = {"verify": self._tls, "trust_env": False, "proxy": self._proxy, "timeout": seconds}
        headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={start}-"} if start else {})}
        async with (
            httpx.AsyncClient(**options) as client,  # type: ignore[arg-type]
            client.stream("GET", url, headers=headers) as response,
        ):
            at = begin_of(start, response.status_code, response.headers.get("content-range"))
            if at is not None:
                return await _take(response, write, most, at)
            if not start or response.status_code not in _NO_SUCH_PART:
                read_answer("download", response.status_code, await response.aread())
                raise ApiError("download", response.status_code, response.reason_phrase)
        return await self._fetch(url, write, most, 0)

    async def poll(self, params: Mapping[str, Any], window: float) -> Any:
        """getUpdates with a long poll of `window` seconds."""
        return await self._post(
            self._polls, "getUpdates", {**params, "timeout": int(window)}, window + POLL_GRACE_SECONDS
        )

    async def _post(
        self,
        line: _Line,
        method: str,
        params: Mapping[str, Any],
        read_seconds: float,
        files: tuple[Upload, ...] = (),
    ) -> Any:
        if not _METHOD.fullmatch(method):
            raise RequestRefused("this is not the name of a Bot API method", method=method[:64])
        url = f"{self._root}/bot{self._token}/{method}"
        fields = self._blotted(form(params))
        try:
            status, body = await line.post(url, fields, read_seconds, files)
        except BusError:
            raise
        except Exception as raised:  # noqa: BLE001 - whatever a foreign library raises may hold the address
            fault: NotSent | AnswerLost = self._told(method, raised)
        else:
            return read_answer(method, status, body, _retry_after.get())
        raise fault  # outside of the handler: what was raised there is no part of it

    def _told(self, method: str, raised: Exception) -> NotSent | AnswerLost:
        """What a fault of the library means, in our words and without secrets."""
        cause = raised.__cause__ if isinstance(raised, NetworkError) and raised.__cause__ else raised
        reason = self._redacted(str(cause)) or type(cause).__name__
        way = urlsplit(self._root).hostname or self._root
        if self._proxy:
            way += f" through the proxy {shown(self._proxy)}"
        if isinstance(cause, _UNSENT):
            return NotSent(f"{method} was not sent, {way} cannot be reached: {reason}")
        return AnswerLost(f"{method}: the answer of {way} was lost ({type(cause).__name__}: {reason})")

    def _blotted(self, fields: dict[str, str]) -> dict[str, str]:
        """The fields without the bot's own token: what an agent shows of this machine may have it in it.

        As long as it was, since entities count characters.
        """
        secret = self._token.partition(":")[2]
        if len(secret) < SHORTEST_SECRET or not any(secret in value for value in fields.values()):
            return fields
        log.warning("a message had the bot's token in it, and goes out without it")
        return {name: value.replace(secret, "\N{FULL BLOCK}" * len(secret)) for name, value in fields.items()}

    def _redacted(self, text: str) -> str:
        secrets = [self._token, quote(self._token), quote(self._token, safe=""), self._token.partition(":")[2]]
        password = urlsplit(self._proxy).password if self._proxy else None
        if password:
            secrets += [password, unquote(password)]
        for secret in secrets:
            text = text.replace(secret, "***")
        return text


@cache
def tls_context() -> ssl.SSLContext:
    """One for all connections: it takes 20 ms, so whoever will soon be in a hurry asks for it in good time."""
    return httpx.create_ssl_context()


@asynccontextmanager
async def open_api(
    token: str, *, root: str = "https://api.telegram.org", proxy: str | None = None
) -> AsyncIterator[BotApi]:
    """A connection to the Bot API at `root`; without `proxy` that of the environment, except on this machine.

    No request is made. Raises SettingsError when token, root or proxy cannot be right.
    """
    _check(token, root)
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    root = root.rstrip("/")
    proxy = proxy or environment_proxy(root)
    tls = tls_context()
    api = BotApi(
        token,
        root,
        proxy,
        _Line(lambda: _build(CALL_CONNECTIONS, tls, proxy)),
        _Line(lambda: _build(2, tls, proxy)),
        _Line(lambda: _build(FILE_CONNECTIONS, tls, proxy)),
        tls,
    )
    try:
        yield api
    finally:
        await api._calls.aclose()  # noqa: SLF001 - this is its other half
        await api._polls.aclose()  # noqa: SLF001
        await api._files.aclose()  # noqa: SLF001


def _check(token: str, root: str) -> None:
    if not _TOKEN.fullmatch(token):
        raise SettingsError("the bot token does not look like one: digits, a colon, letters (from @BotFather)")
    try:
        parts = urlsplit(root)
        fine = parts.scheme in {"http", "https"} and parts.hostname and not parts.query and parts.port != 0
    except ValueError:
        fine = False
    if not fine:
        raise SettingsError(f"{root!r} is not the address of a Bot API server; it looks like https://api.telegram.org")


def _build(connections: int, tls: ssl.SSLContext, proxy: str | None) -> HTTPXRequest:
    options = {
        "verify": tls,
        "trust_env": False,  # the proxy is chosen here, so that an error can name it
        "event_hooks": {"request": [_plain_body], "response": [_note_retry_after]},
        "limits": httpx.Limits(max_connections=connections, keepalive_expiry=KEEPALIVE_SECONDS),
    }
    try:
        return HTTPXRequest(
            connection_pool_size=connections,
            connect_timeout=CONNECT_SECONDS,
            write_timeout=ANSWER_SECONDS,
            pool_timeout=POOL_SECONDS,
            proxy=proxy,
            httpx_kwargs=options,
        )
    except RuntimeError:
        fault = f"the proxy {shown(proxy or '')} needs support for SOCKS: pip install 'httpx[socks]'"
    except (ValueError, httpx.InvalidURL):
        fault = f"the proxy {shown(proxy or '')} has an address that cannot be used; it looks like http://host:3128"
    raise SettingsError(fault)


async def _take(response: httpx.Response, write: Callable[[int, bytes], Awaitable[None]], most: int, at: int) -> int:
    async for piece in response.aiter_bytes(PIECE):
        if at + len(piece) > most:
            raise RequestRefused(f"the file has more than {most} bytes")
        await write(at, piece)
        at += len(piece)
    return at


class _Body(httpx.AsyncByteStream):
    """A request's body as a plain iterator.

    The stock one is an asynchronous generator: when writing it breaks off, the garbage collector finds it half-way,
    and Trio warns.
    """

    def __init__(self, content: bytes) -> None:
        self._content: bytes | None = content

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        content, self._content = self._content, None
        if content is None:
            raise StopAsyncIteration
        return content


async def _plain_body(request: httpx.Request) -> None:
    if request.headers.get("content-type", "").startswith("multipart/") and isinstance(
        request.stream, httpx.SyncByteStream
    ):
        request.stream = FileBody(iter(request.stream))
    else:
        request.stream = _Body(await request.aread())


async def _note_retry_after(response: httpx.Response) -> None:
    _retry_after.set(response.headers.get("retry-after"))


async def _shut(request: HTTPXRequest) -> None:
    with trio.move_on_after(CLOSING_SECONDS, shield=True):
        await request.shutdown()
