"""Who may send next: turns between followers, classes, pauses, and that nobody's hung call holds up another."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from telegram_bus.core.budget import AT_ONCE, UPLOADS_AT_ONCE, Budget, Ticket
from telegram_bus.core.meters import DEFAULT_LIMITS, Limits, Rate
from telegram_bus.core.urgency import Urgency, nature_of

GROUP, OTHER, PERSON = -100, -200, 7
MANY = Rate(10**6, 1.0)
NO_LIMITS = Limits(MANY, MANY, 10**6, MANY, MANY)


def ticket(
    owner: str = "a", method: str = "sendMessage", chat: int | None = GROUP, hint: str | None = None, **params: Any
) -> Ticket:
    upload = bool(params.pop("upload", False))
    return Ticket(nature_of(method, params, hint=hint, upload=upload), method, chat, owner, params)


def put(budget: Budget, *args: Any, **options: Any) -> Ticket:
    made = ticket(*args, **options)
    budget.put(made)
    return made


def done(budget: Budget, one: Ticket, now: float) -> None:
    budget.end(one, now)
    budget.leave(one)


def run(budget: Budget, now: float, until: float, answer: float = 0.0) -> list[tuple[float, Ticket]]:
    """Let time pass; each call is answered after so long. What started when."""
    started: list[tuple[float, Ticket]] = []
    under_way: list[tuple[float, Ticket]] = []
    while now <= until:
        for due, one in under_way:
            if due <= now:
                done(budget, one, due)
        under_way = [one for one in under_way if one[0] > now]
        fresh = budget.next(now)
        started += [(now, one) for one in fresh]
        under_way += [(now + answer, one) for one in fresh]
        now = min([budget.wake(now), *(due for due, _ in under_way)])
    return started


def jain(counts: list[int]) -> float:
    return float(sum(counts) ** 2 / (len(counts) * sum(one * one for one in counts)))


def test_ten_talkers_share_a_group_whatever_they_have_queued() -> None:
    budget = Budget()
    for owner in range(10):
        for _ in range(10 + 30 * (owner == 3)):
            put(budget, f"agent {owner}")
    started = run(budget, 0.0, 240.0)
    counts = Counter(one.owner for _, one in started)
    assert len(started) == 5 * 18
    assert jain(list(counts.values())) >= 0.99


def test_an_album_costs_its_sender_as_many_turns_as_it_has_messages() -> None:
    budget = Budget()
    for _ in range(200):
        put(budget, "albums", "sendMediaGroup", media=[{}] * 9)
        put(budget, "texts")
    counts = Counter(one.owner for _, one in run(budget, 0.0, 600.0))
    assert counts["texts"] == pytest.approx(9 * counts["albums"], abs=9)


def test_followers_with_one_call_at_a_time_take_turns_too() -> None:
    """A program that waits for each answer is back only after others were served, and loses no turn by it."""
    budget, now = Budget(), 0.0
    counts = Counter[str]()
    for owner in "abc":
        put(budget, owner)
    for _ in range(200):
        for one in budget.next(now):
            counts[one.owner] += 1
            done(budget, one, now)
            put(budget, one.owner)
        now = max(now + 0.5, min(budget.wake(now), now + 60))
    assert max(counts.values()) - min(counts.values()) <= 1


def test_classes_have_their_shares_and_a_click_goes_first() -> None:
    budget = Budget(NO_LIMITS._replace(overall=Rate(1, 1.0)))
    for _ in range(200):
        put(budget, "final", hint="final")
        put(budget, "plain")
        put(budget, "progress", hint="progress")
    started = run(budget, 0.0, 140.0)
    counts = Counter(one.owner for _, one in started[:140])
    assert counts["final"] == pytest.approx(80, abs=2)
    assert counts["plain"] == pytest.approx(40, abs=2)
    assert counts["progress"] == pytest.approx(20, abs=2)
    put(budget, "click", hint="click")
    assert run(budget, 140.5, 142.5)[0][1].owner == "click"


def test_finals_of_one_go_before_progress_of_others_but_never_before_ones_own_messages() -> None:
    budget = Budget()
    run(budget, 0.0, 0.0)
    for _ in range(30):
        put(budget, "busy", hint="progress")
    assert len(budget.next(0.0)) == 1
    first, second = put(budget, "done", hint="progress"), put(budget, "done", hint="final")
    assert [first, second] == [one for _, one in run(budget, 0.0, 0.0) if one.owner == "done"][:2]


def test_what_is_kept_for_clicks_is_there_at_once_in_a_full_group() -> None:
    budget = Budget()
    for owner in range(30):
        put(budget, str(owner))
    assert len(run(budget, 0.0, 1.0)) == 18
    click = put(budget, "5", hint="click")
    assert [one for _, one in run(budget, 1.0, 1.0)] == [click]
    edit = put(budget, "5", "editMessageText", hint="click", message_id=1)
    assert [one for _, one in run(budget, 1.0, 1.0)] == [edit]
    put(budget, "5", hint="click")
    assert run(budget, 1.0, 59.0) == []


@pytest.mark.parametrize("when", [30.5, 61.0, 95.0, 119.9])
def test_progress_leaves_room_in_a_group_for_results(when: float) -> None:
    """Streams that edit as often as they may fill half of a group's window: a result does not wait for its end."""
    budget = Budget()

    def edit() -> None:
        for owner in range(6):
            put(budget, f"stream {owner}", "editMessageText", message_id=owner)

    edits: list[float] = []
    for second in range(int(when)):
        edit()
        edits += [at for at, _ in run(budget, float(second), second + 0.9)]
    assert sum(at > edits[-1] - 60 for at in edits) == 10
    edit()
    final, plain = put(budget, "stream 1", "editMessageText", hint="final", message_id=1), put(budget, "talker")
    assert {final, plain} <= {one for _, one in run(budget, when, when)}


@pytest.mark.parametrize(("before", "progress"), [(0, 10), (7, 3), (12, 3), (17, 1), (18, 0)])
def test_progress_leaves_the_half_of_a_window_to_what_may_come(before: int, progress: int) -> None:
    """Threads and first messages of agents that start together are no progress, and leave little of the window."""
    budget = Budget()
    for number in range(before):
        put(budget, f"agent {number}")
    assert len(run(budget, 0.0, 1.0)) == before
    for number in range(20):
        put(budget, f"stream {number % 5}", "editMessageText", message_id=number)
    assert len(run(budget, 4.0, 10.0)) == progress
    finals = [put(budget, f"agent {number}", hint="final") for number in range(8)]
    assert [one for _, one in run(budget, 20.0, 20.0)] == finals[: 18 - before - progress]


def test_progress_has_its_share_where_others_always_wait() -> None:
    budget = Budget()
    for number in range(300):
        put(budget, f"talker {number % 5}")
        put(budget, "editor", "editMessageText", message_id=number)
    assert Counter(one.owner for _, one in run(budget, 0.0, 300.0))["editor"] == 6 * 3


def test_progress_that_stands_before_a_result_of_the_same_stream_is_not_held_back() -> None:
    budget = Budget()
    for number in range(12):
        put(budget, "a", "editMessageText", message_id=number)
    assert len(run(budget, 0.0, 1.0)) == 10
    final = put(budget, "a", "editMessageText", hint="final", message_id=99)
    assert [one for _, one in run(budget, 2.0, 2.0)][-1] is final


def test_a_hung_call_holds_up_nothing_but_its_own_stream() -> None:
    budget = Budget(NO_LIMITS)
    hung = put(budget)
    assert budget.next(0.0) == [hung]
    behind = put(budget)
    others = [
        put(budget, "b"),
        put(budget, hint="click"),
        put(budget, method="editMessageText", message_id=1),
        put(budget, method="deleteMessage", message_id=1),
        put(budget, method="sendDocument", upload=True),
        put(budget, method="answerCallbackQuery", chat=None),
        put(budget, method="sendChatAction", action="typing"),
        put(budget, chat=OTHER),
    ]
    assert set(budget.next(0.0)) == set(others)
    assert budget.wake(0.0) == math.inf
    done(budget, hung, 100.0)
    assert budget.next(100.0) == [behind]


def test_places_are_bounded_and_those_of_clicks_and_uploads_are_others() -> None:
    budget = Budget(NO_LIMITS)
    for owner in range(2 * AT_ONCE):
        put(budget, str(owner), "sendDocument", upload=True)
    assert len(budget.next(0.0)) == UPLOADS_AT_ONCE
    for owner in range(2 * AT_ONCE):
        put(budget, str(owner))
    assert len(budget.next(0.0)) == AT_ONCE - UPLOADS_AT_ONCE
    answer = put(budget, "x", "answerCallbackQuery", chat=None)
    assert budget.next(0.0) == [answer]


def test_answers_to_buttons_are_not_limited_and_typing_has_a_limit_of_its_own() -> None:
    budget = Budget()
    for number in range(100):
        put(budget, str(number), "answerCallbackQuery", chat=None)
        put(budget, str(number), "sendChatAction", action="typing", message_thread_id=number)
    started = Counter(one.method for _, one in run(budget, 0.0, 0.0))
    assert started == {"answerCallbackQuery": 100, "sendChatAction": 4}  # of 5, one being kept
    assert len(run(budget, 0.0, 10.0)) == 40
    assert put(budget) in budget.next(10.0)


def test_of_edits_of_one_message_the_newest_is_made_in_the_place_of_the_oldest() -> None:
    budget = Budget()
    first = put(budget, method="editMessageText", message_id=1, text="1")
    other = put(budget, method="editMessageText", message_id=2, text="x")
    second, third = (ticket(method="editMessageText", message_id=1, text=str(number)) for number in (2, 3))
    assert budget.put(second) is first
    assert budget.put(third) is second
    assert [one for _, one in run(budget, 0.0, 0.0)] == [third, other]
    assert budget.waiting() == []


def test_a_keyboard_is_lost_in_no_edit() -> None:
    budget = Budget()
    put(budget, method="editMessageText", message_id=1, text="1")
    assert budget.put(ticket(method="editMessageReplyMarkup", message_id=1)) is None
    assert budget.put(ticket(method="editMessageText", message_id=1, text="2")) is not None
    assert [one.load.get("text") for one in budget.waiting()] == ["2", None]


def test_an_edit_that_is_under_way_is_not_replaced() -> None:
    budget = Budget()
    first = put(budget, method="editMessageText", message_id=1, text="1")
    assert budget.next(0.0) == [first]
    assert budget.put(ticket(method="editMessageText", message_id=1, text="2")) is None


def test_a_429_pauses_its_chat_for_exactly_as_long_as_it_says() -> None:
    budget = Budget()
    refused = put(budget)
    budget.next(0.0)
    put(budget, "b")
    assert budget.refuse(refused, 7.0, 1.0) == 8.0
    budget.again(refused)
    put(budget, chat=PERSON)
    put(budget, method="deleteMessage")
    assert [one.chat_id for one in budget.next(1.0)] == [GROUP, PERSON][1:]
    assert budget.wake(1.0) == 8.0
    assert budget.next(7.99) == []
    assert refused in budget.next(8.0)


def test_a_second_chat_that_gets_one_meanwhile_pauses_all() -> None:
    budget = Budget()
    one, two = put(budget), put(budget, chat=OTHER)
    budget.next(0.0)
    budget.refuse(one, 10.0, 0.0)
    budget.refuse(two, 5.0, 2.0)
    for refused in (one, two):
        budget.again(refused)
    third = put(budget, chat=PERSON)
    free = put(budget, method="answerCallbackQuery", chat=None)
    assert budget.next(6.9) == [free]
    assert set(budget.next(7.0)) == {two, third}
    assert budget.next(10.0) == [one]
    assert ("spend", None, 7.0) in budget.pauses(2.0)


def test_two_429s_one_after_the_other_pause_only_their_chats() -> None:
    budget = Budget()
    one, two = put(budget), put(budget, chat=OTHER)
    budget.next(0.0)
    budget.refuse(one, 2.0, 0.0)
    budget.refuse(two, 5.0, 2.0)
    third = put(budget, chat=PERSON)
    assert budget.next(3.0) == [third]


def test_a_successor_goes_on_where_the_dead_leader_was() -> None:
    budget = Budget()
    for second in range(18):
        budget.recall(GROUP, 1, -20.0 + second)
    budget.recall_pause(OTHER, 30.0)
    budget.recall_level(PERSON, (1, 1.5), 0.0)
    waiting = [put(budget, "a"), put(budget, "b", chat=OTHER), put(budget, "c", chat=PERSON)]
    assert run(budget, 0.0, 39.9)[0] == (0.0, waiting[2])
    assert budget.levels == {PERSON: (1, 1.5)}
    assert [one for _, one in run(budget, 40.0, 40.0)] == [waiting[0]]


def test_the_share_that_progress_took_counts_for_the_successor_too() -> None:
    """In a group whose window is more than half full it is sure of three a minute, whoever leads."""
    for shown, when in ((True, 50.0), (False, 0.0)):
        budget = Budget()
        for second in range(13):
            budget.recall(GROUP, 1, -20.0 + second, progress=shown and second >= 10)
        waiting = put(budget, method="editMessageText")
        started = run(budget, 0.0, 100.0)
        assert [one for _, one in started] == [waiting]
        assert started[0][0] == (43.0 if shown else when)


def test_a_pause_that_a_successor_finds_holds() -> None:
    budget = Budget()
    budget.recall_pause(None, 30.0)
    put(budget)
    put(budget, chat=PERSON)
    assert budget.next(29.9) == []
    assert len(budget.next(30.0)) == 2


def test_who_is_not_sure_waits_for_one_window() -> None:
    budget = Budget()
    budget.be_unsure(0.0)
    group, person = put(budget), put(budget, chat=PERSON)
    started = run(budget, 0.0, 100.0)
    assert [one for _, one in started] == [person, group]
    assert started[0][0] >= 1.0
    assert started[1][0] >= 60.0


def test_an_estimate_is_about_what_it_takes() -> None:
    budget = Budget()
    for _ in range(9):
        put(budget, "a")
        put(budget, "b")
    assert len(run(budget, 0.0, 0.0)) == 18
    assert budget.estimate(ticket("c"), 0.0) == 60.0
    for _ in range(17):
        put(budget, "a")
    assert budget.estimate(ticket("c"), 0.0) == 60.0  # it has its turn right after the first
    assert budget.estimate(ticket("a"), 0.0) == 60.0
    put(budget, "a")
    assert budget.estimate(ticket("a"), 0.0) == 120.0


def test_what_is_idle_is_forgotten() -> None:
    budget = Budget()
    for chat in range(1, 100):
        put(budget, chat=chat)
    run(budget, 0.0, 60.0)
    budget.sweep(100.0)
    assert budget._pools == {}
    put(budget)
    budget.sweep(100.0)
    assert len(budget.waiting()) == 1


@pytest.mark.parametrize(
    ("method", "hint", "kind", "urgency"),
    [
        ("sendMessage", None, "spend", Urgency.MESSAGE),
        ("sendMessage", "final", "spend", Urgency.FINAL),
        ("sendMessage", "progress", "spend", Urgency.PROGRESS),
        ("sendMessage", "click", "spend", Urgency.CLICK),
        ("sendMessage", "nonsense", "spend", Urgency.MESSAGE),
        ("EDITMESSAGETEXT", None, "spend", Urgency.PROGRESS),
        ("editMessageText", "final", "spend", Urgency.FINAL),
        ("editMessageText", "click", "spend", Urgency.CLICK),
        ("createForumTopic", None, "spend", Urgency.FINAL),
        ("copyMessage", None, "spend", Urgency.MESSAGE),
        ("forwardMessages", None, "spend", Urgency.MESSAGE),
        ("sendChatAction", None, "typing", Urgency.TYPING),
        ("sendMessageDraft", None, "other", Urgency.PROGRESS),
        ("deleteMessage", None, "other", Urgency.MESSAGE),
        ("editForumTopic", None, "other", Urgency.MESSAGE),
        ("setMessageReaction", None, "other", Urgency.MESSAGE),
        ("getMe", None, "other", Urgency.MESSAGE),
        ("answerCallbackQuery", None, "free", Urgency.CLICK),
    ],
)
def test_what_a_call_is(method: str, hint: str | None, kind: str, urgency: Urgency) -> None:
    nature = nature_of(method, {}, hint=hint)
    assert (nature.kind, nature.urgency) == (kind, urgency)


def test_the_default_limits_are_telegrams() -> None:
    assert (DEFAULT_LIMITS.overall, DEFAULT_LIMITS.private, DEFAULT_LIMITS.group) == ((30, 1), (1, 1), (20, 60))
