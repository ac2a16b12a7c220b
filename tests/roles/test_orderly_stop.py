"""What followers send while their leader ends in order, with a real leader in this process and the sandbox."""

from __future__ import annotations

import os
from functools import partial

import trio

from telegram_bus import agent
from telegram_bus.home import Profile
from telegram_bus.roles.leader import run_leader
from telegram_bus.roles.settings import load_settings
from telegram_bus.testing import Sandbox

MESSAGES = 4 * agent.CALLS_AT_ONCE


async def test_what_an_ending_leader_does_not_take_goes_out_through_the_next_one(bus_profile: Profile) -> None:
    """Each message once, and no send fails."""
    sandbox = await trio.to_thread.run_sync(Sandbox().__enter__)
    try:
        given = {"api_root": sandbox.api_root, "chat": str(sandbox.chat_id)}
        environ = os.environ | {"TELEGRAM_BOT_TOKEN": sandbox.token}  # no limits, no spare
        lead = partial(run_leader, bus_profile, load_settings(bus_profile, given, environ))
        async with trio.open_nursery() as nursery:
            first, stop, ended = trio.Event(), trio.Event(), trio.Event()

            async def lead_first(*, task_status: trio.TaskStatus[object]) -> None:
                await lead(stop=stop, task_status=task_status)
                ended.set()

            await nursery.start(lead_first)
            async with agent.join("busy", home=bus_profile.home.root, start_leader=False) as bus:

                async def send(number: int) -> None:
                    await bus.send(f"number {number}")
                    first.set()

                async with trio.open_nursery() as program:
                    for number in range(MESSAGES):
                        program.start_soon(send, number)
                    await first.wait()
                    stop.set()
                    await ended.wait()
                    await nursery.start(lead)
            nursery.cancel_scope.cancel("the test is over")
        texts = [message.get("text") for message in await trio.to_thread.run_sync(sandbox.messages)]
        assert sorted(text for text in texts if text) == sorted(f"number {number}" for number in range(MESSAGES))
    finally:
        await trio.to_thread.run_sync(sandbox.__exit__, None, None, None)
