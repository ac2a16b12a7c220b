"""The chat's menu of commands with real processes: merged, and not set anew by the next leader."""

from __future__ import annotations

from typing import Any

from tests.e2e.rig import Machine, until

AGENT = """
import contextlib, sys, trio, telegram_bus

async def main():
    async with telegram_bus.join(name=sys.argv[1]) as bus:
        await bus.offer_commands({sys.argv[2]: "does it", "both": f"{sys.argv[1]} does it"})
        async for update in bus:
            with contextlib.suppress(telegram_bus.CommitUnknown):  # the leader is killed the moment it stands there
                await update.reply(f"{sys.argv[1]} does {update.command}")
            await update.done()

trio.run(main)
"""


def test_agents_share_one_menu_that_a_new_leader_does_not_set_anew(machine: Machine) -> None:
    def menus() -> list[list[dict[str, Any]]]:
        return [entry["params"]["commands"] for entry in machine.sandbox.record(kind="call", method="setMyCommands")]

    machine.lead()
    machine.wait_status()
    machine.start(AGENT, "nora", "build")
    until(menus)
    thread = machine.wait_thread("nora")
    username = machine.sandbox.bot_username.swapcase()
    machine.say(f"/Build@{username} all", thread)
    machine.wait_answer("nora does ('build', 'all')", thread)
    machine.kill_leader()
    machine.say("/build once more", thread)
    machine.wait_answer("nora does ('build', 'once more')", thread)
    machine.start(AGENT, "otto", "deploy")
    until(lambda: len(menus()) >= 2)
    first, second = menus()  # none of them between: the successor knows the first
    assert [one["command"] for one in first][:2] == ["build", "both"]
    assert [one["command"] for one in second][:3] == ["build", "both", "deploy"]
    assert second[1]["description"] == "nora: nora does it · otto: otto does it"
