"""The chat's menu: offers that last, one call when it has changed, none after a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from attrs import define, field
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.core.commands import LEADERS
from telegram_bus.core.errors import ApiError, NotSent, RequestRefused
from telegram_bus.core.permissions import Allowed
from telegram_bus.core.registry import Member, Registry
from telegram_bus.roles.commands import AGAIN, GONE_MS, GRACE, SETTLE, Commands
from telegram_bus.roles.threads import Threads
from tests.fakes import CHAT, FakeTelegram, InlineCommits, admit, memory_store, message, registration
from tests.roles.term_rig import Rig as TermRig
from tests.roles.term_rig import running as running_term

OWN = [one.name for one in LEADERS.commands]


@define(eq=False)
class Rig:
    """The menu of a term over a store in memory; given those of an earlier one, that of its successor."""

    telegram: FakeTelegram = field(factory=FakeTelegram)
    earlier: InlineCommits | None = None
    registry: Registry = field(factory=Registry)
    commits: InlineCommits = field(init=False)
    threads: Threads = field(init=False)
    commands: Commands = field(init=False)

    def __attrs_post_init__(self) -> None:
        store, self.commits = memory_store(None if self.earlier is None else self.earlier.db)
        self.threads = Threads(store=store, chat_id=CHAT, call=self.telegram.call, now_ms=lambda: 1)
        self.commands = Commands(
            store=store, threads=self.threads, members=self.registry, call=self.telegram.call, now_ms=lambda: 1
        )

    async def agent(self, key: str, thread: int) -> Member:
        """An agent with a thread, which is here."""
        await self.threads.provide(registration(key, thread_name=key, thread=thread))
        return admit(self.registry, key, thread=thread)

    async def offer(self, member: Member, **commands: str) -> None:
        """What `bus.offer_commands` comes to."""
        listed = [{"command": name, "description": text} for name, text in commands.items()]
        await self.commands.serve(member, Allowed(method="call", args=("setMyCommands", {"commands": listed})))

    @property
    def menus(self) -> list[list[str]]:
        """The menus that Telegram was given, by their names."""
        return [[one["command"] for one in params["commands"]] for params in self.telegram.made("setMyCommands")]


@asynccontextmanager
async def running(rig: Rig) -> AsyncIterator[Rig]:
    """The menu is kept meanwhile."""
    async with trio.open_nursery() as nursery:
        await rig.threads.load()
        await rig.commands.load()
        await nursery.start(rig.commands.run)
        yield rig
        nursery.cancel_scope.cancel("the test is over")


async def test_agents_that_start_together_change_the_menu_once(autojump_clock: MockClock) -> None:
    async with running(Rig()) as rig:
        await rig.offer(await rig.agent("nora", 11), build="Builds")
        await rig.offer(await rig.agent("otto", 12), deploy="Deploys")
        await trio.sleep(SETTLE + AGAIN)
    assert rig.menus == [["build", "deploy", *OWN]]
    [params] = rig.telegram.made("setMyCommands")
    assert params["scope"] == {"type": "chat", "chat_id": CHAT}


async def test_nothing_is_set_where_nothing_is_offered_or_nothing_has_changed(autojump_clock: MockClock) -> None:
    async with running(Rig()) as rig:
        nora = await rig.agent("nora", 11)
        await trio.sleep(10 * AGAIN)
        assert rig.telegram.calls == []
        for _ in range(3):
            await rig.offer(nora, build="Builds")
            await trio.sleep(AGAIN)
    assert len(rig.menus) == 1


async def test_the_next_leader_knows_the_menu_and_sets_it_only_when_it_changes(autojump_clock: MockClock) -> None:
    async with running(Rig()) as first:
        await first.offer(await first.agent("nora", 11), build="Builds")
        await trio.sleep(2 * SETTLE)
    async with running(Rig(earlier=first.commits)) as second:
        nora = await second.agent("nora", 11)
        await second.offer(nora, build="Builds")
        await trio.sleep(2 * AGAIN)
        assert second.menus == []
        await second.offer(nora, test="Tests")
        await trio.sleep(2 * SETTLE)
        assert second.menus == [["test", *OWN]]


async def test_an_offer_outlives_its_follower_s_restarts_until_its_thread_is_gone(autojump_clock: MockClock) -> None:
    async with running(Rig()) as rig:
        nora, otto = await rig.agent("nora", 11), await rig.agent("otto", 12)
        await rig.offer(nora, build="Builds")
        await rig.offer(otto, deploy="Deploys")
        await trio.sleep(GRACE)
        rig.registry.remove(nora)
        await trio.sleep(3 * AGAIN)
        assert rig.menus == [["build", "deploy", *OWN]]
        rig.commits.db.execute("DELETE FROM bindings WHERE key = 'nora'")
    async with running(Rig(earlier=rig.commits, telegram=rig.telegram)) as after:
        admit(after.registry, "otto", thread=12)
        await trio.sleep(GRACE + 2 * AGAIN)
    assert after.menus[1:] == [["deploy", *OWN]]


async def test_whoever_has_been_away_for_a_month_is_gone_for_good(autojump_clock: MockClock) -> None:
    """Its thread may still be there."""
    async with running(Rig()) as rig:
        nora, otto = await rig.agent("nora", 11), await rig.agent("otto", 12)
        await rig.offer(nora, build="Builds")
        await rig.offer(otto, deploy="Deploys")
        for member in (nora, otto):
            rig.registry.remove(member)
        rig.commands.away_since = {"nora": 1 - GONE_MS - 1, "otto": 1 - GONE_MS + 1}.get
        await trio.sleep(GRACE + 2 * AGAIN)
    assert rig.menus == [["build", "deploy", *OWN], ["deploy", *OWN]]


async def test_the_last_offer_taken_back_takes_the_menu_away(autojump_clock: MockClock) -> None:
    async with running(Rig()) as rig:
        nora = await rig.agent("nora", 11)
        await rig.offer(nora, build="Builds")
        await trio.sleep(2 * SETTLE)
        await rig.commands.serve(nora, Allowed(method="call", args=("deleteMyCommands", {})))
        await trio.sleep(2 * SETTLE)
        assert rig.telegram.made("deleteMyCommands") == [{"scope": {"type": "chat", "chat_id": CHAT}}]
        await trio.sleep(3 * AGAIN)
    assert len(rig.telegram.calls) == 2


async def test_a_follower_is_told_its_own_offer(autojump_clock: MockClock) -> None:
    rig = Rig()
    nora, otto = await rig.agent("nora", 11), await rig.agent("otto", 12)
    await rig.offer(nora, build="Builds")

    async def told(member: Member) -> Any:
        return await rig.commands.serve(member, Allowed(method="call", args=("getMyCommands", {})))

    assert await told(nora) == [{"command": "build", "description": "Builds"}]
    assert await told(otto) == []


async def test_a_menu_in_another_language_is_nobody_s(autojump_clock: MockClock) -> None:
    rig = Rig()
    nora = await rig.agent("nora", 11)
    body = {"commands": [{"command": "bauen", "description": "Baut"}], "language_code": "de"}
    assert await rig.commands.serve(nora, Allowed(method="call", args=("setMyCommands", body))) is True
    assert await rig.commands.serve(nora, Allowed(method="call", args=("getMyCommands", {}))) == []


async def test_an_offer_that_telegram_would_not_take_is_refused_and_changes_nothing(autojump_clock: MockClock) -> None:
    rig = Rig()
    nora = await rig.agent("nora", 11)
    await rig.offer(nora, build="Builds")
    with pytest.raises(RequestRefused, match=r"setMyCommands: commands\.0\.command must be"):
        await rig.offer(nora, Build="Builds")
    assert await rig.commands.serve(nora, Allowed(method="call", args=("getMyCommands", {})))


async def test_a_menu_that_was_not_sent_is_set_later_and_one_that_is_refused_is_not(autojump_clock: MockClock) -> None:
    async with running(Rig()) as rig:
        nora = await rig.agent("nora", 11)
        rig.telegram.results["setMyCommands"] = NotSent("no network")
        await rig.offer(nora, build="Builds")
        await trio.sleep(2 * SETTLE)
        rig.telegram.results["setMyCommands"] = ApiError("setMyCommands", 400, "Bad Request: BOT_COMMAND_INVALID")
        await trio.sleep(5 * (AGAIN + SETTLE))
        assert len(rig.menus) == 2
        del rig.telegram.results["setMyCommands"]
        await rig.offer(nora, test="Tests")
        await trio.sleep(2 * SETTLE)
        await wait_all_tasks_blocked()
    assert rig.menus[2:] == [["test", *OWN]]


async def test_scenario_91_the_owner_of_the_thread_gets_a_command_and_the_menu_only_names_it(
    mock_clock: MockClock,
) -> None:
    """With the bot's name, without, and as a caption; one for another bot is nobody's, and clashes decide nothing."""
    async with running_term(TermRig()) as rig:
        for key, thread in (("nora", 11), ("otto", 12)):
            await rig.agent(key, thread)
            member = rig.term.registry.by_key(key)
            assert member is not None
            body = {"commands": [{"command": "build", "description": f"{key} builds"}]}
            await rig.term.call_api(member, Allowed(method="call", args=("setMyCommands", body)), "r1")
        too_long = "/" + "x" * 40
        batch = [
            message(1, thread=11, text="/build"),
            message(2, thread=12, text="/build@A_Bot now"),
            message(3, thread=12, text="/build@other_bot now"),
            message(4, thread=11, text=too_long),
        ]
        captioned = message(5, thread=12)
        del captioned["message"]["text"]
        captioned["message"] |= {"caption": "/build this", "document": {"file_id": "f"}}
        other = message(6, thread=12)
        del other["message"]["text"]
        other["message"] |= {"caption": "/build@other_bot this", "document": {"file_id": "g"}}
        await rig.take(*batch, captioned, other)
        assert sorted(rig.got) == [("nora", 1), ("nora", 4), ("otto", 2), ("otto", 5)]
        assert len(rig.rows()) == 4
        assert rig.telegram.made("setMyCommands") == []  # it is set when things have settled
        async with trio.open_nursery() as nursery:
            await nursery.start(rig.term.commands.run)
            await wait_all_tasks_blocked()
            mock_clock.jump(SETTLE)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel("set")
        [menu] = rig.telegram.made("setMyCommands")
        assert menu["scope"] == {"type": "chat", "chat_id": CHAT}
        assert menu["commands"][0] == {"command": "build", "description": "nora: nora builds · otto: otto builds"}


async def test_where_agents_share_the_chat_the_menu_has_what_chooses_one(autojump_clock: MockClock) -> None:
    """For as long as they do."""
    rig, shared = Rig(), True
    rig.commands.shared = lambda: shared
    async with running(rig):
        await rig.offer(await rig.agent("nora", 11), build="Builds")
        await trio.sleep(SETTLE + AGAIN)
        shared = False
        await trio.sleep(SETTLE + AGAIN)
    assert rig.menus == [["build", "use", *OWN], ["build", *OWN]]
