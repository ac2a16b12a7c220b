"""A leader's surroundings as the recorded traces had them, around the real requests and the real client."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import define, field

from telegram_bus.core.admission import Rules
from telegram_bus.core.answers import destination
from telegram_bus.core.checks import protocol_identity
from telegram_bus.core.codec import decode, encode
from telegram_bus.core.envelopes import Ack, AgentMessage, AgentSelector, Envelope, Register, Registration, Target
from telegram_bus.core.errors import BusError, RequestRefused
from telegram_bus.core.extensions import OperatorRequest, OwnRequest
from telegram_bus.core.permissions import Allowed, sent_by
from telegram_bus.core.registry import Member, Provisioned
from telegram_bus.core.values import Number
from telegram_bus.roles.ports import Found
from telegram_bus.roles.requests import Requests
from telegram_bus.wire.client import request_once
from telegram_bus.wire.server import Peer

__all__ = ["TraceLeader", "open_recipients"]

PEER = Peer(pid=0, uid=os.getuid())

PLACES = {
    f"i-{n}": Provisioned(
        target=Target(chat_id=5001, thread_id=99 + n), slot="ABC"[n - 1], thread_name="N" + "abc"[n - 1]
    )
    for n in (1, 2, 3)
}


@define
class Sent:
    """The messages of one follower."""

    messages: set[tuple[Number, Number]]

    def message(self, chat_id: Number, message_id: Number, /) -> bool:
        return (chat_id, message_id) in self.messages

    seen = message

    def callback(self, query_id: str, /) -> bool:
        return False

    file = callback


@define(eq=False)
class TraceLeader:
    """The ports of the recorded leader; `requests` is what is tested."""

    identity: Any
    secret: str | None
    now: int = 0
    api_calls: list[Any] = field(factory=list)
    sent: dict[str, set[tuple[Number, Number]]] = field(factory=dict)
    last_message: int = 1000
    requests: Requests = field(init=False)

    def __attrs_post_init__(self) -> None:
        rules = Rules(identity=protocol_identity(self.identity), secret=self.secret)
        self.requests = Requests(self, rules)

    async def handle(self, raw: Any) -> Any:
        """The ack, as JSON, of an envelope; {"__threw": True} when the work failed rather than was refused."""
        envelope = decode(json.dumps(raw).encode())
        answer = self.requests.respond(envelope, PEER)
        ack = answer if isinstance(answer, Ack) else await answer()
        return json.loads(encode(ack))

    def registry(self) -> list[Any]:
        """The live followers, as the traces show them."""
        return [_shown(member) for member in self.requests.registry]

    # the ports

    def now_ms(self) -> int:
        return self.now

    def leading(self) -> bool:
        return True

    async def provision(self, registration: Registration) -> Provisioned | None:
        return None if registration.target is not None else PLACES[registration.instance_id]

    async def retire(self, member: Member) -> None:
        pass

    def recall(self, member: Member, method: str, args: Sequence[Any]) -> None:
        """Everything is in memory here."""

    def owned_by(self, member: Member) -> Sent:
        return Sent(self.sent.setdefault(member.instance_id, set()))

    def upload_root(self, member: Member) -> str | None:
        return None

    async def fetch_file(self, member: Member, file_id: str, beside: object, *, resume: bool = False) -> Any:
        raise AssertionError("no recording has it")

    async def call_api(
        self,
        member: Member,
        call: Allowed,
        request_id: str,
        call_id: str | None = None,
        enclosed: object = None,
    ) -> Any:
        self.api_calls.append([call.method, list(call.args)])
        result: Any = True
        if call.api_method in ("sendMessage", "sendPhoto"):
            self.last_message += 1
            result = {"message_id": self.last_message}
        self.sent.setdefault(member.instance_id, set()).update(sent_by(call, result))
        return result

    async def resolve(self, member: Member, selector: AgentSelector, *, main_chat: bool = False) -> Found:
        named = (selector.thread_name or "").lower()
        found = [
            other.target
            for other in self.requests.registry
            if other is not member
            and other.target is not None
            and other.target.thread_id is not None
            and (
                other.target.thread_id == selector.thread_id
                or (selector.thread_name is not None and (other.registration.thread_name or "").lower() == named)
            )
        ]
        if len(found) != 1:
            raise RequestRefused(f"{len(found)} agents fit {selector}")
        return Found(found[0])

    async def route(self, member: Member, message: AgentMessage) -> None:
        pass

    async def forward(self, member: Member, envelope: Envelope) -> Ack:
        path = member.registration.bus_socket_path
        if path is None:
            raise BusError(f"{member.instance_id} has no endpoint")
        return await request_once(path, envelope)

    def status(self) -> dict[str, Any]:
        return {}

    async def serve(self, member: Member, request: OwnRequest) -> Any:
        raise AssertionError("no trace has such a request")

    async def operate(self, request: OperatorRequest) -> Any:
        raise AssertionError("no trace has such a request")

    def request_stop(self) -> None:
        pass


def _shown(member: Member) -> Any:
    told = json.loads(encode(Register(request_id="", registration=member.registration)))["registration"]
    if member.target is not None:
        told["target"] = destination(member.provisioned, member.target)
    return told | {"lastHeartbeatMs": member.last_heartbeat_ms}


@asynccontextmanager
async def open_recipients(folder: Path, behaviours: dict[str, str]) -> AsyncIterator[dict[str, list[Any]]]:
    """Real follower endpoints in `folder` that behave as named; yields what each received since it was last cleared."""
    received: dict[str, list[Any]] = {name: [] for name in behaviours}
    listeners = []
    async with trio.open_nursery() as nursery:
        for name, behaviour in behaviours.items():
            if behaviour == "absent":
                continue
            sock = trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            await sock.bind(str(folder / f"{name}.sock"))
            sock.listen()
            listeners.append(trio.SocketListener(sock))
            nursery.start_soon(_serve, listeners[-1], name, behaviour, received[name])
        try:
            yield received
        finally:
            nursery.cancel_scope.cancel()
            for listener in listeners:
                listener.socket.close()
            for name in behaviours:
                (folder / f"{name}.sock").unlink(missing_ok=True)


async def _serve(listener: trio.SocketListener, name: str, behaviour: str, received: list[Any]) -> None:
    async def answer(stream: trio.SocketStream) -> None:
        buffer = b""
        async for chunk in stream:
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                request = json.loads(line)
                received.append(request)
                ack: dict[str, Any] = {"kind": "bus.ack", "requestId": request["requestId"]}
                if behaviour == "ack":
                    told = request.get("delivery", {}).get("deliveryId")
                    ack |= {"ok": True, "result": {"deliveryId": told, "by": name}}
                else:
                    ack |= {"ok": False, "message": "not now"}
                await stream.send_all(json.dumps(ack).encode() + b"\n")
        await stream.aclose()

    await trio.serve_listeners(answer, [listener])
