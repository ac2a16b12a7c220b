"""A program that asks for more than its leader works on at once."""

from __future__ import annotations

import pytest
import trio

from telegram_bus import agent
from telegram_bus.core.envelopes import CallApi, Heartbeat, Register
from telegram_bus.home import Profile
from telegram_bus.roles import member as member_module
from telegram_bus.wire.limits import DEFAULT_LIMITS
from tests.fakes import FakeLeader


async def test_whoever_sends_much_while_telegram_is_slow_stays_registered(
    bus_profile: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its heartbeats get through beside the calls that are not answered yet."""
    monkeypatch.setattr(member_module, "HEARTBEAT", 0.01)
    async with trio.open_nursery() as nursery:
        leader = FakeLeader(bus_profile, nursery)
        leader.replies["follower.callApi"] = lambda _: None
        await leader.start()
        async with (
            agent.join("nora", home=bus_profile.home.root, start_leader=False) as bus,
            trio.open_nursery() as program,
        ):
            for number in range(2 * DEFAULT_LIMITS.in_flight):
                program.start_soon(bus.send, str(number))
            await leader.wait_got(CallApi, agent.CALLS_AT_ONCE)
            await leader.wait_got(Heartbeat, len(leader.of(Heartbeat)) + 3)
            assert len(leader.of(CallApi)) == agent.CALLS_AT_ONCE
            assert len(leader.of(Register)) == 1
            program.cancel_scope.cancel("it gives up")
        nursery.cancel_scope.cancel("the test is over")
