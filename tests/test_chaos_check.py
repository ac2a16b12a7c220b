"""The checker of the chaos benchmark finds each broken promise, and nothing where none was broken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve

from benchmarks._chaos_check import Call, Facts, album_items, late, undone, violations
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
    leaders=frozenset({10}),
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
        ({"record": [*RECORD[:1], poll(2, 2.1, None), *RECORD[2:]], "leaders": {12}}, "two pollers"),
        ({"diary": DIARY[2:]}, "'f0:0' for f0 was lost"),
        ({"diary": [DIARY[0], {**DIARY[0], "id": "id7", "pid": 9, "at": 2.0}, *DIARY[1:]]}, "came under several ids"),
        ({"inboxes": {"f0": {"id0": True, "id1": False}}}, "'f0:1?' for f0 was handed over and is not done"),
        ({"diary": [*DIARY, line("done", 5.0, 12, 1)]}, "was done 2 times"),
        ({"diary": [{**DIARY[0], "key": "f1"}, *DIARY[1:]]}, "went to ['f1']"),
        ({"deaths": {}, "record": RECORD[:1]}, "was not killed"),
        ({"diary": [*DIARY[:3], line("handed", 2.9, 10, 1), *DIARY[3:]]}, "twice to process 10"),
        ({"diary": [*DIARY[:2], line("handed", 3.2, 11, 0), *DIARY[2:]]}, "after 10 had done it"),
        ({"diary": [*DIARY[2:3], *DIARY[:2], *DIARY[3:]], "said": {"f0": TEXTS[::-1]}}, "was handed 'f0:1?' after"),
        ({"said": {"f0": TEXTS[::-1]}, "diary": [*DIARY[:2], *DIARY[3:]]}, "was first seen after number 1"),
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
        ({"diary": [*DIARY, {"what": "fault", "why": "/bot1:secret/"}]}, "the token stands in what was said"),
        ({"record": [*RECORD, send(5, 5.0, "bot1:secret", 51)]}, "the token stands in what was said"),
        ({"diary": [*DIARY, {**DIARY[0], "text": "who?", "id": "id9", "at": 9.0}]}, "which nobody said"),
    ],
)
def test_each_broken_promise_is_found(changes: dict[str, Any], said: str) -> None:
    assert any(said in found for found in violations(evolve(SOUND, **changes))), list(
        violations(evolve(SOUND, **changes))
    )


def test_answers_go_out_in_the_order_in_which_they_were_asked_for() -> None:
    texts = ("f0:0?", "f0:1?")
    diary = [{**one, "text": one["text"].rstrip("?") + "?"} if "text" in one else one for one in DIARY]
    diary.insert(1, line("sent", 2.15, 10, 0, message_id=49, part=1))
    first = Call(3, "f0", f"named:{call_id('id0', 'answer 1')}", "settled", 0, 0, b'{"result": {"message_id": 49}}')
    both: dict[str, Any] = {"said": {"f0": texts}, "diary": diary, "calls": [first, outbox()]}
    in_order = [*RECORD, send(5, 2.12, "re f0:0? 1 of 1 by 10", 49)]
    assert list(violations(evolve(SOUND, record=in_order, **both))) == []
    [found] = violations(evolve(SOUND, record=[*RECORD, send(5, 5.0, "re f0:0? 1 of 1 by 10", 49)], **both))
    assert "answers went out in another order" in found


# -- work that changes hands

HANDED = (
    {"what": "handed", "at": 2.1, "pid": 10, "key": "f0", "id": "a", "text": "f0:0>f1"},
    {"what": "gave", "at": 2.2, "pid": 10, "key": "f0", "id": "a"},
    {"what": "handed", "at": 2.3, "pid": 11, "key": "f1", "id": "b", "text": "f0:0>f1"},
    {"what": "done", "at": 2.4, "pid": 11, "key": "f1", "id": "b"},
)
GIVEN = evolve(
    SOUND,
    said={"f0": ("f0:0>f1",), "f1": ()},
    diary=HANDED,
    record=RECORD[:3],
    calls=[],
    inboxes={"f0": {"a": True}, "f1": {"b": True}},
)
BACK = {**HANDED[0], "at": 2.5, "pid": 12}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"diary": HANDED[:2]}, "was given to f1, which never got it"),
        ({"diary": [*HANDED[:2], {**HANDED[1], "what": "done"}, *HANDED[2:]]}, "was done by who gave it away"),
        ({"diary": [*HANDED, BACK], "deaths": {10: 2.45}}, "came back to who had given it to f1"),
        ({"inboxes": {"f0": {"a": True}, "f1": {"b": False}}}, "for f1 was handed over and is not done"),
        ({"inboxes": {"f0": {"a": False}, "f1": {"b": True}}}, "for f0 was handed over and is not done"),
        ({"diary": [*HANDED, {**HANDED[3], "pid": 12}]}, "for f1 was done 2 times"),
        ({"diary": [*HANDED, {**HANDED[2], "id": "c", "at": 2.6, "pid": 12}]}, "for f1 came under several ids"),
        ({"diary": [*HANDED[:2], *({**one, "key": "f2"} for one in HANDED[2:])]}, "went to ['f2']"),
    ],
)
def test_work_that_changes_hands_is_done_by_one(changes: dict[str, Any], said: str) -> None:
    assert list(violations(GIVEN)) == []
    found = list(violations(evolve(GIVEN, **changes)))
    assert any(said in one for one in found), found


def test_who_gave_work_away_and_died_before_it_was_decided_has_it_again() -> None:
    died = [HANDED[0], {**HANDED[0], "at": 2.15, "pid": 12}, {**HANDED[1], "pid": 12}, *HANDED[2:]]
    assert list(violations(evolve(GIVEN, diary=died, deaths={10: 2.12}))) == []


def test_what_nobody_owned_is_done_by_whom_a_person_chose_and_by_nobody_else() -> None:
    lost = [{**one, "text": "lost:0"} if "text" in one else one for one in HANDED[2:]]
    chosen = evolve(GIVEN, said={"lost": ("lost:0",), "f1": ()}, diary=lost)
    assert list(violations(chosen)) == []
    assert any("went to ['f0']" in one for one in violations(evolve(chosen, diary=[*lost, {**lost[0], "key": "f0"}])))
    assert any("was lost" in one for one in violations(evolve(chosen, diary=[])))


# -- questions, and threads that a person deletes


def question(n: int) -> dict[str, Any]:
    return send(n, 5.0, "which for f0:0#", 60 + n)


ASKED = evolve(
    GIVEN,
    said={"f0": ("f0:0#",)},
    diary=[
        {**HANDED[0], "text": "f0:0#"},
        {"what": "answered", "at": 2.2, "pid": 10, "id": "a", "value": "yes"},
        {"what": "done", "at": 2.3, "pid": 10, "id": "a"},
    ],
    record=[*RECORD[:3], question(4)],
    pressed={"which for f0:0#": ["yes", "no"]},
)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"record": [*ASKED.record, question(5)]}, "was asked 2 times, 0 of them wanted"),
        ({"diary": [ASKED.diary[0], ASKED.diary[2]]}, "has no answer"),
        ({"pressed": {"which for f0:0#": ["no", "yes"]}}, "was answered ['yes']"),
        ({"diary": [*ASKED.diary[:2], {**ASKED.diary[1], "value": "no"}, ASKED.diary[2]]}, "was answered ['no']"),
    ],
)
def test_a_question_is_asked_once_and_has_one_answer(changes: dict[str, Any], said: str) -> None:
    assert list(violations(ASKED)) == []
    found = list(violations(evolve(ASKED, **changes)))
    assert any(said in one for one in found), found


def test_a_thread_that_a_person_deleted_may_be_made_once_more() -> None:
    record = [*RECORD, topic(5, "new"), topic(6, "new")]
    assert list(violations(evolve(SOUND, record=record, deleted=["new"]))) == []
    again = evolve(SOUND, record=[*record, topic(7, "new")], deleted=["new"])
    assert any("3 threads were made for new" in one for one in violations(again))


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


def test_what_was_done_by_who_died_before_it_could_write_that_down_is_not_late() -> None:
    assert late(SOUND) == []
    unwritten = evolve(SOUND, diary=DIARY[:-1])
    assert late(unwritten) == []
    assert late(evolve(unwritten, inboxes={"f0": {"id0": True, "id1": False}})) == ["f0:1?"]
    assert late(evolve(SOUND, diary=DIARY[2:])) == ["f0:0"]
    assert late(evolve(SOUND, diary=DIARY[2:], dead_letters=frozenset({"f0:0"}))) == []


def test_what_was_given_away_is_late_until_the_other_one_has_done_it() -> None:
    assert late(GIVEN) == []
    assert late(evolve(GIVEN, diary=HANDED[:2])) == ["f0:0>f1"]
    assert late(evolve(GIVEN, diary=HANDED[:3])) == []
    assert late(evolve(GIVEN, diary=[HANDED[0], {**HANDED[1], "what": "kept"}])) == []
