"""The checker of the chaos benchmark finds each broken promise, and nothing where none was broken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve

from benchmarks._chaos_check import Call, Facts, album_items, undone, violations
from telegram_bus.core.identity import call_id


def poll(n: int, began: float, ended: float | None, **more: Any) -> dict[str, Any]:
    """An entry of the sandbox's record."""
    usual = {"params": {"offset": 0}, "ok": ended is not None, "code": 200, "result": [], "disconnected": None}
    return {"n": n, "kind": "poll", "method": "getUpdates", "began": began, "ended": ended, **usual, **more}


def send(n: int, began: float, text: str, message_id: int) -> dict[str, Any]:
    """An entry of the sandbox's record."""
    entry = {"n": n, "kind": "call", "method": "sendMessage", "began": began, "ended": began, "ok": True}
    return {**entry, "params": {"text": text}, "result": {"message_id": message_id}}


def line(what: str, at: float, pid: int, number: int, **more: Any) -> dict[str, Any]:
    """A line of a handler's diary about the update `number` of f0."""
    text = {"text": TEXTS[number]} if what == "handed" else {}
    return {"what": what, "at": at, "pid": pid, "key": "f0", "id": f"id{number}", **text, **more}


def outbox(state: str = "settled", *, tries: int = 0, told: int = 0, answer: str | None = None) -> Call:
    """The row of the answer to the update 1 of f0."""
    answer = '{"result": {"message_id": 50}}' if answer is None and state == "settled" else answer
    name = f"named:{call_id('id1', 'answer 1')}"
    return Call(1, "f0", name, state, tries, told, None if answer is None else answer.encode())


def notice(n: int, button: str, message_id: int = 60) -> dict[str, Any]:
    """The message that tells people of an unknown call."""
    markup = {"inline_keyboard": [[{"text": "Send again", "callback_data": button}]]}
    entry = send(n, 6.0, "Perhaps sent, perhaps not: hello", message_id)
    return {**entry, "params": {**entry["params"], "reply_markup": json.dumps(markup)}}


def topic(n: int, name: str) -> dict[str, Any]:
    """A thread was made."""
    return {**send(n, 1.0, "", 0), "method": "createForumTopic", "params": {"name": name}, "result": {}}


def deleted(n: int, thread: str) -> dict[str, Any]:
    """A thread was deleted."""
    return {**topic(n, ""), "method": "deleteForumTopic", "params": {"message_thread_id": thread}}


TOLD = Call(2, "", "doubt:1.0", "settled", 0, 0, b"{}")
TEXTS = ("f0:0", "f0:1?")
RECORD = (
    poll(1, 1.0, 2.0, result=[7, 8]),
    poll(2, 2.1, None, params={"offset": 9}, disconnected=3.0),
    poll(3, 3.02, 4.0, params={"offset": 9}),
    send(4, 4.0, "re f0:1? 1 of 1 by 11", 50),
)
DIARY = (
    line("handed", 2.1, 10, 0),
    line("done", 2.2, 10, 0),
    line("handed", 2.3, 10, 1),
    line("handed", 3.5, 11, 1),
    line("sent", 4.1, 11, 1, message_id=50, part=1),
    line("done", 4.2, 11, 1),
)
UNSENT = [one for one in DIARY if one["what"] != "sent"]
SOUND = Facts(
    said={"f0": TEXTS},
    diary=DIARY,
    deaths={10: 3.0},
    record=RECORD,
    journal=[(7, "f0", "accepted"), (8, "f0", "accepted"), (9, None, "answered")],
    admitted={7: 2.05, 8: 2.05, 9: 3.9},
    poll_offset=9,
    calls=[outbox()],
    inboxes={"f0": {"id0": True, "id1": True}},
    outputs={"leader.log": b"all is well"},
    token="1:secret",
)


def test_a_sound_run_breaks_nothing() -> None:
    """A poller that was killed, and a handler that was handed an update again after its process died."""
    assert list(violations(SOUND)) == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"record": [*RECORD[:1], poll(2, 2.1, None), *RECORD[2:]], "deaths": {10: 3.4}}, "two pollers"),
        ({"record": [*RECORD[:1], poll(2, 2.1, 2.5, code=409, ok=False), *RECORD[2:]], "deaths": {10: 3.4}}, "pollers"),
        ({"record": [poll(1, 1.0, 2.0, result=[7]), *RECORD[1:]]}, "no answer before it went beyond 7"),
        ({"poll_offset": 8, "record": [poll(1, 1.0, 2.0, result=[7]), *RECORD[1:]]}, "above the journal's 8"),
        ({"diary": DIARY[2:]}, "'f0:0' for f0 was lost"),
        ({"inboxes": {"f0": {"id0": True, "id1": False}}}, "'f0:1?' for f0 was handed over and is not done"),
        ({"diary": [*DIARY, line("done", 5.0, 12, 1)]}, "was done 2 times"),
        ({"diary": [{**DIARY[0], "key": "f1"}, *DIARY[1:]]}, "went to ['f1']"),
        ({"deaths": {}, "record": RECORD[:1]}, "was not killed"),
        ({"diary": [*DIARY[:3], line("handed", 2.9, 10, 1), *DIARY[3:]]}, "twice to process 10"),
        ({"diary": [*DIARY[:2], line("handed", 3.2, 11, 0), *DIARY[2:]]}, "after 10 had done it"),
        ({"diary": [*DIARY[2:3], *DIARY[:2], *DIARY[3:]], "said": {"f0": TEXTS[::-1]}}, "was handed 'f0:1?' after"),
        ({"record": [*RECORD, send(5, 5.0, "re f0:1? 1 of 1 by 11", 51)]}, "was sent 2 times, 0 of them wanted"),
        ({"record": [*RECORD, send(5, 5.0, "re f0:1? 2 of 2 by 11", 51)]}, "which nobody wanted"),
        ({"record": RECORD[:3]}, "at Telegram it is []"),
        ({"record": RECORD[:3], "diary": UNSENT, "calls": []}, "was never sent"),
        ({"record": RECORD[:3], "diary": UNSENT}, "is message 50 in the outbox, and not at Telegram"),
        ({"calls": []}, "the outbox does not know it"),
        ({"calls": [outbox("accepted")]}, "is still accepted at the end"),
        ({"calls": [outbox("claimed")]}, "is still claimed at the end"),
        ({"calls": [outbox(answer='{"refused": "x"}')]}, "is refused in the outbox, and was sent"),
        ({"calls": [outbox("unknown"), TOLD]}, "nobody was told"),
        ({"calls": [outbox("unknown", told=1)]}, "nobody was told"),
        ({"calls": [outbox("unknown", told=1), TOLD]}, "was lost"),
        ({"record": [*RECORD, notice(5, "tb:again:1.0"), notice(6, "tb:again:1.0", 61)]}, "in the chat 2 times"),
        ({"record": [*RECORD, topic(5, "new"), topic(6, "new")]}, "2 threads were made for new"),
        ({"record": [*RECORD, deleted(5, "11")], "threads": {"f0": 11}}, "which is needed, was deleted"),
        ({"diary": [*DIARY, *({"what": "came", "key": key, "thread": 5} for key in "ab")]}, "thread 5 belongs to"),
        ({"journal": [(7, "f0", "dropped")]}, "update 7 of f0 is dropped"),
        ({"admitted": {7: 2.05, 8: 2.2}}, "confirmed 9 when update 8 was not in the journal"),
        ({"journal": [(7, "f0", None)]}, "still waiting"),
        ({"outputs": {"leader.log": b"POST /bot1:secret/getMe"}}, "the token stands in leader.log"),
        ({"diary": [*DIARY, {**DIARY[0], "text": "who?", "id": "id9", "at": 9.0}]}, "which nobody said"),
    ],
)
def test_each_broken_promise_is_found(changes: dict[str, Any], said: str) -> None:
    assert any(said in found for found in violations(evolve(SOUND, **changes))), list(
        violations(evolve(SOUND, **changes))
    )


def test_what_was_set_aside_as_a_dead_letter_is_not_lost() -> None:
    journal = [(7, "f0", "rejected"), *SOUND.journal[1:]]
    dead = evolve(SOUND, diary=DIARY[2:], journal=journal, dead_letters=frozenset({"f0:0"}))
    assert list(violations(dead)) == []


def test_an_answer_that_nobody_can_tell_of_may_be_there_or_not() -> None:
    unknown = [line("unknown", 4.1, 11, 1, part=1) if one["what"] == "sent" else one for one in DIARY]
    calls = [outbox("unknown", told=1), TOLD]
    told = notice(9, "tb:again:1.0")
    assert list(violations(evolve(SOUND, diary=unknown, calls=calls, record=[*RECORD, told]))) == []
    assert list(violations(evolve(SOUND, diary=unknown, calls=calls, record=[*RECORD[:3], told]))) == []


def test_what_a_person_had_sent_again_may_be_there_twice() -> None:
    again = [*RECORD, notice(9, "tb:again:1.0"), send(10, 7.0, "re f0:1? 1 of 1 by 11", 51)]
    assert list(violations(evolve(SOUND, calls=[outbox(tries=1), TOLD], record=again))) == []


def test_what_nobody_waited_for_may_never_have_been_accepted() -> None:
    left: dict[str, Any] = {"said": {"f0": ("f0:0", "f0:1!")}, "record": RECORD[:3], "calls": []}
    diary = [{**one, "text": "f0:1!"} if one.get("text") == "f0:1?" else one for one in UNSENT]
    assert list(violations(evolve(SOUND, diary=diary, **left))) == []


def test_what_is_left_is_known_with_those_who_have_it() -> None:
    assert undone(SOUND.said, DIARY) == {}
    assert undone(SOUND.said, DIARY[:4]) == {"f0:1?": [10, 11]}
    assert undone(SOUND.said, DIARY[:2]) == {"f0:1?": []}


def test_an_album_is_done_as_one_and_counted_where_it_was_cut_in_two() -> None:
    diary: list[dict[str, Any]] = [
        {"what": "handed", "pid": 10, "id": name, "text": text}
        for name, text in (("a", "f0:0="), ("a", "f0:1="), ("b", "f0:2="), ("c", "f0:3"))
    ]
    said = {"f0": [entry["text"] for entry in diary]}
    assert album_items(diary) == 2
    assert undone(said, [*diary, {"what": "done", "id": "a"}]) == {"f0:2=": [10], "f0:3": [10]}
