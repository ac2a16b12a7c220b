"""The book of threads: whose answer holds where a service message and Telegram's answer differ."""

from __future__ import annotations

import pytest

from telegram_bus.core.bindings import Binding
from telegram_bus.core.book import Book, Given

CHAT = -100
OLD, NEW = 100, 101


@pytest.fixture
def book() -> Book:
    """A leader's book after a person took nora's thread 100 from it; a new one is asked for."""
    book = Book(CHAT)
    book.begin("nora", "Nora", holder="nora:2", now_ms=1)
    return book


def test_telegrams_answer_holds_where_an_older_thread_of_this_name_was_heard_of_first(book: Book) -> None:
    """That one is nobody's again, and stays so whatever is heard of it."""
    book.topic_created(OLD, "Nora", 2)
    changes = book.made("nora", NEW, 3)
    assert [(row.key, row.thread_id) for row in changes] == [("nora", NEW)]  # type: ignore[union-attr]
    assert (book.owner(NEW), book.owner(OLD)) == ("nora", None)
    step, _ = book.register("nora", holder="nora:2", thread_id=None, wanted=None, now_ms=4)
    assert isinstance(step, Given)
    assert step.binding.thread_id == NEW
    book.begin("otto", "Nora", holder="otto:1", now_ms=5)
    assert book.topic_created(OLD, "Nora", 6) == []


def test_the_answer_changes_nothing_where_its_own_service_message_came_first(book: Book) -> None:
    book.topic_created(NEW, "Nora", 2)
    assert book.made("nora", NEW, 3) == []
    assert book.owner(NEW) == "nora"


def test_a_refusal_takes_back_what_an_older_thread_was_taken_for(book: Book) -> None:
    book.topic_created(OLD, "Nora", 2)
    book.not_made("nora")
    assert book.bindings == {}
    assert book.owner(OLD) is None


def test_without_an_answer_the_service_message_holds(book: Book) -> None:
    book.topic_created(NEW, "Nora", 2)
    book.lost("nora")
    assert book.owner(NEW) == "nora"


def test_a_person_who_gave_the_follower_a_thread_meanwhile_has_the_last_word(book: Book) -> None:
    """Also one who took the thread away."""
    book.topic_created(OLD, "Nora", 2)
    book.bind("nora", 7, "Mine", holder=None, now_ms=3)
    assert book.made("nora", NEW, 4) == []
    assert (book.owner(7), book.owner(NEW)) == ("nora", None)
    book.begin("otto", "Otto", holder="otto:1", now_ms=5)
    book.topic_created(8, "Otto", 6)
    book.unbind("otto")
    assert book.made("otto", 9, 7) == []
    assert book.owner(9) is None


def test_a_name_that_a_person_gave_stays_the_persons_in_another_thread() -> None:
    """One that was made anew because the person deleted the first, and one that was given to its agent by hand."""
    book = Book(CHAT, [Binding("nora", CHAT, OLD, "Nora", 1, "nora:1")])
    book.renamed(OLD, "Build server", by_person=True)
    book.parked(OLD, 2)
    book.begin("nora", "Build server", holder="nora:1", now_ms=3)
    [row] = [row for row in book.made("nora", NEW, 4) if isinstance(row, Binding)]
    assert (row.thread_id, row.by_person) == (NEW, True)
    [row] = [row for row in book.bind("nora", 7, "Build server", holder=None, now_ms=5) if isinstance(row, Binding)]
    assert (row.thread_id, row.by_person) == (7, True)
    [row] = [row for row in book.bind("nora", 8, "Nora", holder=None, now_ms=6) if isinstance(row, Binding)]
    assert not row.by_person
