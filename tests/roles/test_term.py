"""A term as its requests see it: threads and slots for followers, agents that find each other, and what people see."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.botapi.polling import PollState
from telegram_bus.core.envelopes import AgentMessage, AgentSelector, Heartbeat, Target
from telegram_bus.core.errors import NotSent, RequestRefused, StateError
from telegram_bus.core.identity import DURABLE_ADMISSION, ours
from telegram_bus.core.permissions import Allowed
from telegram_bus.core.registry import Member
from telegram_bus.roles import overview, possessions
from telegram_bus.roles import term as term_module
from telegram_bus.roles.bot import BotFacts
from telegram_bus.roles.telling import update_id_of
from tests.fakes import BOT, CHAT, admit, message, registration
from tests.roles.term_rig import Rig, running


def member(rig: Rig, key: str) -> Member:
    found = rig.term.registry.by_key(key)
    assert found is not None
    return found


async def resolve(rig: Rig, **selector: Any) -> Target:
    return (await rig.term.resolve(member(rig, "nora"), AgentSelector(**selector))).target


@pytest.mark.parametrize(
    "selector",
    [{"thread_name": "otto"}, {"thread_name": "OTTO"}, {"thread_id": 12}, {"thread_id": 12, "chat_id": CHAT}],
)
async def test_an_agent_is_found_by_the_name_or_the_id_of_its_thread(rig: Rig, selector: dict[str, Any]) -> None:
    assert await resolve(rig, **selector) == Target(chat_id=CHAT, thread_id=12)


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        ({"thread_name": "emil"}, "no other agent is called emil; here are: nora, otto"),
        ({"thread_name": "nora"}, "no other agent"),
        ({"thread_id": 11}, "no other agent is called thread 11"),
        ({"thread_id": 12, "chat_id": 5}, "no other agent"),
    ],
)
async def test_who_is_not_there_is_not_found(rig: Rig, selector: dict[str, Any], why: str) -> None:
    """Nor is the one that asks."""
    with pytest.raises(RequestRefused, match=why):
        await resolve(rig, **selector)


async def test_two_of_one_name_are_told_apart_by_their_threads(rig: Rig) -> None:
    admit(rig.term.registry, "o2", thread_name="Otto", instance="o2")
    rig.term.registry.admit(registration("o3", thread_name="Otto", thread=13), None, now_ms=1)
    with pytest.raises(RequestRefused, match="2 agents are called otto"):
        await resolve(rig, thread_name="otto")
    assert (await resolve(rig, thread_id=13)).thread_id == 13


def told(message_id: int, thread: int = 12, **target: Any) -> AgentMessage:
    place = Target(**{"chat_id": CHAT, "thread_id": thread, **target})
    return AgentMessage(target=place, message_id=message_id, text="look at this \ud83d")


async def test_an_agents_message_reaches_the_owner_of_the_thread_once(rig: Rig) -> None:
    """As a message of the bot in the agent's name, also when memory has forgotten who sent it."""
    await rig.term.store.record_messages("nora", [(CHAT, 900, 12)], 1)
    rig.term.store._owners.clear()
    for _ in range(2):
        await rig.term.route(member(rig, "nora"), told(900))
    await wait_all_tasks_blocked()
    assert rig.got == [("otto", update_id_of(CHAT, 900))]
    (update,) = await rig.term.store.recent(5)
    assert (update.owner_key, update.chat_id, update.thread_id) == ("otto", CHAT, 12)
    assert rig.term.owned_by(member(rig, "otto")).seen(CHAT, 900)
    assert await rig.term.store.offset() == 0


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (told(900, 99), "belongs to no agent"),
        (told(900, chat_id=5), "belongs to no agent"),
        (told(901), "not one that nora sent"),
        (told(2**70), "not one that nora sent"),
        (told(900, chat_id=1.5), "whole numbers"),
    ],
)
async def test_what_an_agent_did_not_write_there_is_not_routed(rig: Rig, said: AgentMessage, why: str) -> None:
    await rig.term.store.record_messages("nora", [(CHAT, 900, 12)], 1)
    await rig.term.store.record_messages("otto", [(CHAT, 901, 12)], 1)
    with pytest.raises(RequestRefused, match=why):
        await rig.term.route(member(rig, "nora"), said)
    assert rig.rows() == []


@pytest.mark.parametrize(("extended", "ending"), [(True, True), (True, False), (False, True)])
async def test_a_call_that_a_leader_did_not_make_before_its_end_gets_no_answer(
    rig: Rig, extended: bool, ending: bool, autojump_clock: MockClock
) -> None:
    """One of our followers then asks the successor; all others are told."""
    caller = member(rig, "nora")
    if not extended:
        foreign = attrs.evolve(registration("foreign"), protocol=ours("1", [DURABLE_ADMISSION]))
        caller = rig.term.registry.admit(foreign, None, now_ms=1).member
    if ending:
        rig.term.request_stop()
    call = Allowed(method="call", args=("sendMessage", {"chat_id": CHAT, "text": "x"}))
    rig.telegram.results["sendMessage"] = NotSent("the network is down")
    async with trio.open_nursery() as nursery:
        await nursery.start(rig.term.calls.sender.run)
        with trio.move_on_after(1_000) as waiting:
            with pytest.raises(NotSent):
                await rig.term.call_api(caller, call, "r1")
        assert waiting.cancelled_caught == (extended and ending)
        nursery.cancel_scope.cancel("seen")


async def test_slots_are_letters_that_no_other_member_has(rig: Rig) -> None:
    """The wanted one if it is free; none after the 26th."""
    given = []
    for number in range(30):
        told = registration(
            f"n{number}", thread_name=f"n{number}", thread=100 + number, slot="C" if number == 0 else None
        )
        provisioned = await rig.term.provision(told)
        assert provisioned is not None
        rig.term.registry.admit(told, provisioned, now_ms=1)
        given.append(provisioned.slot)
    assert given[:3] == ["C", "A", "B"]
    assert sorted(slot for slot in given if slot) == [chr(ord("A") + n) for n in range(26)]
    assert given[26:] == [None] * 4


async def test_a_follower_that_registers_again_keeps_its_slot(rig: Rig) -> None:
    told = registration("n", thread=50, slot="Q")
    rig.term.registry.admit(told, await rig.term.provision(told), now_ms=1)
    again = await rig.term.provision(told)
    assert again is not None
    assert again.slot == "Q"


async def test_a_member_without_an_endpoint_can_be_sent_nothing(rig: Rig) -> None:
    with pytest.raises(NotSent, match="without an endpoint"):
        await rig.term.forward(member(rig, "nora"), Heartbeat(request_id="r", instance_id="x", sent_at_ms=1))


async def test_nobody_uploads_by_path_under_our_own_policy(rig: Rig) -> None:
    """Our own followers send files as open descriptors; the others' paths are looked at when they are opened."""
    assert rig.term.upload_root(member(rig, "nora")) is None
    foreign = attrs.evolve(registration("foreign"), protocol=ours("1", [DURABLE_ADMISSION]))
    other = rig.term.registry.admit(foreign, None, now_ms=1).member
    assert rig.term.upload_root(other) is None


@pytest.mark.parametrize(
    "body",
    [
        {"chat_id": CHAT, "message_id": 900},
        {"chat_id": str(CHAT), "message_id": "900"},
        {"chat_id": CHAT, "reply_parameters": {"message_id": 900}},
        {"chat_id": 1, "message_id": 1, "reply_parameters": {"chat_id": CHAT, "message_id": 900}},
    ],
)
async def test_owners_that_memory_forgot_are_looked_up_for_a_call(rig: Rig, body: dict[str, Any]) -> None:
    """Then the policy knows them."""
    await rig.term.store.record_messages("nora", [(CHAT, 900, 11)], 1)
    rig.term.store._owners.clear()
    owned = rig.term.owned_by(member(rig, "nora"))
    assert not owned.message(CHAT, 900)
    recall = rig.term.recall(member(rig, "nora"), "call", ("editMessageText", body))
    assert recall is not None
    await recall()
    assert owned.message(CHAT, 900)


@pytest.mark.parametrize(
    "args", [(), ("getMe",), ("sendMessage", "x"), ("sendMessage", {"chat_id": CHAT}), ("x", {"reply_parameters": 5})]
)
async def test_a_call_that_names_no_message_needs_no_store(rig: Rig, args: tuple[Any, ...]) -> None:
    assert rig.term.recall(member(rig, "nora"), "call", args) is None


async def test_what_memory_knows_is_not_looked_up(rig: Rig) -> None:
    await rig.term.store.record_messages("nora", [(CHAT, 900, 11)], 1)
    args = ("editMessageText", {"chat_id": CHAT, "message_id": 900})
    assert rig.term.recall(member(rig, "nora"), "call", args) is None


async def test_a_message_of_ones_own_is_always_seen(rig: Rig) -> None:
    """Files are nobody's yet."""
    await rig.term.store.record_messages("nora", [(CHAT, 900, 11)], 1)
    owned = rig.term.owned_by(member(rig, "nora"))
    assert owned.seen(CHAT, 900)
    assert not owned.seen(CHAT, 901)
    assert not owned.file("f")


@pytest.mark.parametrize("odd", [float("inf"), float("nan"), 900.5, 2**64 - 1, -(10**18)])
async def test_a_number_that_is_no_id_is_nobody_s(rig: Rig, odd: float) -> None:
    """JSON has numbers that overflow, and larger ones than a store takes."""
    owned = rig.term.owned_by(member(rig, "nora"))
    assert rig.term.recall(member(rig, "nora"), "call", ("x", {"chat_id": odd, "message_id": odd})) is None
    assert not owned.message(CHAT, odd)
    assert not owned.seen(odd, odd)


async def test_what_was_given_lately_is_known_to_the_next_leader(rig: Rig) -> None:
    """Reactions and buttons work on after a succession."""
    await rig.take(message(1, thread=11))
    successor = Rig(earlier=rig.commits)
    async with running(successor):
        admit(successor.term.registry, "nora", thread=11)
        assert successor.term.owned_by(member(successor, "nora")).seen(CHAT, 1001)
        assert successor.term.threads.of_thread(CHAT, 12) == "otto"


async def test_what_was_given_long_ago_is_in_the_store(rig: Rig, autojump_clock: MockClock) -> None:
    """Also when the update itself has been purged; and to nobody else."""
    async with trio.open_nursery() as nursery:
        await nursery.start(rig.term.possessions.run)
        await rig.take(message(1, thread=11))
        await trio.sleep(10)
        nursery.cancel_scope.cancel("killed")
    rig.commits.db.execute("DELETE FROM updates")
    successor = Rig(earlier=rig.commits)
    async with running(successor):
        for key, theirs in (("nora", True), ("otto", False)):
            who = admit(successor.term.registry, key, thread=11 if theirs else 12)
            recall = successor.term.recall(who, "call", ("setMessageReaction", {"chat_id": CHAT, "message_id": 1001}))
            if recall is not None:
                await recall()
            assert successor.term.owned_by(who).seen(CHAT, 1001) is theirs


async def test_memory_of_what_was_given_is_bounded(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go first."""
    monkeypatch.setattr(possessions, "REMEMBERED", 2)
    await rig.take(*(message(number, thread=11) for number in (1, 2, 3)))
    owned = rig.term.owned_by(member(rig, "nora"))
    assert [owned.seen(CHAT, 1000 + number) for number in (1, 2, 3)] == [False, True, True]


async def test_the_status_lists_followers_and_what_waits(rig: Rig) -> None:
    """Its fields are those of the documentation."""
    await rig.agent("late", 13, here=False)
    await rig.take(message(1, thread=13))
    rig.term.polling.set(PollState(state="serving", detail=None, since=0.0, last_completed=trio.current_time() - 2))
    told = rig.term.status()
    assert (told["state"], told["waiting"], told["epoch"]) == ("serving", 1, 1)
    assert told["bot"] == {"id": BOT, "username": "a_bot"}
    assert told["chat"] == {"id": CHAT, "kind": "group"}
    assert told["last_poll_ms"] <= term_module.now_ms() - 2_000
    nora, otto = told["followers"]
    assert nora == {
        "key": "nora",
        "name": "nora",
        "chat_id": CHAT,
        "thread_id": 11,
        "slot": None,
        "pid": None,
        "joined_ms": 1_000,
        "connected_at_ms": 1_000,
        "last_heartbeat_ms": 1_000,
        "state": "serving",
        "waiting": 0,
        "sending": 0,
        "unknown": 0,
        "activity": None,
    }
    assert otto["key"] == "otto"


async def test_people_see_who_is_here_before_who_was(rig: Rig) -> None:
    """With the address of the thread and what waits there."""
    await rig.agent("amber", 13, here=False)
    await rig.take(message(1, thread=13))
    lines = overview.agent_lines(rig.term)
    assert [(line.name, line.online, line.waiting) for line in lines] == [
        ("nora", True, 0),
        ("otto", True, 0),
        ("amber", False, 1),
    ]
    assert lines[0].link == "https://t.me/c/1234/11"
    assert overview.bus_line(rig.term).waiting == 1


async def test_the_state_is_that_of_polling_until_the_end(rig: Rig) -> None:
    assert (overview.conditions(rig.term)[0].state, overview.bus_line(rig.term).since_poll) == ("starting", None)
    rig.term.polling.set(PollState(state="conflict", detail="another poller", since=0.0, last_completed=None))
    line = overview.bus_line(rig.term)
    assert (line.state, line.detail, line.since_poll) == ("conflict", "another poller", None)
    rig.term.request_stop()
    assert overview.conditions(rig.term)[0].state == "stopping"
    assert rig.term.leading()


async def test_the_worst_of_several_states_is_shown_and_all_are_told(rig: Rig) -> None:
    rig.term.polling.set(PollState(state="serving", detail=None, since=0.0, last_completed=0.0))
    assert rig.term.note_trouble("deaf", "3 wait")
    assert not rig.term.note_trouble("deaf", "4 wait")
    assert rig.term.note_trouble("storage", "the disk is full")
    status = rig.term.status()
    assert (status["state"], status["detail"]) == ("storage", "the disk is full")
    assert [one["state"] for one in status["states"]] == ["storage", "deaf", "serving"]
    assert overview.bus_line(rig.term).state == "storage"
    assert rig.term.note_trouble("storage", None)
    assert not rig.term.note_trouble("storage", None)
    assert (overview.conditions(rig.term)[0].state, rig.term.status()["detail"]) == ("deaf", "4 wait")
    rig.term.request_stop()
    assert overview.conditions(rig.term)[0].state == "stopping"


async def test_a_disk_that_fails_for_deliveries_shows_until_it_is_mended(rig: Rig, autojump_clock: MockClock) -> None:
    seen: list[str | None] = []
    rig.term.deliveries.ails = seen.append
    await rig.agent("nora", 11)
    run = rig.commits.run

    async def fail_once(operation: Any) -> Any:
        if operation.__qualname__.startswith("Store.settle"):
            rig.commits.run = run  # type: ignore[method-assign]
            raise StateError("full")
        return await run(operation)

    rig.commits.run = fail_once  # type: ignore[method-assign]
    await rig.take(message(1))
    await trio.sleep(1)
    assert "full" in seen
    assert seen[-1] is None
    assert rig.rows() == [(1, "nora", "accepted")]


def test_a_bot_without_a_name_has_its_number() -> None:
    assert BotFacts(id=5).name == "bot 5"
    assert BotFacts(id=5, username="x").name == "@x"


async def test_who_leaves_keeps_its_thread(rig: Rig) -> None:
    await rig.term.retire(member(rig, "nora"))
    assert rig.term.threads.of_key("nora") is not None
    assert rig.telegram.calls == []
