"""`--data DIR`: a sandbox that goes on where it was, and what happens to damage."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from telegram_bus.sandbox import model_doings as doings
from telegram_bus.sandbox.args import Upload
from telegram_bus.sandbox.keeping import Keeper, KeepingError
from telegram_bus.sandbox.methods import METHODS
from telegram_bus.sandbox.model_views import world_state
from telegram_bus.sandbox.refusal import Refusal
from telegram_bus.sandbox.snapshot import DamagedError, from_snapshot, take_snapshot
from telegram_bus.testing import Sandbox
from tests.sandbox.talk import Talk

Json = dict[str, Any]
RNG = random.Random(7)


def lively() -> Talk:
    """A world in which something of everything happened."""
    talk = Talk()
    thread = talk.topic(name="amber")
    keyboard = {"inline_keyboard": [[{"text": "A", "callback_data": "a"}]]}
    sent = talk.send("<b>\ud83d</b>x", message_thread_id=thread, reply_markup=keyboard, parse_mode="HTML")
    talk.allow(["message", "callback_query", "message_reaction"])
    doings.press(talk.world, talk.private, talk.owner, sent["message_id"], "a", talk.now)
    doings.react(talk.world, talk.private, talk.owner, sent["message_id"], "👍", talk.now)
    talk.say("hello", thread_id=thread)
    doings.block(talk.world, talk.world.users[talk.owner.id], talk.now, blocked=True)
    talk.call("setMyCommands", commands=[{"command": "go", "description": "goes"}])
    talk.call("createForumTopic", chat_id=talk.forum.id, name="of the forum")
    talk.world.files.add("document", b"content", mime="text/plain", extension="txt", look={"file_name": "a.txt"})
    talk.call("setWebhook", url="https://example.org/x")
    return talk


def told(talk: Talk) -> Json:
    """All that can be seen of a world, but for the number of its last change."""
    world = talk.world
    return {
        **world_state(world),
        "seq": 0,
        "queue": world.queue.take(0, 1000, talk.now),
        "kinds": world.queue.kinds,
        "tail": world.queue.tail,
        "callbacks": world.callbacks,
        "commands": world.commands,
        "webhook": world.webhook,
        "files": list(world.files),
        "profile": world.profile,
        "next": [chat.next_id for chat in world.chats.values()],
    }


def test_a_world_that_was_kept_is_the_same() -> None:
    talk = lively()
    snapshot = take_snapshot(talk.world)
    text = json.dumps(snapshot.graph)
    other = Talk()
    other.world = from_snapshot(json.loads(text), snapshot.blobs, RNG)
    assert told(other) == told(talk)
    assert list(snapshot.blobs.values()) == [b"content"]
    again = take_snapshot(other.world)
    assert json.dumps(again.graph) == text


def test_who_wrote_a_message_is_the_same_person_again() -> None:
    talk = lively()
    snapshot = take_snapshot(talk.world)
    world = from_snapshot(snapshot.graph, snapshot.blobs, RNG)
    private = world.chats[world.owner.id]
    senders = {message.sender.id: message.sender for message in private.messages.values()}
    assert senders == {world.owner.id: world.owner, world.bot.id: world.bot}
    assert senders[world.bot.id] is world.bot
    assert senders[world.owner.id] is world.users[world.owner.id]


def test_a_kept_world_lives_on() -> None:
    talk = lively()
    snapshot = take_snapshot(talk.world)
    other = Talk()
    other.world = from_snapshot(snapshot.graph, snapshot.blobs, RNG)
    other.owner = other.world.owner
    other.private = other.world.chats[other.owner.id]
    last = other.ids()[-1]
    said = other.say("and on")
    assert said["message_id"] == talk.private.next_id
    assert other.ids() == [*talk.ids(), last + 1]


def test_fields_may_come_and_go_between_versions() -> None:
    graph: Any = take_snapshot(Talk().world).graph
    chat = graph["v"]["chats"]["v"][0][1]["v"]
    chat["of_the_future"] = 1
    del chat["members"]
    world = from_snapshot(graph, {}, RNG)
    assert next(iter(world.chats.values())).members == []


def without(*path: Any) -> Callable[[Any], None]:
    """What takes something out of a graph."""

    def spoil(graph: Any) -> None:
        for step in path[:-1]:
            graph = graph[step]
        del graph[path[-1]]

    return spoil


def renamed(name: str) -> Callable[[Any], None]:
    """What calls the world another class."""
    return lambda graph: graph.update({"c": name})


@pytest.mark.parametrize(
    "spoil",
    [
        without("v", "users", "v", 0, 1, "v", "id"), without("v", "chats", "v", 0, 1, "v", "type"),
        renamed("model_types:User"), renamed("os:system"), renamed("model:random"), renamed("model_types:attrs"),
        renamed("engine:Engine"), renamed(""), without("c"),
        lambda graph: graph["v"].update(owner={"$": "#", "v": 9999}),
        lambda graph: graph["v"].update(owner={"$": "bytes", "v": "0" * 64}),
        lambda graph: graph["v"].update(chats=3), lambda graph: graph["v"].update(queue=None),
    ],
)  # fmt: skip
def test_what_is_no_world_is_refused(spoil: Callable[[Any], None]) -> None:
    graph: Any = take_snapshot(Talk().world).graph
    spoil(graph)
    with pytest.raises(DamagedError):
        from_snapshot(graph, {}, RNG)


def test_a_restart_loses_nothing_and_the_token_stays(tmp_path: Path) -> None:
    with Sandbox("--data", str(tmp_path)) as first:
        said = first.say("remember me")
        thread = first.create_topic("amber")
        token = first.token
        (update, *_) = first.call("getUpdates", timeout=0)["result"]
    with Sandbox("--data", str(tmp_path)) as second:
        assert (second.token, second.chat_id, second.forum_id) == (token, first.chat_id, first.forum_id)
        assert second.messages(thread_id=0)[0]["message_id"] == said["message_id"]
        assert [topic["thread_id"] for topic in second.topics()] == [thread]
        (again, *_) = second.call("getUpdates", offset=update["update_id"])["result"]
        assert again == update
        assert second.say("on")["message_id"] == thread + 1
        assert second.record(method="sendMessage") == []


def test_a_crash_loses_only_the_last_moment(tmp_path: Path) -> None:
    with Sandbox("--data", str(tmp_path)) as first:
        first.say("long ago")
        state = tmp_path / "state.json"
        while b"long ago" not in state.read_bytes():
            first.get("/sandbox/changes?after=9999999&wait=0")
        process = first._process
        assert process is not None
        process.kill()
        process.wait()
    with Sandbox("--data", str(tmp_path)) as second:
        assert second.messages()[0]["text"] == "long ago"


@pytest.mark.parametrize("damage", ["cut", "flipped", "head", "empty"])
def test_a_damaged_file_is_set_aside_with_a_message(tmp_path: Path, damage: str) -> None:
    said: list[str] = []
    with Keeper(tmp_path, said.append) as keeper:
        keeper._try_save(take_snapshot(lively().world))
        state = tmp_path / "state.json"
        good = state.read_bytes()
        damaged = {
            "cut": good[:-100],
            "flipped": good.replace(b"amber", b"ember"),
            "head": b"x" + good,
            "empty": b"",
        }[damage]
        state.write_bytes(damaged)
        world = keeper.load(RNG)
    assert not any(chat.messages for chat in world.chats.values())
    (aside,) = tmp_path.glob("state.json.damaged-*")
    assert aside.read_bytes() == damaged
    assert len(said) == 1
    assert str(aside) in said[0]


def test_a_missing_or_altered_file_of_the_bot_is_damage(tmp_path: Path) -> None:
    said: list[str] = []
    with Keeper(tmp_path, said.append) as keeper:
        keeper._try_save(take_snapshot(lively().world))
        (kept,) = (tmp_path / "files").iterdir()
        assert kept.read_bytes() == b"content"
        kept.write_bytes(b"changed")
        keeper.load(RNG)
    assert "is not what it was" in said[0]


def test_contents_that_nobody_needs_go(tmp_path: Path) -> None:
    with Keeper(tmp_path, print) as keeper:
        keeper._try_save(take_snapshot(lively().world))
        keeper._try_save(take_snapshot(Talk().world))
    assert list((tmp_path / "files").iterdir()) == []
    assert {item.name for item in tmp_path.iterdir()} == {"files", "lock", "state.json"}


def test_what_a_newer_version_wrote_is_left_alone(tmp_path: Path) -> None:
    newer = b'{"format": "telegram-bus sandbox", "version": 2, "sha256": "x"}\n{}\n'
    (tmp_path / "state.json").write_bytes(newer)
    with Keeper(tmp_path, print) as keeper, pytest.raises(KeepingError, match="version 2"):
        keeper.load(RNG)
    assert (tmp_path / "state.json").read_bytes() == newer


def test_a_directory_is_used_by_one_sandbox_and_the_other_says_so(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "telegram_bus", "sandbox", "--data", str(tmp_path)]
    with Keeper(tmp_path, print):
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (2, f"telegram-bus: another sandbox keeps its state in {tmp_path}\n")


def test_what_cannot_be_written_is_said_once_and_tried_again(tmp_path: Path) -> None:
    said: list[str] = []
    with Keeper(tmp_path, said.append) as keeper:
        blocker = tmp_path / ".state.json.new"
        blocker.mkdir()
        for _ in range(2):
            keeper._try_save(take_snapshot(Talk().world))
        assert len(said) == 1
        blocker.rmdir()
        keeper._try_save(take_snapshot(lively().world))
        assert keeper.load(RNG).webhook


FILES = "photo document video audio voice animation sticker video_note thumbnail certificate".split()
WORDS = (
    "text name title description caption question emoji short_description phone_number first_name last_name url "
    "address custom_title language_code"
).split()
PARAMS: Json = {
    **dict.fromkeys(FILES, Upload("a.txt", b"content")),
    **dict.fromkeys(WORDS, "a"),
    "media": [{"type": "photo", "media": "attach://photo"}] * 2,
    "options": [{"text": "a"}, {"text": "b"}],
    "permissions": {"can_send_messages": False},
    "rights": {"can_manage_chat": True},
    "commands": [{"command": "a", "description": "b"}],
    "reaction": [{"type": "emoji", "emoji": "👍"}],
    "menu_button": {"type": "commands"},
    "action": "typing",
    "draft_id": 1,
    "latitude": 1.5,
    "longitude": 2.5,
}


def test_whatever_the_methods_leave_behind_can_be_kept() -> None:
    talk, done = Talk(), set()
    for chat in (talk.private, talk.forum, talk.group):
        said = talk.say("hello", chat=chat)["message_id"]
        for name in METHODS:
            for message_id in (said, max(chat.messages, default=said)):
                ids = {"message_id": message_id, "message_ids": [message_id], "from_chat_id": chat.id}
                with suppress(Refusal):
                    talk.call(name, **{**PARAMS, **ids, "chat_id": chat.id, "user_id": talk.owner.id})
                    done.add(name)
    assert len(done) > len(METHODS) / 2
    snapshot = take_snapshot(talk.world)
    text = json.dumps(snapshot.graph)
    other = from_snapshot(json.loads(text), snapshot.blobs, RNG)
    assert json.dumps(take_snapshot(other).graph) == text
