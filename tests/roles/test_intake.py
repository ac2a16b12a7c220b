"""Updates as they come from Telegram: all of a batch in one commit with its offset, then each where it belongs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.core.bindings import Binding
from telegram_bus.core.codec import loads
from telegram_bus.core.errors import ApiError, LeadershipLost, StateError, single_fault
from telegram_bus.core.routing import Rules
from telegram_bus.roles import lobby as lobby_module
from telegram_bus.roles.lobby import PROMOTION_GRACE
from tests.fakes import BOT, CHAT, OWNER, InlineCommits, admit, message
from tests.roles.term_rig import Rig, running


def press(update_id: int, message_id: int, *, thread: int | None = None) -> dict[str, Any]:
    """A button is pressed."""
    body: dict[str, Any] = {"message_id": message_id, "chat": {"id": CHAT, "type": "supergroup"}}
    if thread is not None:
        body |= {"message_thread_id": thread, "is_topic_message": True}
    return {
        "update_id": update_id,
        "callback_query": {"id": f"q{update_id}", "from": {"id": OWNER}, "data": "d", "message": body},
    }


def reaction(update_id: int, message_id: int) -> dict[str, Any]:
    body = {"chat": {"id": CHAT, "type": "supergroup"}, "message_id": message_id, "user": {"id": OWNER}}
    return {"update_id": update_id, "message_reaction": body}


async def test_a_message_in_a_thread_goes_to_its_owner(rig: Rig) -> None:
    """And only there."""
    await rig.take(message(1, thread=11), message(2, thread=12), message(3, thread=11))
    assert sorted(rig.got) == [("nora", 1), ("nora", 3), ("otto", 2)]
    assert [outcome for _, _, outcome in rig.rows()] == ["accepted"] * 3
    assert rig.telegram.calls == []


async def test_updates_and_offset_are_one_commit(rig: Rig) -> None:
    """Either all of it is kept or the batch comes again."""
    before = rig.commits.count
    await rig.intake.commit([message(1), message(2)], 3)
    assert await rig.term.store.offset() == 3
    await wait_all_tasks_blocked()
    rig.commits.fault = StateError("the disk is full")
    with pytest.raises(StateError):
        await rig.intake.commit([message(3)], 4)
    rig.commits.fault = None
    assert await rig.term.store.offset() == 3
    assert [row[0] for row in rig.rows()] == [1, 2]
    assert rig.commits.count >= before + 2


async def test_a_move_to_a_supergroup_that_the_disk_does_not_take_costs_its_batch_nothing(rig: Rig) -> None:
    """What is stored is given to its owners at once: when the same batch came again, it would count as seen."""

    async def full(_old: int, _new: int) -> None:
        raise StateError("the disk is full")

    rig.lobby.migrate = full
    await rig.take(message(1), message(2, thread=None, text="", migrate_to_chat_id=-1009876))
    assert rig.got == [("nora", 1)]
    assert rig.rows()[1] == (2, None, None)  # which is left to the next leader


async def test_a_batch_that_comes_again_is_given_once(rig: Rig) -> None:
    """Telegram repeats what was not confirmed."""
    await rig.take(message(1))
    await rig.take(message(1), message(2))
    assert rig.got == [("nora", 1), ("nora", 2)]


def nested(levels: int) -> Any:
    value: Any = 0
    for _ in range(levels):
        value = [value]
    return value


ODD: list[tuple[str, dict[str, Any]]] = [
    ("no id", {"message": {"text": "x"}}),
    ("an id that no delivery can have", message(2**53)),
    ("an id below zero", message(-1)),
    ("a chat id beyond the store", message(2, chat={"id": 2**70, "type": "supergroup"})),
    ("a thread id beyond the store", message(2, message_thread_id=2**70)),
    ("a reply beyond the store", message(2, thread=None, reply_to_message={"message_id": 2**70})),
    ("a message that is text", {"update_id": 2, "message": "x"}),
    ("a sender that is a list", message(2, sender=[1])),
    ("a kind of the future", {"update_id": 2, "quantum_message": {}}),
    ("a true for an id", {"update_id": True, "message": {}}),
    ("too deep to be written", message(2, deep=nested(3_000))),
]


@pytest.mark.parametrize("odd", [row[1] for row in ODD], ids=[row[0] for row in ODD])
async def test_an_odd_update_holds_up_no_other(rig: Rig, odd: dict[str, Any]) -> None:
    """It is passed over, and confirmed with its batch: else it would come for ever."""
    await rig.take(message(1), odd, message(3), offset=9)
    assert rig.got == [("nora", 1), ("nora", 3)]
    assert await rig.term.store.offset() == 9


@pytest.mark.parametrize("text", ["\ud83d alone", "\u2028", "\x00"])
async def test_any_text_arrives(rig: Rig, text: str) -> None:
    """A lone surrogate is JSON too."""
    await rig.take(message(1, text=text))
    assert rig.got == [("nora", 1)]
    (body,) = rig.commits.db.execute("SELECT body FROM updates").fetchone()
    assert loads(body)["message"]["text"] == text


async def test_numbers_beyond_64_bits_travel_in_what_nobody_reads(rig: Rig) -> None:
    """Only the ids that we use are looked at."""
    await rig.take(message(1, strange=2**70))
    assert rig.got == [("nora", 1)]


async def test_strangers_and_our_own_messages_leave_nothing(rig: Rig) -> None:
    """Not even a row; the offset passes over them."""
    await rig.take(
        message(1, sender={"id": 666}),
        message(2, sender={"id": BOT, "is_bot": True}),
        message(3, thread=None, sender={"id": 666}),
        message(4, pinned_message={}),
        reaction(5, 4),
        {"update_id": 6, "edited_message": message(6, thread=None)["message"]},
        offset=7,
    )
    assert rig.rows() == []
    assert rig.telegram.calls == []
    assert await rig.term.store.offset() == 7


LOBBY: list[tuple[str, dict[str, Any], str]] = [
    ("main chat", message(1, thread=None, text="hello"), "Nobody reads the main chat"),
    ("status", message(1, thread=None, text="/status"), "@a_bot: starting"),
    ("agents", message(1, thread=None, text="/agents@A_Bot"), "nora — here"),
    ("help", message(1, thread=None, text="/help"), "/status"),
    (
        "another chat",
        message(1, thread=None, chat={"id": OWNER, "type": "private"}),
        "works in another chat",
    ),
]


@pytest.mark.parametrize(("update", "expected"), [row[1:] for row in LOBBY], ids=[row[0] for row in LOBBY])
async def test_what_belongs_to_nobody_is_answered_once_where_it_was_written(
    rig: Rig, update: dict[str, Any], expected: str
) -> None:
    """And then settled."""
    await rig.take(update)
    (said,) = rig.telegram.made("sendMessage")
    assert expected in said["text"]
    assert said["chat_id"] == update["message"]["chat"]["id"]
    assert said.get("message_thread_id") == update["message"].get("message_thread_id")
    assert rig.rows() == [(1, None, "answered")]
    assert rig.got == []


async def test_a_button_of_nobody_is_answered_so_that_the_person_stops_waiting(rig: Rig) -> None:
    """As an answer to the press."""
    await rig.take(press(1, 900))
    assert rig.telegram.made("answerCallbackQuery") == [
        {"callback_query_id": "q1", "text": "The agent that offered this button is not known any more."}
    ]
    assert rig.rows() == [(1, None, "answered")]


async def test_buttons_and_reactions_go_to_who_sent_the_message(rig: Rig) -> None:
    """Also when memory has forgotten who that was."""
    await rig.term.store.record_messages("otto", [(CHAT, 900, 12)], 1)
    rig.term.store._owners.clear()
    await rig.take(press(1, 900), reaction(2, 900), message(3, thread=None, reply_to_message={"message_id": 900}))
    assert rig.got == [("otto", 1), ("otto", 2), ("otto", 3)]


async def test_who_is_given_an_update_may_react_to_it_and_answer_it(rig: Rig) -> None:
    """Nobody else may."""
    await rig.take(message(1, thread=11), press(2, 5, thread=11))
    nora, otto = (rig.term.registry.by_key(key) for key in ("nora", "otto"))
    assert nora is not None
    assert otto is not None
    assert rig.term.owned_by(nora).seen(CHAT, 1001)
    assert rig.term.owned_by(nora).callback("q2")
    assert not rig.term.owned_by(otto).seen(CHAT, 1001)
    assert not rig.term.owned_by(otto).callback("q2")


async def test_an_answer_that_telegram_refuses_is_not_tried_again(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    """The thread may be closed; the next message is answered all the same."""
    rig.telegram.results["sendMessage"] = ApiError("sendMessage", 400, "Bad Request: TOPIC_CLOSED")
    with caplog.at_level(logging.WARNING):
        await rig.take(message(1, thread=None))
    assert "TOPIC_CLOSED" in caplog.text
    rig.telegram.results.clear()
    await rig.take(message(2, thread=None))
    assert rig.rows() == [(1, None, "answered"), (2, None, "answered")]
    assert len(rig.said) == 2


async def test_a_disk_that_fails_after_an_answer_ends_nothing(rig: Rig) -> None:
    """The update waits in the store for the next leader."""
    rig.telegram.gate = trio.Event()
    await rig.take(message(1, thread=None))
    rig.commits.fault = StateError("the disk is full")
    rig.telegram.gate.set()
    await wait_all_tasks_blocked()
    rig.commits.fault = None
    await rig.take(message(2, thread=None))
    assert rig.rows() == [(1, None, None), (2, None, "answered")]


async def test_a_lost_leadership_ends_the_lobby() -> None:
    """It is no fault of an update."""

    async def lead() -> None:
        async with running(Rig()) as rig:
            await rig.agent("nora", 11)
            rig.telegram.gate = trio.Event()
            await rig.take(message(1, thread=None))
            rig.commits.fault = LeadershipLost("another leads")
            rig.telegram.gate.set()
            await trio.sleep_forever()

    with pytest.raises(LeadershipLost), single_fault():
        await lead()


async def left_behind(leave: Callable[[Rig], Any]) -> tuple[Rig, InlineCommits]:
    """A term that ended before it answered."""
    rig = Rig()
    rig.telegram.gate = trio.Event()
    async with running(rig):
        await rig.agent("nora", 11)
        await rig.take(message(1, thread=None), message(2, thread=98), press(3, 900))
        await leave(rig)
    return rig, rig.commits


async def test_what_an_earlier_leader_left_is_answered_or_has_an_owner_by_now() -> None:
    """A thread that was bound meanwhile, a sender that is known now."""

    async def leave(rig: Rig) -> None:
        await rig.term.store.note_threads([Binding("late", CHAT, 98, "late", 1)])
        await rig.term.store.record_messages("late", [(CHAT, 900, 98)], 1)

    _, commits = await left_behind(leave)
    successor = Rig(earlier=commits)
    async with running(successor):
        await wait_all_tasks_blocked()
        assert len(successor.said) == 1
        assert successor.telegram.made("answerCallbackQuery") == []
        assert successor.rows() == [(1, None, "answered"), (2, "late", None), (3, "late", None)]
        admit(successor.term.registry, "late", thread=98)
        successor.term.deliveries.wake(["late"])
        await wait_all_tasks_blocked()
        assert successor.got == [("late", 2), ("late", 3)]
        late = successor.term.registry.by_key("late")
        assert late is not None
        assert successor.term.owned_by(late).callback("q3")


@pytest.mark.parametrize("count", [3, 4, 9])
async def test_however_much_an_earlier_leader_left_is_seen_to(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Page by page."""
    monkeypatch.setattr(lobby_module, "LOBBY_BATCH", 4)
    rig = Rig()
    await rig.agent("nora", 11)
    await rig.intake.commit([message(number, thread=98) for number in range(1, count + 1)], count + 1)
    async with running(Rig(earlier=rig.commits)) as successor:
        await wait_all_tasks_blocked()
        held = successor.commits.db.execute("SELECT count(*) FROM held").fetchone()[0]
        assert (held, len(successor.telegram.made("sendMessage"))) == (count, 1)


@pytest.mark.parametrize("comes", [True, False])
async def test_with_a_new_store_followers_have_a_moment_to_name_their_threads(
    comes: bool, autojump_clock: MockClock
) -> None:
    """Before a message in one of them is called nobody's."""
    async with running(Rig(), begun=True) as rig:
        await rig.take(message(1, thread=55))
        assert rig.rows() == [(1, None, None)]
        if comes:
            await rig.agent("nora", 55)
        await trio.sleep(PROMOTION_GRACE)
        await wait_all_tasks_blocked()
        assert rig.got == ([("nora", 1)] if comes else [])
        assert [("waits in this thread" in text) for text in rig.said] == ([] if comes else [True])


async def test_what_does_not_interest_us_any_more_is_settled() -> None:
    """A person who may no longer speak."""

    async def leave(rig: Rig) -> None:
        """Nothing happens meanwhile."""

    _, commits = await left_behind(leave)
    successor = Rig(earlier=commits)
    nobody = Rules(chat_id=CHAT, allowed=frozenset(), bot_id=BOT)
    successor.lobby.rules = lambda: nobody
    async with running(successor):
        await wait_all_tasks_blocked()
        assert successor.telegram.calls == []
        assert {outcome for _, _, outcome in successor.rows()} == {"answered"}
