"""Thousands of requesters that lose patience at random: nothing is cut, nothing leaks."""

from __future__ import annotations

import gc
import math
import random
from typing import Any

import trio

from telegram_bus.botapi.sender import QUEUED, Sender
from telegram_bus.botapi.transport import open_api
from tests.botapi.loopback import Request, serve
from tests.botapi.test_sender import NO_LIMITS

REQUESTS = 20_000
PATIENCE = (0, 0.01, 0.1, 0.5, 1) * 3 + (math.inf,)
"""Seconds of one requester, by chance; the few that wait for ever see to it that calls go out to the end."""

TOKEN = "123456789:SENTINEL-token_AAAAAAAAAAAAAAAAAAAAA"


async def test_requests_with_random_deadlines_cut_no_call_and_leak_no_place_in_the_pool() -> None:
    chance = random.Random(20_241)
    answered: list[int] = []
    gave_up: list[int] = []

    async def respond(request: Request) -> None:
        await trio.sleep(chance.choice([0, 0, 0.002]))
        await request.ok(int(request.fields.get("text", "0")))

    async def ask(sender: Sender, number: int, deadline: float) -> None:
        with trio.move_on_after(deadline) as scope:
            chat, owner = number % 21 or None, str(number % 8)
            result = await sender.call("sendMessage", {"text": number}, chat, owner=owner, patient=True)
            assert result == number
            answered.append(number)
        if scope.cancelled_caught:
            gave_up.append(number)

    async with serve(respond) as server, open_api(TOKEN, root=server.root) as api:
        sender = Sender(api, repeatable=lambda _: False, limits=NO_LIMITS)
        async with trio.open_nursery() as nursery:
            await nursery.start(sender.run)
            async with trio.open_nursery() as askers:
                for number in range(REQUESTS):
                    askers.start_soon(ask, sender, number, chance.choice(PATIENCE))
            assert await sender.call("getMe", {}) == 0
            await sender.drain()
            assert sender.budget.queued == 0
            assert all(room.value == QUEUED for room in sender._places.rooms.values())
            assert len(nursery.child_tasks) == 1
            client: Any = api._calls._current
            assert client.request._client._transport._pool._requests == []
            assert client.users == 0
            nursery.cancel_scope.cancel()
        made = [int(request.fields["text"]) for request in server.requests if request.method == "sendMessage"]
        connections = len({id(request.stream) for request in server.requests})
    assert len(made) == len(set(made))
    assert set(answered) <= set(made)
    assert answered
    assert gave_up
    assert len(answered) + len(gave_up) == REQUESTS
    assert connections <= 64
    gc.collect()


async def test_calls_that_are_cut_all_the_same_cost_their_clients_and_never_the_next_call() -> None:
    chance = random.Random(7)

    async def respond(request: Request) -> None:
        await trio.sleep(chance.choice([0, 0.001, 0.005]))
        await request.ok(True)

    async with serve(respond) as server, open_api(TOKEN, root=server.root) as api:
        for _ in range(50):
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(api.call, "sendMessage")
                await trio.sleep(chance.choice([0, 0.001, 0.003]))
                nursery.cancel_scope.cancel()
            assert await api.call("getMe") is True
        line: Any = api._calls
        assert line._current.users == 0
        current = line._current
        with trio.CancelScope() as scope:
            scope.cancel()
            await api.call("getMe")
        assert line._current is not current
    gc.collect()
