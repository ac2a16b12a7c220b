"""The invariants of a run of chaos, judged from what everybody wrote down; pure."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from attrs import field, frozen

from benchmarks._chaos_agent import QUESTION, asks_person, parts_of, recipient_of
from telegram_bus.core.identity import call_id
from telegram_bus.followers.keyboards import key_for
from telegram_bus.roles.calls import NAMED

__all__ = [
    "DEAD",
    "LOST",
    "OVERLAP",
    "QUESTION",
    "Call",
    "Facts",
    "album_items",
    "late",
    "notice_of",
    "undone",
    "violations",
]

LOST = "lost"  # stands for the owner of what was written into threads that nobody has

DEAD = ("rejected", "expired")  # outcomes of what was set aside as a dead letter
CLOCKS = 0.01  # seconds by which the journal's clock (wall, ms) and the sandbox's (monotonic) may differ
OVERLAP = 0.05  # seconds by which the sandbox may hear of a poller's end later than of its successor

Line = Mapping[str, Any]


class Call(NamedTuple):
    """A row of the leader's outbox; `key` is empty for its own notices."""

    seq: int
    key: str
    request_id: str
    state: str
    tries: int
    told: int
    answer: bytes | None


@frozen(kw_only=True)
class Facts:
    """What a run left behind.

    `said`: of each key, the texts in order; `threads`: their threads. `diary`: the lines of all handlers, of each
    process in order. `deaths`: when a pid was killed (monotonic); `leaders`: which of them may have polled.
    `pressed`: of each question, the answers that were given, in order; `deleted`: the names of the threads that a
    person has deleted. `record`: the sandbox's entries. `journal`: the
    leader's rows (update_id, owner_key, outcome), `admitted`: when each was stored (monotonic), `dead_letters`: the
    texts that were set aside, `calls`: its outbox, `poll_offset` its offset. `inboxes`: of each key, the ids of
    deliveries and whether they are done.
    """

    said: Mapping[str, Sequence[str]]
    diary: Sequence[Line]
    deaths: Mapping[int, float]
    record: Sequence[Line]
    journal: Sequence[tuple[int, str | None, str | None]]
    admitted: Mapping[int, float]
    poll_offset: int
    calls: Sequence[Call]
    inboxes: Mapping[str, Mapping[str, bool]]
    outputs: Mapping[str, bytes] = field(repr=False)
    token: str = field(repr=False)
    dead_letters: frozenset[str] = frozenset()
    threads: Mapping[str, int] = field(factory=dict)
    leaders: frozenset[int] = frozenset()
    pressed: Mapping[str, Sequence[str]] = field(factory=dict)
    deleted: Sequence[str] = ()


def violations(facts: Facts) -> Iterator[str]:
    """Each broken promise, as a line for people."""
    for check in (
        *(_polls, _offsets, _updates, _handed, _order, _calls, _notices, _questions, _threads, _journal),
        _outputs,
    ):
        yield from check(facts)


def _polls(facts: Facts) -> Iterator[str]:
    """A getUpdates arrives only after the connection of the one before it has ended."""
    polls = sorted((entry for entry in facts.record if entry["kind"] == "poll"), key=lambda entry: entry["began"])
    for before, after in itertools.pairwise(polls):
        ends = [at for at in (before["ended"], before["disconnected"]) if at is not None]
        robbed = before["code"] == 409 or after["code"] == 409
        if not robbed and ends and min(ends) <= after["began"] + OVERLAP:
            continue
        deaths = [at for pid, at in facts.deaths.items() if pid in facts.leaders]
        if any(before["began"] < death <= after["began"] + OVERLAP for death in deaths):
            continue  # it was dead, and the sandbox had not heard of it yet
        yield (
            f"two pollers: poll {before['n']} (began {before['began']:.3f}, ended {ends or 'never'}, {before['code']}) "
            f"and poll {after['n']} (began {after['began']:.3f}, {after['code']})"
        )


def _offsets(facts: Facts) -> Iterator[str]:
    """An offset confirms only what was answered before, and stored by then where it is somebody's business.

    At the end the journal's is the highest.
    """
    top = 0
    open_ids: set[int] = set()
    for entry in sorted((entry for entry in facts.record if entry["kind"] == "poll"), key=lambda entry: entry["began"]):
        offset = int(entry["params"].get("offset") or 0)
        if offset > max(top, facts.poll_offset):
            yield f"poll {entry['n']} confirmed {offset}, above the journal's {facts.poll_offset}"
        elif offset > top:
            yield f"poll {entry['n']} confirmed {offset}, but no answer before it went beyond {top - 1}"
        for update_id in sorted(one for one in open_ids if one < offset):
            open_ids.discard(update_id)
            if facts.admitted.get(update_id, 0.0) > entry["began"] + CLOCKS:
                yield f"poll {entry['n']} confirmed {offset} when update {update_id} was not in the journal"
        if entry["ok"] and entry["result"]:
            open_ids.update(entry["result"])
            top = max(top, max(entry["result"]) + 1)


def _updates(facts: Facts) -> Iterator[str]:
    """Each update is done once, by its owner, and handed over again only if that process died before."""
    handed: dict[str, list[Line]] = defaultdict(list)
    finished: dict[str, list[int]] = defaultdict(list)
    for line in facts.diary:
        if line["what"] == "handed":
            handed[line["text"]].append(line)
        elif line["what"] == "done":
            finished[line["id"]].append(line["pid"])
    for key, texts in facts.said.items():
        for text in texts:
            lines = handed.pop(text, [])
            owners = {key}
            if key == LOST and lines:  # whoever a person gave it to
                owners = {lines[0]["key"]}
            elif (to := recipient_of(text)) is not None and any(line["key"] == to for line in lines):
                owners = {key, to}
            if strangers := {line["key"] for line in lines} - owners:
                yield f"{text!r} for {key} went to {sorted(strangers)}"
            for owner in sorted(owners):
                yield from _update(facts, owner, text, [line for line in lines if line["key"] == owner], finished)
    for text, lines in handed.items():
        yield f"{lines[0]['key']} was handed {text!r}, which nobody said"


def _update(
    facts: Facts, key: str, text: str, handed: Sequence[Line], finished: Mapping[str, Sequence[int]]
) -> Iterator[str]:
    if not handed and text in facts.dead_letters:
        return
    if not handed:
        yield f"{text!r} for {key} was lost: never handed over"
        return
    if len(ids := {line["id"] for line in handed}) > 1:
        yield f"{text!r} for {key} came under several ids: {sorted(ids)}"
    update_id = handed[-1]["id"]
    done_by = finished.get(update_id, [])
    if len(done_by) > 1:
        yield f"{text!r} for {key} was done {len(done_by)} times, by {done_by}"
    if not facts.inboxes.get(key, {}).get(update_id, False):
        yield f"{text!r} for {key} was handed over and is not done"
    for earlier, later in itertools.pairwise(handed):
        if earlier["pid"] == later["pid"]:
            yield f"{text!r} for {key} was handed over twice to process {later['pid']}"
        elif not facts.deaths.get(earlier["pid"], float("inf")) <= later["at"]:
            yield f"{text!r} for {key} was handed to {later['pid']} though {earlier['pid']} was not killed"
        elif earlier["pid"] in done_by:
            yield f"{text!r} for {key} was handed to {later['pid']} after {earlier['pid']} had done it"


def _handed(facts: Facts) -> Iterator[str]:
    """What was handed over is done by one of the two, and does not come back to who gave it away."""
    lines: dict[str, list[Line]] = defaultdict(list)
    texts = {line["id"]: line["text"] for line in facts.diary if line["what"] == "handed"}
    for line in facts.diary:
        if "id" in line and recipient_of(text := texts.get(line["id"], "")):
            lines[text].append(line)
    for text, those in lines.items():
        to = recipient_of(text)
        giver = [line for line in those if line["key"] != to]
        given = next((line["at"] for line in giver if line["what"] == "gave"), None)
        arrived = [line for line in those if line["key"] == to and line["what"] == "handed"]
        if any(line["what"] == "done" for line in giver) and arrived:
            yield f"{text!r} was done by who gave it away, and went to {to}"
        if given is not None and not arrived:
            yield f"{text!r} was given to {to}, which never got it"
        if given is not None and any(line["what"] == "handed" and line["at"] > given for line in giver):
            yield f"{text!r} came back to who had given it to {to}"


def _order(facts: Facts) -> Iterator[str]:
    """In each thread in order: over all processes at first sight, and within each process."""
    place = {text: (key, number) for key, texts in facts.said.items() for number, text in enumerate(texts)}
    first: dict[str, int] = defaultdict(lambda: -1)
    within: dict[tuple[str, int], int] = defaultdict(lambda: -1)
    seen = set()
    handed = (
        line
        for line in facts.diary
        if line["what"] == "handed" and line["text"] in place and line["key"] == place[line["text"]][0]
    )
    for line in sorted(handed, key=lambda line: line["at"]):
        key, number = place[line["text"]]
        if number <= within[key, line["pid"]]:
            yield f"{key}: process {line['pid']} was handed {line['text']!r} after number {within[key, line['pid']]}"
        within[key, line["pid"]] = number
        if number < first[key] and (key, number) not in seen:
            yield f"{key}: {line['text']!r} was first seen after number {first[key]}"
        seen.add((key, number))
        first[key] = max(first[key], number)


def _calls(facts: Facts) -> Iterator[str]:
    """Each message with an id is in the chat once, or refused, or counted as unknown, and told of as that.

    A person may have had an unknown one sent again (`tries`): then it may be there once more for each time.
    """
    executed = _executed(facts)
    text_of = {line["id"]: line["text"] for line in facts.diary if line["what"] == "handed"}
    ids = {text: update_id for update_id, text in text_of.items()}
    calls = {(call.key, call.request_id): call for call in facts.calls}
    outcome: dict[tuple[str, int], set[Any]] = defaultdict(set)
    for line in facts.diary:
        if line["what"] in ("sent", "unknown"):
            outcome[text_of[line["id"]], line["part"]].add(line.get("message_id"))
    for key, texts in facts.said.items():
        times = []
        for text, part in _wanted(texts):
            if text in facts.dead_letters:
                continue
            entries = executed.pop((text, part), [])
            name = NAMED + call_id(ids[text], f"answer {part}") if text in ids else ""
            call = calls.get((key, name))
            yield from _call(text, part, call, entries, outcome.get((text, part), set()))
            if entries and call is not None and not call.tries and not text.endswith("!"):
                times.append(entries[0]["began"])
        if times != sorted(times):
            yield f"{key}: answers went out in another order than they were asked for"
    for (text, part), entries in executed.items():
        yield f"part {part} of the answer to {text!r} was sent, which nobody wanted: {entries[0]['params']}"


def _wanted(texts: Sequence[str]) -> Iterator[tuple[str, int]]:
    for text in texts:
        for part in range(1, parts_of(text) + 1):
            yield text, part


def _executed(facts: Facts) -> dict[tuple[str, int], list[Line]]:
    """What Telegram carried out of each answer, in order."""
    executed: dict[tuple[str, int], list[Line]] = defaultdict(list)
    for entry in sorted(facts.record, key=lambda entry: entry["began"]):
        words = str(entry["params"].get("text", "")).split() if entry["method"] == "sendMessage" else []
        if entry["ok"] and words[:1] == ["re"]:
            executed[words[1], int(words[2])].append(entry)
    return executed


def _call(text: str, part: int, call: Call | None, entries: Sequence[Line], told: set[Any]) -> Iterator[str]:
    what = f"part {part} of the answer to {text!r}"
    there = {entry["result"]["message_id"] for entry in entries}
    if not told - {None} <= there:
        yield f"the follower was told that {what} is {sorted(told - {None})}; at Telegram it is {sorted(there)}"
    if call is None:
        if entries or told:
            yield f"{what} was sent {len(entries)} times, and the outbox does not know it"
        elif not text.endswith("!"):
            yield f"{what} was never sent, and nobody knows"
        return
    if len(entries) > 1 + call.tries:
        yield f"{what} was sent {len(entries)} times, {call.tries} of them wanted: {[e['params'] for e in entries]}"
    if call.state in ("accepted", "claimed"):
        yield f"{what} is still {call.state} at the end: it was lost"
    if call.state == "settled":
        answer = json.loads(call.answer or b"{}")
        sent = answer.get("result", {}).get("message_id") if "error" not in answer and "refused" not in answer else None
        if sent is not None and sent not in there:
            yield f"{what} is message {sent} in the outbox, and not at Telegram"
        if sent is None and len(entries) > call.tries:
            yield f"{what} is refused in the outbox, and was sent"


def _notices(facts: Facts) -> Iterator[str]:
    """Of each unknown call people are told, once for each time that it became so."""
    shown = Counter(data for entry in facts.record if entry["ok"] and (data := notice_of(entry)))
    for data, count in shown.items():
        if count > 1:
            yield f"the notice {data} stands in the chat {count} times"
    notices = {call.request_id: call.state for call in facts.calls if not call.key}
    for call in facts.calls:
        if call.key not in facts.said or call.state != "unknown":  # of newcomers the thread is gone as well
            continue
        name = f"{call.seq}.{call.tries}"
        if not call.told or notices.get(f"doubt:{name}") not in ("settled", "unknown"):
            yield f"nobody was told that {call.request_id} of {call.key} is unknown"
        elif notices[f"doubt:{name}"] == "settled" and not shown[f"tb:again:{name}"]:
            yield f"the notice of {call.request_id} of {call.key} was lost"


def _questions(facts: Facts) -> Iterator[str]:
    """Each question is asked once, and its one answer, the first that a person gave, is what its asker hears."""
    asked = Counter(
        str(entry["params"]["text"])
        for entry in facts.record
        if entry["ok"] and entry["method"] == "sendMessage" and str(entry["params"].get("text")).startswith(QUESTION)
    )
    heard: dict[str, set[str]] = defaultdict(set)
    texts = {line["id"]: line["text"] for line in facts.diary if line["what"] == "handed"}
    for line in facts.diary:
        if line["what"] in ("answered", "not asked"):
            heard[texts[line["id"]]].add(line.get("value", ""))
    tries = {(call.key, call.request_id): call.tries for call in facts.calls}
    for key, said in facts.said.items():
        for text in filter(asks_person, said):
            question = QUESTION + text
            again = tries.get((key, NAMED + call_id("question", key_for("question", key, text))), 0)
            if asked[question] > 1 + again:
                yield f"{question!r} was asked {asked[question]} times, {again} of them wanted"
            if text not in heard and text not in facts.dead_letters:
                yield f"{question!r} has no answer"
            pressed = list(facts.pressed.get(question, ()))
            if strange := heard[text] - {"", *pressed[:1]}:
                yield f"{question!r} was answered {sorted(strange)}, a person said {pressed}"


def _threads(facts: Facts) -> Iterator[str]:
    """Nobody has got two threads, two have not got one, and what is cleaned up is nobody's any more."""
    made = Counter(
        str(entry["params"].get("name"))
        for entry in facts.record
        if entry["ok"] and entry["method"] == "createForumTopic"
    )
    for name, count in made.items():
        if count > 1 + facts.deleted.count(name):
            yield f"{count} threads were made for {name}, {facts.deleted.count(name)} were deleted by a person"
    owners: dict[int, set[str]] = defaultdict(set)
    for line in facts.diary:
        if line["what"] == "came" and line["thread"] is not None:
            owners[line["thread"]].add(line["key"])
    gone = {entry["params"].get("message_thread_id") for entry in facts.record if entry["method"] == "deleteForumTopic"}
    for key, thread in facts.threads.items():
        if gone & {thread, str(thread)}:
            yield f"the thread of {key}, which is needed, was deleted"
    for thread, keys in owners.items():
        if len(keys) > 1:
            yield f"thread {thread} belongs to {sorted(keys)}"


def notice_of(entry: Line) -> str | None:
    """The data of the button "Send again", of an entry of the record that is such a notice."""
    params = entry["params"]
    if entry["method"] != "sendMessage" or not str(params.get("text", "")).startswith("Perhaps sent"):
        return None
    markup = params.get("reply_markup")
    rows = (json.loads(markup) if isinstance(markup, str) else markup or {}).get("inline_keyboard", [])
    return str(rows[0][0]["callback_data"]) if rows else None


def _journal(facts: Facts) -> Iterator[str]:
    """Nothing was left waiting, and what was given up stands in the dead letters."""
    for update_id, owner, outcome in facts.journal:
        if owner is not None and outcome not in ("accepted", *DEAD):
            yield f"update {update_id} of {owner} is {outcome or 'still waiting'} in the journal"


def _outputs(facts: Facts) -> Iterator[str]:
    secret = facts.token.partition(":")[2].encode()
    for name, said in facts.outputs.items():
        if secret in said:
            yield f"the token stands in {name}"
    for line in (*facts.diary, *(entry["params"] for entry in facts.record)):
        if secret.decode() in json.dumps(line):
            yield f"the token stands in what was said or written down: {sorted(line)}"
            return


def undone(said: Mapping[str, Sequence[str]], diary: Iterable[Line]) -> dict[str, list[int]]:
    """The texts that nobody wrote down as done, and to which processes they were handed, in order."""
    handed: dict[str, list[int]] = {text: [] for texts in said.values() for text in texts}
    texts_of: dict[str, set[str]] = defaultdict(set)
    for line in diary:
        if line["what"] == "handed":
            texts_of[line["id"]].add(line["text"])
            handed.get(line["text"], []).append(line["pid"])
        elif line["what"] == "done":
            for text in texts_of[line["id"]]:
                handed.pop(text, None)
    return handed


def late(facts: Facts) -> list[str]:
    """The texts that nobody had done when the run ended: whoever dies behind `done()` has not written that down."""
    last: dict[str, Line] = {}
    kept: set[str] = set()
    for line in sorted(facts.diary, key=lambda line: line["at"]):
        if line["what"] == "handed":
            last[line["text"]] = line
        elif line["what"] == "kept":
            kept.add(line["id"])
    found = []
    for text in undone(facts.said, facts.diary).keys() - facts.dead_letters:
        line = last.get(text, {"key": "", "id": ""})
        with_whom_it_ends = recipient_of(text) in (None, line["key"]) or line["id"] in kept
        if not (with_whom_it_ends and facts.inboxes.get(line["key"], {}).get(line["id"], False)):
            found.append(text)
    return sorted(found)


def album_items(diary: Iterable[Line]) -> int:
    """As how many updates albums came: more than there are albums where one was cut in two."""
    last = {line["text"]: line["id"] for line in diary if line["what"] == "handed" and line["text"].endswith("=")}
    return len(set(last.values()))
