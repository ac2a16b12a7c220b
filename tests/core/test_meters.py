"""Limits as the server counts them: whatever the delay on the way, none of its windows holds more than it allows."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_bus.core.meters import DEFAULT_LIMITS, QUIET_LEAST, Allowance, Limits, Rate, kept_for_clicks, parse_limits

GROUP = DEFAULT_LIMITS.group


def fill(allowance: Allowance, now: float, *, click: bool = False, delay: float = 0.0) -> int:
    """Start whatever may start, answered after `delay`; how many that were."""
    count = 0
    while allowance.wait(now, 1, click=click) == 0:
        allowance.start(1, click=click)
        count += 1
    for _ in range(count):
        allowance.end(now + delay, 1, click=click)
    return count


def test_a_window_is_exact_and_a_tenth_of_it_is_kept_for_clicks() -> None:
    group = Allowance(GROUP)
    assert fill(group, 0.0) == 18
    assert fill(group, 30.0, click=True) == 2
    assert group.wait(30.0, 1, click=True) == 30.0
    assert fill(group, 59.9) == 0
    assert fill(group, 60.0) == 18


def test_clicks_may_take_more_than_what_is_kept_and_then_the_others_have_less() -> None:
    group = Allowance(GROUP)
    assert fill(group, 0.0, click=True) == 20
    assert fill(group, 59.9) == 0
    assert fill(group, 60.0) == 18


def test_progress_has_half_of_a_lowered_limit_too() -> None:
    group = Allowance(GROUP, bounds_progress=True)
    group.adopt(4, 1.5, 0.0)
    for _ in range(2):
        assert group.wait_progress(0.0, 1) == 0
        group.start(1, click=False, progress=True)
        group.end(0.0, 1, click=False, progress=True)
    assert group.wait_progress(0.0, 1) == 90.0
    assert group.wait(0.0, 1, click=False) == 0


def test_a_call_is_held_until_a_window_after_its_answer() -> None:
    second = Allowance(Rate(1, 1.0))
    second.start(1, click=False)
    assert second.wait(100.0, 1, click=False) == math.inf  # it may arrive at any moment
    second.end(100.0, 1, click=False)
    assert second.wait(100.0, 1, click=False) == 1.0


def test_a_private_chat_takes_a_burst_and_then_one_a_second() -> None:
    private = Allowance(DEFAULT_LIMITS.private, burst=DEFAULT_LIMITS.burst)
    assert fill(private, 0.0) == 2  # of 3, one being kept
    assert fill(private, 0.0, click=True) == 1
    assert fill(private, 0.9) == 0
    assert [fill(private, float(second)) for second in range(1, 4)] == [1, 1, 1]
    assert fill(private, 100.0) == 2


def test_an_album_waits_until_there_is_room_for_all_of_it_and_one_that_is_too_big_for_an_empty_window() -> None:
    group = Allowance(Rate(5, 60.0))
    group.start(10, click=True)
    group.end(0.0, 10, click=True)
    assert group.wait(1.0, 1, click=True) == 59.0
    group.start(1, click=True)
    group.end(60.0, 1, click=True)
    assert group.wait(61.0, 10, click=True) == 59.0


@pytest.mark.parametrize(("count", "kept"), [(1, 0), (2, 0), (3, 1), (10, 1), (20, 2), (30, 3)])
def test_what_is_kept(count: int, kept: int) -> None:
    assert kept_for_clicks(count) == kept


def test_a_429_lowers_the_limit_to_what_was_let_through_and_quiet_raises_it_again() -> None:
    group = Allowance(GROUP)
    assert fill(group, 0.0, click=True) == 20
    group.lower(1.0)
    assert group.level == (19, 1.0)
    half = Allowance(GROUP)
    for _ in range(12):
        half.start(1, click=True)
        half.end(0.0, 1, click=True)
    half.lower(1.0)
    assert half.level == (12, 1.0)
    assert half.wait(599.0, 1, click=True) == 0
    assert half.level == (12, 1.0)
    half.wait(601.0 + 8 * 600, 1, click=True)
    assert half.level == (20, 1.0)
    assert not half.lowered


def test_what_was_raised_too_early_is_raised_later_the_next_time() -> None:
    group = Allowance(GROUP)
    group.lower(0.0)
    assert group.level == (10, 1.0)  # at most by half
    group.wait(600.0, 1, click=False)
    assert group.level == (11, 1.0)
    group.lower(601.0)
    level = group.level
    group.wait(601.0 + 1_199, 1, click=False)
    assert group.level == level
    group.wait(601.0 + 1_200, 1, click=False)
    assert group.level[0] == level[0] + 1


def test_where_one_at_a_time_is_too_much_the_window_grows() -> None:
    one = Allowance(Rate(1, 1.0))
    one.lower(0.0)
    assert one.level == (1, 1.5)
    one.start(1, click=False)
    one.end(10.0, 1, click=False)
    assert one.wait(10.0, 1, click=False) == 1.5
    one.wait(QUIET_LEAST + 1, 1, click=False)
    assert not one.lowered


@given(
    st.sampled_from([Rate(1, 1.0), Rate(3, 1.0), Rate(20, 60.0), Rate(5, 0.5)]),
    st.lists(st.tuples(st.floats(0, 2), st.floats(0, 3), st.floats(0, 1), st.booleans()), min_size=1, max_size=120),
)
def test_no_window_of_the_server_holds_more_whatever_the_delay(
    rate: Rate, steps: list[tuple[float, float, float, bool]]
) -> None:
    allowance, now = Allowance(rate), 0.0
    under_way: list[tuple[float, float, bool]] = []  # answered at, arrived at
    arrivals: list[float] = []
    for pause, delay, share, click in steps:
        now += pause
        for answered, _, was in sorted(under_way):
            if answered <= now:
                allowance.end(answered, 1, click=was)
        under_way = [one for one in under_way if one[0] > now]
        if allowance.wait(now, 1, click=click) == 0:
            allowance.start(1, click=click)
            under_way.append((now + delay, now + delay * share, click))
            arrivals.append(now + delay * share)
    arrivals.sort()
    for index, first in enumerate(arrivals):
        assert sum(first <= at < first + rate.seconds - 1e-9 for at in arrivals[index:]) <= rate.most


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.floats(0, 2), st.floats(0, 3), st.floats(0, 1)), min_size=1, max_size=80),
)
def test_no_bucket_of_the_server_overflows_whatever_the_delay(
    burst: int, steps: list[tuple[float, float, float]]
) -> None:
    allowance, now = Allowance(Rate(1, 1.0), burst=burst), 0.0
    under_way: list[float] = []
    arrivals: list[float] = []
    for pause, delay, share in steps:
        now += pause
        for answered in sorted(under_way):
            if answered <= now:
                allowance.end(answered, 1, click=True)
        under_way = [one for one in under_way if one > now]
        if allowance.wait(now, 1, click=True) == 0:
            allowance.start(1, click=True)
            under_way.append(now + delay)
            arrivals.append(now + delay * share)
    full_at = -math.inf
    for at in sorted(arrivals):  # as the sandbox counts
        full_at = max(full_at, at) + 1.0
        assert full_at - at <= burst + 1e-6


@given(st.integers(1, 30), st.floats(0.1, 100), st.integers(0, 60), st.integers(1, 60))
def test_the_estimate_of_a_wait_is_what_it_takes(count: int, seconds: float, before: int, ahead: int) -> None:
    allowance, now = Allowance(Rate(count, seconds)), 0.0

    def wait_one(now: float) -> float:
        while (wait := allowance.wait(now, 1, click=False)) > 0:
            now += wait
        allowance.start(1, click=False)
        allowance.end(now, 1, click=False)
        return now

    for _ in range(min(before, count - kept_for_clicks(count))):
        wait_one(0.0)
    estimated = allowance.wait_for_many(0.0, ahead)
    for _ in range(ahead):
        now = wait_one(now)
    assert estimated == pytest.approx(now, abs=1e-6)


def test_limits_as_a_text() -> None:
    assert parse_limits("") == DEFAULT_LIMITS
    assert parse_limits(str(DEFAULT_LIMITS)) == DEFAULT_LIMITS
    assert parse_limits("group=10/30, burst=1") == DEFAULT_LIMITS._replace(group=Rate(10, 30.0), burst=1)
    quick = Limits(Rate(30, 1 / 60), Rate(1, 1 / 60), 3, Rate(20, 1.0), Rate(5, 1 / 60))
    assert parse_limits(str(quick)).overall.seconds == pytest.approx(1 / 60)
    for nonsense in ("group", "group=20", "group=0/60", "group=20/0", "burst=3/1", "speed=1/1", "group=-1/60"):
        with pytest.raises(ValueError, match="is none"):
            parse_limits(nonsense)
