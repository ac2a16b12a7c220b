"""What waits for a program: what belongs together is one item, each part in exactly one, in order, over crashes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.core.envelopes import Delivery
from telegram_bus.core.errors import StateError
from telegram_bus.core.gathering import ALBUM, ALBUM_WAIT, FORWARD_WAIT, TEXT_WAIT
from telegram_bus.core.identity import delivery_id
from telegram_bus.core.receiving import Incoming
from telegram_bus.core.updates import SOURCE_MARKER
from telegram_bus.roles.unread import LEADERLESS, TAKEOVER, Item, Unread
from telegram_bus.store.inbox import Inbox
from telegram_bus.store.schema import INBOX
from tests.core.test_gathering import LONG, forwarded, photo, said
from tests.effort import examples
from tests.fakes import InlineCommits


@define(eq=False)
class Rig:
    """A follower's inbox in memory, and the process that uses it, which may die."""

    commits: InlineCommits = field(init=False)
    unread: Unread = field(init=False)

    def __attrs_post_init__(self) -> None:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.executescript("".join(INBOX.steps))
        self.commits = InlineCommits(connection)

    async def start(self) -> None:
        """A process begins, with what the one before left."""
        self.unread = Unread(inbox=Inbox(None, self.commits, trio.current_time))
        await self.unread.load()

    async def deliver(self, message: dict[str, Any], *, announced: bool = False) -> None:
        number = message["message_id"]
        await self.unread.store(
            Incoming(
                delivery=Delivery(
                    delivery_id=delivery_id("leader.forwardMessage", "nora", number),
                    source_update_id=number,
                    recipient_binding_key="nora",
                ),
                kind="message",
                body=message | {SOURCE_MARKER: number},
                announced=announced,
            )
        )

    async def edit(self, number: int, message: dict[str, Any]) -> None:
        await self.unread.store(
            Incoming(
                delivery=Delivery(
                    delivery_id=delivery_id("leader.forwardEditedMessage", "nora", number),
                    source_update_id=number,
                    recipient_binding_key="nora",
                ),
                kind="edited_message",
                body=message | {SOURCE_MARKER: number},
            )
        )

    async def take(self) -> list[int]:
        return ids(await self.unread.next())


def ids(item: Item) -> list[int]:
    return [body["message_id"] for body in item.bodies()]


def id_of(number: int) -> str:
    return delivery_id("leader.forwardMessage", "nora", number)


@pytest.fixture
async def rig() -> Rig:
    rig = Rig()
    await rig.start()
    return rig


@contextmanager
def led(rig: Rig) -> Iterator[None]:
    with rig.unread.led():
        yield


async def test_an_ordinary_message_is_handed_out_at_once(rig: Rig, autojump_clock: MockClock) -> None:
    with led(rig):
        for message in (said(1), said(2, None, photo=[]), forwarded(3), said(4, "x" * 3000)):
            before = trio.current_time()
            await rig.deliver(message)
            assert await rig.take() == [message["message_id"]]
            assert trio.current_time() == before


async def test_an_album_is_one_item_in_the_order_in_which_it_was_sent(rig: Rig, autojump_clock: MockClock) -> None:
    with led(rig):
        for number in (2, 1, 3):
            await rig.deliver(photo(number))
            await trio.sleep(ALBUM_WAIT / 2)
        last = trio.current_time() - ALBUM_WAIT / 2
        assert await rig.take() == [1, 2, 3]
        assert trio.current_time() == pytest.approx(last + ALBUM_WAIT)


async def test_a_full_album_waits_for_nothing(rig: Rig, autojump_clock: MockClock) -> None:
    with led(rig):
        before = trio.current_time()
        for number in range(1, ALBUM + 1):
            await rig.deliver(photo(number))
        assert await rig.take() == list(range(1, ALBUM + 1))
        assert trio.current_time() == before


async def test_what_came_after_an_album_waits_behind_it_and_a_late_part_still_joins(
    rig: Rig, autojump_clock: MockClock
) -> None:
    with led(rig):
        for message in (photo(1), said(2, "look"), photo(3, date=190)):
            await rig.deliver(message)
        assert await rig.take() == [1, 3]
        assert await rig.take() == [2]


async def test_a_part_that_comes_when_the_album_was_handed_out_says_to_which_it_belongs(
    rig: Rig, autojump_clock: MockClock
) -> None:
    with led(rig):
        await rig.deliver(photo(1))
        first = await rig.unread.next()
        await rig.deliver(photo(2))
        await rig.deliver(photo(3))
        second = await rig.unread.next()
        await rig.deliver(photo(4))
        third = await rig.unread.next()
    assert [ids(item) for item in (first, second, third)] == [[1], [2, 3], [4]]
    assert [item.follows for item in (first, second, third)] == [None, id_of(1), id_of(1)]


async def test_a_late_part_is_known_by_the_next_process_too(rig: Rig, autojump_clock: MockClock) -> None:
    with led(rig):
        await rig.deliver(photo(1))
        await rig.unread.inbox.done((await rig.unread.next()).id)
    await rig.start()
    with led(rig):
        await rig.deliver(photo(2))
        assert (await rig.unread.next()).follows == id_of(1)


async def test_a_split_text_is_one_item_once_its_end_is_there(rig: Rig, autojump_clock: MockClock) -> None:
    with led(rig):
        before = trio.current_time()
        for message in (said(1, LONG), said(2, LONG), said(3, "end")):
            await rig.deliver(message)
        assert await rig.take() == [1, 2, 3]
        assert trio.current_time() == before


async def test_a_text_near_the_limit_waits_a_little_for_the_rest(rig: Rig, autojump_clock: MockClock) -> None:
    with led(rig):
        before = trio.current_time()
        await rig.deliver(said(1, LONG))
        first = await rig.unread.next()
        assert trio.current_time() - before == pytest.approx(TEXT_WAIT)
        await rig.deliver(said(2, "end"))
        second = await rig.unread.next()
    assert (first.follows, second.follows) == (None, id_of(1))


async def test_a_comment_and_its_forwards_are_one_item_where_the_leader_saw_them_together(
    rig: Rig, autojump_clock: MockClock
) -> None:
    with led(rig), trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            taken: list[list[int]] = []

            async def program() -> None:
                taken.append(await rig.take())
                taken.append(await rig.take())

            nursery.start_soon(program)
            await rig.deliver(said(1), announced=True)
            await trio.sleep(FORWARD_WAIT / 2)
            await rig.deliver(forwarded(2))
            await trio.sleep(FORWARD_WAIT / 2)
            await rig.deliver(forwarded(3))
            await trio.sleep(FORWARD_WAIT * 2)
            await rig.deliver(said(4))
    assert taken == [[1, 2, 3], [4]]


async def test_a_comment_that_waits_for_a_busy_program_is_joined_by_its_forward(
    rig: Rig, autojump_clock: MockClock
) -> None:
    with led(rig):
        for message in (said(1), said(2), forwarded(3)):
            await rig.deliver(message)
        assert [await rig.take(), await rig.take()] == [[1], [2, 3]]


async def test_a_comment_is_not_held_back_and_its_forward_says_where_it_belongs(
    rig: Rig, autojump_clock: MockClock
) -> None:
    with led(rig):
        await rig.deliver(said(1))
        assert await rig.take() == [1]
        await rig.deliver(forwarded(2))
        assert (await rig.unread.next()).follows == id_of(1)


async def test_an_item_that_is_not_whole_waits_for_the_next_leader(rig: Rig, autojump_clock: MockClock) -> None:
    with led(rig):
        await rig.deliver(photo(1))
        await rig.deliver(photo(2))
    await trio.sleep(LEADERLESS / 2)
    with led(rig):
        await trio.sleep(TAKEOVER / 2)
        for number in (2, 3, 4):  # the second comes once more
            await rig.deliver(photo(number))
        assert await rig.take() == [1, 2, 3, 4]


async def test_an_item_waits_for_no_leader_that_never_comes(rig: Rig, autojump_clock: MockClock) -> None:
    with led(rig):
        await rig.deliver(photo(1))
    before = trio.current_time()
    assert await rig.take() == [1]
    assert trio.current_time() - before == pytest.approx(LEADERLESS)


async def test_an_item_is_whole_again_after_the_death_of_its_process(rig: Rig, autojump_clock: MockClock) -> None:
    with led(rig):
        for message in (photo(1), photo(2), said(3)):
            await rig.deliver(message)
    await trio.sleep(1)
    await rig.start()
    with led(rig):
        await rig.deliver(photo(4))
        assert await rig.take() == [1, 2, 4]
        assert await rig.take() == [3]
    await rig.start()
    await trio.sleep(60)
    again = await rig.unread.next()
    assert ids(again) == [1, 2, 4]
    await rig.unread.inbox.done(again.id)
    await rig.start()
    assert await rig.take() == [3]


async def test_an_edit_of_a_part_that_waits_changes_the_item(rig: Rig, autojump_clock: MockClock) -> None:
    with led(rig):
        await rig.deliver(photo(1, caption="old"))
        await rig.deliver(photo(2))
        await rig.edit(3, photo(1, caption="new"))
        item = await rig.unread.next()
        assert [body.get("caption") for body in item.bodies()] == ["new", None]
        await rig.edit(4, photo(2, caption="late"))
        edit = await rig.unread.next()
    assert (edit.kind, ids(edit)) == ("edited_message", [2])


@pytest.mark.parametrize("finished", [False, True])
async def test_an_edit_of_what_is_taken_at_that_moment_waits_in_the_inbox_too(
    rig: Rig, autojump_clock: MockClock, finished: bool
) -> None:
    """A program that dies over it finds it again, whether it was done with the message itself or not."""
    with led(rig):
        await rig.deliver(said(1, "old"))
        async with trio.open_nursery() as nursery:
            rig.commits.hold()
            nursery.start_soon(rig.edit, 2, said(1, "new"))
            await wait_all_tasks_blocked()
            item = await rig.unread.next()
            if finished:
                nursery.start_soon(rig.unread.inbox.done, item.id)
                await wait_all_tasks_blocked()
            await rig.commits.release()
        assert [body["text"] for body in item.bodies()] == ["old"]
        assert (await rig.unread.next()).kind == "edited_message"
        await rig.unread.inbox.done(item.id)
    await rig.start()
    [again] = rig.unread.waiting
    assert (again.kind, again.bodies()[0]["text"]) == ("edited_message", "new")


async def test_nothing_is_handed_out_while_a_part_of_it_is_being_stored(rig: Rig, autojump_clock: MockClock) -> None:
    with led(rig):
        await rig.deliver(photo(1))
        rig.commits.hold()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.deliver, photo(2))
            await trio.sleep(ALBUM_WAIT * 3)
            with trio.move_on_after(1) as waiting:
                await rig.take()
            assert waiting.cancelled_caught
            await rig.commits.release()
        assert await rig.take() == [1, 2]


async def test_who_is_done_on_a_full_disk_waits_until_that_is_stored(
    rig: Rig, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once, and that it is over."""
    with led(rig):
        await rig.deliver(said(1, "hello"))
        item = await rig.unread.next()
        rig.commits.fault = StateError("the inbox cannot be written (full)")
        with trio.move_on_after(100) as waiting:
            await rig.unread.done(item.id)
        assert waiting.cancelled_caught
        troubles = [rig.unread.trouble]
        rig.commits.fault = None
        await rig.unread.done(item.id)
        troubles.append(rig.unread.trouble)
    assert troubles == ["the inbox cannot be written (full)", None]
    assert await rig.unread.inbox.pending() == []
    assert [record.message.split(";")[0] for record in caplog.records if record.name.endswith("unread")] == [
        "the inbox cannot be written (full)",
        "the inbox can be written again",
    ]


async def test_an_inbox_that_is_damaged_is_not_waited_for(rig: Rig, autojump_clock: MockClock) -> None:
    damaged = StateError("it is malformed")
    damaged.__cause__ = sqlite3.DatabaseError("malformed")
    rig.commits.fault = damaged
    with pytest.raises(StateError, match="malformed"):
        await rig.unread.done("an id")


async def test_a_part_that_could_not_be_stored_holds_nothing_up_and_comes_again(
    rig: Rig, autojump_clock: MockClock
) -> None:
    with led(rig):
        await rig.deliver(photo(1))
        rig.commits.fault = StateError("full")
        with pytest.raises(StateError):
            await rig.deliver(photo(2))
        rig.commits.fault = None
        await rig.deliver(photo(2))
        assert await rig.take() == [1, 2]


SAYING = ["plain", "long", "long", "forward", "comment", "a", "a", "a", "b"]

STEPS = st.lists(
    st.sampled_from(
        [
            *[("say", what) for what in SAYING],
            *[("again", back) for back in (1, 2, 5)],
            *[("wait", seconds) for seconds in (0.1, 2.0, 20.0)],
            *[("done", 0)] * 3,
            *[("leader dies", 0), ("leader comes", 0), ("crash", 0)],
        ]
    ),
    min_size=20,
    max_size=60,
)
"""Most of it is talk; `again` repeats the delivery that was the last but so many."""

MAKE: dict[str, Callable[[int], dict[str, Any]]] = {
    "plain": said,
    "comment": said,
    "long": lambda number: said(number, LONG),
    "forward": forwarded,
    "a": lambda number: photo(number, "a"),
    "b": lambda number: photo(number, "b"),
}


@define(eq=False)
class Machine:
    """A leader that delivers in order, a program that takes and finishes, and deaths of both, against what must hold.

    `open` is what the program was handed and did not finish, the oldest first.
    """

    rig: Rig = field(factory=Rig)
    sent: list[dict[str, Any]] = field(factory=list)
    done: list[int] = field(factory=list)
    open: list[Item] = field(factory=list)
    seen: set[int] = field(factory=set)
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    leader: Any = None

    async def run(self, steps: list[tuple[str, Any]], nursery: trio.Nursery) -> None:
        await self.rig.start()
        nursery.start_soon(self.program)
        self.lead(here=True)
        for name, value in steps:
            await self.step(name, value, nursery)
            await wait_all_tasks_blocked()
            self.check()
        self.lead(here=True)
        await trio.sleep(LEADERLESS + TAKEOVER)
        await wait_all_tasks_blocked()
        while self.open:
            await self.finish()
        self.check()
        assert sorted(self.done) == sorted(self.seen) == [message["message_id"] for message in self.sent]

    async def step(self, name: str, value: Any, nursery: trio.Nursery) -> None:
        match name:
            case "say" if self.leader is not None:
                date = int(trio.current_time()) + 100
                message = MAKE[value](len(self.sent) + 1) | {"date": date}
                self.sent.append(message)
                await self.rig.deliver(message, announced=value == "comment")
            case "again" if self.leader is not None and value <= len(self.sent):
                await self.rig.deliver(self.sent[-value])
            case "wait":
                await trio.sleep(value)
            case "done" if self.open:
                await self.finish()
            case "leader dies":
                self.lead(here=False)
            case "leader comes":
                self.lead(here=True)
            case "crash":
                self.lead(here=False)
                self.scope.cancel("killed")
                await wait_all_tasks_blocked()
                self.open.clear()
                self.seen = set(self.done)
                await self.rig.start()
                nursery.start_soon(self.program)
                self.lead(here=True)

    def lead(self, *, here: bool) -> None:
        if self.leader is not None:
            self.leader.__exit__(None, None, None)
            self.leader = None
        if here:
            self.leader = self.rig.unread.led()
            self.leader.__enter__()

    async def program(self) -> None:
        """Takes whatever there is."""
        with trio.CancelScope() as self.scope:
            while True:
                item = await self.rig.unread.next()
                assert not self.seen & set(ids(item)), "handed out twice"
                self.seen.update(ids(item))
                self.open.append(item)

    async def finish(self) -> None:
        item = self.open.pop(0)
        await self.rig.unread.inbox.done(item.id)
        self.done += ids(item)

    def check(self) -> None:
        """Each part of an item belongs to it, and items come in the order of their first parts."""
        firsts = [ids(item)[0] for item in self.open if item.follows is None]
        assert firsts == sorted(firsts)
        for item in self.open:
            bodies = item.bodies()
            assert ids(item) == sorted(ids(item))
            albums = {body.get("media_group_id") for body in bodies}
            assert len(albums) == 1 or "forward_origin" in bodies[-1]
            plain = [body for body in bodies if "media_group_id" not in body and "forward_origin" not in body]
            assert all(body["text"] == LONG for body in plain[:-1]), "an ordinary message was joined"


@settings(max_examples=examples(60), deadline=None)
@given(steps=STEPS)
def test_every_part_is_in_one_item_and_handed_out_once_in_the_life_of_a_process(steps: list[tuple[str, Any]]) -> None:
    async def run() -> None:
        async with trio.open_nursery() as nursery:
            await Machine().run(steps, nursery)
            nursery.cancel_scope.cancel("seen")

    trio.run(run, clock=MockClock(autojump_threshold=0))
