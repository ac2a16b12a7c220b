"""The menu of commands: what is taken from an offer, and how offers become one menu."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_bus.core.commands import LEADERS, MOST, Command, Offer, merged, offered

OWN = [one.name for one in LEADERS.commands]


def offer(who: str, **commands: str) -> Offer:
    """What a follower offers."""
    return Offer(who, tuple(Command(name, text) for name, text in commands.items()))


def names(menu: list[dict[str, str]]) -> list[str]:
    """The commands of a menu."""
    return [one["command"] for one in menu]


def test_a_menu_holds_all_offers_in_their_order_and_the_bus_s_own_last() -> None:
    menu = merged([offer("nora", test="Tests", build="Builds"), offer("otto", deploy="Deploys")])
    assert names(menu) == ["test", "build", "deploy", *OWN]
    assert menu[1] == {"command": "build", "description": "Builds"}


def test_without_an_offer_there_is_no_menu() -> None:
    assert merged([]) == []
    assert merged([Offer("nora", ())]) == []


def test_a_command_of_several_stands_there_once_with_all_descriptions() -> None:
    menu = merged([offer("nora", build="Builds the app"), offer("otto", build="Builds the docs", stop="Stops")])
    assert menu[0] == {"command": "build", "description": "nora: Builds the app · otto: Builds the docs"}
    assert names(menu).count("build") == 1
    same = merged([offer("nora", build="Builds"), offer("otto", build="Builds")])
    assert same[0]["description"] == "Builds"
    clash = merged([offer("nora", status="My status")])
    assert clash[0]["description"] == "nora: My status · the bus: What is going on"


def test_where_it_would_be_too_long_each_keeps_its_first() -> None:
    long = Offer("long", tuple(Command(f"a{number}", "x") for number in range(100)))
    menu = merged([long, offer("short", z1="x", z2="x")])
    assert len(menu) == MOST
    assert {"a0", "a1", "z1", "z2", *OWN} <= set(names(menu))
    assert "a99" not in names(menu)


@given(
    st.lists(
        st.tuples(
            st.text("abc", min_size=1, max_size=3),
            st.lists(st.tuples(st.from_regex(r"[a-z0-9_]{1,3}", fullmatch=True), st.text(min_size=1, max_size=300))),
        ),
        max_size=8,
    )
)
def test_telegram_takes_every_menu(made: list[tuple[str, list[tuple[str, str]]]]) -> None:
    offers = [Offer(who, tuple(Command(*one) for one in commands)) for who, commands in made]
    menu = merged(offers)
    assert len(menu) <= MOST
    assert len(set(names(menu))) == len(menu)
    for one in menu:
        assert re.fullmatch("[a-z0-9_]{1,32}", one["command"])
        assert 1 <= len(one["description"]) <= 256
    assert menu == merged(offers)


def test_an_offer_is_taken_as_telegram_takes_it() -> None:
    listed = [{"command": "/go", "description": " Goes "}, {"command": "go", "description": "again"}]
    assert offered(listed) == (Command("go", "Goes"),)


@pytest.mark.parametrize(
    ("listed", "named"),
    [
        (None, "commands must be a list"),
        ([{"command": "a", "description": "x"}] * 101, "at most 100"),
        (["a"], "commands.0.command"),
        ([{"command": "Go", "description": "x"}], "commands.0.command"),
        ([{"command": "g" * 33, "description": "x"}], "commands.0.command"),
        ([{"command": "a", "description": "x"}, {"command": "b", "description": " "}], "commands.1.description"),
        ([{"command": "a", "description": "x" * 257}], "commands.0.description"),
    ],
)
def test_what_telegram_would_refuse_is_refused_with_its_place(listed: Any, named: str) -> None:
    with pytest.raises(ValueError, match=re.escape(named)):
        offered(listed)
