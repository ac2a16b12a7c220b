"""One exchange over HTTP, and how an answer of the Bot API looks on the wire."""

from __future__ import annotations

import json

import attrs
from starlette.types import Receive, Scope, Send

from telegram_bus.sandbox.model_types import Json

__all__ = ["Exchange", "encode_answer", "send_answer"]

Headers = list[tuple[bytes, bytes]]


@attrs.frozen
class Exchange:
    """A request and the way to answer it."""

    scope: Scope
    receive: Receive
    send: Send

    @property
    def client(self) -> tuple[str, int]:
        """Address and port of the client."""
        host, port = self.scope["client"]
        return host, port

    async def start(self, status: int, headers: Headers) -> None:
        """Send the head of the answer."""
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    async def body(self, body: bytes, *, more: bool = False) -> None:
        """Send the body, or a part of it."""
        await self.send({"type": "http.response.body", "body": body, "more_body": more})


def encode_answer(answer: Json) -> tuple[int, Headers, bytes]:
    """Status, headers and body (H3, H4)."""
    body = json.dumps(answer, separators=(",", ":")).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    retry_after = answer.get("parameters", {}).get("retry_after")
    if retry_after is not None:
        headers.append((b"retry-after", str(retry_after).encode()))
    return answer.get("error_code", 200), headers, body


async def send_answer(exchange: Exchange, answer: Json) -> None:
    """Send a whole answer."""
    status, headers, body = encode_answer(answer)
    await exchange.start(status, headers)
    await exchange.body(body)
