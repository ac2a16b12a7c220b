"""A chat without threads: all agents share it, each person chooses whom they write to, and it changes both ways."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
from attrs import evolve
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.core.chooser import MAIN, Press, data_of, mark_of
from telegram_bus.core.envelopes import AgentSelector, ForwardMessage, Target
from telegram_bus.core.errors import ApiError, RequestRefused, StateError
from telegram_bus.core.extensions import AgentTell
from telegram_bus.core.health import advice
from telegram_bus.core.permissions import Allowed
from telegram_bus.core.registry import Member
from telegram_bus.roles import overview
from telegram_bus.roles.bot import BotFacts
from telegram_bus.roles.ports import Found
from telegram_bus.roles.sharing import AT_ONCE, LOOK_AGAIN, SETTLED
from telegram_bus.roles.telling import update_id_of
from tests.fakes import BOT, CHAT, OWNER, message, registration
from tests.roles.term_rig import Rig, running

OTHER = 78
PLAIN = BotFacts(id=BOT, username="a_bot", is_forum=False, manages_topics=False)
FORUM = BotFacts(id=BOT, username="a_bot", is_forum=True, manages_topics=True)
NO_RIGHT = BotFacts(id=BOT, username="a_bot", is_forum=True, manages_topics=False)


async def come(rig: Rig, key: str) -> Member:
    """A follower registers as a real one does."""
    told = registration(key, thread_name=key)
    given = await rig.term.provision(told)
    member = rig.term.registry.admit(told, given, now_ms=1).member
    rig.term.deliveries.wake([key])
    return member


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    """A plain group with two agents, after the first seconds of a leader."""
    async with running(Rig()) as rig:
        rig.term.sharing.say = rig.notices.say
        await rig.term.sharing.note(PLAIN)
        for key in ("nora", "otto"):
            await come(rig, key)
        rig.term.opened.set(trio.current_time() - 10)
        await wait_all_tasks_blocked()
        yield rig


def telling(message_id: int, to: str = "otto") -> AgentTell:
    return AgentTell(
        request_id="a", instance_id="nora", sent_at_ms=1, to=to, message_id=message_id, text="look at this"
    )


def said(number: int, text: str = "hello", **fields: Any) -> dict[str, Any]:
    return message(number, thread=None, text=text, **fields)


async def test_people_are_told_once_what_to_switch_on_and_agents_come_without_a_thread(rig: Rig) -> None:
    """Both of them live, in the same place."""
    (intro,) = rig.said
    assert "switch on Topics" in intro
    assert "/use NAME" in intro
    assert rig.telegram.made("createForumTopic") == []
    assert [member.target.thread_id for member in rig.term.registry if member.target] == [None, None]
    assert overview.conditions(rig.term)[0].state == "no threads"
    await rig.term.sharing.note(PLAIN)
    await wait_all_tasks_blocked()
    assert len(rig.said) == 1


async def test_the_only_agent_is_written_to_without_a_choice(autojump_clock: MockClock) -> None:
    async with running(Rig()) as rig:
        await rig.term.sharing.note(PLAIN)
        await come(rig, "nora")
        await trio.sleep(SETTLED + 1)
        await rig.take(said(1))
        assert rig.got == [("nora", 1)]


async def test_among_several_a_person_chooses_once(rig: Rig) -> None:
    """What was written before waits for the choice, which stays."""
    await rig.take(said(1), said(2))
    question = rig.telegram.made("sendMessage")[-1]
    assert "message_thread_id" not in question
    assert [key["text"] for row in question["reply_markup"]["inline_keyboard"] for key in row] == [
        "nora", "otto", "Keep for later", "Ignore",
    ]  # fmt: skip
    ids = [101 + number for number, (method, _) in enumerate(rig.telegram.calls) if method == "sendMessage"]
    where = {"message_id": ids[-1], "chat": {"id": CHAT, "type": "supergroup"}}
    query = {"id": "q", "from": {"id": OWNER}, "data": data_of(Press(MAIN, "give", mark_of("otto"))), "message": where}
    await rig.take({"update_id": 3, "callback_query": query})
    await rig.take(said(4))
    assert rig.got == [("otto", 1), ("otto", 2), ("otto", 4)]


async def test_use_chooses_by_name_and_gives_what_waits(rig: Rig) -> None:
    """Whatever the case; a name that is none is answered with those that are."""
    await rig.take(said(1), said(2, "/use zora"))
    assert "No agent is called zora; there are: nora, otto" in rig.said[-1]
    await rig.take(said(3, "/use NORA"), said(4))
    assert rig.got == [("nora", 1), ("nora", 4)]
    await rig.take(said(5, "/use"))
    last = rig.telegram.made("sendMessage")[-1]
    assert last["text"] == "You write to nora."
    assert [key["text"] for row in last["reply_markup"]["inline_keyboard"] for key in row] == ["✓ nora", "otto"]


async def test_a_name_may_stand_below_its_command(rig: Rig) -> None:
    """As a phone's keyboard breaks lines."""
    await rig.take(said(1, "/use\nnora"), said(2))
    assert rig.got == [("nora", 2)]


async def test_each_person_has_a_choice_of_their_own(rig: Rig) -> None:
    rules = evolve(rig.lobby.rules(), allowed=frozenset({OWNER, OTHER}))
    rig.lobby.rules = rig.intake.rules = lambda: rules
    await rig.take(said(1, "/use nora"), said(2, "/use otto", sender={"id": OTHER}))
    await rig.take(said(3), said(4, sender={"id": OTHER}))
    assert rig.got == [("nora", 3), ("otto", 4)]


async def test_a_reply_goes_to_whose_message_it_answers_and_an_edit_to_who_got_the_message(rig: Rig) -> None:
    await rig.take(said(1, "/use nora"), said(2))
    await rig.term.store.record_messages("otto", [(CHAT, 900, None)], 1)
    await rig.take(said(3, reply_to_message={"message_id": 900}))
    await rig.take(said(4, "/use otto"))
    await rig.take({"update_id": 5, "edited_message": said(2)["message"]})
    assert rig.got == [("nora", 2), ("otto", 3), ("nora", 5)]


async def test_a_choice_outlives_the_leader_and_waits_for_an_agent_that_is_away(rig: Rig) -> None:
    await rig.take(said(1, "/use nora"))
    async with running(Rig(earlier=rig.commits)) as successor:
        await successor.take(said(2))
        assert successor.rows()[-1] == (2, "nora", None)
        await come(successor, "otto")
        await come(successor, "nora")
        await wait_all_tasks_blocked()
        assert successor.got == [("nora", 2)]


async def test_an_answer_begins_with_its_agent_s_name(rig: Rig) -> None:
    """And the one that spoke last is marked."""
    dressed = rig.term.sharing.dress("nora", "sendMessage", {"chat_id": CHAT, "text": "done"})
    assert dressed["text"] == "nora: done"
    assert rig.term.sharing.dress("nora", "sendChatAction", {"chat_id": CHAT}) == {"chat_id": CHAT}
    await rig.take(said(1, "/agents"))
    assert "nora — here" in rig.said[-1]
    assert "spoke last" in rig.said[-1]


async def test_with_threads_again_each_agent_gets_its_own(rig: Rig) -> None:
    """Those that are here register anew; what a person chose is forgotten by nobody, and asked for no more."""
    again: list[str] = []
    rig.term.sharing.reseat = lambda member: again.append(member.key)
    await rig.take(said(1, "/use nora"))
    await rig.term.sharing.note(FORUM)
    assert again == ["nora", "otto"]
    for key in again:
        await come(rig, key)
    assert len({member.target for member in rig.term.registry}) == 2
    rig.term.sharing._changed = float("-inf")  # they have had their time
    await rig.take(said(2))
    assert "Nobody reads the main chat but me" in rig.said[-1]
    assert rig.got == []


async def test_what_waited_for_a_choice_can_be_given_when_there_are_threads_again(rig: Rig) -> None:
    """To whoever is here; nobody's choice for the main chat comes of it."""
    await rig.take(said(1))
    question = 100 + [method for method, _ in rig.telegram.calls].index("sendMessage", 1) + 1
    await rig.term.sharing.note(FORUM)
    for key in ("nora", "otto"):
        await come(rig, key)
    where = {"message_id": question, "chat": {"id": CHAT, "type": "supergroup"}}
    query = {"id": "q", "from": {"id": OWNER}, "data": data_of(Press(MAIN, "give", mark_of("otto"))), "message": where}
    await rig.take({"update_id": 2, "callback_query": query})
    assert rig.got == [("otto", 1)]
    assert rig.term.sharing.choice_of(OWNER) is None


async def test_threads_that_are_switched_off_move_everybody_into_the_main_chat(autojump_clock: MockClock) -> None:
    """The bindings stay for the day when they are back."""
    async with running(Rig()) as rig:
        await come(rig, "nora")
        (binding,) = rig.term.threads.all()
        again: list[str] = []
        rig.term.sharing.reseat = lambda member: again.append(member.key)
        await rig.term.sharing.note(PLAIN)
        assert again == ["nora"]
        member = await come(rig, "nora")
        assert member.shares
        assert member.registration.thread_name == "nora"
        await rig.term.sharing.note(FORUM)
        member = await come(rig, "nora")
        assert member.target is not None
        assert member.target.thread_id == binding.thread_id


async def test_without_the_right_to_make_threads_those_that_have_one_keep_it(autojump_clock: MockClock) -> None:
    """A new one shares the main chat, where a chat action needs General's id and a message must not have it."""
    async with running(Rig()) as rig:
        nora = await come(rig, "nora")
        await rig.term.sharing.note(NO_RIGHT)
        rig.telegram.results["createForumTopic"] = ApiError(
            "createForumTopic", 400, "Bad Request: not enough rights to create a topic"
        )
        otto = await come(rig, "otto")
        assert not nora.shares
        assert otto.shares
        assert rig.term.sharing.dress("otto", "sendChatAction", {"chat_id": CHAT})["message_thread_id"] == 1
        assert "message_thread_id" not in rig.term.sharing.dress("otto", "sendMessage", {"chat_id": CHAT, "text": "x"})
        with pytest.raises(RequestRefused, match="otto has none"):
            await rig.term.resolve(nora, AgentSelector(thread_name="otto"))
        there = await rig.term.resolve(nora, AgentSelector(thread_name="otto"), main_chat=True)
        assert there == Found(Target(chat_id=CHAT), "otto", "otto")
        assert rig.term.registry.is_place(there.target)
        back = await rig.term.resolve(otto, AgentSelector(thread_name="nora"), main_chat=True)
        assert (back.target, back.key) == (nora.target, None)
        await trio.sleep(SETTLED + 1)
        await rig.take(said(1), message(2, thread=int(nora.target.thread_id or 0) if nora.target else 0))
        assert sorted(rig.got) == [("nora", 2), ("otto", 1)]


async def test_agents_that_share_the_chat_reach_each_other_there(rig: Rig) -> None:
    """By the name that people know; as messages of the bot in the chat, once, and an answer may reply to it."""
    nora, otto = (rig.term.registry.by_key(key) for key in ("nora", "otto"))
    assert nora is not None
    assert otto is not None
    found = await rig.term.resolve(nora, AgentSelector(thread_name="Otto"), main_chat=True)
    assert found == Found(Target(chat_id=CHAT), "otto", "otto")
    await rig.term.store.record_messages("nora", [(CHAT, 900, None)], 1)
    for _ in range(2):
        assert await rig.term.serve(nora, telling(900)) == {"key": "otto"}
    await wait_all_tasks_blocked()
    assert rig.got == [("otto", update_id_of(CHAT, 900))]
    (envelope,) = rig.envelopes
    assert isinstance(envelope, ForwardMessage)
    assert envelope.message["text"] == "look at this"
    assert envelope.message["from"] == {"id": BOT, "is_bot": True, "first_name": "nora"}
    assert "message_thread_id" not in envelope.message
    assert rig.term.owned_by(otto).seen(CHAT, 900)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"message_id": 901}, "not one that nora sent"),
        ({"message_id": 902}, "not one that nora sent"),
        ({"to": "emil"}, "no other agent has the key emil"),
        ({"to": "nora"}, "no other agent"),
    ],
)
async def test_what_an_agent_did_not_write_into_the_chat_reaches_nobody(
    rig: Rig, fields: dict[str, Any], why: str
) -> None:
    nora = rig.term.registry.by_key("nora")
    assert nora is not None
    await rig.term.store.record_messages("nora", [(CHAT, 900, None)], 1)
    await rig.term.store.record_messages("otto", [(CHAT, 901, None)], 1)
    with pytest.raises(RequestRefused, match=why):
        await rig.term.serve(nora, telling(**{"message_id": 900, **fields}))
    assert rig.rows() == []


async def test_who_takes_no_main_chat_for_an_answer_is_told_that_it_needs_threads(rig: Rig) -> None:
    """A peer of version 1, whose messages have to name one."""
    nora = rig.term.registry.by_key("nora")
    assert nora is not None
    with pytest.raises(RequestRefused, match="in threads, and there are none"):
        await rig.term.resolve(nora, AgentSelector(thread_name="otto"))


async def test_an_agent_that_has_not_found_a_new_leader_yet_is_told_all_the_same(autojump_clock: MockClock) -> None:
    """It may come a moment after the one that writes to it."""
    async with running(Rig(), begun=True) as rig:
        await rig.term.sharing.note(PLAIN)
        nora = await come(rig, "nora")
        await rig.term.store.record_messages("nora", [(CHAT, 900, None)], 1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.term.serve, nora, telling(900))
            await trio.sleep(SETTLED / 2)
            await come(rig, "otto")
        await trio.sleep(0.1)
        assert rig.got == [("otto", update_id_of(CHAT, 900))]


async def test_what_goes_into_another_agents_thread_says_itself_who_asks(rig: Rig) -> None:
    """Its writer's name is not put before that a second time."""
    body = {"chat_id": CHAT, "message_thread_id": 12, "text": "from nora: hi"}
    assert rig.term.sharing.dress("nora", "sendMessage", body) == body


async def test_a_thread_that_cannot_be_made_anew_has_the_chat_looked_at_again(autojump_clock: MockClock) -> None:
    """A person deleted it, and then switched threads off."""
    looked: list[float] = []

    async def learn() -> BotFacts:
        looked.append(trio.current_time())
        return PLAIN

    async with running(Rig()) as rig:
        rig.term.sharing.learn = learn
        nora = await come(rig, "nora")
        assert nora.target is not None
        thread = nora.target.thread_id
        assert isinstance(thread, int)
        await rig.term.threads.note(rig.term.threads.book.parked(thread, 1))
        fault = ApiError("createForumTopic", 400, "Bad Request: the chat is not a forum")
        rig.telegram.results["createForumTopic"] = fault
        body = {"chat_id": CHAT, "message_thread_id": thread, "text": "x"}
        async with trio.open_nursery() as nursery:
            await nursery.start(rig.term.sharing.run)
            with pytest.raises(RequestRefused, match="switch on threads"):
                await rig.term.call_api(nora, Allowed(method="call", args=("sendMessage", body)), "request")
            await trio.sleep(1)
            nursery.cancel_scope.cancel("the test is over")
        assert len(looked) == 1
        assert rig.term.sharing.everyone


async def test_a_chat_that_the_bot_may_not_use_is_a_trouble_until_it_may(autojump_clock: MockClock) -> None:
    looked: list[float] = []

    async def learn() -> BotFacts:
        looked.append(trio.current_time())
        return evolve(PLAIN, no_chat=None if len(looked) > 2 else "Bad Request: chat not found")

    async with running(Rig()) as rig:
        rig.term.sharing.learn = learn
        async with trio.open_nursery() as nursery:
            await nursery.start(rig.term.sharing.run)
            await rig.term.sharing.note(await learn())
            await trio.sleep(LOOK_AGAIN / 2)
            worst = overview.conditions(rig.term)[0]
            assert worst.state == "no chat"
            assert "chat not found" in (worst.detail or "")
            assert str(CHAT) in (worst.detail or "")
            assert "press Start" in advice(worst)
            await trio.sleep(LOOK_AGAIN)
            assert len(looked) == 3
            assert overview.conditions(rig.term)[0].state != "no chat"
            nursery.cancel_scope.cancel("the test is over")


async def test_a_change_of_the_chat_that_the_disk_does_not_take_at_first_comes_about_all_the_same(
    autojump_clock: MockClock,
) -> None:
    """It is looked at again, and everybody is sent to their new place then."""

    async def learn() -> BotFacts:
        return PLAIN

    async with running(Rig()) as rig, trio.open_nursery() as nursery:
        await come(rig, "nora")
        again: list[str] = []
        rig.term.sharing.reseat = lambda member: again.append(member.key)
        rig.term.sharing.learn, rig.term.sharing.say = learn, rig.notices.say
        await nursery.start(rig.term.sharing.run)
        rig.commits.fault = StateError("the disk is full")
        rig.term.sharing.look_again()
        await wait_all_tasks_blocked()
        assert (again, rig.said) == ([], [])
        rig.commits.fault = None
        await trio.sleep(LOOK_AGAIN + AT_ONCE + 1)
        assert again == ["nora"]
        assert "switch on Topics" in rig.said[0]
        nursery.cancel_scope.cancel("the test is over")


async def test_agents_come_back_to_their_threads_where_not_all_can_be_proven(rig: Rig) -> None:
    async def fail() -> None:
        raise StateError("the disk is full")

    again: list[str] = []
    rig.term.sharing.reseat = lambda member: again.append(member.key)
    rig.term.sharing.returned = fail
    await rig.term.sharing.note(FORUM)
    assert again == ["nora", "otto"]


async def test_the_chat_is_looked_at_again_when_it_may_have_changed(autojump_clock: MockClock) -> None:
    """By the bot's own membership, and in a rhythm while there are no threads."""
    facts, looked = [PLAIN, PLAIN, FORUM], []

    async def learn() -> BotFacts:
        looked.append(trio.current_time())
        return facts[min(len(looked), len(facts)) - 1]

    async with running(Rig()) as rig, trio.open_nursery() as nursery:
        rig.term.sharing.learn = learn
        await nursery.start(rig.term.sharing.run)
        body = {"chat": {"id": CHAT, "type": "supergroup"}, "from": {"id": 4}, "new_chat_member": {"status": "member"}}
        await rig.take({"update_id": 1, "my_chat_member": body})
        modes = [rig.term.sharing.everyone]
        await trio.sleep(50)
        assert [*modes, rig.term.sharing.everyone] == [True, False]
        assert len(looked) == 3
        await trio.sleep(100)
        assert len(looked) == 3
        nursery.cancel_scope.cancel("the test is over")


async def test_mute_makes_an_agent_s_messages_silent_until_the_time_is_over(rig: Rig) -> None:
    """In one chat by name; it is remembered by the next leader."""
    now = [1_000]
    rig.term.muting.now_ms = lambda: now[0]
    await rig.take(said(1, "/mute nora 2h"))
    assert rig.said[-1] == "nora makes no sound for 2 h."
    body = {"chat_id": CHAT, "text": "x"}
    assert rig.term.muting.dress("nora", "sendMessage", body) == {**body, "disable_notification": True}
    assert rig.term.muting.dress("nora", "editMessageText", body) == body
    assert rig.term.muting.dress("otto", "sendMessage", body) == body
    successor = Rig(earlier=rig.commits)
    await successor.term.muting.load()
    successor.term.muting.now_ms = rig.term.muting.now_ms
    assert successor.term.muting.muted("nora")
    now[0] += 7_200_001
    assert not rig.term.muting.muted("nora")
    await rig.take(said(2, "/mute otto"), said(3, "/unmute otto"), said(4, "/unmute otto"))
    assert rig.said[-2:] == ["otto can be heard again.", "otto was not muted."]


async def test_an_agent_that_is_away_is_muted_by_its_name_too(autojump_clock: MockClock) -> None:
    """What it has said may still be on its way, and it may be back soon."""
    async with running(Rig()) as rig:
        otto = await come(rig, "otto")
        assert rig.term.registry.remove(otto)
        await rig.take(said(1, "/mute otto"), said(2, "/mute zora"))
        assert rig.said[-2:] == ["otto makes no sound until /unmute.", "No agent is called zora; there are: otto."]


async def test_scenario_74_a_group_that_became_a_supergroup_takes_everything_along(rig: Rig) -> None:
    """By Telegram's notice in either chat, whoever caused it; what comes after it in the same batch is not lost."""
    new = -1009876
    moved = []

    async def migrate(old: int, to: int) -> None:
        moved.append((old, to))
        await rig.term.threads.chat_migrated(old, to)
        await rig.term.sharing.moved(old, to)
        rules = evolve(rig.lobby.rules(), chat_id=to)
        rig.lobby.rules = rig.intake.rules = lambda: rules

    rig.lobby.migrate = migrate
    await rig.take(said(1, "/use nora"), said(2, "/mute"))
    stranger = {"id": 1087968824, "is_bot": True}
    there = {"id": new, "type": "supergroup"}
    notice = said(3, "", sender=stranger, migrate_to_chat_id=new)
    await rig.take(notice, said(4, "in the new chat", chat=there))
    await rig.take(said(5, "", sender=stranger, chat=there, migrate_from_chat_id=CHAT))
    assert (CHAT, new) in moved
    assert rig.term.threads.chat_id == new
    assert rig.term.sharing.choice_of(OWNER) == "nora"
    assert rig.got == [("nora", 4)]
    assert {outcome for _, _, outcome in rig.rows()} == {"answered", "accepted"}


async def test_scenario_74_a_leader_that_dies_before_the_move_leaves_it_to_the_next(rig: Rig) -> None:
    """Which does it before anything else."""
    notice = said(3, "", migrate_to_chat_id=-1009876)
    rig.lobby.migrate = _stuck
    with trio.move_on_after(0.01):
        await rig.intake.commit([notice], 4)
    successor, moved = Rig(earlier=rig.commits), []

    async def migrate(old: int, to: int) -> None:
        moved.append((old, to))

    successor.lobby.migrate = migrate
    async with running(successor):
        await wait_all_tasks_blocked()
        assert moved[0] == (CHAT, -1009876)


async def test_a_move_that_the_disk_does_not_take_at_the_start_ends_no_leader(rig: Rig) -> None:
    """It is tried again when the notice has its turn."""
    notice = said(3, "", migrate_to_chat_id=-1009876)
    rig.lobby.migrate = _stuck
    with trio.move_on_after(0.01):
        await rig.intake.commit([notice], 4)
    successor, tries = Rig(earlier=rig.commits), []

    async def migrate(old: int, to: int) -> None:
        tries.append((old, to))
        if len(tries) == 1:
            raise StateError("the disk is full")

    successor.lobby.migrate = migrate
    async with running(successor):
        await wait_all_tasks_blocked()
        assert tries == [(CHAT, -1009876)] * 2


async def _stuck(_old: int, _to: int) -> None:
    await trio.sleep_forever()


async def test_scenario_76_whoever_blocks_the_bot_is_left_alone_until_they_write(rig: Rig) -> None:
    """Telegram's update says so before any call is refused."""
    heard: list[tuple[str, int]] = []

    async def closed(chat_id: int, why: str) -> None:
        heard.append((why, chat_id))

    async def opened(chat_id: int) -> bool:
        heard.append(("opened", chat_id))
        return True

    rig.lobby.closed, rig.lobby.opened = closed, opened
    chat, person = {"id": CHAT, "type": "private"}, {"id": OWNER}
    body = {"chat": chat, "from": person, "new_chat_member": {"status": "kicked"}}
    await rig.take({"update_id": 1, "my_chat_member": body})
    assert heard == [("the bot was blocked, or thrown out of the group", CHAT)]
    await rig.take(said(2))
    assert heard[1:] == [("opened", CHAT)]
