"""Names, slots and keys."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_bus.core.threads import (
    ICON_COLOURS,
    NAME_LIMIT,
    PALETTE,
    clean_name,
    free_key,
    free_slot,
    icon_colour,
    slug,
    thread_name,
)


def test_the_palette_has_two_hundred_short_words_and_none_twice() -> None:
    assert len(PALETTE) >= 200
    assert len({word.casefold() for word in PALETTE}) == len(PALETTE)
    assert max(map(len, PALETTE)) <= 12


def test_a_name_that_is_taken_gets_a_number_whatever_its_case() -> None:
    assert thread_name("builder", "builder", set()) == "builder"
    assert thread_name("builder", "builder-2", {"Builder"}) == "builder 2"
    assert thread_name("builder", "builder-3", {"builder", "BUILDER 2"}) == "builder 3"


def test_a_follower_without_a_name_gets_a_free_word_and_the_same_one_again() -> None:
    first = thread_name(None, "proj", set())
    assert first in PALETTE
    assert thread_name("  \n ", "proj", set()) == first
    assert thread_name(None, "proj", {first}) in set(PALETTE) - {first}


def test_when_the_palette_is_used_up_words_are_numbered() -> None:
    assert thread_name(None, "proj", set(PALETTE)).endswith(" 2")


@given(st.text(max_size=300), st.sets(st.text(max_size=10), max_size=5))
def test_every_thread_name_is_one_that_telegram_keeps_as_it_is(wanted: str, taken: set[str]) -> None:
    name = thread_name(wanted, "k", taken)
    assert 1 <= len(name) <= NAME_LIMIT
    assert clean_name(name) == name
    assert name.casefold() not in {other.casefold() for other in taken}


def test_slots_run_out_after_twenty_six() -> None:
    taken: set[str] = set()
    for _ in range(26):
        slot = free_slot(None, taken)
        assert slot is not None
        taken.add(slot)
    assert free_slot(None, taken) is None
    assert free_slot("C", {"A"}) == "C"
    assert free_slot("A", {"A"}) == "B"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("My Project", "my-project"),
        ("Über/../etc", "uber-etc"),
        ("..", None),
        ("日本", None),
        ("a" * 99, "a" * 48),
    ],
)
def test_slug(name: str, key: str | None) -> None:
    assert slug(name) == key if key else slug(name).startswith("agent-")


@given(st.text())
def test_a_key_is_one_safe_path_component(name: str) -> None:
    assert set(slug(name)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert 1 <= len(slug(name)) <= 48
    assert free_key(slug(name), 2) == slug(name) + "-2"


def test_neighbouring_threads_differ_in_colour_and_all_colours_are_used() -> None:
    colours = [icon_colour(number) for number in range(20)]
    assert all(one != other for one, other in pairwise(colours))
    assert set(colours) == set(ICON_COLOURS)
