"""Questions and buttons with meaning: a follower's side over a leader's desk, without sockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from attrs import define, evolve, field
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.core.buttons import BUTTON_DATA, callback_data
from telegram_bus.core.codec import decode, encode
from telegram_bus.core.envelopes import Ack, Envelope, Target
from telegram_bus.core.errors import ApiError, Expired, NotSent, RequestRefused, StateError
from telegram_bus.core.extensions import ButtonsKeep, OwnRequest, QuestionWait
from telegram_bus.core.permissions import Allowed
from telegram_bus.core.registry import Member
from telegram_bus.followers.questions import Answer, Questions
from telegram_bus.store import Retention
from tests.effort import examples
from tests.fakes import CHAT, OWNER, admit, message, registration
from tests.roles.term_rig import Rig, running
from tests.roles.test_buttons import answers, press

DAY = 24 * 3600 * 1000


@define(eq=False)
class Seat:
    """A follower's way to the leader of the moment: what it asks is written, read and done."""

    rig: Rig
    key: str
    instance: int = 1
    calls: dict[str | None, Any] = field(factory=dict)
    asked: list[OwnRequest] = field(factory=list)
    killed: bool = False

    @property
    def seat(self) -> Any:
        return self

    @property
    def instance_id(self) -> str:
        return f"{self.key}-{self.instance}"

    def come(self) -> None:
        """Register, also anew."""
        old = self.rig.term.registry.by_key(self.key)
        if old is not None:
            self.rig.term.registry.remove(old)
        threads = {"nora": 11, "otto": 12}
        admit(self.rig.term.registry, self.key, thread=threads[self.key], instance=self.instance_id)
        self.rig.term.keyboards.note_members(list(self.rig.term.registry))

    @property
    def member(self) -> Member:
        member = self.rig.term.registry.by_key(self.key)
        assert member is not None
        return member

    async def ask(self, build: Callable[[dict[str, Any]], Envelope]) -> Ack:
        fields = {"request_id": "r", "instance_id": self.instance_id, "sent_at_ms": 1}
        request = decode(encode(build(fields)))
        assert isinstance(request, OwnRequest)
        self.asked.append(request)
        await trio.lowlevel.checkpoint()
        if self.killed and isinstance(request, QuestionWait) and request.withdrawn:
            raise NotSent("a killed process says nothing any more")
        return Ack(request_id="r", ok=True, result=await self.rig.term.serve(self.member, request))

    async def make(self, method: str, params: dict[str, Any], call_id: str | None) -> Any:
        """Calls of a name are made once, as the leader has it."""
        await trio.lowlevel.checkpoint()
        if call_id not in self.calls:
            sent = await self.rig.telegram.call(method, {"chat_id": CHAT, **params})
            await self.rig.term.store.record_messages(self.key, [(CHAT, sent["message_id"], 11)], 1)
            self.calls[call_id] = sent
        return self.calls[call_id]

    def questions(self) -> Questions:
        """Those of a new process."""
        return Questions(member=self, make=self.make)  # type: ignore[arg-type]


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with running(Rig()) as rig:
        await rig.agent("nora", 11, here=False)
        await rig.agent("otto", 12, here=False)
        yield rig


@pytest.fixture
async def nora(rig: Rig) -> Seat:
    seat = Seat(rig, "nora")
    seat.come()
    return seat


async def ask(
    seat: Seat, questions: Questions | None = None, *, into: list[Any] | None = None, **options: Any
) -> Answer | None:
    """Asks, and notes what comes of it."""
    options = {"once": None, "allow_text": False, "users": None, **options}
    into = [] if into is None else into
    try:
        answer = await (questions or seat.questions()).ask("Deploy?", options.pop("choices", ["Yes", "No"]), **options)
    except Expired as expired:
        into.append(expired)
        return None
    into.append(answer)
    return answer


def question(rig: Rig, at: int = -1) -> dict[str, Any]:
    """The message that asked."""
    return rig.telegram.made("sendMessage")[at]


def data_of(rig: Rig, label: str, at: int = -1) -> str:
    """What Telegram sends when this button is pressed."""
    rows = question(rig, at)["reply_markup"]["inline_keyboard"]
    return next(str(one["callback_data"]) for row in rows for one in row if one["text"] == label)


def edits(rig: Rig) -> list[str]:
    """What messages were changed to."""
    return [one["text"] for one in rig.telegram.made("editMessageText")]


async def test_a_press_is_the_answer_at_once(rig: Rig, nora: Seat, autojump_clock: MockClock) -> None:
    """The person is told, the message shows it and has no buttons any more, and the program gets no update."""
    got: list[Any] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: ask(nora, choices=[("Yes", {"go": 1}), "No"], into=got))
        await wait_all_tasks_blocked()
        await rig.take(press(1, data_of(rig, "Yes"), message_id=101))
    [answer] = got
    assert answer == "Yes"
    assert (answer.value, answer.number, answer.sender["first_name"]) == ({"go": 1}, 0, "Ann")
    assert answers(rig) == [{"callback_query_id": "q1", "text": "✔ Yes"}]
    assert await rig.term.store.keyboards.open_questions() == []
    assert rig.telegram.made("editMessageText") == [
        {"chat_id": CHAT, "message_id": 101, "text": "Deploy?\n\n✔ Yes — Ann"}
    ]
    assert rig.got == []


async def test_only_the_first_of_two_people_answers(rig: Rig, nora: Seat, autojump_clock: MockClock) -> None:
    """In one batch or in two; the others hear what was chosen."""
    got: list[Any] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: ask(nora, into=got))
        await wait_all_tasks_blocked()
        yes, no = data_of(rig, "Yes"), data_of(rig, "No")
        await rig.take(press(1, no, message_id=101), press(2, yes, message_id=101))
        await rig.take(press(3, yes, message_id=101))
    assert got == ["No"]
    assert [one["text"] for one in answers(rig)] == ["✔ No", "Already chosen: No (Ann)", "Already chosen: No (Ann)"]
    assert len(edits(rig)) == 1


async def test_a_text_that_replies_is_an_answer(rig: Rig, nora: Seat, autojump_clock: MockClock) -> None:
    """Where there are no choices, or text is allowed beside them; any other text is a message."""
    got: list[Any] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: ask(nora, choices=[], into=got))
        await wait_all_tasks_blocked()
        assert "reply_markup" not in question(rig)
        assert "Reply to this message" in question(rig)["text"]
        await rig.take(message(1, text="something else"))
        await rig.take(message(2, text="on Monday", reply_to_message={"message_id": 101}))
    assert got == ["on Monday"]
    assert (got[0].value, got[0].number) == ("on Monday", None)
    assert edits(rig) == ["Deploy?\n\n✔ on Monday — O"]
    assert rig.got == [("nora", 1)]
    await rig.take(message(3, text="and more", reply_to_message={"message_id": 101}))
    assert rig.got == [("nora", 1), ("nora", 3)]


async def test_a_question_with_choices_only_takes_no_text(rig: Rig, nora: Seat, autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: ask(nora))
        await wait_all_tasks_blocked()
        await rig.take(message(2, text="hm", reply_to_message={"message_id": 101}))
        assert rig.got == [("nora", 2)]
        await rig.take(press(1, data_of(rig, "Yes"), message_id=101))


async def test_many_questions_wait_over_one_request(rig: Rig, nora: Seat, autojump_clock: MockClock) -> None:
    """Each gets its own answer, in whatever order they come, also hours later."""
    got: dict[str, list[Any]] = {"a": [], "b": [], "c": []}
    questions = nora.questions()
    async with trio.open_nursery() as nursery:
        for name, into in got.items():
            nursery.start_soon(partial(ask, nora, questions, choices=[name], into=into))
            await wait_all_tasks_blocked()
        await trio.sleep(10_000)
        waits = [one for one in nora.asked if isinstance(one, QuestionWait)]
        assert len(waits[-1].questions) == 3
        assert len(waits) < 600
        for number, name in enumerate("cab", 1):
            await rig.take(press(number, data_of(rig, name, "abc".index(name)), message_id=101 + "abc".index(name)))
    assert got == {"a": ["a"], "b": ["b"], "c": ["c"]}


async def test_a_question_that_nobody_waits_for_any_more_is_taken_back(
    rig: Rig, nora: Seat, autojump_clock: MockClock
) -> None:
    """Its message says so, and a late press hears it."""
    with trio.move_on_after(5):
        await ask(nora)
    await wait_all_tasks_blocked()
    assert edits(rig) == ["Deploy?\n\n⌛ not needed any more"]
    assert await rig.term.store.keyboards.open_questions() == []
    await rig.take(press(1, data_of(rig, "Yes"), message_id=101))
    assert answers(rig)[-1]["text"] == "This has expired: not needed any more"
    assert rig.got == []


# -- scenario 38: the process that asked is gone when the answer comes


async def test_who_asks_again_under_the_same_name_gets_the_answer_that_came_meanwhile(
    rig: Rig, nora: Seat, autojump_clock: MockClock
) -> None:
    """One message, whatever the words are by then."""
    with trio.move_on_after(5):
        await ask(nora, once="deploy")
    rig.term.registry.remove(nora.member)
    await rig.take(press(1, data_of(rig, "Yes"), message_id=101))
    assert answers(rig)[-1]["text"] == "✔ Yes — nora is away; it is kept."
    nora.instance = 2
    nora.come()
    assert await ask(nora, once="deploy", choices=["Ja", "Nein"]) == "Yes"
    assert await ask(nora, once="deploy") == "Yes"
    assert len(rig.telegram.made("sendMessage")) == 1
    assert edits(rig) == ["Deploy?\n\n✔ Yes — Ann"]


async def test_who_asks_again_before_the_answer_attaches_to_the_same_question(
    rig: Rig, nora: Seat, autojump_clock: MockClock
) -> None:
    """Also where it died before it knew that the message had gone out."""
    with trio.move_on_after(5):
        await ask(nora, once="deploy")
    nora.instance = 2
    nora.come()
    got: list[Any] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: ask(nora, once="deploy", into=got))
        await trio.sleep(3600)
        await rig.take(press(1, data_of(rig, "No"), message_id=101))
    assert got == ["No"]
    assert len(rig.telegram.made("sendMessage")) == 1


async def test_an_answer_for_one_process_is_not_the_next_ones(rig: Rig, nora: Seat, autojump_clock: MockClock) -> None:
    """Feature 45: the question of a process without a name for it expires when another takes its place."""
    with trio.move_on_after(5):
        nora.killed = True  # when the time is over
        await ask(nora)
    nora.instance = 2
    nora.come()
    await wait_all_tasks_blocked()
    assert edits(rig) == ["Deploy?\n\n⌛ nora was started anew since it asked this"]
    await rig.take(press(1, data_of(rig, "Yes"), message_id=101))
    assert answers(rig)[-1]["text"].startswith("This has expired")


async def test_an_answer_that_its_process_never_got_is_said_to_be_lost(
    rig: Rig, nora: Seat, autojump_clock: MockClock
) -> None:
    """Nobody shall believe that it was heard."""
    with trio.move_on_after(5):
        nora.killed = True  # when the time is over
        await ask(nora)
    rig.term.registry.remove(nora.member)
    await rig.take(press(1, data_of(rig, "Yes"), message_id=101))
    nora.instance = 2
    nora.come()
    await wait_all_tasks_blocked()
    assert edits(rig) == [
        "Deploy?\n\n✔ Yes — Ann",
        "Deploy?\n\n✔ Yes — Ann\n⌛ nora was started anew and has not got this answer",
    ]


async def test_nobody_else_gets_the_answer(rig: Rig, nora: Seat, autojump_clock: MockClock) -> None:
    """Neither another follower that knows the question's id, nor another process of the same name."""
    got: list[Any] = []
    otto = Seat(rig, "otto")
    otto.come()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: ask(nora, into=got))
        await wait_all_tasks_blocked()
        keep = next(one for one in nora.asked if isinstance(one, ButtonsKeep))
        ids = (keep.keyboard_id,)
        with pytest.raises(RequestRefused, match="another follower"):
            await otto.ask(lambda fields: ButtonsKeep(**fields, keyboard_id=ids[0], content=keep.content))
        stolen = await otto.ask(lambda fields: QuestionWait(**fields, questions=ids, withdrawn=ids, wait_ms=5))
        assert "expired" in stolen.result["answers"][ids[0]]
        await rig.take(press(1, data_of(rig, "Yes"), message_id=101))
    assert got == ["Yes"]
    again = await otto.ask(lambda fields: QuestionWait(**fields, questions=ids))
    assert "expired" in again.result["answers"][ids[0]]


@pytest.mark.parametrize("newest_first", [False, True])
async def test_a_press_at_the_moment_of_the_withdrawal_answers_nothing(
    rig: Rig, nora: Seat, autojump_clock: MockClock, newest_first: bool
) -> None:
    """The first end holds, for people as in the store, whoever hears of it first."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(ask, nora, into=[]))
        await wait_all_tasks_blocked()
        keep = next(one for one in nora.asked if isinstance(one, ButtonsKeep))
        yes, gone = data_of(rig, "Yes"), (keep.keyboard_id,)
        rig.commits.hold()
        nursery.start_soon(nora.ask, lambda fields: QuestionWait(**fields, questions=(), withdrawn=gone, wait_ms=0))
        await wait_all_tasks_blocked()
        nursery.start_soon(rig.intake.commit, [press(1, yes, message_id=101)], 2)
        await wait_all_tasks_blocked()
        await rig.commits.release(newest_first=newest_first)
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel("the test is over")
    assert edits(rig)[-1] == "Deploy?\n\n⌛ not needed any more"


async def test_a_question_outlives_its_leader(rig: Rig, nora: Seat, autojump_clock: MockClock) -> None:
    """Also the answer that the leader could not show any more."""
    with trio.move_on_after(5):
        await ask(nora, once="deploy")
    rig.telegram.results["editMessageText"] = NotSent("the network is gone")
    first, second = data_of(rig, "Yes"), data_of(rig, "No")
    await rig.take(press(1, first, message_id=101))
    successor = Rig(earlier=rig.commits)
    async with running(successor):
        nora.rig = successor
        nora.come()
        await wait_all_tasks_blocked()
        assert edits(successor) == ["Deploy?\n\n✔ Yes — Ann"]
        assert await ask(nora, once="deploy") == "Yes"
        await successor.take(press(2, second, message_id=101))
        assert answers(successor)[-1]["text"] == "Already chosen: Yes (Ann)"


async def test_a_question_that_is_as_old_as_the_owners_of_messages_has_expired(
    rig: Rig, nora: Seat, autojump_clock: MockClock
) -> None:
    """After 90 days: who waits hears it, and so does who presses."""
    got: list[Any] = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: ask(nora, once="deploy", into=got))
        await wait_all_tasks_blocked()
        now = rig.term.now_ms()
        await rig.term.store.purge(now + 89 * DAY)
        await rig.term.keyboards.forget_gone()
        await wait_all_tasks_blocked()
        assert got == []
        await rig.take(press(1, callback_data("gone", 0), message_id=101))
        assert answers(rig)[-1]["text"] == "This button has expired; ask its agent anew."
        await rig.term.store.purge(now + 91 * DAY)
        await rig.term.keyboards.forget_gone()
    assert isinstance(got[0], Expired)


async def test_a_question_whose_message_cannot_be_sent_is_the_programs_fault_to_see(
    rig: Rig, nora: Seat, autojump_clock: MockClock
) -> None:
    rig.telegram.results["sendMessage"] = ApiError("sendMessage", 400, "Bad Request: TOPIC_CLOSED")
    with pytest.raises(ApiError):
        await ask(nora)
    await wait_all_tasks_blocked()
    assert edits(rig) == []
    assert await rig.term.store.keyboards.open_questions() == []


# -- scenario 74: the group becomes a supergroup while a question is open

SUPERGROUP = -1009876


@asynccontextmanager
async def sending(rig: Rig) -> AsyncIterator[None]:
    """What sends in this leader."""
    async with trio.open_nursery() as nursery:
        await nursery.start(rig.term.calls.sender.run)
        await nursery.start(rig.term.calls.outbox.run)
        yield
        nursery.cancel_scope.cancel("the test is over")


class Sender(Seat):
    """A seat whose calls its leader makes as real ones."""

    async def make(self, method: str, params: dict[str, Any], call_id: str | None) -> Any:
        target = self.member.target
        assert target is not None
        call = Allowed(method="call", args=(method, {"chat_id": target.chat_id, **params}))
        return await self.rig.term.call_api(self.member, call, "r", call_id)

    def come(self, chat: int = CHAT) -> None:
        old = self.rig.term.registry.by_key(self.key)
        if old is not None:
            self.rig.term.registry.remove(old)
        told = evolve(registration(self.key, instance=self.instance_id), target=Target(chat_id=chat))
        self.rig.term.registry.admit(told, None, now_ms=1)
        self.rig.term.keyboards.note_members(list(self.rig.term.registry))

    def move(self) -> None:
        """Its leader works in the supergroup from now on, and it registers again."""
        rules = evolve(self.rig.lobby.rules(), chat_id=SUPERGROUP)
        self.rig.lobby.rules = self.rig.intake.rules = lambda: rules
        self.come(SUPERGROUP)


def there(update: dict[str, Any]) -> dict[str, Any]:
    """A press in the supergroup."""
    update["callback_query"]["message"]["chat"] = {"id": SUPERGROUP, "type": "supergroup"}
    return update


@pytest.mark.parametrize("dies", [False, True])
async def test_scenario_74_a_question_is_asked_again_in_the_supergroup_and_its_answer_counts(
    autojump_clock: MockClock, *, dies: bool
) -> None:
    """Once, also where the leader dies before it could, and where its asker was started anew meanwhile."""
    async with running(Rig()) as rig, sending(rig):
        nora = Sender(rig, "nora")
        nora.come()
        with trio.move_on_after(5):
            await ask(nora, once="deploy")
        if dies:
            rig.term.keyboards.ask = stuck
        await rig.term.keyboards.moved(CHAT, SUPERGROUP)
        await wait_all_tasks_blocked()
        first = question(rig, 0)
        if dies:
            successor = Rig(rig.telegram, earlier=rig.commits)
            async with running(successor), sending(successor):
                nora.rig = successor
                await answered_there(nora, first)
        else:
            await answered_there(nora, first)


async def stuck(*_: Any) -> None:
    await trio.sleep_forever()


async def answered_there(nora: Sender, first: dict[str, Any]) -> None:
    rig, got = nora.rig, list[Any]()
    nora.instance = 2
    nora.move()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: ask(nora, once="deploy", into=got))
        await trio.sleep(5)
        asked = rig.telegram.made("sendMessage")
        assert asked == [first, {**first, "chat_id": SUPERGROUP}]
        place = 100 + len(rig.telegram.calls)
        await rig.take(there(press(1, data_of(rig, "Yes"), message_id=place)))
    assert got == ["Yes"]
    assert rig.telegram.made("editMessageText") == [
        {"chat_id": SUPERGROUP, "message_id": place, "text": "Deploy?\n\n✔ Yes — Ann"}
    ]
    assert await rig.term.store.keyboards.to_ask_again() == []


async def test_scenario_74_a_reply_in_the_supergroup_is_an_answer_and_what_was_answered_is_not_asked(
    autojump_clock: MockClock,
) -> None:
    async with running(Rig()) as rig, sending(rig):
        nora, got = Sender(rig, "nora"), list[Any]()
        nora.come()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: ask(nora, into=got))
            await trio.sleep(2)
            await rig.take(press(1, data_of(rig, "No"), message_id=101))
            assert got == ["No"]
            nursery.start_soon(lambda: ask(nora, choices=[], into=got))
            await trio.sleep(2)
            await rig.term.keyboards.moved(CHAT, SUPERGROUP)
            nora.move()
            await trio.sleep(2)
            assert [one["chat_id"] for one in rig.telegram.made("sendMessage")] == [CHAT, CHAT, SUPERGROUP]
            reply = {"message_id": 100 + len(rig.telegram.calls)}
            where = {"id": SUPERGROUP, "type": "supergroup"}
            await rig.take(message(2, thread=None, text="on Monday", reply_to_message=reply, chat=where))
        assert got == ["No", "on Monday"]


async def test_a_question_that_is_taken_back_on_its_way_into_the_supergroup_says_so_there(
    autojump_clock: MockClock,
) -> None:
    async with running(Rig()) as rig, sending(rig):
        nora = Sender(rig, "nora")
        nora.come()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, nora)
            await trio.sleep(5)
            rig.telegram.gate = trio.Event()
            await rig.term.keyboards.moved(CHAT, SUPERGROUP)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel("nobody waits")
        rig.telegram.gate.set()
        await trio.sleep(5)
        last = rig.telegram.made("editMessageText")[-1]
        assert (last["chat_id"], last["text"]) == (SUPERGROUP, "Deploy?\n\n⌛ not needed any more")


@pytest.mark.parametrize("text", ["", "  ", "x" * 3_001])
async def test_a_question_has_a_length(nora: Seat, text: str) -> None:
    with pytest.raises(ValueError, match="3000 characters"):
        await nora.questions().ask(text, ["a"], once=None, allow_text=False, users=None)


# -- buttons of messages that ask nothing


async def keep(seat: Seat, ident: str = "k", **content: Any) -> None:
    whole = {"buttons": [["Go", {"job": [1]}], ["Stop", "s"]], **content}
    await seat.ask(lambda fields: ButtonsKeep(**fields, keyboard_id=ident, content=whole))


async def test_a_press_of_a_kept_button_brings_its_data(rig: Rig, nora: Seat, autojump_clock: MockClock) -> None:
    """To who sent the message; as often as it is pressed."""
    await keep(nora)
    await rig.take(press(1, callback_data("k", 0), message_id=101, thread=None))
    await rig.take(press(2, callback_data("k", 0), message_id=101, thread=12))
    assert rig.got == [("nora", 1), ("nora", 2)]
    bodies = [envelope.query for envelope in rig.envelopes]  # type: ignore[attr-defined]
    assert [body[BUTTON_DATA] for body in bodies] == [{"job": [1]}] * 2
    assert rig.term.owned_by(nora.member).callback("q1")  # which it may answer


async def test_a_one_time_button_reaches_its_owner_once(rig: Rig, nora: Seat, autojump_clock: MockClock) -> None:
    """Whoever comes second hears what was chosen; so after a succession."""
    await keep(nora, one_time=True)
    await rig.take(press(1, callback_data("k", 1), message_id=101), press(2, callback_data("k", 0), message_id=101))
    assert rig.got == [("nora", 1)]
    assert [one["text"] for one in answers(rig)] == ["Already chosen: Stop (Ann)"]
    successor = Rig(earlier=rig.commits)
    async with running(successor):
        await successor.take(press(3, callback_data("k", 0), message_id=101))
        assert answers(successor)[-1]["text"] == "Already chosen: Stop (Ann)"


async def test_a_press_that_comes_again_is_no_second_one(rig: Rig, nora: Seat, autojump_clock: MockClock) -> None:
    """Scenario 26: Telegram repeats a batch; the person is not told that somebody was faster."""
    await keep(nora, one_time=True)
    await rig.take(press(1, callback_data("k", 1), message_id=101))
    await rig.take(press(1, callback_data("k", 1), message_id=101))
    assert rig.got == [("nora", 1)]
    assert answers(rig) == []


async def test_the_key_of_a_button_is_worth_nothing_under_another_followers_message(
    rig: Rig, nora: Seat, autojump_clock: MockClock
) -> None:
    await keep(nora)
    await rig.term.store.record_messages("otto", [(CHAT, 101, 12)], 1)
    await rig.take(press(1, callback_data("k", 0), message_id=101, thread=12))
    assert answers(rig)[-1]["text"] == "This button is not valid here."
    assert rig.got == []


async def test_what_is_not_on_the_disk_has_not_happened(rig: Rig, nora: Seat, autojump_clock: MockClock) -> None:
    """A batch that could not be stored comes again, and the press in it counts then."""
    await keep(nora, one_time=True)
    rig.commits.hold()
    with trio.move_on_after(1):
        await rig.intake.commit([press(1, callback_data("k", 1), message_id=101)], 2)
    rig.commits.held = None
    rig.commits.fault = StateError("the disk is full")
    with pytest.raises(StateError):
        await rig.intake.commit([press(1, callback_data("k", 1), message_id=101)], 2)
    rig.commits.fault = None
    assert rig.got == []
    await rig.take(press(1, callback_data("k", 1), message_id=101))
    assert rig.got == [("nora", 1)]


async def test_retention_is_that_of_the_owners_of_messages(rig: Rig, nora: Seat, autojump_clock: MockClock) -> None:
    await keep(nora)
    await rig.term.store.purge(rig.term.now_ms() + 1_000, Retention(owners=0))
    await rig.take(press(1, callback_data("k", 0), message_id=101))
    assert answers(rig)[-1]["text"] == "This button has expired; ask its agent anew."


async def test_only_those_who_may_press_do(rig: Rig, nora: Seat, autojump_clock: MockClock) -> None:
    await keep(nora, users=[OWNER + 1])
    await rig.take(press(1, callback_data("k", 0), message_id=101))
    assert answers(rig)[-1]["text"] == "This button is for somebody else."
    assert rig.got == []


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from(["press", "press", "other", "again", "full", "succeed"]), min_size=1, max_size=12))
def test_whatever_happens_a_one_time_button_has_one_effect(doings: list[str]) -> None:
    """Presses of two buttons, batches that come again, a disk that was full, and successions, in any order."""
    trio.run(_one_effect, doings, clock=MockClock(autojump_threshold=0))


async def _one_effect(doings: list[str]) -> None:
    rig, update, delivered = Rig(), 0, []
    newest: dict[str, Any] | None = None
    pressed: list[tuple[int, str]] = []
    while True:
        async with running(rig):
            await rig.agent("nora", 11)
            seat = Seat(rig, "nora")
            await keep(seat, one_time=True)
            while doings and doings[0] != "succeed":
                doing = doings.pop(0)
                if doing == "full":
                    rig.commits.fault = StateError("the disk is full")
                    with pytest.raises(StateError):
                        await rig.intake.commit([press(update + 1, callback_data("k", 0), message_id=101)], 1)
                    rig.commits.fault = None
                    continue
                if doing != "again" or newest is None:
                    update += 1
                    number = int(doing == "other")
                    newest = press(update, callback_data("k", number), message_id=101)
                    pressed.append((update, ["Go", "Stop"][number]))
                await rig.take(newest)
            await trio.sleep(2)
            delivered += [source for _, source in rig.got]
        if not doings:
            break
        doings.pop(0)
        rig = Rig(earlier=rig.commits)
    assert delivered == [number for number, _ in pressed[:1]]
    kept = await rig.term.store.keyboards.find("k")
    assert kept is not None
    assert (kept.answer or {}).get("label") == (pressed[0][1] if pressed else None)
