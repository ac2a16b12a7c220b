"""Messages in threads that nobody owns: they wait until a person has chosen, and each choice has one effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import trio
from attrs import define, field
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.core.chooser import MAIN, Press, data_of, mark_of
from telegram_bus.core.codec import loads
from telegram_bus.core.errors import ApiError, CommitUnknown, StateError
from telegram_bus.roles.chooser import AGAIN, ANSWERED
from telegram_bus.store import StoredUpdate
from telegram_bus.store.lobby import LobbyJournal
from tests.fakes import CHAT, OWNER, FakeTelegram, admit, message
from tests.roles.term_rig import Rig, running

PLACE = 99
GIVE, BIND = (Press(PLACE, verb, mark_of("nora")) for verb in ("give", "bind"))
LATER, IGNORE = Press(PLACE, "later"), Press(PLACE, "ignore")


def pressed(update_id: int, button: Press, message_id: int) -> dict[str, Any]:
    """A person presses a button of a chooser."""
    where = {"message_id": message_id, "chat": {"id": CHAT, "type": "supergroup"}, "message_thread_id": PLACE}
    query = {"id": f"q{update_id}", "from": {"id": OWNER}, "data": data_of(button), "message": where}
    return {"update_id": update_id, "callback_query": query}


def asked(rig: Rig) -> list[int]:
    """The ids of the questions in the thread: the fake counts its calls."""
    return [101 + index for index, (method, _) in enumerate(rig.telegram.calls) if method.startswith("send")]


def buttons(params: dict[str, Any]) -> list[str]:
    return [key["text"] for row in params["reply_markup"]["inline_keyboard"] for key in row]


async def test_people_are_asked_once_and_everything_waits(rig: Rig) -> None:
    """In the thread itself, with the agents that are here."""
    await rig.take(message(1, thread=PLACE), message(2, thread=PLACE))
    await rig.take(message(3, thread=PLACE))
    (question,) = rig.telegram.made("sendMessage")
    assert question["message_thread_id"] == PLACE
    assert buttons(question) == ["nora", "otto", "Make it someone's thread …", "Keep for later", "Ignore"]
    assert rig.rows() == [(number, None, None) for number in (1, 2, 3)]
    assert rig.got == []


async def test_who_is_chosen_gets_all_of_it_in_order_and_once(rig: Rig) -> None:
    """A second press, also of another button, does nothing more and says so."""
    await rig.take(message(1, thread=PLACE), message(2, thread=PLACE))
    (question,) = asked(rig)
    await rig.take(pressed(3, GIVE, question), pressed(4, GIVE, question))
    await rig.take(pressed(5, IGNORE, question))
    assert rig.got == [("nora", 1), ("nora", 2)]
    answers = [params["text"] for params in rig.telegram.made("answerCallbackQuery")]
    assert sorted(answers) == ["Given to nora: 2 messages.", ANSWERED, ANSWERED]
    (edit,) = rig.telegram.made("editMessageText")
    assert edit["text"] == "Given to nora: 2 messages."
    assert buttons(edit) == []
    assert {outcome for _, _, outcome in rig.rows()} == {"accepted", "answered"}


async def test_what_was_given_partly_goes_on_with_the_rest(rig: Rig) -> None:
    """Each update is settled by itself: what the agent has is not given again."""
    await rig.take(message(1, thread=PLACE), message(2, thread=PLACE))
    taken = rig.forward
    rig.term.deliveries.forward = lambda member, envelope: _fail_after_one(rig, taken, member, envelope)
    await rig.take(pressed(3, GIVE, asked(rig)[0]))
    assert rig.got == [("nora", 1)]
    rig.term.deliveries.forward = taken
    rig.term.deliveries.wake(["nora"])
    await wait_all_tasks_blocked()
    assert rig.got == [("nora", 1), ("nora", 2)]


async def _fail_after_one(rig: Rig, taken: Any, member: Any, envelope: Any) -> Any:
    rig.down = bool(rig.got)
    try:
        return await taken(member, envelope)
    finally:
        rig.down = False


async def test_what_is_ignored_is_let_go(rig: Rig) -> None:
    await rig.take(message(1, thread=PLACE))
    await rig.take(pressed(2, IGNORE, asked(rig)[0]))
    assert rig.rows() == [(1, None, "dropped"), (2, None, "answered")]
    assert rig.telegram.made("editMessageText")[0]["text"] == "Ignored: 1 message."


async def test_what_is_kept_waits_without_a_word_and_the_next_message_asks_again(rig: Rig) -> None:
    """Both questions stand for all that waits; the older one is over once the new one was answered."""
    await rig.take(message(1, thread=PLACE))
    old = asked(rig)[0]
    await rig.take(pressed(2, LATER, old))
    assert buttons(rig.telegram.made("editMessageText")[0]) == ["Choose now"]
    assert rig.rows()[0] == (1, None, None)
    await rig.take(message(3, thread=PLACE))
    assert "2 messages wait" in rig.said[-1]
    await rig.take(pressed(4, GIVE, asked(rig)[-1]))
    assert rig.got == [("nora", 1), ("nora", 3)]
    await rig.take(message(5, thread=PLACE), pressed(6, GIVE, old))
    assert rig.rows()[-2] == (5, None, None)


async def test_a_kept_question_can_be_answered_after_all(rig: Rig) -> None:
    await rig.take(message(1, thread=PLACE))
    question = asked(rig)[0]
    await rig.take(pressed(2, LATER, question))
    await rig.take(pressed(3, Press(PLACE, "show", "give0"), question))
    assert "nora" in buttons(rig.telegram.made("editMessageText")[-1])
    await rig.take(pressed(4, GIVE, question))
    assert rig.got == [("nora", 1)]


async def test_the_thread_becomes_an_agent_s(rig: Rig) -> None:
    """And what waited in it is delivered there."""
    bound = []

    async def bind(key: str, thread_id: int) -> None:
        bound.append((key, thread_id))

    rig.lobby.bind = bind
    await rig.take(message(1, thread=PLACE))
    question = asked(rig)[0]
    await rig.take(pressed(2, Press(PLACE, "show", "bind0"), question))
    assert "Whose thread" in rig.telegram.made("editMessageText")[-1]["text"]
    await rig.take(pressed(3, BIND, question), pressed(4, BIND, question))
    assert bound == [("nora", PLACE)]
    assert rig.got == [("nora", 1)]


async def test_an_agent_that_left_cannot_be_chosen(rig: Rig) -> None:
    """The person hears it, and sees who is here now."""
    await rig.take(message(1, thread=PLACE))
    nora = rig.term.registry.by_key("nora")
    assert nora is not None
    rig.term.registry.remove(nora)
    await rig.take(pressed(2, GIVE, asked(rig)[0]))
    assert rig.telegram.made("answerCallbackQuery")[0]["text"] == "This agent is not here any more."
    assert "nora" not in buttons(rig.telegram.made("editMessageText")[0])
    assert rig.rows()[0] == (1, None, None)


async def test_where_no_agent_is_here_it_waits_and_people_can_look_again() -> None:
    async with running(Rig()) as rig:
        await rig.agent("nora", 11, here=False)
        await rig.take(message(1, thread=PLACE))
        assert buttons(rig.telegram.made("sendMessage")[0]) == ["↻ Look again", "Keep for later", "Ignore"]
        admit(rig.term.registry, "nora", thread=11)
        await rig.take(pressed(2, Press(PLACE, "show", "give0"), asked(rig)[0]))
        assert "nora" in buttons(rig.telegram.made("editMessageText")[0])


async def test_a_successor_goes_on_with_the_question_and_does_not_ask_again(rig: Rig) -> None:
    """A button that was pressed while nobody led is done by whoever leads next."""
    await rig.take(message(1, thread=PLACE))
    question = asked(rig)[0]
    async with running(Rig(earlier=rig.commits)) as successor:
        await successor.agent("nora", 11)
        await wait_all_tasks_blocked()
        assert successor.said == []
        await successor.take(pressed(2, GIVE, question))
        assert successor.got == [("nora", 1)]


@pytest.mark.parametrize("fault", [None, CommitUnknown("the answer was lost")])
async def test_a_question_that_may_never_have_been_asked_is_asked_by_the_successor(fault: Exception | None) -> None:
    """A crash between claim and call, or a lost answer; by the same leader it is not asked twice."""
    first = Rig()
    async with running(first):
        await first.agent("nora", 11)
        if fault is None:
            first.telegram.gate = trio.Event()
        else:
            first.telegram.results["sendMessage"] = fault
        await first.take(message(1, thread=PLACE))
        await first.take(message(2, thread=PLACE))
        assert len(first.said) == 1
    async with running(Rig(earlier=first.commits)) as successor:
        await successor.agent("nora", 11)
        await wait_all_tasks_blocked()
        assert len(successor.said) == 1
        await successor.take(pressed(3, GIVE, 4711))  # the first question, if it is there
        assert successor.rows()[0] == (1, None, None)
        await successor.take(pressed(4, GIVE, asked(successor)[0]))
        assert successor.got == [("nora", 1), ("nora", 2)]


async def test_where_nobody_can_be_asked_the_next_message_asks_again(rig: Rig) -> None:
    """The thread was closed; nothing is lost meanwhile."""
    rig.telegram.results["sendMessage"] = ApiError("sendMessage", 400, "Bad Request: TOPIC_CLOSED")
    await rig.take(message(1, thread=PLACE))
    assert rig.rows() == [(1, None, None)]
    rig.telegram.results.clear()
    await rig.take(message(2, thread=PLACE))
    assert "2 messages wait" in rig.said[-1]


@define(eq=False)
class Deleting(FakeTelegram):
    """Telegram in which people delete threads and messages."""

    gone: set[int] = field(factory=set)

    async def call(
        self, method: str, params: Mapping[str, Any] | None = None, _chat: int | None = None, **more: Any
    ) -> Any:
        made = await super().call(method, params, _chat, **more)
        if {(params or {}).get("message_thread_id"), (params or {}).get("message_id")} & self.gone:
            what = "message to edit not found" if method.startswith("edit") else "message thread not found"
            raise ApiError(method, 400, f"Bad Request: {what}")
        return made


async def test_what_waits_in_a_thread_that_was_deleted_is_asked_about_in_the_main_chat() -> None:
    """At once where the question finds the thread gone, else when somebody asks for the status; and only once."""
    telegram = Deleting()
    async with running(Rig(telegram=telegram)) as rig:
        await rig.agent("nora", 11)
        telegram.gone.add(98)
        await rig.take(message(1, thread=98))
        main = telegram.made("sendMessage")[-1]
        assert "message_thread_id" not in main
        assert main["text"] == "1 message waits: who shall get it?"
        assert buttons(main) == ["nora", "Keep for later", "Ignore"]
        await rig.take(message(2, thread=PLACE))
        telegram.gone |= {PLACE, telegram._next}
        await rig.take(message(3, thread=None, text="/status"))
        await rig.take(message(4, thread=None, text="/status"))
        questions = [one for one in telegram.made("sendMessage") if "who shall" in one["text"]]
        assert [one.get("message_thread_id") for one in questions] == [98, None, PLACE, PLACE]  # the main chat's stands
        press = {
            "id": "q5", "from": {"id": OWNER}, "data": data_of(Press(MAIN, "give", mark_of("nora"))),
            "message": {"message_id": 102, "chat": {"id": CHAT, "type": "supergroup"}},
        }  # fmt: skip
        await rig.take({"update_id": 5, "callback_query": press})
        assert rig.got == [("nora", 1), ("nora", 2)]
        assert telegram.made("editMessageText")[-1]["text"] == "Given to nora: 2 messages."
        assert rig.term.sharing.choice_of(OWNER) is None


async def test_a_question_that_a_person_deleted_is_asked_anew_with_the_next_status() -> None:
    telegram = Deleting()
    async with running(Rig(telegram=telegram)) as rig:
        await rig.agent("nora", 11)
        await rig.take(message(1, thread=PLACE))
        await rig.take(message(2, thread=None, text="/status"))
        assert len([text for text in rig.said if "who shall" in text]) == 1
        telegram.gone.add(asked(rig)[0])
        await rig.take(message(3, thread=None, text="/status"))
        questions = [one for one in telegram.made("sendMessage") if "who shall" in one["text"]]
        assert [one["message_thread_id"] for one in questions] == [PLACE, PLACE]


async def test_a_thread_that_gets_an_owner_takes_what_waits_with_it(rig: Rig) -> None:
    """However that came about: by hand, or because its agent came back with it."""
    await rig.take(message(1, thread=PLACE))
    await rig.agent("paul", PLACE)
    await wait_all_tasks_blocked()
    assert rig.got == [("paul", 1)]
    await rig.take(pressed(2, GIVE, asked(rig)[0]))
    assert rig.got == [("paul", 1)]


@pytest.mark.parametrize(("first", "second"), [(PLACE, PLACE - 1), (PLACE - 1, PLACE)])
async def test_a_thread_that_gets_an_owner_while_another_s_messages_are_given_is_not_overlooked(
    rig: Rig, first: int, second: int
) -> None:
    """What waits there would lie until any thread changes again."""
    await rig.take(message(1, thread=first), message(2, thread=second))
    await rig.agent("paul", first)
    rig.commits.hold()
    await wait_all_tasks_blocked()  # what waits in the first thread is being given
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.agent, "ruth", second)
        await wait_all_tasks_blocked()
        await rig.commits.release(newest_first=True)
    await wait_all_tasks_blocked()
    assert sorted(rig.got) == [("paul", 1), ("ruth", 2)]


async def test_what_waits_in_a_thread_is_given_once_a_full_disk_has_room_again(
    rig: Rig, autojump_clock: MockClock
) -> None:
    await rig.take(message(1, thread=PLACE))
    await rig.agent("paul", PLACE)
    rig.commits.fault = StateError("the disk is full")
    await wait_all_tasks_blocked()
    rig.commits.fault = None
    assert rig.got == []
    await trio.sleep(AGAIN + 1)
    assert rig.got == [("paul", 1)]


async def test_an_edit_changes_a_message_that_still_waits(rig: Rig) -> None:
    """In the batch of the message itself, and later."""
    edits = [{"update_id": n, "edited_message": message(1, thread=PLACE, text=f"edit {n}")["message"]} for n in (2, 4)]
    await rig.take(message(1, thread=PLACE), edits[0])
    (body,) = rig.commits.db.execute("SELECT body FROM updates").fetchone()
    assert loads(body)["message"]["text"] == "edit 2"
    await rig.take(edits[1])
    await rig.take(pressed(5, GIVE, asked(rig)[0]))
    (envelope,) = rig.envelopes
    assert envelope.message["text"] == "edit 4"  # type: ignore[attr-defined]
    assert rig.got == [("nora", 1)]


async def test_an_edit_at_the_moment_of_the_choice_gets_to_whoever_was_chosen(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an update of its own: the message is on its way as it was."""
    await rig.take(message(1, thread=PLACE, text="old"))
    unowned, question = LobbyJournal.unowned, asked(rig)[0]

    async def look_while_a_person_chooses(self: LobbyJournal, chat: int, number: int) -> StoredUpdate | None:
        found = await unowned(self, chat, number)
        await rig.take(pressed(3, GIVE, question))
        return found

    monkeypatch.setattr(LobbyJournal, "unowned", look_while_a_person_chooses)
    await rig.take({"update_id": 2, "edited_message": message(1, thread=PLACE, text="new")["message"]})
    assert rig.got == [("nora", 1), ("nora", 2)]
    assert [one.message["text"] for one in rig.envelopes] == ["old", "new"]  # type: ignore[attr-defined]


async def test_a_full_disk_at_the_press_leaves_everything_as_it_was(rig: Rig) -> None:
    await rig.take(message(1, thread=PLACE))
    press = pressed(2, GIVE, asked(rig)[0])
    await rig.intake.commit([press], 3)
    rig.commits.fault = StateError("the disk is full")
    await wait_all_tasks_blocked()
    rig.commits.fault = None
    assert rig.got == []
    assert rig.rows()[0] == (1, None, None)
    await rig.take(pressed(3, GIVE, asked(rig)[0]))
    assert rig.got == [("nora", 1)]
