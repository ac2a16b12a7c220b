"""Flood control (M16 to M18): what is too much, by how much it may be missed, and how long one is shut out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_bus.sandbox import kinds
from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.flood import KEPT_CHATS, Excess, Flood, Limits

PERSON, GROUP = 42, -7


def flood(**limits: float) -> Flood:
    """Flood control with generous limits but for the ones given."""
    generous = {"overall": 1e6, "private": 1e6, "burst": 1e6, "group": 1e6}
    made = Flood()
    made.change(Limits(on=True, **{**generous, **limits}))
    return made


def verdicts(judge: Flood, chat: int, times: list[float]) -> list[Excess | None]:
    return [judge.judge(chat, 1, at) for at in times]


def test_it_is_off_until_it_is_switched_on() -> None:
    assert verdicts(Flood(), PERSON, [0.0] * 1000) == [None] * 1000


def test_the_documented_limits_are_the_defaults() -> None:
    limits = Limits()
    assert (limits.overall, limits.private, limits.group) == (30, 1, 20)


def test_thirty_a_second_overall() -> None:
    judge = flood(overall=30)
    assert verdicts(judge, PERSON, [0.0] * 30) == [None] * 30
    assert judge.judge(GROUP, 1, 0.5) == Excess("overall", 1)
    assert judge.violations == {"overall": 1, "private": 0, "group": 0, "same_size": 0, "under_way": 0}


def test_one_a_second_in_a_private_chat_after_a_short_burst() -> None:
    judge = flood(private=1, burst=3)
    assert verdicts(judge, PERSON, [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]) == [None] * 6
    assert judge.judge(PERSON, 1, 3.5) == Excess("private", 1)
    assert judge.judge(PERSON + 1, 1, 3.5) is None


def test_twenty_a_minute_in_a_group_and_the_wait_is_until_the_oldest_is_a_minute_old() -> None:
    judge = flood(group=20)
    assert verdicts(judge, GROUP, [float(second) for second in range(20)]) == [None] * 20
    assert judge.judge(GROUP, 1, 20.0) == Excess("group", 40)
    assert judge.judge(GROUP - 1, 1, 20.0) is None
    assert verdicts(judge, GROUP, [60.0, 61.0]) == [None, None]


def test_fifty_milliseconds_early_is_no_violation_and_more_is_one() -> None:
    judge = flood(private=1, burst=1)
    assert verdicts(judge, PERSON, [0.0, 0.951, 1.951]) == [None, None, None]
    assert judge.judge(PERSON, 1, 2.9) == Excess("private", 1)
    assert sum(judge.violations.values()) == 1


def test_a_scale_divides_every_window_and_the_tolerance() -> None:
    judge = flood(private=1, burst=1, group=20, scale=60)
    assert verdicts(judge, GROUP, [0.0] * 20 + [0.999]) == [None] * 20 + [Excess("group", 1)]
    assert verdicts(flood(group=20, scale=60), GROUP, [0.0] * 20 + [1.0]) == [None] * 21
    assert verdicts(judge, PERSON, [0.0, 0.0168]) == [None, None]
    assert judge.judge(PERSON, 1, 0.0168 + 0.0150) == Excess("private", 1)


def test_who_is_refused_is_shut_out_for_the_time_that_was_said() -> None:
    judge = flood(private=1, burst=1)
    assert verdicts(judge, PERSON, [0.0, 0.5]) == [None, Excess("private", 1)]
    assert judge.judge(PERSON, 1, 1.2) == Excess("private", 1)  # paid back by then, but not heard the answer out
    assert judge.judge(PERSON, 1, 2.21) is None
    assert judge.violations["private"] == 2


def test_a_refused_call_costs_nothing() -> None:
    judge = flood(group=2)
    verdicts(judge, GROUP, [0.0, 0.0, 1.0, 2.0, 3.0])
    assert verdicts(judge, GROUP, [63.0, 63.0]) == [None, None]


def test_an_album_counts_as_many_messages() -> None:
    judge = flood(group=20)
    assert judge.judge(GROUP, 10, 0.0) is None
    assert judge.judge(GROUP, 10, 0.0) is None
    assert judge.judge(GROUP, 1, 0.0) == Excess("group", 60)
    assert flood(group=5).judge(GROUP, 10, 0.0) is None


def test_limits_may_be_lower_than_documented_and_must_be_amounts() -> None:
    judge = flood(group=1)
    assert verdicts(judge, GROUP, [0.0, 1.0]) == [None, Excess("group", 59)]
    for nonsense in (0, -1, True, "20", float("nan"), float("inf")):
        with pytest.raises(ValueError, match="group must be a number"):
            Limits(group=nonsense)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Limits(on=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(("size", "at_once", "spacing"), [(100_001, 6, 0.2), (5_000_000, 3, 0.5), (40_000_000, 2, 0.9)])
def test_m16_uploads_of_one_size_have_to_keep_apart(size: int, at_once: int, spacing: float) -> None:
    judge = flood()
    for chat in range(at_once):  # whatever the chat
        assert judge.judge(chat + 1, 1, 0.0, uploaded=size) is None
    assert judge.judge(PERSON, 1, 0.0, uploaded=size) == Excess("same_size", 60)
    assert judge.judge(PERSON, 1, 0.0, uploaded=size + 1) is None
    assert [judge.judge(PERSON, 1, 0.0, uploaded=100_000) for _ in range(99)] == [None] * 99
    assert judge.judge(PERSON, 1, 59.0, uploaded=size) == Excess("same_size", 1)
    apart = [judge.judge(PERSON, 10, 200 + spacing * index, uploaded=size) for index in range(99)]
    assert apart == [None] * 99
    assert judge.violations["same_size"] == 2


def test_m17_too_many_messages_of_one_chat_under_way() -> None:
    judge = flood()
    judge.begin(PERSON, 300)
    assert judge.judge(PERSON, 10, 0.0) is None
    judge.begin(PERSON, 10)
    assert judge.judge(PERSON, 1, 0.0, sends=False) is None
    assert judge.judge(GROUP, 1, 0.0) is None
    assert judge.judge(PERSON, 1, 0.0) == Excess("under_way", 60)
    judge.end(PERSON, 10)
    assert judge.judge(PERSON, 1, 59.0) == Excess("under_way", 1)
    assert judge.judge(PERSON, 1, 60.0) is None
    judge.end(PERSON, 300)
    assert not judge._under_way


def test_its_memory_is_bounded() -> None:
    judge = flood()
    for chat in range(1, 3 * KEPT_CHATS):
        judge.judge(chat, 1, 0.0)
    assert len(judge._accounts) == KEPT_CHATS


@given(st.lists(st.tuples(st.sampled_from([PERSON, GROUP]), st.integers(0, 2_000)), max_size=60))
def test_whatever_passes_stays_within_the_limits_but_for_the_tolerance(calls: list[tuple[int, int]]) -> None:
    judge = flood(overall=5, private=1, burst=2, group=3)
    now, passed = 0.0, list[tuple[int, float]]()
    for chat, milliseconds in calls:
        now += milliseconds / 1000
        if judge.judge(chat, 1, now) is None:
            passed.append((chat, now))
    for index, (_, start) in enumerate(passed):
        assert sum(at < start + 0.95 for _, at in passed[index:]) <= 5
    in_group = [at for chat, at in passed if chat == GROUP]
    assert all(later - sooner >= 59.9 for sooner, later in zip(in_group, in_group[3:], strict=False))


@given(st.lists(st.integers(0, 3_000), max_size=40))
def test_who_waits_as_told_always_passes_then(gaps: list[int]) -> None:
    judge, now = flood(private=1, burst=1, group=2), 0.0
    for milliseconds in gaps:
        now += milliseconds / 1000
        excess = judge.judge(PERSON, 1, now)
        if excess is not None:
            now += excess.retry_after
            assert judge.judge(PERSON, 1, now) is None


@pytest.mark.parametrize(
    ("method", "counts"),
    [
        ("sendmessage", True), ("sendphoto", True), ("sendmediagroup", True), ("copymessage", True),
        ("forwardmessages", True), ("editmessagetext", True), ("editmessagereplymarkup", True),
        ("createforumtopic", True), ("sendchataction", False), ("sendmessagedraft", False), ("getupdates", False),
        ("answercallbackquery", False), ("deletemessage", False), ("setmessagereaction", False),
    ],
)  # fmt: skip
def test_sends_edits_and_topic_creation_share_the_limits(method: str, counts: bool) -> None:
    assert kinds.spends(method) is counts


def test_the_weight_of_a_call() -> None:
    assert kinds.weight("sendmediagroup", Args({"media": '[{"type":"photo"},{"type":"photo"}]'})) == 2
    assert kinds.weight("forwardmessages", Args({"message_ids": [1, 2, 3]})) == 3
    assert kinds.weight("copymessages", Args({"message_ids": "["})) == 1
    assert kinds.weight("sendmessage", Args({"media": [1, 2]})) == 1
