"""What the leader says itself: short, true, and never too long for a message."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from telegram_bus.core.lobby import SHOWN, AgentLine, BusLine, Topic, age, answer, shared_intro, thread_link

BUS = BusLine(bot="@a_bot", state="serving", detail=None, since_poll=1.4, waiting=0)
NORA = AgentLine(name="Nora", link=None, online=True, age=65.0, waiting=0)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3.0, "0 s"),
        (0.0, "0 s"),
        (119.9, "119 s"),
        (120, "2 min"),
        (7_199, "119 min"),
        (7_200, "2 h"),
        (172_799, "47 h"),
        (172_800, "2 d"),
        (86_400 * 400, "400 d"),
    ],
)
def test_an_age_has_one_unit(seconds: float, text: str) -> None:
    assert age(seconds) == text


@pytest.mark.parametrize(
    ("chat", "thread", "link"),
    [
        (-1001234, 5, "https://t.me/c/1234/5"),
        (-1001234, None, None),
        (1234, 5, None),
        (-1234, 5, None),
    ],
)
def test_only_topics_of_supergroups_have_an_address(chat: int, thread: int | None, link: str | None) -> None:
    assert thread_link(chat, thread) == link


def test_an_agent_is_here_or_away_and_says_what_waits() -> None:
    away = AgentLine(name="Otto", link="https://t.me/c/1/2", online=False, age=7_300, waiting=3)
    said = answer("agents", BUS, [NORA, away])
    assert said.text == "● Nora — here for 65 s\n○ Otto — away for 2 h, 3 waiting"
    assert said.entities == [{"type": "text_link", "offset": 25, "length": 4, "url": "https://t.me/c/1/2"}]
    assert said.text[25:29] == "Otto"


def test_names_beyond_the_basic_plane_are_linked_where_telegram_counts_them() -> None:
    """In UTF-16 units."""
    lines = [
        evolve(NORA, name="🦉 Owl", link="https://t.me/c/1/2"),
        evolve(NORA, name="Ada", link="https://t.me/c/1/3"),
    ]
    said = answer("status", BUS, lines)
    encoded = said.text.encode("utf-16-le")
    linked = [encoded[2 * e["offset"] : 2 * (e["offset"] + e["length"])].decode("utf-16-le") for e in said.entities]
    assert linked == ["🦉 Owl", "Ada"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"doing": "running tests", "doing_age": 200.0}, "running tests, for 3 min"),
        ({"doing": "which branch?", "needs_person": True}, "which branch?, for 0 s (waits for you)"),
        ({"needs_person": True}, "here for 65 s, waits for you"),
        ({"muted": True, "waiting": 1}, "here for 65 s, 1 waiting, muted"),
        ({"spoken_to": True, "spoke_last": True}, "here for 65 s, you write to it, spoke last"),
        ({"online": False, "doing": "tests"}, "away for 65 s"),
    ],
)
def test_an_agent_says_what_it_does(fields: dict[str, Any], expected: str) -> None:
    """And a person sees who waits for them."""
    said = answer("agents", BUS, [evolve(NORA, **fields)]).text
    assert said.removeprefix("● ").removeprefix("○ ") == f"Nora — {expected}"


def test_the_status_says_what_is_wrong_and_what_to_do() -> None:
    """And that messages wait for a choice."""
    said = answer("status", evolve(BUS, state="storage", troubles=("storage: full — make room",), unowned=2), [])
    assert "⚠ storage: full — make room" in said.text
    assert "2 messages have no agent yet" in said.text


def test_where_agents_share_a_chat_people_hear_how_to_choose_one() -> None:
    for topic in ("help", "who"):
        assert "/use NAME" in answer(topic, evolve(BUS, shared=True), []).text
        assert "/use" not in answer(topic, BUS, []).text
    for everyone, who in ((True, "all agents"), (False, "agents without a thread")):
        said = shared_intro("switch it on", everyone=everyone)
        assert said.startswith(f"switch it on.\n\nUntil then {who} write here")
        assert said.endswith("/use NAME.")


def test_without_agents_it_says_how_to_start_one() -> None:
    for topic in ("agents", "status", "who"):
        assert "telegram-bus follower --name" in answer(topic, BUS, []).text


@pytest.mark.parametrize(
    ("bus", "first"),
    [
        (BUS, "@a_bot: serving, last poll 1 s ago, nothing waits"),
        (
            evolve(BUS, state="conflict", detail="another poller"),
            "@a_bot: conflict (another poller), last poll 1 s ago",
        ),
        (evolve(BUS, since_poll=None), "@a_bot: serving, no poll yet"),
        (evolve(BUS, waiting=7), "@a_bot: serving, last poll 1 s ago, 7 waiting"),
    ],
)
def test_the_status_is_one_line_and_the_agents(bus: BusLine, first: str) -> None:
    said = answer("status", bus, [NORA]).text
    assert said.startswith(first)
    assert said.endswith("\n\n● Nora — here for 65 s")


def test_more_agents_than_a_phone_shows_are_counted() -> None:
    said = answer("agents", BUS, [evolve(NORA, name=f"n{number}") for number in range(SHOWN + 3)]).text
    assert said.count("\n") == SHOWN
    assert said.endswith("… and 3 more")


@given(
    st.sampled_from(get_args(Topic)),
    st.lists(st.tuples(st.text(max_size=128), st.booleans(), st.floats(0, 1e9), st.integers(0, 10**6)), max_size=60),
)
def test_any_answer_fits_a_message_and_is_not_empty(topic: Topic, agents: list[tuple[str, bool, float, int]]) -> None:
    lines = [
        AgentLine(name=name * 2, link=thread_link(-1001234567890, 2**31), online=online, age=seconds, waiting=waiting)
        for name, online, seconds, waiting in agents
    ]
    lines += [evolve(NORA, name="\U0001f600" * 128)] * len(agents)
    said = answer(topic, BUS, lines).text
    assert 0 < len(said.encode("utf-16-le", "surrogatepass")) // 2 <= 4_096


def test_a_button_of_nobody_is_answered_in_a_notice() -> None:
    assert len(answer("unowned button", BUS, []).text) <= 200
