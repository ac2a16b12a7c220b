"""The store's memory of what belongs to whom and of the menu of commands: what replaces what, and what is purged."""

from __future__ import annotations

import sqlite3

from telegram_bus.store import Retention, journal
from telegram_bus.store import commands as commands_table
from telegram_bus.store import files as files_table
from telegram_bus.store.schema import JOURNAL

DAY = 86_400_000


def database() -> sqlite3.Connection:
    """An empty journal in memory."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript("".join(JOURNAL.steps))
    return connection


def test_a_file_may_be_several_followers_and_is_kept_while_it_is_used() -> None:
    db = database()
    files_table.record_files(db, [("a", "nora"), ("a", "otto"), ("b", "nora")], 0)
    files_table.record_files(db, [("a", "nora")], 80 * DAY)
    assert files_table.own_files(db, "nora", ["a", "b", "c"]) == ["a", "b"]
    assert files_table.own_files(db, "otto", ["a", "b"]) == ["a"]
    assert journal.purge(db, 91 * DAY, Retention()) == 2
    assert files_table.own_files(db, "nora", ["a", "b"]) == ["a"]
    assert files_table.own_files(db, "otto", ["a"]) == []


def test_what_is_met_again_the_same_day_is_not_written_again() -> None:
    db = database()
    files_table.record_files(db, [("a", "nora")], 0)
    files_table.note_given(db, [((1, 2), "nora")], 0)
    before = db.total_changes
    files_table.record_files(db, [("a", "nora")], DAY // 2)
    files_table.note_given(db, [((1, 2), "nora")], DAY // 2)
    assert db.total_changes == before


def test_a_message_belongs_to_whoever_was_given_it_last() -> None:
    db = database()
    files_table.note_given(db, [((1, 2), "nora"), ((1, 3), "nora")], 0)
    files_table.note_given(db, [((1, 2), "otto")], 80 * DAY)
    assert [files_table.given_to(db, 1, message) for message in (2, 3, 4)] == ["otto", "nora", None]
    assert journal.purge(db, 91 * DAY, Retention()) == 1
    assert [files_table.given_to(db, 1, message) for message in (2, 3)] == ["otto", None]


def test_an_offer_replaces_the_last_one_and_the_menu_is_known_by_its_digest() -> None:
    db = database()
    commands_table.note_offer(db, "otto", b"1", 0)
    commands_table.note_offer(db, "nora", b"2", 0)
    commands_table.note_offer(db, "otto", b"3", 1)
    assert commands_table.offers(db) == [("nora", b"2"), ("otto", b"3")]
    commands_table.note_offer(db, "nora", None, 2)
    commands_table.forget_offers(db, ["otto", "nobody"])
    assert commands_table.offers(db) == []
    assert commands_table.menu_digest(db, 5) is None
    commands_table.note_menu(db, 5, "a", 0)
    commands_table.note_menu(db, 5, "b", 1)
    assert (commands_table.menu_digest(db, 5), commands_table.menu_digest(db, 6)) == ("b", None)
    commands_table.note_menu(db, 5, None, 2)
    assert commands_table.menu_digest(db, 5) is None
