"""getUpdates, row by row: U1 to U16 of the Bot API contract (those of the wire are in test_polling_over_http)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from telegram_bus.sandbox import model_doings as doings
from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.model_polls import Conflict, Delivered, Waiting
from tests.sandbox.talk import Rows, Talk

ROWS = Rows()


@pytest.mark.parametrize("check", ROWS.params)
def test_contract(check: Callable[[Talk], None]) -> None:
    check(Talk())


@ROWS.row("U1")
def limit_and_timeout_are_clamped_and_no_number_is_zero(talk: Talk) -> None:
    args = Args({"limit": "1000", "timeout": "99", "offset": "abc", "low": "-5", "trailing": "12x"})
    assert args.clamped("limit", 100, 1, 100) == 100
    assert args.clamped("timeout", 0, 0, 50) == 50
    assert args.integer("offset") == 0
    assert args.clamped("low", 100, 1, 100) == 1
    assert args.integer("trailing") == 12


@ROWS.row("U2")
def an_update_is_confirmed_only_by_a_higher_offset(talk: Talk) -> None:
    for _ in range(3):
        talk.say()
    first = talk.ids()
    assert talk.ids() == first
    assert talk.ids(first[0]) == first
    assert talk.ids(first[1]) == first[1:]
    assert talk.ids() == first[1:]
    assert talk.ids(first[2] + 1) == []
    assert talk.ids() == []


@ROWS.row("U3")
def a_negative_offset_keeps_the_newest(talk: Talk) -> None:
    for _ in range(5):
        talk.say()
    every = talk.ids()
    assert talk.ids(-2) == every[-2:]
    assert talk.ids() == every[-2:]
    assert talk.ids(-50) == every[-2:]


@ROWS.row("U4")
def an_offset_of_the_future_or_far_past_is_ignored(talk: Talk) -> None:
    for _ in range(3):
        talk.say()
    every = talk.ids()
    assert talk.ids(every[-1] + 1 + 11) == every
    assert talk.ids(every[0] - 100_001) == every
    assert talk.ids(every[-1] + 1 + 10) == []


@ROWS.row("U5")
def ids_start_at_random_grow_by_one_and_restart_after_a_week(talk: Talk) -> None:
    assert 2_000_001 <= talk.world.queue.tail < 2**30
    assert talk.world.queue.tail != Talk(seed=2).world.queue.tail
    talk.say()
    talk.send()  # no update, so no id
    talk.say()
    one, two = talk.ids()
    assert two == one + 1
    talk.now += 8 * 86_400
    talk.say()
    (fresh,) = talk.ids()
    assert fresh not in range(two, two + 100)


@ROWS.row("U6")
def an_answer_is_cut_at_four_mebibytes(talk: Talk) -> None:
    for _ in range(100):
        talk.world.emit("message", {"text": "x" * 100_000}, talk.now)
    taken = talk.ids()
    assert 38 <= len(taken) <= 42
    assert len(talk.ids(taken[-1] + 1)) == len(taken)


@ROWS.row("U7")
def a_poll_waits_only_when_nothing_is_there_and_wakes_at_once(talk: Talk) -> None:
    waiting = talk.poll(timeout=50)
    assert isinstance(waiting, Waiting)
    assert waiting.until == talk.now + 50
    talk.say()
    ((ticket, outcome),) = talk.world.polls.ended()
    assert ticket == waiting.ticket
    assert isinstance(outcome, Delivered)
    assert [update["message"]["text"] for update in outcome.updates] == ["hi"]
    assert talk.poll(offset=1, timeout=50) == talk.ids()


@ROWS.row("U7")
def a_poll_ends_empty_when_its_time_is_over(talk: Talk) -> None:
    talk.poll(timeout=10)
    talk.world.polls.wake(talk.now + 9.9)
    assert talk.world.polls.ended() == []
    talk.world.polls.wake(talk.now + 10)
    assert [outcome for _, outcome in talk.world.polls.ended()] == [Delivered([])]


@ROWS.row("U8")
def the_same_offset_again_is_slowed_down(talk: Talk) -> None:
    assert talk.poll(offset=5) == []
    talk.now += 1
    waiting = talk.poll(offset=5)
    assert isinstance(waiting, Waiting)
    assert waiting.until == talk.now + 3
    talk.now += 4
    assert talk.poll(offset=5) == []


@ROWS.row("U8")
def the_same_offset_in_half_a_second_gets_one_update(talk: Talk) -> None:
    for _ in range(3):
        talk.say()
    assert len(talk.poll()) == 3  # type: ignore[arg-type]
    talk.now += 0.4
    assert len(talk.poll()) == 1  # type: ignore[arg-type]
    talk.now += 0.6
    assert len(talk.poll()) == 3  # type: ignore[arg-type]


@ROWS.row("U9")
def allowed_updates_stick_and_rubbish_changes_nothing(talk: Talk) -> None:
    talk.allow('["callback_query"]')
    talk.say()
    for rubbish in ("not json", '{"message": 1}', "7", "", None):
        talk.allow(rubbish)
        talk.say()
    assert talk.ids() == []
    talk.allow("[]")
    talk.say()
    talk.allow(["callback_query"])
    talk.allow(["unknown"])
    talk.say()
    assert len(talk.ids()) == 2


@ROWS.row("U9")
def reactions_come_only_when_asked_for(talk: Talk) -> None:
    sent = talk.send(chat_id=talk.forum.id)
    doings.react(talk.world, talk.forum, talk.owner, sent["message_id"], "👍", talk.now)
    assert talk.ids() == []
    talk.allow(["message_reaction"])
    doings.react(talk.world, talk.forum, talk.owner, sent["message_id"], "🔥", talk.now)
    (update,) = talk.updates()
    assert update["message_reaction"]["old_reaction"] == [{"type": "emoji", "emoji": "👍"}]
    assert update["message_reaction"]["new_reaction"] == [{"type": "emoji", "emoji": "🔥"}]


@ROWS.row("U10")
def messages_wait_a_day_and_callbacks_150_seconds(talk: Talk) -> None:
    sent = talk.send(reply_markup={"inline_keyboard": [[{"text": "A", "callback_data": "a"}]]})
    talk.say()
    doings.press(talk.world, talk.private, talk.owner, sent["message_id"], "a", talk.now)
    assert [set(update) - {"update_id"} for update in talk.updates()] == [{"message"}, {"callback_query"}]
    talk.now += 151
    assert [set(update) - {"update_id"} for update in talk.updates()] == [{"message"}]
    talk.now += 86_400
    assert talk.updates() == []


@ROWS.row("U10")
def a_full_queue_drops_what_is_new(talk: Talk) -> None:
    for number in range(100_001):
        talk.world.queue.add("message", {"n": number}, talk.now)
    assert len(talk.world.queue) == 100_000
    (newest,) = talk.updates(-1)
    assert newest["message"] == {"n": 99_999}


@ROWS.row("U11")
def one_queue_keeps_the_order_of_all_chats(talk: Talk) -> None:
    for number in range(6):
        talk.say(f"/{number}", chat=(talk.private, talk.forum, talk.group)[number % 3])
    assert [update["message"]["text"] for update in talk.updates()] == [f"/{number}" for number in range(6)]


@ROWS.row("U13")
def a_poll_that_has_to_wait_ends_the_older_one(talk: Talk) -> None:
    older = talk.poll(timeout=50)
    newer = talk.poll(offset=1, timeout=50)
    assert isinstance(older, Waiting)
    assert isinstance(newer, Waiting)
    ((ticket, outcome),) = talk.world.polls.ended()
    assert ticket == older.ticket
    assert outcome == Conflict(
        "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running", 0.0
    )
    assert talk.world.polls.waiting == newer


@ROWS.row("U13")
def a_poll_that_need_not_wait_conflicts_with_nobody(talk: Talk) -> None:
    waiting = talk.poll(timeout=50)
    assert talk.poll(offset=7, timeout=0) == []
    assert talk.world.polls.waiting == waiting


@ROWS.row("U14")
def a_webhook_ends_the_waiting_poll(talk: Talk) -> None:
    talk.poll(timeout=50)
    talk.call("setWebhook", url="https://example.org/hook")
    ((_, outcome),) = talk.world.polls.ended()
    assert isinstance(outcome, Conflict)
    assert outcome.description == "Conflict: terminated by setWebhook request"


@ROWS.row("U15")
def conflicts_are_throttled(talk: Talk) -> None:
    delays = []
    for offset in range(1, 5):
        talk.poll(offset=offset, timeout=50)
        talk.now += 1
    for _, outcome in talk.world.polls.ended():
        assert isinstance(outcome, Conflict)
        delays.append(outcome.after)
    assert delays == [0.0, 3.0, 3.0]
    talk.now += 3
    talk.poll(offset=9, timeout=50)
    ((_, last),) = talk.world.polls.ended()
    assert isinstance(last, Conflict)
    assert last.after == 0.0


@ROWS.row("U16")
def an_abandoned_poll_stays_until_replaced_and_costs_nothing(talk: Talk) -> None:
    # Its client is gone, which nothing tells the server; the successor sees no conflict itself.
    talk.poll(timeout=50)
    talk.say()
    (sent,) = talk.ids()
    talk.now += 1
    assert talk.poll(offset=0, timeout=50) == [sent]


@ROWS.row("M20")
def delete_webhook_clears_the_queue_when_asked(talk: Talk) -> None:
    talk.say()
    talk.call("deleteWebhook")
    assert len(talk.ids()) == 1
    talk.call("deleteWebhook", drop_pending_updates="true")
    assert talk.ids() == []
