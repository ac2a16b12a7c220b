"""The Python API as a program sees it: what it says to the bus, and what comes back."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

import telegram_bus
from telegram_bus.agent import Bus, Keyboard, MemberInfo, SentMessage, Update, join
from telegram_bus.core import gathering
from telegram_bus.core.buttons import callback_data
from telegram_bus.core.envelopes import (
    AckError,
    AgentSelector,
    CallApi,
    Delivery,
    Disconnect,
    Forward,
    ForwardCallback,
    ForwardEditedMessage,
    ForwardMessage,
    ForwardReaction,
    Heartbeat,
    ProtocolIdentity,
    Register,
    ResolveAgentTarget,
    RouteAgentMessage,
    Target,
)
from telegram_bus.core.errors import (
    ApiError,
    BusError,
    CommitUnknown,
    NoLeader,
    RequestRefused,
    SettingsError,
    StateError,
)
from telegram_bus.core.extensions import ActivitySet, AgentTell, ButtonsKeep, MembersList
from telegram_bus.core.identity import call_id, delivery_id
from telegram_bus.followers.members import WATCH_WAIT_MS
from telegram_bus.home import Profile
from telegram_bus.roles import unread
from telegram_bus.wire.client import request_once
from tests.fakes import CHAT, FakeLeader, ok, refuse


@pytest.fixture
async def leader(bus_profile: Profile) -> AsyncIterator[FakeLeader]:
    async with trio.open_nursery() as nursery:
        leader = FakeLeader(bus_profile, nursery)
        await leader.start()
        yield leader
        nursery.cancel_scope.cancel("the test is over")


@asynccontextmanager
async def joined(leader: FakeLeader, name: str | None = "nora") -> AsyncIterator[Bus]:
    async with join(name, home=leader.profile.home.root, start_leader=False) as bus:
        await bus.wait_serving()
        yield bus


@pytest.fixture
async def bus(leader: FakeLeader) -> AsyncIterator[Bus]:
    async with joined(leader) as bus:
        yield bus


def made(leader: FakeLeader) -> tuple[str, dict[str, Any]]:
    """The last call: method and parameters."""
    call = leader.of(CallApi)[-1]
    assert call.method == "call"
    method, body = call.args
    return method, body


PLACE = {"chat_id": CHAT, "message_thread_id": 11}

CALLS: list[tuple[str, Callable[[Bus], Awaitable[Any]], str, dict[str, Any]]] = [
    ("send", lambda b: b.send("hi"), "sendMessage", {**PLACE, "text": "hi"}),
    (
        "send with everything",
        lambda b: b.send(
            "<b>hi</b>",
            buttons=[[("Yes", "y"), ("No", "n")], [("Later", "l")]],
            reply_to=5,
            parse_mode="HTML",
            silent=True,
        ),
        "sendMessage",
        {
            **PLACE,
            "text": "<b>hi</b>",
            "parse_mode": "HTML",
            "disable_notification": True,
            "reply_parameters": {"message_id": 5, "allow_sending_without_reply": True},
            "reply_markup": {
                "inline_keyboard": [
                    [{"text": "Yes", "callback_data": "y"}, {"text": "No", "callback_data": "n"}],
                    [{"text": "Later", "callback_data": "l"}],
                ]
            },
        },
    ),
    ("edit", lambda b: b.edit(7, "new"), "editMessageText", {"chat_id": CHAT, "message_id": 7, "text": "new"}),
    (
        "edit of a sent message",
        lambda b: b.edit(
            SentMessage(chat_id=CHAT, message_id=8, thread_id=11, raw={}), "new", buttons=[], parse_mode="HTML"
        ),
        "editMessageText",
        {
            "chat_id": CHAT,
            "message_id": 8,
            "text": "new",
            "parse_mode": "HTML",
            "reply_markup": {"inline_keyboard": []},
        },
    ),
    ("delete", lambda b: b.delete(7), "deleteMessage", {"chat_id": CHAT, "message_id": 7}),
    (
        "react",
        lambda b: b.react(7, "👍"),
        "setMessageReaction",
        {"chat_id": CHAT, "message_id": 7, "reaction": [{"type": "emoji", "emoji": "👍"}]},
    ),
    ("unreact", lambda b: b.react(7, None), "setMessageReaction", {"chat_id": CHAT, "message_id": 7, "reaction": []}),
    ("typing", lambda b: b.typing(), "sendChatAction", {**PLACE, "action": "typing"}),
    ("getMe", lambda b: b.call("getMe"), "getMe", {}),
    (
        "a call with a place of its own",
        lambda b: b.call("sendMessage", chat_id=1, message_thread_id=2, text="x", nothing=None),
        "sendMessage",
        {"chat_id": 1, "message_thread_id": 2, "text": "x"},
    ),
    (
        "a call by name",
        lambda b: b.call("editMessageCaption", message_id=3, caption="c"),
        "editMessageCaption",
        {"chat_id": CHAT, "message_id": 3, "caption": "c"},
    ),
    ("a topic", lambda b: b.call("editForumTopic", name="n"), "editForumTopic", {**PLACE, "name": "n"}),
]


@pytest.mark.parametrize(("act", "method", "body"), [row[1:] for row in CALLS], ids=[row[0] for row in CALLS])
async def test_a_call_goes_out_with_the_place_of_its_follower(
    bus: Bus, leader: FakeLeader, act: Callable[[Bus], Awaitable[Any]], method: str, body: dict[str, Any]
) -> None:
    """What is None is left out."""
    await act(bus)
    assert made(leader) == (method, body)


async def test_a_follower_says_what_it_does(bus: Bus, leader: FakeLeader) -> None:
    """And that it does nothing in particular any more."""
    await bus.activity("running tests", needs_person=True)
    await bus.activity()
    asked = [(one.text, one.needs_person) for one in leader.of(ActivitySet)]
    assert asked == [("running tests", True), (None, None)]


async def test_a_message_that_was_sent_says_where_it_is(bus: Bus, leader: FakeLeader) -> None:
    result = {"message_id": 77, "chat": {"id": CHAT}, "message_thread_id": 11, "text": "hi"}
    leader.replies["follower.callApi"] = lambda e: ok(e, result)
    sent = await bus.send("hi")
    assert sent == SentMessage(chat_id=CHAT, message_id=77, thread_id=11, raw=result)
    leader.replies["follower.callApi"] = lambda e: ok(e, {"message_id": 78, "chat": {"id": CHAT}})
    assert (await bus.send("hi")).thread_id is None


@pytest.mark.parametrize("result", [None, True, [], {}, {"message_id": 1}, {"message_id": 1, "chat": 5}])
async def test_an_answer_that_is_no_message_is_refused(bus: Bus, leader: FakeLeader, result: Any) -> None:
    leader.replies["follower.callApi"] = lambda e: ok(e, result)
    with pytest.raises(RequestRefused, match="no message"):
        await bus.send("hi")


@pytest.mark.parametrize("data", ["", "x" * 65, "é" * 33, {"deploy": [42, None]}, 7, None, "tb:again:1"])
async def test_data_that_a_button_cannot_carry_is_kept_by_the_leader(bus: Bus, leader: FakeLeader, data: Any) -> None:
    """And is with it before the message goes out, in which a short key stands in its place."""
    await bus.send("hi", buttons=[[("fine", "f"), ("Go", data)]])
    [keep], [call] = leader.of(ButtonsKeep), leader.of(CallApi)
    assert leader.got.index(keep) < leader.got.index(call)
    assert keep.content["buttons"] == [["fine", "f"], ["Go", data]]
    markup = call.args[1]["reply_markup"]
    assert markup == {
        "inline_keyboard": [
            [
                {"text": "fine", "callback_data": callback_data(keep.keyboard_id, 0)},
                {"text": "Go", "callback_data": callback_data(keep.keyboard_id, 1)},
            ]
        ]
    }
    await bus.edit(1, "hi", buttons=[[("Go", data)]])
    assert len(leader.of(ButtonsKeep)) == 2


async def test_what_is_short_needs_nobody_to_keep_it(bus: Bus, leader: FakeLeader) -> None:
    """Unless it is for one press, or for some people."""
    await bus.send("hi", buttons=[[("Go", "é" * 32)]])
    assert leader.of(ButtonsKeep) == []
    await bus.send("hi", buttons=Keyboard([[("Go", "g")]], one_time=True, users=[7]))
    [keep] = leader.of(ButtonsKeep)
    assert keep.content == {"buttons": [["Go", "g"]], "one_time": True, "users": [7]}


@pytest.mark.parametrize("buttons", [[("Yes", "y")], [["no", "data"]], [[("Yes",)]], [[("Yes", "y", "more")]]])
async def test_buttons_that_are_no_rows_of_pairs_are_explained(bus: Bus, leader: FakeLeader, buttons: Any) -> None:
    with pytest.raises(ValueError, match=r"rows of \(label, data\)"):
        await bus.send("hi", buttons=buttons)
    assert leader.of(CallApi) == []


async def test_an_urgency_that_there_is_not_is_refused(bus: Bus, leader: FakeLeader) -> None:
    with pytest.raises(ValueError, match='"final", "progress" or None, not \'high\''):
        await bus.send("hi", urgency="high")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not 'high'"):
        await bus.edit(1, "hi", urgency="high")  # type: ignore[arg-type]
    assert leader.of(CallApi) == []


async def test_a_question_that_nobody_could_answer_is_not_asked(bus: Bus, leader: FakeLeader) -> None:
    with pytest.raises(ValueError, match="users must name somebody"):
        await bus.ask_person("Deploy?", ["Yes", "No"], users=[])
    with pytest.raises(TypeError, match=r"choices are a list, such as \['Yes'\]"):
        await bus.ask_person("Deploy?", "Yes")
    assert leader.of(CallApi) == []


async def test_a_message_of_a_name_has_the_same_keys_when_it_is_sent_again(bus: Bus, leader: FakeLeader) -> None:
    """Its first sending counts, and so must the keys that stand under it."""
    for _ in range(2):
        await bus.send("hi", buttons=[[("Go", {"a": 1})]], once="x")
    await bus.send("hi", buttons=[[("Go", {"a": 1})]])
    first, second, third = (keep.keyboard_id for keep in leader.of(ButtonsKeep))
    assert first == second != third


@pytest.mark.parametrize("data", [object(), "x" * 70_000, {1: {2}}])
async def test_data_that_nobody_can_keep_is_refused_before_anything_is_sent(
    bus: Bus, leader: FakeLeader, data: Any
) -> None:
    with pytest.raises((ValueError, BusError)):
        await bus.send("hi", buttons=[[("Go", data)]])
    assert leader.of(CallApi) == []


@pytest.mark.parametrize(
    ("error", "result", "expected"),
    [
        (None, None, RequestRefused),
        (AckError(code="commit-unknown"), None, CommitUnknown),
        (
            None,
            {"apiError": {"method": "sendMessage", "code": 429, "description": "Too Many", "retryAfter": 3}},
            ApiError,
        ),
    ],
)
async def test_what_a_program_catches_is_the_fault_itself(
    leader: FakeLeader, error: AckError | None, result: Any, expected: type[Exception]
) -> None:
    """No group around it, inside the block of `join` and outside of it."""
    leader.replies["follower.callApi"] = lambda e: refuse(e, "no", error, result)
    seen: list[Exception] = []

    async def work() -> None:
        async with joined(leader) as bus:
            try:
                await bus.send("hi")
            except expected as fault:
                seen.append(fault)
                raise

    with pytest.raises(expected) as outside:
        await work()
    assert seen == [outside.value]
    if isinstance(outside.value, ApiError):
        assert (outside.value.code, outside.value.retry_after) == (429, 3)


async def test_a_programs_own_fault_leaves_the_block_as_it_is(leader: FakeLeader) -> None:
    """And the follower leaves the bus."""
    with pytest.raises(ZeroDivisionError):
        async with joined(leader):
            _ = 1 / 0
    await leader.wait_got(Disconnect)


FORWARDS: dict[str, tuple[type[Forward], str]] = {
    "message": (ForwardMessage, "message"),
    "edited_message": (ForwardEditedMessage, "message"),
    "callback": (ForwardCallback, "query"),
    "reaction": (ForwardReaction, "reaction_update"),
}


async def deliver(
    leader: FakeLeader, number: int, body: dict[str, Any], kind: str = "message", key: str = "nora"
) -> None:
    """The leader gives an update to a follower."""
    registration = next(r.registration for r in reversed(leader.of(Register)) if r.registration.profile_key == key)
    envelope, name = FORWARDS[kind]
    fields: dict[str, Any] = {name: {**body, "pi_telegram_source_update_id": number}}
    ack = await request_once(
        registration.bus_socket_path or "",
        envelope(
            request_id=f"d{number}",
            auth=leader.secret,
            recipient_instance_id=registration.instance_id,
            recipient_registration_generation=registration.registration_generation or "",
            delivery=Delivery(
                delivery_id=delivery_id(envelope.KIND, key, number),
                source_update_id=number,
                recipient_binding_key=key,
            ),
            sent_at_ms=1,
            **fields,
        ),
    )
    assert ack.ok, ack.message


async def test_updates_come_in_their_order_and_each_once(bus: Bus, leader: FakeLeader) -> None:
    for number in range(1, 6):
        await deliver(leader, number, {"text": str(number)})
    assert [(await anext(bus)).text for _ in range(3)] == ["1", "2", "3"]
    await deliver(leader, 6, {"text": "6"})
    assert [(await anext(bus)).text for _ in range(3)] == ["4", "5", "6"]


async def test_a_program_waits_for_the_next_update(bus: Bus, leader: FakeLeader) -> None:
    got: list[str] = []

    async def read() -> None:
        async for update in bus:
            got.append(update.text)
            if len(got) == 2:
                return

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        await wait_all_tasks_blocked(0.01)
        assert got == []
        await deliver(leader, 1, {"text": "a"})
        await deliver(leader, 2, {"text": "b"})
    assert got == ["a", "b"]


async def test_two_readers_share_the_updates(bus: Bus, leader: FakeLeader) -> None:
    """None is seen by both, and none is missed."""
    got: list[str] = []

    async def read() -> None:
        got.append((await anext(bus)).text)

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(read)
        await wait_all_tasks_blocked(0.01)
        for number in range(4):
            await deliver(leader, number, {"text": str(number)})
    assert sorted(got) == ["0", "1", "2", "3"]


async def test_a_reader_that_is_cancelled_takes_no_update_with_it(bus: Bus, leader: FakeLeader) -> None:
    await deliver(leader, 1, {"text": "a"})
    with trio.CancelScope() as scope:
        scope.cancel("it gave up")
        await anext(bus)
    assert scope.cancelled_caught
    assert (await anext(bus)).text == "a"


async def test_what_is_not_done_is_seen_again_by_the_next_process(leader: FakeLeader) -> None:
    """Under the same id; what is done is not."""
    async with joined(leader) as bus:
        for number in (1, 2, 3):
            await deliver(leader, number, {"text": str(number)})
        first, second = await anext(bus), await anext(bus)
        await second.done()
        await second.done()
    async with joined(leader) as bus:
        again, third = await anext(bus), await anext(bus)
        assert again.id == first.id
        assert [again.text, third.text] == ["1", "3"]
        await deliver(leader, 2, {"text": "2"})  # the leader may repeat what it did not hear of
        with trio.move_on_after(0.02) as scope:
            await anext(bus)
        assert scope.cancelled_caught


USER = {"id": 7, "first_name": "O"}

READ: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("message", {"text": "hi", "from": USER}, {"text": "hi", "sender": USER, "data": None}),
    ("message", {"caption": "a photo", "from": 5}, {"text": "a photo", "sender": None}),
    ("message", {"text": 5}, {"text": "", "sender": None}),
    ("message", {"text": "/Build@our_bot all of it"}, {"command": ("build", "all of it")}),
    ("message", {"caption": "/build"}, {"command": ("build", "")}),
    ("message", {"text": "/tmp/x is full"}, {"command": None}),
    ("edited_message", {"text": "/build"}, {"text": "/build", "command": None}),
    ("edited_message", {"text": "new"}, {"text": "new"}),
    (
        "callback",
        {"id": "q", "data": "y", "from": USER, "message": {"message_id": 4, "text": "which?"}},
        {"data": "y", "sender": USER, "text": "which?"},
    ),
    ("callback", {"id": "q", "data": 5, "message": "odd"}, {"data": None, "message": {}, "text": ""}),
    ("reaction", {"message_id": 4, "user": USER, "new_reaction": []}, {"sender": USER, "text": "", "data": None}),
]


@pytest.mark.parametrize(("kind", "body", "expected"), READ)
async def test_an_update_says_what_was_done_and_by_whom(
    bus: Bus, leader: FakeLeader, kind: str, body: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Whatever is odd in it reads as absent."""
    await deliver(leader, 1, body, kind)
    update = await anext(bus)
    assert update.kind == kind
    assert update.raw == {**body, "pi_telegram_source_update_id": 1}
    assert {name: getattr(update, name) for name in expected} == expected


async def test_what_belongs_together_is_one_update_and_finished_as_one(
    leader: FakeLeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "ALBUM_WAIT", 0.2)
    monkeypatch.setattr(unread, "TAKEOVER", 0.2)

    def part(number: int, **fields: Any) -> dict[str, Any]:
        place = {"chat": {"id": CHAT}, "from": USER, "date": 100, "message_id": number, "media_group_id": "a"}
        return place | {"document": {"file_id": f"f{number}", "file_name": f"{number}.txt"}} | fields

    async with joined(leader) as bus:
        for number, fields in ((2, {}), (1, {"caption": "look"})):
            await deliver(leader, number, part(number, **fields))
        album = await anext(bus)
        assert [one["message_id"] for one in album.parts] == [1, 2]
        assert album.message is album.raw is album.parts[0]
        assert (album.text, album.follows) == ("look", None)
        assert [file.name for file in album.files] == ["1.txt", "2.txt"]
        await deliver(leader, 3, part(3))
        late = await anext(bus)
        assert (late.follows, len(late.parts)) == (album.id, 1)
        await album.done()
    async with joined(leader) as bus:
        again = await anext(bus)
        assert (again.id, again.follows, again.parts) == (late.id, album.id, late.parts)


async def test_an_update_says_how_old_it_is(bus: Bus, leader: FakeLeader) -> None:
    now = int(time.time())
    ages = []
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("message", {"message_id": 1, "date": now - 7_200}),
        ("edited_message", {"message_id": 2, "date": now - 7_200, "edit_date": now - 60}),
        ("message", {"message_id": 3, "date": now + 1_000}),  # a clock that is wrong
        ("callback", {"id": "q", "data": "y", "message": {"date": 1}}),
    ]
    for number, (kind, body) in enumerate(bodies):
        await deliver(leader, number, body, kind)
        ages.append((await anext(bus)).age)
    assert ages[3] is None
    assert [round(age / 30) for age in ages[:3] if age is not None] == [240, 2, 0]


async def given(bus: Bus, leader: FakeLeader, body: dict[str, Any], kind: str = "message") -> Update:
    await deliver(leader, 1, body, kind)
    return await anext(bus)


async def test_a_reply_names_the_message_it_answers(bus: Bus, leader: FakeLeader) -> None:
    update = await given(bus, leader, {"message_id": 40, "text": "hi"})
    await update.reply("ho", silent=True)
    method, body = made(leader)
    assert method == "sendMessage"
    assert body["reply_parameters"]["message_id"] == 40
    assert body["disable_notification"] is True


async def test_a_name_and_an_update_make_one_call(bus: Bus, leader: FakeLeader) -> None:
    """The id is the same whoever asks, and another for another update, another name and a message of its own."""
    update = await given(bus, leader, {"message_id": 40, "text": "hi"})
    await update.reply("ho", once="answer")
    await update.reply("hello", once="answer")
    await update.reply("more", once="more")
    await (await given_next(bus, leader)).reply("ho", once="answer")
    await bus.send("ho", once="answer")
    await bus.send("ho")
    ids = [envelope.call_id for envelope in leader.got if isinstance(envelope, CallApi)]
    assert ids[0] == ids[1] == call_id(update.id, "answer")
    assert len(set(ids[1:])) == 5
    assert ids[5] is None


async def given_next(bus: Bus, leader: FakeLeader) -> Update:
    await deliver(leader, 2, {"message_id": 41, "text": "hi"}, "message")
    return await anext(bus)


async def test_a_leader_that_remembers_no_calls_cannot_promise_once(bus: Bus, leader: FakeLeader) -> None:
    """Rather no message than two."""
    leader.identity = ProtocolIdentity(
        protocol_version=1, runtime_build="other/1", capabilities=("durable-follower-admission-v1",)
    )
    registered = len(leader.of(Register))
    leader.known = set()  # so that the follower registers again, and learns who leads
    await leader.wait_got(Register, registered + 1)
    await bus.send("an ordinary message goes out")
    with pytest.raises(RequestRefused, match="once"):
        await bus.send("ho", once="answer")


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ({}, {"callback_query_id": "q"}),
        ({"text": "ok"}, {"callback_query_id": "q", "text": "ok"}),
        ({"text": "no!", "alert": True}, {"callback_query_id": "q", "text": "no!", "show_alert": True}),
    ],
)
async def test_a_press_is_answered(bus: Bus, leader: FakeLeader, options: dict[str, Any], body: dict[str, Any]) -> None:
    update = await given(bus, leader, {"id": "q", "data": "y"}, "callback")
    await update.answer(**options)
    assert made(leader) == ("answerCallbackQuery", body)


async def test_only_a_press_is_answered(bus: Bus, leader: FakeLeader) -> None:
    update = await given(bus, leader, {"message_id": 1, "text": "hi"})
    with pytest.raises(ValueError, match="use reply"):
        await update.answer("x")
    assert leader.of(CallApi) == []


MEMBERS = {
    "revision": 3,
    "members": [
        {
            "key": "nora",
            "name": "Nora",
            "slot": "A",
            "target": {"chatId": CHAT, "threadId": 11},
            "connectedAtMs": 1,
            "lastHeartbeatMs": 2,
        },
        {"key": "x", "connectedAtMs": 1, "lastHeartbeatMs": 2},
    ],
}
NORA = MemberInfo(key="nora", name="Nora", chat_id=CHAT, thread_id=11, slot="A", connected_at_ms=1, last_heartbeat_ms=2)
NAMELESS = MemberInfo(
    key="x", name=None, chat_id=None, thread_id=None, slot=None, connected_at_ms=1, last_heartbeat_ms=2
)


async def test_the_members_are_those_that_the_leader_lists(bus: Bus, leader: FakeLeader) -> None:
    leader.replies["x.members.list"] = lambda e: ok(e, MEMBERS)
    assert await bus.members() == (NORA, NAMELESS)
    (asked,) = leader.of(MembersList)
    assert (asked.after_revision, asked.wait_ms) == (None, None)


async def test_a_watcher_sees_each_change_once(bus: Bus, leader: FakeLeader) -> None:
    """It asks to be told of the next one, and a leader that has nothing new is asked again."""
    answers = [MEMBERS, MEMBERS, {"revision": 4, "members": []}, {"revision": 1, "members": MEMBERS["members"]}]
    leader.replies["x.members.list"] = lambda e: ok(e, answers.pop(0))
    seen = []
    async for members in bus.watch_members():
        seen.append(len(members))
        if len(seen) == 3:
            break
    assert seen == [2, 0, 2]
    asked = [(one.after_revision, one.wait_ms) for one in leader.of(MembersList)]
    assert asked == [(None, None), (3, WATCH_WAIT_MS), (3, WATCH_WAIT_MS), (4, WATCH_WAIT_MS)]


async def test_a_watcher_asks_a_new_leader_anew(bus: Bus, leader: FakeLeader) -> None:
    """Whose revisions are others, though they may have the same numbers."""
    leader.replies["x.members.list"] = lambda e: ok(e, MEMBERS)
    watch = bus.watch_members()
    assert await anext(watch) == (NORA, NAMELESS)
    await leader.stop()
    leader.replies["x.members.list"] = lambda e: ok(e, {**MEMBERS, "members": []})
    await leader.start()
    assert await anext(watch) == ()
    assert leader.of(MembersList)[-1].after_revision is None


@pytest.mark.parametrize(
    ("other", "selector"), [("otto", AgentSelector(thread_name="otto")), (12, AgentSelector(thread_id=12))]
)
async def test_telling_another_agent_is_a_message_in_its_thread_and_a_note_to_it(
    bus: Bus, leader: FakeLeader, other: str | int, selector: AgentSelector
) -> None:
    """In this order, and marked, so that the leader lets it through."""
    leader.replies["follower.resolveAgentTarget"] = lambda e: ok(e, {"chatId": CHAT, "threadId": 12})
    leader.replies["follower.callApi"] = lambda e: ok(
        e, {"message_id": 9, "chat": {"id": CHAT}, "message_thread_id": 12}
    )
    sent = await bus.tell(other, "look at this")
    assert (sent.message_id, sent.thread_id) == (9, 12)
    asked = [one for one in leader.got if not isinstance(one, Heartbeat | Register)]
    resolve, call, route = asked
    assert isinstance(resolve, ResolveAgentTarget)
    assert resolve.selector == selector
    assert isinstance(call, CallApi)
    assert call.args == (
        "sendMessage",
        {
            "chat_id": CHAT,
            "message_thread_id": 12,
            "text": "from nora: look at this",
            "__piTelegramCrossTargetDelivery": True,
        },
    )
    assert isinstance(route, RouteAgentMessage)
    assert (route.message.target, route.message.message_id) == (Target(chat_id=CHAT, thread_id=12), 9)
    assert route.message.text == "look at this"


async def test_a_long_text_for_another_agent_is_shown_in_parts_and_given_whole(bus: Bus, leader: FakeLeader) -> None:
    leader.replies["follower.resolveAgentTarget"] = lambda e: ok(e, {"chatId": CHAT, "threadId": 12})
    for text, messages in (("word " * 2_000, 3), ("word " * 100_000, 1)):
        leader.got.clear()
        sent = await bus.tell("otto", text)
        shown = [call.args[1]["text"] for call in leader.of(CallApi)]
        assert len(shown) == len(sent.parts) == messages
        assert shown[0].startswith("from nora: word ")
        assert shown[-1].endswith("…" if messages == 1 else "word ")
        [route] = leader.of(RouteAgentMessage)
        assert route.message.text == text
        assert route.message.message_id == sent.message_id


@pytest.mark.parametrize(
    ("thread", "body"),
    [
        (None, {"text": "to Otto: look at this"}),
        (11, {"text": "from nora to Otto: look at this", "__piTelegramCrossTargetDelivery": True}),
    ],
)
async def test_an_agent_that_shares_the_main_chat_is_told_there(
    leader: FakeLeader, thread: int | None, body: dict[str, Any]
) -> None:
    """The leader puts the name of who shares it too before the text; to the other the key says who is meant."""
    leader.target = {"chatId": CHAT, "threadName": "nora"} | ({} if thread is None else {"threadId": thread})
    leader.replies["follower.resolveAgentTarget"] = lambda e: ok(e, {"chatId": CHAT, "key": "otto-2", "name": "Otto"})
    leader.replies["follower.callApi"] = lambda e: ok(e, {"message_id": 9, "chat": {"id": CHAT}})
    leader.replies["x.agent.tell"] = lambda e: ok(e, {"key": "otto-2"})
    async with joined(leader) as bus:
        sent = await bus.tell("otto", "look at this")
    assert (sent.message_id, sent.thread_id) == (9, None)
    assert [one.main_chat for one in leader.of(ResolveAgentTarget)] == [True]
    assert made(leader) == ("sendMessage", {"chat_id": CHAT, **body})
    assert [(one.to, one.message_id, one.text) for one in leader.of(AgentTell)] == [("otto-2", 9, "look at this")]
    assert leader.of(RouteAgentMessage) == []


async def test_an_agent_that_is_not_there_is_told_nothing(bus: Bus, leader: FakeLeader) -> None:
    leader.replies["follower.resolveAgentTarget"] = lambda e: refuse(e, "no other agent is called otto")
    with pytest.raises(RequestRefused, match="otto"):
        await bus.tell("otto", "hi")
    assert leader.of(CallApi) == []


async def test_the_states_are_seen_as_they_change(leader: FakeLeader) -> None:
    async with join("nora", home=leader.profile.home.root, start_leader=False) as bus:
        states = bus.states()
        seen = [await anext(states)]
        while seen[-1].phase != "serving":
            seen.append(await anext(states))
        assert (bus.state, bus.reason) == ("serving", None)
        await leader.stop()
        async for state in states:
            seen.append(state)
            if state.phase == "no leader":
                break
        assert (bus.state, bus.reason) == ("no leader", seen[-1].reason)
        assert bus.reason
    assert bus.state == "left"


async def test_a_program_knows_its_place(bus: Bus) -> None:
    assert (bus.key, bus.name) == ("nora", "nora")
    assert bus.target == Target(chat_id=CHAT, thread_id=11)


async def test_two_programs_of_one_name_have_two_keys(bus: Bus, leader: FakeLeader) -> None:
    async with joined(leader) as second:
        assert (bus.key, second.key) == ("nora", "nora-2")


async def test_without_a_name_the_key_is_that_of_the_directory(
    leader: FakeLeader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the leader picks the name."""
    (tmp_path / "My Project").mkdir()
    monkeypatch.chdir(tmp_path / "My Project")
    async with joined(leader, None) as bus:
        assert (bus.key, bus.name) == ("my-project", None)
        assert leader.of(Register)[-1].registration.thread_name is None


async def test_a_send_waits_for_a_leader_and_can_be_given_up(bus_profile: Profile) -> None:
    async with join("nora", home=bus_profile.home.root, start_leader=False) as bus:
        with trio.move_on_after(0.02) as scope:
            await bus.send("hi")
        assert scope.cancelled_caught
        assert bus.target is None


async def test_a_follower_that_left_says_so_in_place_of_waiting(leader: FakeLeader) -> None:
    async with joined(leader) as bus:
        pass
    for ask in (bus.send("hi"), bus.members(), bus.wait_serving()):
        with pytest.raises(NoLeader, match="left the bus"):
            await ask


async def test_inside_a_wrapped_program_a_thread_has_to_be_asked_for(
    leader: FakeLeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TELEGRAM_BUS_PARENT", "builder")
    with pytest.raises(SettingsError, match="builder"):
        async with joined(leader, None):
            pass
    async with joined(leader, "own") as bus:
        assert bus.key == "own"


async def test_a_working_directory_that_is_gone_names_nobody(
    leader: FakeLeader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(SettingsError, match="name this follower"):
        async with joined(leader, None):
            pass
    async with joined(leader, "nora") as bus:
        assert bus.key == "nora"


async def test_a_bad_profile_or_home_is_said_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TELEGRAM_BUS_PARENT", raising=False)
    with pytest.raises(SettingsError):
        async with join("nora", profile="No Profile", home=tmp_path):
            pass
    (tmp_path / "file").write_text("x")
    with pytest.raises(StateError):
        async with join("nora", home=tmp_path / "file"):
            pass


async def test_what_ends_the_member_reaches_the_program_as_it_is(leader: FakeLeader) -> None:
    """A fault of its files, say, while it works."""
    inbox = leader.profile.inbox("nora")
    leader.profile.ensure_follower("nora")
    inbox.mkdir()
    with pytest.raises(StateError):
        async with joined(leader):
            await trio.sleep_forever()


def test_the_package_offers_the_api_by_name() -> None:
    """Imported only when it is used."""
    assert telegram_bus.join is join


async def test_a_damaged_inbox_is_set_aside_and_people_are_told(
    bus_profile: Profile, caplog: pytest.LogCaptureFixture
) -> None:
    async with trio.open_nursery() as nursery:
        leader = FakeLeader(bus_profile, nursery)
        await leader.start()
        bus_profile.ensure_follower("nora")
        bus_profile.inbox("nora").write_bytes(b"no database at all, but long enough to be taken for one" * 100)
        async with telegram_bus.join(name="nora", home=bus_profile.home.root, start_leader=False):
            [told] = await leader.wait_got(CallApi)
        assert "was damaged" in told.args[1]["text"]
        assert "say it again" in told.args[1]["text"]
        await leader.stop()
    assert "was damaged" in caplog.text
    assert len(list(bus_profile.follower_dir("nora").glob("inbox.sqlite3.damaged-*"))) == 1
