"""What a registered follower that means harm asks the leader for, beside calls."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from telegram_bus.botapi.sender import Sender
from telegram_bus.core.book import Book
from telegram_bus.core.envelopes import Ack, AgentMessage, Target
from telegram_bus.core.errors import RequestRefused, StateError
from telegram_bus.core.extensions import ButtonsKeep, FilePart, HandedPart, QuestionWait, UpdateHand
from telegram_bus.core.identity import MAX_SAFE_INTEGER
from telegram_bus.core.permissions import repeatable
from telegram_bus.core.registry import Member, Registry
from telegram_bus.home import Profile, mint_secret
from telegram_bus.roles.audit import Audit
from telegram_bus.roles.deliveries import REFUSALS, Deliveries
from telegram_bus.roles.files import Enclosed, Files
from telegram_bus.roles.telling import AGENT_MESSAGES, update_id_of
from telegram_bus.store import NewUpdate, open_store
from telegram_bus.wire.descriptors import Descriptors
from tests.fakes import CHAT, SECRET, FakeTelegram, admit, fake_files, memory_store, message, registration
from tests.roles.term_rig import Rig, running
from tests.roles.test_buttons import press

FIELDS: dict[str, Any] = {"request_id": "r", "instance_id": "i", "registration_generation": "g", "sent_at_ms": 1}


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    """A victim in thread 11, an intruder in 12, and its accomplice in 13."""
    async with running(Rig()) as rig:
        for number, key in enumerate(("victim", "intruder", "accomplice")):
            await rig.agent(key, 11 + number)
        yield rig


def member(rig: Rig, key: str) -> Member:
    found = rig.term.registry.by_key(key)
    assert found is not None
    return found


# the leader edits a question's message, and takes replies to it


def keep(message_id: int) -> ButtonsKeep:
    question = {"buttons": [["Yes", 1]], "question": {"text": "?", "allow_text": True}}
    return ButtonsKeep(**FIELDS, keyboard_id="k", content=question, message_id=message_id)


@pytest.mark.parametrize("message_id", [500, 501, 0, -1, 2**53, 10**30])
async def test_a_question_stands_under_no_message_of_another_s(rig: Rig, message_id: int) -> None:
    await rig.term.store.record_messages("victim", [(CHAT, 500, 11)], 1)  # 501 is the leader's, say
    with pytest.raises(RequestRefused, match="is not one that intruder sent"):
        await rig.term.serve(member(rig, "intruder"), keep(message_id))
    await rig.take(message(1, reply_to_message={"message_id": message_id}))
    assert rig.got == [("victim", 1)]
    assert not rig.telegram.made("editMessageText")


async def test_a_question_stands_under_its_follower_s_own_message(rig: Rig) -> None:
    await rig.term.store.record_messages("intruder", [(CHAT, 500, 12)], 1)
    kept = await rig.term.serve(member(rig, "intruder"), keep(500))
    assert kept["messageId"] == 500


async def test_nobody_asks_for_the_answers_to_a_million_questions(rig: Rig) -> None:
    many = ("q",) * 10_001
    for request in (QuestionWait(**FIELDS, questions=many), QuestionWait(**FIELDS, questions=(), withdrawn=many)):
        with pytest.raises(RequestRefused, match="at most 10000 questions"):
            await rig.term.serve(member(rig, "intruder"), request)


async def test_of_a_call_that_is_too_large_nothing_is_looked_up(rig: Rig) -> None:
    """To find which files it names took 6 s of everybody's."""
    body = {"photo": "file", "entities": [{"photo": "file"}] * 20_000}
    assert rig.term.recall(member(rig, "intruder"), "call", ("sendPhoto", {"photo": "file"})) is not None
    assert rig.term.recall(member(rig, "intruder"), "call", ("sendPhoto", body)) is None


# an update that is given away brings rights along


def part(kind: str, body: dict[str, Any]) -> HandedPart:
    return HandedPart(kind=kind, body=body)


def hand(*parts: HandedPart, token: int = 7, to: str = "accomplice") -> UpdateHand:
    return UpdateHand(**FIELDS, to=to, token=token, parts=parts)


async def test_who_gives_away_what_it_never_got_gives_no_rights(rig: Rig) -> None:
    photo = [{"file_id": "secret", "width": 1, "height": 1}]
    await rig.take(message(1, photo=photo))  # the victim's
    theirs = message(1, photo=photo)["message"]
    with pytest.raises(RequestRefused, match="is of no message that intruder was given or has sent"):
        await rig.term.serve(member(rig, "intruder"), hand(part("message", theirs)))
    accomplice = rig.term.owned_by(member(rig, "accomplice"))
    assert not accomplice.seen(CHAT, theirs["message_id"])
    assert not accomplice.file("secret")
    assert [owner for _, owner, _ in rig.rows()] == ["victim"]


async def test_the_rights_of_what_is_given_away_are_those_of_its_giver(rig: Rig) -> None:
    """The message is its own; a file in it, and the press, are made up."""
    own = message(1, thread=12)
    await rig.take(own, message(2, photo=[{"file_id": "secret", "width": 1, "height": 1}]), press(3, "x", thread=11))
    made_up = own["message"] | {"photo": [{"file_id": "secret", "width": 1, "height": 1}]}
    query = {"id": "q3", "from": own["message"]["from"], "message": own["message"], "data": "x"}
    await rig.term.serve(member(rig, "intruder"), hand(part("message", made_up), part("callback_query", query)))
    accomplice = rig.term.owned_by(member(rig, "accomplice"))
    assert accomplice.seen(CHAT, own["message"]["message_id"])
    assert not accomplice.file("secret")
    assert not accomplice.callback("q3")


async def test_what_was_asked_twice_at_once_is_given_once_and_not_refused(rig: Rig) -> None:
    own = message(1, thread=12)
    await rig.take(own)
    answers: list[Any] = []

    async def ask() -> None:
        answers.append(await rig.term.serve(member(rig, "intruder"), hand(part("message", own["message"]))))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask)
    assert answers == [{"key": "accomplice", "name": "accomplice", "present": True}] * 3
    assert [owner for _, owner, _ in rig.rows()] == ["intruder", "accomplice"]


async def test_a_message_that_is_none_of_ours_is_not_given_away(rig: Rig) -> None:
    for body in ({}, {"message_id": 1}, {"chat": {"id": CHAT}}, {"chat": {"id": 1}, "message_id": 1001}):
        with pytest.raises(RequestRefused, match=r"parts\[0\]"):
            await rig.term.serve(member(rig, "intruder"), hand(part("message", body)))


# ids of chats that count anew


async def test_a_message_to_an_agent_is_not_taken_for_one_of_the_group_before(rig: Rig) -> None:
    """A group became a supergroup, whose messages begin at 1 again: the second one was lost."""
    chats = (CHAT, -1001998877665)
    ids = {update_id_of(chat, message) for chat in chats for message in (1, 2, 2**31 - 1)}
    assert len(ids) == 6
    assert all(AGENT_MESSAGES < one <= MAX_SAFE_INTEGER for one in ids)
    victim = member(rig, "victim")
    for chat in chats:
        rig.term.threads.book = Book(chat)
        rig.term.threads.chat_id = chat
        await rig.term.threads.note(rig.term.threads.book.bind("accomplice", 13, "x", holder=None, now_ms=1))
        await rig.term.store.record_messages("victim", [(chat, 5, 13)], 1)
        target = Target(chat_id=chat, thread_id=13)
        await rig.term.route(victim, AgentMessage(target=target, message_id=5, text="hello"))
    assert len(rig.rows()) == 2


# a thread that somebody says it had


@pytest.mark.parametrize("thread", [0, 1, -1, 2**53, 2**64 - 1])
async def test_what_is_no_thread_of_a_follower_s_becomes_nobody_s(rig: Rig, thread: int) -> None:
    """Telegram takes 0 for the main chat, and General is everybody's."""
    given = await rig.term.threads.provide(registration("new", thread=thread))
    assert given.target.thread_id not in (thread, None)
    assert rig.telegram.made("createForumTopic")


# what a follower answers


async def test_half_a_character_in_a_refusal_stops_no_delivery(autojump_clock: MockClock) -> None:
    store, _ = memory_store()
    registry = Registry()
    told: list[str] = []

    async def refuse(_member: Member, envelope: Any) -> Ack:
        await trio.lowlevel.checkpoint()
        return Ack(request_id=envelope.request_id, ok=False, message="\ud800 \x1b[2J no")

    deliveries = Deliveries(store=store, members=registry, forward=refuse, secret=SECRET, now_ms=lambda: 5)
    deliveries.aside = lambda _update, reason, *_: told.append(reason)
    update = NewUpdate(
        update_id=1, kind="message", body=b'{"update_id":1,"message":{"message_id":1}}', owner_key="a", chat_id=CHAT
    )
    admit(registry, "a")
    async with trio.open_nursery() as nursery:
        await nursery.start(deliveries.run)
        deliveries.put(await store.admit_batch([update], 2, 1))
        await trio.sleep(3_600)
        nursery.cancel_scope.cancel()
    assert told == [f"a refused it {REFUSALS} times: ?  no"]


async def test_work_that_no_line_can_carry_is_set_aside() -> None:
    """It was handed over, or told, in a line of 16 MB, and its delivery is longer still: it ended each leader."""
    store, _ = memory_store()
    registry = Registry()
    told: list[str] = []

    async def too_long(_member: Member, _envelope: Any) -> Ack:
        await trio.lowlevel.checkpoint()
        raise RequestRefused("a request of 17000000 bytes is too long")

    deliveries = Deliveries(store=store, members=registry, forward=too_long, secret=SECRET, now_ms=lambda: 5)
    deliveries.aside = lambda _update, reason, *_: told.append(reason)
    update = NewUpdate(update_id=1, kind="message", body=b'{"update_id":1,"message":{}}', owner_key="a", chat_id=CHAT)
    admit(registry, "a")
    async with trio.open_nursery() as nursery:
        await nursery.start(deliveries.run)
        deliveries.put(await store.admit_batch([update], 2, 1))
        await wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert told == ["it cannot be written: a request of 17000000 bytes is too long"]


# files that must not be sent


def open_file(path: Path, flags: int = os.O_RDONLY) -> Enclosed:
    return Enclosed((FilePart(field="document", name="a"),), Descriptors([os.open(path, flags)]))


@pytest.fixture
def files(bus_profile: Profile) -> Files:
    bus_profile.config_toml.write_text('token = "1:secret"\n')
    mint_secret(bus_profile.follower_secret)
    mint_secret(bus_profile.operator_secret)
    bus_profile.database.write_bytes(b"x")
    (bus_profile.home.root / "token").write_text("1:secret")
    files = fake_files(FakeTelegram(), bus_profile)
    files.secrets = (bus_profile.home.root / "token", bus_profile.home.root / "missing")
    return files


@pytest.mark.parametrize("name", ["config.toml", "follower.secret", "operator.secret", "bus.sqlite3", "../../token"])
@pytest.mark.parametrize("way", ["itself", "symlink", "hard link"])
def test_nobody_sends_what_holds_the_secrets_of_the_bus(files: Files, tmp_path: Path, name: str, way: str) -> None:
    """An agent that is talked into it has the file open itself: that it may read it is no reason to show it."""
    path = files.profile.directory / name
    if way == "symlink":
        path = tmp_path / "harmless.txt"
        path.symlink_to(files.profile.directory / name)
    elif way == "hard link":
        path = files.profile.directory / "harmless.txt"
        path.hardlink_to(files.profile.directory / name)
    with open_file(path) as enclosed, pytest.raises(RequestRefused, match="holds secrets of the bus"):
        files.check(enclosed)


def test_other_files_of_the_bus_may_be_sent(files: Files) -> None:
    log = files.profile.leader_log
    log.write_text("something went wrong\n")
    with open_file(log) as enclosed:
        files.check(enclosed)


@pytest.mark.skipif(not hasattr(os, "O_PATH"), reason="Linux's")
def test_a_descriptor_that_cannot_be_read_is_refused_before_anything_is_sent(files: Files, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_text("x")
    with open_file(path, os.O_PATH) as enclosed, pytest.raises(RequestRefused, match="open for reading"):
        files.check(enclosed)


# mistakes over one call, and things in the place of files


async def test_a_call_that_nobody_foresaw_costs_no_other_call_anything() -> None:
    telegram = FakeTelegram()
    sender = Sender(telegram, repeatable=repeatable)

    async def mistake() -> None:
        raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")

    async with trio.open_nursery() as nursery:
        await nursery.start(sender.run)
        with pytest.raises(RequestRefused, match="was not sent: the leader made a mistake"):
            await sender.call("createForumTopic", {}, 1, before=mistake)
        assert await sender.call("sendMessage", {"chat_id": 1, "text": "x"}, 1)
        await sender.drain()
        nursery.cancel_scope.cancel()
    assert [method for method, _ in telegram.calls] == ["sendMessage"]


async def test_a_mistake_while_a_call_is_at_telegram_leaves_its_outcome_unknown() -> None:
    telegram = FakeTelegram(results={"sendMessage": ZeroDivisionError()})
    sender = Sender(telegram, repeatable=repeatable)
    async with trio.open_nursery() as nursery:
        await nursery.start(sender.run)
        with pytest.raises(Exception, match="nobody knows whether sendMessage was carried out"):
            await sender.call("sendMessage", {"chat_id": 1, "text": "x"}, 1)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("value", ["\ud800", 2**63])
async def test_what_no_store_takes_is_a_fault_that_its_tasks_cope_with(tmp_path: Path, value: Any) -> None:
    async with open_store(tmp_path / "bus.sqlite3", holder="test") as store:
        with pytest.raises(StateError, match="cannot be stored"):
            await store.note_given([((1, 2), value) if isinstance(value, str) else ((1, value), "a")], 1)
        await store.note_given([((1, 2), "a")], 1)
        assert await store.given_to(1, 2) == "a"


async def test_a_fifo_in_the_place_of_the_audit_log_holds_nobody_up(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    os.mkfifo(path)
    audit = Audit(path=path, now_ms=lambda: 1)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            await nursery.start(audit.run)
            audit.note("a", 1, "sendMessage", "chat_id", "must be 5")
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()


async def test_names_in_the_audit_log_steer_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    audit = Audit(path=path, now_ms=lambda: 1)
    async with trio.open_nursery() as nursery:
        await nursery.start(audit.run)
        audit.note("a\x1b[2J\x9b2J\u202e\n\ud800", 1, "sendMessage", "chat_id", "must be 5")
        nursery.cancel_scope.cancel()
    text = path.read_text()
    assert text.count("\n") == 1
    assert not set(text) & set("\x1b\x9b\u202e")
