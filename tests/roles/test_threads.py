"""Which follower has which thread: found again without asking Telegram, made once, and nobody's twice."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
from attrs import define, field
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.core.bindings import Binding, Changes, Creation
from telegram_bus.core.envelopes import Target
from telegram_bus.core.errors import ApiError, CommitUnknown, NotSent, RequestRefused, StateError
from telegram_bus.core.permissions import OWN, Allowed, Caller, Denied, judge
from telegram_bus.core.registry import Provisioned
from telegram_bus.core.threads import PALETTE
from telegram_bus.core.updates import describe
from telegram_bus.roles.threads import Threads
from telegram_bus.store import Store
from tests.fakes import BOT, CHAT, OWNER, FakeTelegram, InlineCommits, memory_store, message, registration


@define(eq=False)
class Rig:
    """The threads of a chat over a store in memory."""

    telegram: FakeTelegram = field(factory=FakeTelegram)
    chat_id: int = CHAT
    earlier: InlineCommits | None = None
    commits: InlineCommits = field(init=False)
    threads: Threads = field(init=False)

    def __attrs_post_init__(self) -> None:
        store, self.commits = memory_store(None if self.earlier is None else self.earlier.db)
        self.threads = Threads(store=store, chat_id=self.chat_id, call=self.telegram.call, now_ms=lambda: 9)

    async def provide(self, key: str, name: str | None = None, thread: int | None = None) -> Provisioned:
        return await self.threads.provide(registration(key, thread_name=name, thread=thread))

    async def stored(self) -> list[Binding]:
        return [row for row in await self.threads.store.threads_kept() if isinstance(row, Binding)]

    async def successor(self, chat_id: int | None = None) -> Rig:
        """The threads of the next leader, with the same store."""
        rig = Rig(self.telegram, chat_id or self.chat_id, self.commits)
        await rig.threads.load()
        return rig

    @property
    def made(self) -> list[str]:
        """The names of the topics that were created."""
        return [params["name"] for params in self.telegram.made("createForumTopic")]


@pytest.fixture
def rig() -> Rig:
    return Rig()


async def test_a_new_follower_gets_a_thread_with_the_name_it_wants(rig: Rig) -> None:
    """Which is its own from then on."""
    given = await rig.provide("a", "Nora")
    assert given == Provisioned(target=Target(chat_id=CHAT, thread_id=101), thread_name="Nora")
    assert rig.made == ["Nora"]
    assert rig.threads.of_thread(CHAT, 101) == "a"
    assert rig.threads.of_thread(CHAT + 1, 101) is None
    assert rig.threads.of_key("a") == Binding("a", CHAT, 101, "Nora", 9, holder="a:1")
    assert await rig.stored() == list(rig.threads.all())


async def test_a_known_follower_gets_its_thread_back_without_a_call(rig: Rig) -> None:
    """From this leader and from the next, whatever it is called by then."""
    first = await rig.provide("a", "Nora")
    assert await rig.provide("a", "Nora 2") == first
    successor = await rig.successor()
    assert await successor.provide("a") == first
    assert successor.threads.of_thread(CHAT, 101) == "a"
    assert len(rig.telegram.calls) == 1


async def test_a_thread_that_nobody_has_is_taken_over(rig: Rig) -> None:
    """The follower had it from a leader whose store is gone."""
    given = await rig.provide("a", "Nora", thread=55)
    assert given == Provisioned(target=Target(chat_id=CHAT, thread_id=55), thread_name="Nora")
    assert rig.telegram.calls == []
    assert [binding.thread_id for binding in await rig.stored()] == [55]


async def test_anothers_thread_is_not_taken_over(rig: Rig) -> None:
    """Who names it gets one of its own."""
    await rig.provide("a", "Nora")
    given = await rig.provide("b", "Otto", thread=101)
    assert given.target.thread_id == 102
    assert rig.threads.of_thread(CHAT, 101) == "a"


async def test_two_that_name_the_same_thread_at_once_do_not_both_get_it(rig: Rig) -> None:
    """Nor the same name."""
    given: list[Provisioned] = []

    async def provide(key: str) -> None:
        given.append(await rig.provide(key, "Nora", thread=55))

    rig.commits.hold()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(provide, "a")
        await wait_all_tasks_blocked()
        nursery.start_soon(provide, "b")
        await wait_all_tasks_blocked()
        await rig.commits.release()
    assert sorted(one.target.thread_id or 0 for one in given) == [55, 101]
    assert sorted(one.thread_name or "" for one in given) == ["Nora", "Nora 2"]
    assert {b.key: b.thread_id for b in await rig.stored()} == {b.key: b.thread_id for b in rig.threads.all()}


@pytest.mark.parametrize(
    "target", [Target(chat_id=CHAT), Target(chat_id=5, thread_id=55), Target(chat_id=CHAT, thread_id=1.5)]
)
async def test_what_is_no_thread_of_this_chat_is_not_taken_over(rig: Rig, target: Target) -> None:
    """Another chat's, or none."""
    given = await rig.threads.provide(attrs.evolve(registration("a", thread_name="Nora"), target=target))
    assert given.target.thread_id == 101


async def test_a_name_that_is_taken_is_numbered(rig: Rig) -> None:
    """Whatever its case, and whoever comes first."""
    names = [(await rig.provide(key, name)).thread_name for key, name in (("a", "Nora"), ("b", "nora"), ("c", "Nora"))]
    assert names == ["Nora", "nora 2", "Nora 3"]


async def test_who_brings_no_name_gets_one_of_the_palette(rig: Rig) -> None:
    """The same key the same one, as long as it is free."""
    names = {key: (await rig.provide(key)).thread_name for key in ("a", "b", "c")}
    assert len(set(names.values())) == 3
    assert set(names.values()) <= set(PALETTE)
    assert (await Rig().provide("a")).thread_name == names["a"]


async def test_the_intention_is_stored_before_telegram_is_asked(rig: Rig) -> None:
    """Another one with that name gets another one meanwhile, and a crash leaves a trace."""
    rig.telegram.gate = trio.Event()
    given: list[Provisioned] = []

    async def provide(key: str) -> None:
        given.append(await rig.provide(key, "Nora"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(provide, "a")
        await wait_all_tasks_blocked()
        assert await rig.threads.store.threads_kept() == [Creation("a", CHAT, "Nora", 9, "a:1")]
        assert rig.made == ["Nora"]
        nursery.start_soon(provide, "b")
        await wait_all_tasks_blocked()
        assert rig.made == ["Nora", "Nora 2"]
        rig.telegram.gate.set()
    assert {one.thread_name for one in given} == {"Nora", "Nora 2"}


async def test_a_thread_is_made_although_its_follower_left_meanwhile(rig: Rig) -> None:
    """It finds it when it comes back."""
    rig.telegram.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.provide, "a", "Nora")
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel("it gave up")
        rig.telegram.gate.set()
    assert (await rig.provide("a")).target.thread_id == 101
    assert rig.made == ["Nora"]


async def looked_for(rig: Rig, nursery: trio.Nursery) -> None:
    """A creation whose answer was lost, and its follower that waits."""
    rig.telegram.results["createForumTopic"] = CommitUnknown("no answer")
    await nursery.start(rig.threads.run)
    with pytest.raises(RequestRefused, match="looked for"):
        await rig.provide("a", "Nora")
    rig.telegram.results.clear()
    assert rig.made == ["Nora"]


def created(thread: int, name: str = "Nora", sender: int = BOT) -> dict[str, Any]:
    """The service message of a topic."""
    topic = {"name": name, "icon_color": 7322096}
    return message(5, thread=thread, sender={"id": sender}, forum_topic_created=topic)


async def test_a_thread_whose_answer_was_lost_is_found_by_its_service_message(
    rig: Rig, autojump_clock: MockClock
) -> None:
    """The first of that name which this bot made and nobody has; no second one is made."""
    async with trio.open_nursery() as nursery:
        await looked_for(rig, nursery)
        await rig.threads.heard([created(70, sender=OWNER), created(71, "Otto"), created(77), created(78)], BOT)
        assert (await rig.provide("a", "Nora")).target.thread_id == 77
        nursery.cancel_scope.cancel("done")
    assert rig.made == ["Nora"]
    assert await rig.threads.store.threads_kept() == list(rig.threads.all())


async def test_who_waits_gets_the_thread_when_its_service_message_comes(rig: Rig, autojump_clock: MockClock) -> None:
    """In the same request, also from a leader that came after the one who asked."""
    await rig.threads.store.note_threads([Creation("a", CHAT, "Nora", 1)])
    successor = await rig.successor()
    given: list[Provisioned] = []

    async def provide() -> None:
        given.append(await successor.provide("a", "Nora"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(provide)
        await wait_all_tasks_blocked()
        await successor.threads.heard([created(77)], BOT)
    assert given[0].target.thread_id == 77
    assert successor.made == []


async def test_after_two_minutes_of_polling_it_is_made_once_more(
    rig: Rig, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Time in which no poll came through does not count, and it is said in the log."""
    serving = False
    rig.threads.serving = lambda: serving
    async with trio.open_nursery() as nursery:
        await looked_for(rig, nursery)
        await trio.sleep(300)
        with pytest.raises(RequestRefused, match=r"looked for \(120 s more\)"):
            await rig.provide("a", "Nora")
        serving = True
        await trio.sleep(117)
        assert "once more" not in caplog.text
        await trio.sleep(5)
        assert "made once more" in caplog.text
        assert (await rig.provide("a", "Nora")).thread_name == "Nora"
        nursery.cancel_scope.cancel("done")
    assert rig.made == ["Nora", "Nora"]


async def test_an_answer_after_its_service_message_changes_nothing(rig: Rig) -> None:
    """Both name the same thread, and polls are often faster."""
    rig.telegram.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(rig.provide, "a", "Nora")
        await wait_all_tasks_blocked()
        await rig.threads.heard([created(101)], BOT)
        assert rig.threads.of_thread(CHAT, 101) == "a"
        rig.telegram.gate.set()
    assert [binding.thread_id for binding in await rig.stored()] == [101]


REMEDIES = [
    ("Bad Request: the chat is not a forum", "Topics in its settings"),
    ("Bad Request: not enough rights to create a topic", "right to manage topics"),
    ("Bad Request: chat not found", "press Start"),
    ("Forbidden: bot was blocked by the user", "unblock the bot"),
    ("Bad Request: BOT_FORUM_CREATE_FORBIDDEN", "Threaded Mode"),
    ("Unauthorized", "@BotFather"),
    ("bad request: THE CHAT IS NOT A FORUM", "Topics in its settings"),
]


@pytest.mark.parametrize(("description", "remedy"), REMEDIES)
async def test_a_refusal_says_what_to_do(rig: Rig, description: str, remedy: str) -> None:
    """In Telegram's words and ours."""
    rig.telegram.results["createForumTopic"] = ApiError("createForumTopic", 400, description)
    with pytest.raises(RequestRefused) as caught:
        await rig.provide("a", "Nora")
    assert description in str(caught.value)
    assert remedy in str(caught.value)


@pytest.mark.parametrize(
    "fault",
    [
        ApiError("createForumTopic", 400, "Bad Request: something new"),
        NotSent("no network"),
        RequestRefused("createForumTopic would have to wait 60 s"),
    ],
)
async def test_a_thread_that_was_surely_not_made_leaves_nothing(rig: Rig, fault: Exception) -> None:
    """Name and key are free again, and the next try may succeed."""
    rig.telegram.results["createForumTopic"] = fault
    with pytest.raises((RequestRefused, NotSent)) as caught:
        await rig.provide("a", "Nora")
    assert str(getattr(fault, "description", fault)) in str(caught.value)
    assert await rig.stored() == []
    assert rig.threads.all() == ()
    rig.telegram.results.clear()
    assert (await rig.provide("b", "Nora")).thread_name == "Nora"


@pytest.mark.parametrize("answer", ["x", {}, {"message_thread_id": "7"}])
async def test_an_answer_that_names_no_thread_is_refused(rig: Rig, answer: object) -> None:
    """A server that is not Telegram's."""
    rig.telegram.results["createForumTopic"] = answer
    with pytest.raises(RequestRefused, match="names no thread"):
        await rig.provide("a", "Nora")


async def test_in_another_chat_a_follower_gets_another_thread(rig: Rig) -> None:
    """The bot was moved; threads and names of the old chat bind nobody."""
    await rig.provide("a", "Nora")
    moved = await rig.successor(chat_id=77)
    assert moved.threads.of_thread(CHAT, 101) is None
    assert moved.threads.of_thread(77, 101) is None
    given = await moved.provide("b", "Nora")
    assert (given.target, given.thread_name) == (Target(chat_id=77, thread_id=102), "Nora")
    assert (await moved.provide("a", "Nora")).thread_name == "Nora 2"
    assert moved.threads.of_key("a") == Binding("a", 77, 103, "Nora 2", 9, holder="a:1")


async def test_a_thread_that_telegram_gives_again_has_one_owner(rig: Rig) -> None:
    """A server that began anew; memory says what the store says."""
    await rig.provide("a", "Nora")
    rig.telegram.results["createForumTopic"] = {"message_thread_id": 101}
    await rig.provide("b", "Otto")
    assert rig.threads.of_thread(CHAT, 101) == "b"
    assert await rig.stored() == list(rig.threads.all())
    rig.telegram.results.clear()
    assert (await rig.provide("a", "Nora")).target.thread_id == 102


async def test_scenario_52_forty_threads_come_back_without_a_call(rig: Rig) -> None:
    """Whatever is restarted: the leader, the agents, both; a name that an agent brings changes nothing either."""
    for number in range(40):
        await rig.provide(f"agent-{number}", f"Agent {number}")
    before = rig.threads.all()
    rig.telegram.calls.clear()
    for restart in (1, 2):
        rig = await rig.successor()
        async with trio.open_nursery() as nursery:
            await nursery.start(rig.threads.run)
            for number in range(40):
                told = registration(f"agent-{number}", instance=f"agent-{number}:{restart}", thread_name="other")
                await rig.threads.provide(told)
            nursery.cancel_scope.cancel("all are here")
    assert rig.telegram.calls == []
    assert {(one.key, one.thread_id, one.name) for one in rig.threads.all()} == {
        (one.key, one.thread_id, one.name) for one in before
    }


async def test_scenario_58_topics_of_direct_messages_are_no_threads(rig: Rig) -> None:
    """What comes from one belongs to no thread of that number; nothing is sent into one, by followers or by us."""
    given = await rig.provide("a", "Nora")
    thread = given.target.thread_id
    assert isinstance(thread, int)
    direct = message(1, thread=None, direct_messages_topic={"topic_id": thread}, message_thread_id=thread)
    assert describe(direct).thread_id is None
    body = {"chat_id": CHAT, "message_thread_id": thread, "text": "x"}

    class Nothing:
        def message(self, _chat: object, _message: object, /) -> bool:
            return False

        seen = message

        def callback(self, _query: str, /) -> bool:
            return False

        file = callback

    caller = Caller(target=given.target, owned=Nothing(), is_agent=lambda _: False)
    assert isinstance(judge(OWN, "call", ("sendMessage", body), caller), Allowed)
    for name in ("message_thread_id", "text"):
        wrong = {**body, "direct_messages_topic_id": thread}
        del wrong[name]
        refused = judge(OWN, "call", ("sendMessage", wrong), caller)
        assert isinstance(refused, Denied)
    assert "direct_messages_topic_id" in str(judge(OWN, "call", ("sendMessage", wrong | {"text": "x"}), caller))
    await rig.threads.note(rig.threads.book.closed(thread, closed=True))
    successor = await rig.successor()
    await successor.threads.provide(registration("a", instance="a:2"))
    assert [set(params) & {"direct_messages_topic_id"} for _, params in rig.telegram.calls] == [set(), set()]


async def test_threads_of_a_group_that_became_a_supergroup_are_those_of_the_supergroup(rig: Rig) -> None:
    """With what is being made and what shall go; a second report of the same changes nothing."""
    await rig.provide("a", "Nora")
    book = rig.threads.book
    await rig.threads.note(book.begin("b", "Otto", holder=None, now_ms=1) + book.intend("a", "delete", "it left", 1))
    assert await rig.threads.chat_migrated(CHAT, -100_77)
    assert not await rig.threads.chat_migrated(CHAT, -100_77)
    assert {row.chat_id for row in await rig.threads.store.threads_kept()} == {-100_77}
    assert len(await rig.threads.store.threads_kept()) == 3
    assert rig.threads.of_thread(-100_77, 101) == "a"
    assert rig.threads.of_thread(CHAT, 101) is None
    assert (await rig.provide("a", "Nora")).target == Target(chat_id=-100_77, thread_id=101)


async def test_what_a_full_disk_did_not_take_is_written_with_what_comes_next(rig: Rig) -> None:
    """A service message comes once: what it said must not be lost with the disk's mood."""
    await rig.provide("a", "Nora")
    renamed = {"message": created(101)["message"] | {"forum_topic_edited": {"name": "Nora's"}, "from": {"id": OWNER}}}
    del renamed["message"]["forum_topic_created"]
    rig.commits.fault = StateError("disk full")
    with pytest.raises(StateError):
        await rig.threads.heard([renamed], BOT)
    rig.commits.fault = None
    await rig.threads.heard([renamed], BOT)
    assert [binding.name for binding in await rig.stored()] == ["Nora's"]


async def test_a_change_whose_storing_fails_late_does_not_undo_a_newer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written in its place is what the book says by then."""
    rig = Rig()
    await rig.provide("a", "Nora")
    note, failed, calls = Store.note_threads, trio.Event(), 0

    async def note_threads(self: Store, changes: Changes) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            await failed.wait()
            raise StateError("the disk was full a moment ago")
        await note(self, changes)

    monkeypatch.setattr(Store, "note_threads", note_threads)
    async with trio.open_nursery() as nursery:

        async def rename() -> None:
            with pytest.raises(StateError):
                await rig.threads.note(rig.threads.book.renamed(101, "first", by_person=True))

        nursery.start_soon(rename)
        await wait_all_tasks_blocked()
        await rig.threads.note(rig.threads.book.renamed(101, "second", by_person=True))
        failed.set()
    await rig.threads.note([])
    assert [row.name for row in await rig.stored()] == ["second"]
