"""A leader's bus without Telegram, as a process: the real requests, and an API that answers at once."""

# ruff: noqa: ARG002 - a leader that does nothing needs no arguments

from __future__ import annotations

import argparse
import itertools
import logging
import resource
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import trio

from benchmarks._tools import pinned
from telegram_bus.core.admission import Rules
from telegram_bus.core.envelopes import (
    Ack,
    AgentMessage,
    AgentSelector,
    CallApi,
    Envelope,
    Heartbeat,
    Register,
    Registration,
    Target,
)
from telegram_bus.core.errors import NotSent, RequestRefused
from telegram_bus.core.extensions import OperatorRequest, OwnRequest, StatusGet
from telegram_bus.core.identity import ANNOUNCED, QUEUE_HANDOFF, ours
from telegram_bus.core.permissions import Allowed
from telegram_bus.core.registry import Member, Provisioned
from telegram_bus.core.values import Number
from telegram_bus.host import raise_descriptor_limit
from telegram_bus.roles.links import Links
from telegram_bus.roles.ports import Found
from telegram_bus.roles.requests import Requests
from telegram_bus.wire.client import BusClient
from telegram_bus.wire.endpoint import open_endpoint
from telegram_bus.wire.server import serve_bus

__all__ = ["SECRET", "Follower"]

SECRET = "0123456789abcdef" * 4
IDENTITY = ours("telegram_bus/benchmark", (*ANNOUNCED, QUEUE_HANDOFF))
RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss


class Follower:
    """A registered follower, as a source of requests."""

    def __init__(self, name: str) -> None:
        self.instance_id = f"{name}:12345:1700000000000:a1b2c3d4"
        self.generation = f"{name}-generation"
        self._ids = itertools.count()

    def _fields(self) -> dict[str, Any]:
        return {
            "request_id": f"{self.instance_id}:{next(self._ids)}",
            "auth": SECRET,
            "instance_id": self.instance_id,
            "registration_generation": self.generation,
            "sent_at_ms": 1_700_000_000_000,
        }

    def registration(self, endpoint: str | None = None) -> Register:
        return Register(
            request_id=f"{self.instance_id}:register:{next(self._ids)}",
            auth=SECRET,
            registration=Registration(
                instance_id=self.instance_id,
                connected_at_ms=1_700_000_000_000,
                profile_key=self.instance_id,
                bus_socket_path=endpoint,
                registration_generation=self.generation,
                protocol=IDENTITY,
            ),
        )

    def heartbeat(self) -> Heartbeat:
        return Heartbeat(**self._fields())

    def get_me(self) -> CallApi:
        return CallApi(**self._fields(), method="call", args=("getMe", {}))

    async def join(self, client: BusClient, endpoint: str | None = None) -> None:
        ack = await client.request(self.registration(endpoint))
        if not ack.ok:
            raise RequestRefused(ack.message or "the leader refused")


async def resources(client: BusClient) -> tuple[float, float]:
    """What the leader has used: CPU seconds, and the most memory in MB."""
    ack = await client.request(StatusGet(request_id="resources", auth=SECRET))
    return ack.result["cpu"], ack.result["memory"]


class _Nothing:
    """What belongs to a follower that owns nothing."""

    def message(self, chat_id: Number, message_id: Number, /) -> bool:
        return False

    seen = message

    def callback(self, query_id: str, /) -> bool:
        return False

    file = callback


class _Ports:
    """A leader whose bindings exist and whose API answers at once."""

    def __init__(self, links: Links) -> None:
        self._threads = itertools.count(1)
        self._links = links

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def leading(self) -> bool:
        return True

    async def provision(self, registration: Registration) -> Provisioned | None:
        return Provisioned(target=Target(chat_id=1, thread_id=next(self._threads)))

    async def retire(self, member: Member) -> None:
        """There is nothing to clean up."""

    def owned_by(self, member: Member) -> _Nothing:
        return _Nothing()

    def recall(self, member: Member, method: str, args: Sequence[Any]) -> None:
        return None

    def upload_root(self, member: Member) -> str | None:
        return None

    async def call_api(self, member: Member, call: Allowed, request_id: str, *_: Any, **__: Any) -> Any:
        return {"id": 1, "is_bot": True, "first_name": "Bench", "username": "bench_bot"}

    async def fetch_file(self, *_: Any, **__: Any) -> Any:
        raise RequestRefused("there are no files")

    async def resolve(self, member: Member, selector: AgentSelector, *, main_chat: bool = False) -> Found:
        raise RequestRefused("there is no such agent")

    async def route(self, member: Member, message: AgentMessage) -> None:
        raise RequestRefused("there is no such agent")

    async def forward(self, member: Member, envelope: Envelope) -> Ack:
        if member.registration.bus_socket_path is None:
            raise NotSent("it has no endpoint")
        return await self._links.request(member.registration.bus_socket_path, envelope)

    def status(self) -> dict[str, Any]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {"cpu": usage.ru_utime + usage.ru_stime, "memory": _peak_memory(usage.ru_maxrss) / 1e6}

    async def operate(self, _request: OperatorRequest) -> Any:
        return {}

    async def serve(self, _member: Member, request: OwnRequest) -> Any:
        raise RequestRefused(f"this leader does not know what to do with {request.KIND}")

    def request_stop(self) -> None:
        """It is killed."""


def _peak_memory(maxrss: int) -> int:
    """Bytes. Linux hands ru_maxrss on from the process that started this one, so it is asked in another way."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return maxrss * RSS_UNIT
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) * 1024


async def _serve(path: Path) -> None:
    raise_descriptor_limit()
    links = Links()
    requests = Requests(_Ports(links), Rules(identity=IDENTITY, secret=SECRET, operator_secret=SECRET))
    with open_endpoint(path) as endpoint:
        async with trio.open_nursery() as nursery:
            await nursery.start(links.run)
            await nursery.start(partial(serve_bus, endpoint.listener, requests.respond, is_known=requests.knows))
            endpoint.publish()
            print("ready", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("--core", type=int)
    options = parser.parse_args()
    logging.disable()  # a closed peer a line would measure the terminal
    with pinned(options.core):
        trio.run(_serve, options.path)
