"""Threads that come and go at any time, with agents and people who do not wait for that: nothing is lost or doubled."""

from __future__ import annotations

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from telegram_bus.core.errors import ApiError
from telegram_bus.core.registry import Member
from telegram_bus.roles.bot import BotFacts
from tests.effort import examples
from tests.fakes import BOT, CHAT, OWNER, message, registration
from tests.roles.term_rig import Rig, running

MODES = {
    "forum": BotFacts(id=BOT, is_forum=True, manages_topics=True),
    "plain": BotFacts(id=BOT, is_forum=False, manages_topics=False),
    "no right": BotFacts(id=BOT, is_forum=True, manages_topics=False),
    "unknown": BotFacts(id=BOT),
}
KEYS = st.sampled_from(["nora", "otto", "paul"])
STEPS = st.one_of(
    st.tuples(st.just("mode"), st.sampled_from(sorted(MODES))),
    st.tuples(st.just("come"), KEYS),
    st.tuples(st.just("go"), KEYS),
    st.tuples(st.just("use"), KEYS),
    st.tuples(st.just("say"), st.just("")),
    st.tuples(st.just("say in the thread of"), KEYS),
)


class Walk:
    """A term whose chat changes; `mode` is what Telegram allows now."""

    def __init__(self, rig: Rig) -> None:
        self.rig, self.mode, self.number = rig, "forum", 0
        self.said: list[int] = []
        rig.term.sharing.reseat = self.again
        rig.term.opened.set(trio.current_time() - 10)
        self.reseated: list[str] = []

    def again(self, member: Member) -> None:
        self.rig.term.registry.remove(member)
        self.reseated.append(member.key)

    async def come(self, key: str) -> None:
        refused = {
            "plain": ApiError("createForumTopic", 400, "Bad Request: the chat is not a forum"),
            "no right": ApiError("createForumTopic", 400, "Bad Request: not enough rights to create a topic"),
        }.get(self.mode)
        if refused is None:
            self.rig.telegram.results.pop("createForumTopic", None)
        else:
            self.rig.telegram.results["createForumTopic"] = refused
        told = registration(key, thread_name=key)
        self.rig.term.registry.admit(told, await self.rig.term.provision(told), now_ms=1)
        self.rig.term.deliveries.wake([key])

    async def say(self, thread: int | None, text: str = "hello") -> None:
        self.number += 1
        if not text.startswith("/"):
            self.said.append(self.number)
        await self.rig.take(message(self.number, thread=thread, text=text))

    async def step(self, what: str, which: str) -> None:
        rig = self.rig
        if what == "mode":
            self.mode = which if which != "unknown" else self.mode
            await rig.term.sharing.note(MODES[which])
            for key in self.reseated:
                await self.come(key)
            self.reseated.clear()
            rig.term.sharing._changed = float("-inf")  # they have had their time
        elif what == "come":
            await self.come(which)
        elif what == "go" and (member := rig.term.registry.by_key(which)) is not None:
            rig.term.registry.remove(member)
        elif what == "use":
            await self.say(None, f"/use {which}")
        elif what == "say":
            await self.say(None)
        elif what == "say in the thread of":
            binding = rig.term.threads.of_key(which)
            await self.say(binding.thread_id if binding is not None else 4_711)

    def check(self) -> None:
        """Everybody is where the chat of now wants them, and each message is somewhere, once."""
        rig = self.rig
        for member in rig.term.registry:
            target = member.target
            assert target is not None
            assert member.shares == (target.thread_id is None)
            if rig.term.sharing.everyone:
                assert member.shares
            elif self.mode == "forum" and rig.term.sharing.why is None and not member.shares:
                assert rig.term.threads.of_thread(CHAT, int(target.thread_id or 0)) == member.key
        assert len(rig.got) == len(set(rig.got))
        rows = {update_id: (owner, outcome) for update_id, owner, outcome in rig.rows()}
        held = {row[0] for row in rig.commits.db.execute("SELECT update_id FROM held JOIN updates USING (seq)")}
        for number in self.said:
            owner, outcome = rows[number]
            delivered = any(update_id == number for _, update_id in rig.got)
            if outcome == "accepted":
                assert delivered
                assert number not in held
            elif outcome is None:
                assert not delivered
                assert (owner is None) == (number in held)
            else:
                assert outcome == "answered"  # in a chat with threads, the lobby tells where to write
                assert owner is None


@given(st.lists(STEPS, min_size=1, max_size=14))
@settings(max_examples=examples(60), deadline=None)
def test_whatever_happens_each_message_is_somewhere_and_everybody_in_place(steps: list[tuple[str, str]]) -> None:
    async def walk() -> None:
        async with running(Rig()) as rig:
            there = Walk(rig)
            for what, which in steps:
                await there.step(what, which)
                await wait_all_tasks_blocked()
                there.check()
            chosen = rig.term.sharing.choice_of(OWNER)
            assert chosen is None or any(step == ("use", chosen) for step in steps)

    trio.run(walk)
