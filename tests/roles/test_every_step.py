"""A leader dies before and after every single transaction and every single call to Telegram, each in turn.

Its successors, over what is on the disk by then, finish what it had begun: nothing is lost, nothing is done twice.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trio
from attrs import define, field
from trio.testing import MockClock

from telegram_bus.core.codec import loads
from telegram_bus.core.envelopes import Ack, Forward, ForwardMessage
from telegram_bus.core.errors import CommitUnknown
from telegram_bus.core.identity import call_id
from telegram_bus.core.permissions import Allowed
from telegram_bus.core.receiving import receipt
from telegram_bus.core.registry import Member
from telegram_bus.roles.calls import NAMED
from tests.fakes import CHAT, OWNER, FakeTelegram, InlineCommits, message
from tests.roles.term_rig import Rig, running

THREADS = {"nora": 11, "otto": 12}
NOBODYS = 77
LIFE = 30.0  # seconds of the virtual clock, after which nothing is left to be done


class Killed(BaseException):
    """The leader is gone at this moment: nothing of it catches that."""


class Fate:
    """Counts the steps of one leader, and ends it at one of them; whatever it does after that has no effect."""

    def __init__(self, last: float = float("inf")) -> None:
        self.last = last
        self.steps = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps >= self.last:
            raise Killed


@define(eq=False)
class MortalTelegram(FakeTelegram):
    """Carries out calls, and remembers them over the deaths of leaders; `keys` are the buttons of each message."""

    fate: Fate = field(factory=Fate)
    sent: list[tuple[int, dict[str, Any]]] = field(factory=list)
    keys: dict[int, list[str]] = field(factory=dict)

    async def call(self, method: str, *args: Any, **more: Any) -> Any:
        if before := more.pop("before", None):
            await before()
        self.fate.step()
        count = len(self.calls)
        result = await super().call(method, *args, **more)
        params = self.calls[count][1]
        if method == "sendMessage":
            self.sent.append((result["message_id"], params))
        if "reply_markup" in params:
            rows = params["reply_markup"]["inline_keyboard"]
            shown = [key["callback_data"] for key in itertools.chain(*rows)]
            self.keys[params.get("message_id") or result["message_id"]] = shown
        self.fate.step()
        return result


@define(eq=False)
class World:
    """What outlives a leader: Telegram, the person, the disk, and followers with what they have received."""

    telegram: MortalTelegram = field(factory=MortalTelegram)
    commits: InlineCommits | None = None
    queue: list[dict[str, Any]] = field(factory=list)
    inboxes: dict[str, dict[str, str]] = field(factory=lambda: {key: {} for key in THREADS})
    done: dict[str, str] = field(factory=dict)
    pressed: set[tuple[int, str]] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        said = [("answer one", 11), ("plain", 12), ("stray", NOBODYS), ("answer two", 11), ("answer three", 12)]
        self.queue += [message(number, thread=thread, text=text) for number, (text, thread) in enumerate(said, 1)]
        self.queue.append(message(len(said) + 1, thread=None, text="/status"))

    async def live(self, fate: Fate) -> None:
        """One leader, until it dies or nothing is left to be done."""
        rig = Rig(telegram=self.telegram, earlier=self.commits)
        self.commits = rig.commits
        rig.commits._commit = _mortal(rig.commits._commit, fate)  # type: ignore[method-assign]
        rig.term.deliveries.forward = self._forward
        self.telegram.fate = fate
        try:
            async with running(rig, begun=True), trio.open_nursery() as nursery:
                await nursery.start(rig.term.calls.sender.run)
                await nursery.start(rig.term.calls.outbox.run)
                for key, thread in THREADS.items():
                    await rig.agent(key, thread)
                    nursery.start_soon(self._work, rig, key)
                nursery.start_soon(self._poll, rig)
                await trio.sleep(LIFE)
                nursery.cancel_scope.cancel("it is over")
        except* Killed:
            pass

    async def _poll(self, rig: Rig) -> None:
        while True:
            self._press()
            offset = await rig.term.store.offset()
            batch = [update for update in self.queue if update["update_id"] >= offset][:2]
            if batch:
                await rig.intake.commit(batch, batch[-1]["update_id"] + 1)
            await trio.sleep(1)

    def _press(self) -> None:
        """The person says who shall get what nobody has, or looks again where nobody is offered."""
        for message_id, keys in self.telegram.keys.items():
            data = next((key for sign in (":g:", ":s:give") for key in keys if sign in key), None)
            if data is not None and (message_id, data) not in self.pressed:
                self.pressed.add((message_id, data))
                place = {"id": CHAT, "type": "supergroup"}
                pressed = {"message_id": message_id, "chat": place, "message_thread_id": NOBODYS, "date": 1}
                number = self.queue[-1]["update_id"] + 1
                query = {"id": f"q{number}", "data": data, "from": {"id": OWNER}, "message": pressed}
                self.queue.append({"update_id": number, "callback_query": query})

    async def _forward(self, member: Member, envelope: Forward) -> Ack:
        await trio.lowlevel.checkpoint()
        assert isinstance(envelope, ForwardMessage)
        self.inboxes[member.key].setdefault(envelope.delivery.delivery_id, envelope.message["text"])
        return Ack(request_id=envelope.request_id, ok=True, result=receipt(envelope.delivery))

    async def _work(self, rig: Rig, key: str) -> None:
        """What a follower's program does, one update after another; of a successor it asks again what it had asked."""
        while True:
            for delivery, text in list(self.inboxes[key].items()):
                if delivery not in self.done:
                    self.done[delivery] = await self._answer(rig, key, delivery, text)
            await trio.sleep(0.5)

    async def _answer(self, rig: Rig, key: str, delivery: str, text: str) -> str:
        if not text.startswith("answer"):
            return "nothing"
        params = {"chat_id": CHAT, "message_thread_id": THREADS[key], "text": f"re {text}"}
        call = Allowed(method="call", args=("sendMessage", params))
        place = (key, NAMED + call_id(delivery, "answer"))
        try:
            await rig.term.calls.outbox.once(place, call, ["sendMessage"], durable=True, files=lambda: ())
        except CommitUnknown:
            return "unknown"
        return "sent"

    # -- what is to hold in the end

    def check(self) -> None:
        assert self.commits is not None
        got = Counter(text for inbox in self.inboxes.values() for text in inbox.values())
        assert got == Counter({"answer one": 1, "plain": 1, "stray": 1, "answer two": 1, "answer three": 1})
        in_order = [text for text in self.inboxes["nora"].values() if text != "stray"]
        assert in_order == ["answer one", "answer two"]
        assert {delivery for inbox in self.inboxes.values() for delivery in inbox} == self.done.keys()
        said = Counter(params["text"].split("\n")[0] for _, params in self.telegram.sent)
        for key, inbox in self.inboxes.items():
            for delivery, text in inbox.items():
                if self.done[delivery] == "sent":
                    assert said[f"re {text}"] == 1, key
                elif self.done[delivery] == "unknown":
                    assert said[f"re {text}"] <= 1
        self._check_store(self.commits.db)
        asked = [params for _, params in self.telegram.sent if "1 message waits" in params["text"]]
        assert 1 <= len(asked) <= 2  # once more where nobody knew whether it was

    def _check_store(self, db: sqlite3.Connection) -> None:
        left = db.execute("SELECT update_id, body FROM updates WHERE outcome IS NULL OR outcome = 'rejected'")
        assert [(number, loads(body)) for number, body in left] == []
        assert db.execute("SELECT poll_offset FROM term").fetchone() == (self.queue[-1]["update_id"] + 1,)
        calls = db.execute("SELECT seq, key, request_id, state, tries FROM calls").fetchall()
        assert {state for _, _, _, state, _ in calls} <= {"settled", "unknown"}
        notices = {name: state for _, key, name, state, _ in calls if not key}
        shown = Counter(
            params["reply_markup"]["inline_keyboard"][0][0]["callback_data"]
            for _, params in self.telegram.sent
            if params["text"].startswith("Perhaps sent")
        )
        for seq, key, _, state, tries in calls:
            if key and state == "unknown":
                told, times = notices[f"doubt:{seq}.{tries}"], shown[f"tb:again:{seq}.{tries}"]
                assert times == 1 if told == "settled" else times <= 1


def _mortal(commit: Callable[..., Any], fate: Fate) -> Callable[..., Any]:
    def dying(operation: Any) -> Any:
        fate.step()
        result = commit(operation)
        fate.step()
        return result

    return dying


async def steps_of_a_life() -> int:
    world, fate = World(), Fate()
    await world.live(fate)
    world.check()
    return fate.steps


def deaths(steps: int, seconds: int) -> Iterator[list[int]]:
    """Of one leader at each of its steps; and after each `seconds`-th of them of its successor too, somewhere."""
    for first in range(1, steps + 1):
        yield [first]
        if first % seconds == 0:
            yield [first, 1 + first * 7 % steps]


@pytest.mark.parametrize("part", range(3))
async def test_whenever_a_leader_dies_everything_is_done_once(autojump_clock: MockClock, part: int) -> None:
    steps = await steps_of_a_life()
    assert steps > 100
    for last in itertools.islice(deaths(steps, 8), part, None, 3):
        world = World()
        for step in last:
            await world.live(Fate(step))
        await world.live(Fate())
        try:
            world.check()
        except AssertionError as fault:
            fault.add_note(f"after deaths at the steps {last} of {steps}")
            raise
