"""What a poll leads to, decided without a clock."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_bus.botapi.polling import Standing, Step, after_fault, after_success, backoff, sift
from telegram_bus.core.errors import AnswerLost, ApiError, BusError, NotSent, StateError

TERMINATED = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
WEBHOOK = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"


def decide(fault: BusError, standing: Standing | None = None, now: float = 1000.0) -> Step:
    return after_fault(standing or Standing(started=0.0), fault, now=now, window=25.0, jitter=1.0)


def refused(code: int, text: str, retry_after: float | None = None) -> ApiError:
    return ApiError("getUpdates", code, text, retry_after=retry_after)


def test_network_faults_are_retried_ever_more_slowly_up_to_half_a_minute() -> None:
    standing, delays = Standing(started=0.0), []
    for number in range(9):
        fault = NotSent("no route") if number % 2 else AnswerLost("cut")
        step = decide(fault, standing)
        standing = step.standing
        delays.append(step.delay)
        assert step.state == "offline"
    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    assert decide(NotSent("x"), after_success(standing, now=0, window=25)).delay == 0.5


def test_a_pause_that_telegram_asks_for_is_kept_exactly() -> None:
    assert decide(refused(429, "Too Many Requests", 17)).delay == 17
    assert decide(refused(429, "Too Many Requests", 0)).delay == 0
    assert decide(refused(429, "Too Many Requests")).delay > 0
    assert decide(refused(429, "Too Many Requests", 17)).state == "rate-limited"


def test_a_conflict_is_no_news_within_a_window_of_the_start() -> None:
    step = decide(refused(409, TERMINATED), now=25.0)
    assert (step.state, step.standing.conflicts) == ("starting", 0)
    assert decide(refused(409, TERMINATED), now=25.1).state == "conflict"


def test_after_a_bound_of_conflicts_we_stand_down_and_try_slowly() -> None:
    standing, delays = Standing(started=0.0), []
    for _ in range(7):
        step = decide(refused(409, TERMINATED), standing)
        standing = step.standing
        delays.append(step.delay)
    assert max(delays[:5]) < 60
    assert delays[5:] == [60.0, 60.0]
    assert "stood down" in step.detail


def test_a_completed_poll_between_two_conflicts_does_not_start_the_count_anew() -> None:
    standing = decide(refused(409, TERMINATED), now=1000.0).standing
    assert after_success(standing, now=1050.0, window=25.0).conflicts == 1
    assert after_success(standing, now=1051.0, window=25.0).conflicts == 0


def test_a_webhook_a_revoked_token_and_a_full_disk_have_states_of_their_own() -> None:
    assert (decide(refused(409, WEBHOOK)).state, decide(refused(409, WEBHOOK)).delay) == ("webhook", 60.0)
    assert decide(refused(401, "Unauthorized")).state == "unauthorised"
    assert decide(refused(404, "Not Found")).delay == 60.0
    assert decide(StateError("disk full")).state == "storage"
    assert decide(refused(400, "Logged out")).state == "offline"


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_a_back_off_is_never_zero_and_never_longer_than_half_a_minute(failures: int, jitter: float) -> None:
    assert 0.25 <= backoff(failures, jitter) <= 30.0
    assert backoff(failures, jitter) <= backoff(failures + 1, 1.0)


def test_odd_updates_hold_up_nobody() -> None:
    odd: list[Any] = [None, 5, "x", [], {}, {"update_id": "7"}, {"update_id": True}, {"update_id": 9.0}]
    fine = [{"update_id": 4, "message": None}, {"update_id": 3, "unheard_of": {}}]
    assert sift([*odd, *fine]) == (fine, 5)


@pytest.mark.parametrize("answer", [{}, None, True, [None], [{"update_id": "1"}]])
def test_an_answer_that_cannot_be_confirmed_is_a_fault_not_a_loop(answer: Any) -> None:
    with pytest.raises(AnswerLost):
        sift(answer)
