"""Which calls a fault strikes, and how often."""

from __future__ import annotations

from typing import Any

import pytest

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.faults import MAX_ORDERS, Faults, Order

NOW = 1_000.0


def struck(faults: Faults, method: str = "sendMessage", *, now: float = NOW, **params: Any) -> int | None:
    """The id of the fault that the call meets."""
    found = faults.strike(method, Args(params), now)
    return found and found[0]


def test_a_fault_strikes_once_unless_told_otherwise() -> None:
    faults = Faults()
    first = faults.order(Order(), NOW)
    assert [struck(faults), struck(faults)] == [first, None]
    twice = faults.order(Order(times=2), NOW)
    assert [struck(faults) for _ in range(3)] == [twice, twice, None]


def test_zero_times_is_until_it_is_cancelled() -> None:
    faults = Faults()
    always = faults.order(Order(times=0), NOW)
    assert [struck(faults) for _ in range(50)] == [always] * 50
    assert faults.state(NOW) == [{"id": always, "does": "refuse", "method": "calls", "times": 0, "struck": 50}]
    assert faults.cancel(always) == 1
    assert struck(faults) is None
    assert faults.cancel(always) == 0


def test_some_may_pass_first_and_time_ends_it() -> None:
    faults = Faults()
    third = faults.order(Order(skip=2), NOW)
    assert [struck(faults) for _ in range(4)] == [None, None, third, None]
    brief = faults.order(Order(times=0, seconds=5), NOW)
    assert struck(faults, now=NOW + 4.9) == brief
    assert struck(faults, now=NOW + 5) is None
    assert faults.state(NOW + 5) == []


@pytest.mark.parametrize(
    ("wanted", "method", "strikes"),
    [
        ("calls", "getMe", True), ("calls", "getUpdates", False), ("*", "getUpdates", True),
        ("sends", "sendPhoto", True), ("sends", "sendChatAction", False), ("sends", "editMessageText", False),
        ("edits", "editMessageText", True), ("SENDMESSAGE", "sendMessage", True), ("sendMessage", "sendPhoto", False),
        ("getMe, send*", "sendVideo", True), ("*ForumTopic", "closeForumTopic", True),
    ],
)  # fmt: skip
def test_methods_are_named_by_name_pattern_or_kind(wanted: str, method: str, strikes: bool) -> None:
    faults = Faults()
    faults.order(Order(method=wanted), NOW)
    assert (struck(faults, method) is not None) is strikes


def test_a_fault_may_be_about_one_chat_thread_or_text() -> None:
    faults = Faults()
    faults.order(Order(chat_id=5, times=0), NOW)
    assert struck(faults, chat_id="5") == 1
    assert struck(faults, chat_id=6) is None
    faults.order(Order(chat_id=6, thread_id=9, times=0), NOW)
    assert struck(faults, chat_id=6, message_thread_id="9") == 2
    assert struck(faults, chat_id=6, message_thread_id="8") is None
    faults.order(Order(chat_id=7, threads=True, times=0), NOW)
    assert struck(faults, chat_id=7, message_thread_id=1) == 3
    assert struck(faults, chat_id=7) is None
    faults.order(Order(text="boom", times=0), NOW)
    assert struck(faults, chat_id=8, text="a boom") == 4
    assert struck(faults, chat_id=8, text="nothing") is None


def test_the_oldest_order_strikes_first() -> None:
    faults = Faults()
    faults.order(Order(code=500), NOW)
    faults.order(Order(code=400), NOW)
    assert [struck(faults), struck(faults), struck(faults)] == [1, 2, None]


def test_a_refusal_is_worded_by_its_code() -> None:
    assert Order(code=429, parameters={"retry_after": 7}).refusal() == {
        "ok": False,
        "error_code": 429,
        "description": "Too Many Requests: retry after 7",
        "parameters": {"retry_after": 7},
    }
    assert Order(code=429).refusal()["parameters"] == {"retry_after": 1}
    assert Order().refusal() == {"ok": False, "error_code": 500, "description": "Internal Server Error"}
    assert Order(code=400, description="Bad Request: chat not found").refusal()["description"].endswith("not found")
    migrated = Order(code=400, description="x", parameters={"migrate_to_chat_id": -1001})
    assert migrated.refusal()["parameters"] == {"migrate_to_chat_id": -1001}


def test_what_has_an_effect() -> None:
    effects = {does: Order(does=does).has_effect for does in ("answer", "refuse", "drop", "hang", "cut", "html")}
    assert effects == {"answer": True, "refuse": False, "drop": True, "hang": False, "cut": True, "html": False}
    assert Order(does="hang", effect=True).has_effect
    assert not Order(does="drop", effect=False).has_effect


@pytest.mark.parametrize(
    "fields",
    [
        {"does": "explode"}, {"code": 200}, {"code": "400"}, {"times": -1}, {"times": True}, {"delay": -1},
        {"seconds": float("nan")}, {"parameters": []}, {"effect": 1}, {"method": None}, {"threads": 1}, {"skip": 1.5},
    ],
)  # fmt: skip
def test_what_cannot_be_ordered_is_refused(fields: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Order(**fields)


def test_there_are_not_too_many() -> None:
    faults = Faults()
    for _ in range(MAX_ORDERS):
        faults.order(Order(), NOW)
    with pytest.raises(ValueError, match="1000 faults"):
        faults.order(Order(), NOW)
    assert faults.cancel() == MAX_ORDERS
