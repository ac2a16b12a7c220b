"""A long run does not fill the memory, and who follows changes learns when some are gone."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from telegram_bus.sandbox import model, model_changes, model_doings, record
from telegram_bus.sandbox.mirror import Mirror
from telegram_bus.sandbox.model_changes import Changes
from telegram_bus.sandbox.model_views import world_state
from telegram_bus.sandbox.record import Record, Wanted
from tests.sandbox.talk import Talk


def test_a_chat_forgets_its_oldest_messages_but_not_what_created_a_topic() -> None:
    talk = Talk()
    thread = talk.topic()
    for _ in range(model.KEPT_MESSAGES + 5):
        talk.world.post(talk.private, talk.world.bot, talk.now, text="x")
    ids = list(talk.private.messages)
    assert len(ids) == model.KEPT_MESSAGES
    assert ids[0] == thread
    assert ids[1] == thread + 7


def test_changes_are_numbered_and_the_oldest_go() -> None:
    changes = Changes()
    for number in range(model_changes.KEPT + 10):
        changes.add("message", number=number)
    assert changes.last == model_changes.KEPT + 10
    assert changes.after(changes.last) == []
    newest = changes.after(changes.last - 2)
    assert newest is not None
    assert [change["seq"] for change in newest] == [changes.last - 1, changes.last]
    assert changes.after(9) is None
    assert changes.after(10) is not None
    assert changes.after(changes.last + 1) is None
    assert changes.after(-1) is None


def test_the_record_keeps_the_newest_and_tells_what_changed() -> None:
    calls = Record()
    poll = calls.begin("getUpdates", {}, 1.0, 100.0)
    for number in range(3):
        entry = calls.begin("sendMessage", {"text": str(number)}, 2.0, 101.0)
        calls.end(entry, 2.5, {"ok": True, "result": {}})
    seen = calls.version
    calls.end(poll, 3.0, {"ok": True, "result": [{"update_id": 7}]})
    assert calls.find(Wanted(changed_after=seen)) == [poll]
    assert poll.result == [7]
    for _ in range(record.KEPT):
        calls.begin("getMe", {}, 4.0, 102.0)
    assert len(calls.find(Wanted())) == record.KEPT
    assert calls.find(Wanted(method="sendMessage")) == []


def test_a_mirror_that_follows_changes_equals_one_that_reads_the_state() -> None:
    talk = Talk()
    mirror = Mirror()
    thread = talk.topic(name="one")
    gone = talk.topic(name="two")
    sent = talk.send("a", message_thread_id=thread)
    talk.send("b", message_thread_id=gone)
    talk.say("c")
    talk.call("editMessageText", chat_id=talk.private.id, message_id=sent["message_id"], text="d")
    talk.call("deleteForumTopic", chat_id=talk.private.id, message_thread_id=gone)
    for change in talk.world.changes.after(0) or []:
        mirror.apply(change)
        mirror.apply(change)
    other = Mirror()
    other.reset(world_state(talk.world))
    chat = talk.private.id
    assert mirror.messages(chat) == other.messages(chat)
    assert mirror.topics(chat) == other.topics(chat)
    assert mirror.seq == other.seq
    assert [item["text"] for item in mirror.messages(chat, thread, by_bot=True) if "text" in item] == ["d"]


def test_the_memory_of_a_long_conversation_is_flat(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((model, "KEPT_MESSAGES"), (model_changes, "KEPT"), (record, "KEPT")):
        monkeypatch.setattr(module, name, 100)
    monkeypatch.setattr(model_doings, "KEPT_CALLBACKS", 50)
    talk, calls = Talk(), Record()
    thread = talk.topic()
    keyboard = {"inline_keyboard": [[{"text": "A", "callback_data": "a"}]]}
    offset = 0

    def converse(times: int) -> int:
        nonlocal offset
        for _ in range(times):
            talk.now += 1
            entry = calls.begin("sendMessage", {"text": "x" * 50}, talk.now, talk.now)
            sent = talk.send("x" * 50, message_thread_id=thread, reply_markup=keyboard)
            calls.end(entry, talk.now, {"ok": True, "result": sent})
            talk.say("y" * 50, thread_id=thread)
            model_doings.press(talk.world, talk.private, talk.owner, sent["message_id"], "a", talk.now)
            talk.call("editMessageText", chat_id=talk.private.id, message_id=sent["message_id"], text="z" * 50)
            offset = talk.ids(offset)[-1] + 1
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        filled = converse(500)
        later = converse(300)
    finally:
        tracemalloc.stop()
    assert later < filled * 1.02, (filled, later)
