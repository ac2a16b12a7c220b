"""One request from a command that has no time for an event loop."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from telegram_bus.core.envelopes import Ack
from telegram_bus.core.errors import AnswerLost, NotSent
from telegram_bus.wire.limits import MIB
from telegram_bus.wire.plain import request_plain
from tests.wire.bus_peers import HEARTBEAT, SECRET, FakeServer, Server, line

REQUEST = {**HEARTBEAT, "requestId": "a", "auth": SECRET}
PATIENCE = 30.0  # seconds, never reached unless something is broken


async def ask(path: Path | str, seconds: float = PATIENCE) -> dict[str, Any]:
    return await trio.to_thread.run_sync(request_plain, path, REQUEST, seconds)


async def test_the_answer_is_what_json_says(server: Server) -> None:
    await server.start(lambda envelope, _: Ack(request_id=envelope.request_id, ok=True, result="é" * MIB))
    assert await ask(server.path) == {"kind": "bus.ack", "requestId": "a", "ok": True, "result": "é" * MIB}


async def test_other_answers_are_passed_over(fake_server: FakeServer) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(line({"requestId": "b"}) + line([1]) + line({"requestId": "a", "ok": False}))

    await fake_server.start(serve)
    assert await ask(fake_server.path) == {"requestId": "a", "ok": False}


async def test_a_request_that_was_not_understood_is_not_waited_for(fake_server: FakeServer) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(line({"requestId": "invalid", "ok": False, "message": "too odd"}))
        await trio.sleep_forever()

    await fake_server.start(serve)
    with pytest.raises(AnswerLost, match="too odd"):
        await ask(fake_server.path)


@pytest.mark.parametrize("last_words", [b"", b'{"requestId":', b"garbage\n"])
async def test_a_server_that_hangs_up(fake_server: FakeServer, last_words: bytes) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(last_words)

    await fake_server.start(serve)
    with pytest.raises(AnswerLost):
        await ask(fake_server.path)


async def test_a_server_that_does_not_answer_in_time(fake_server: FakeServer) -> None:
    async def serve(stream: trio.SocketStream) -> None:
        await trio.sleep_forever()

    await fake_server.start(serve)
    with pytest.raises(AnswerLost, match=r"in 0\.01 s"):
        await ask(fake_server.path, 0.01)


@pytest.mark.parametrize("path", ["/nowhere/at/all", "/tmp/" + "x" * 200, "/tmp/\0"])
def test_nobody_listens(path: str) -> None:
    with pytest.raises(NotSent):
        request_plain(path, REQUEST, PATIENCE)


def test_it_costs_no_event_loop_and_no_codec() -> None:
    heavy = "{'trio', 'attrs', 'attr', 'cattrs', 'orjson', 'asyncio', 'telegram', 'ssl'}"
    code = f"import sys, telegram_bus.wire.plain; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
