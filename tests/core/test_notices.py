"""What people are told of their messages: in the singular where there is one."""

from __future__ import annotations

import pytest

from telegram_bus.core.chooser import Choice, ask, closed
from telegram_bus.core.notices import Backlog, back, expired, kept
from telegram_bus.core.sharing import not_one

OTTO, ORLA = Choice("otto", "otto"), Choice("orla", "orla")


@pytest.mark.parametrize(
    ("ages", "text"),
    [
        ([30.0], None),
        (
            [300.0],
            (
                "1 message had waited at Telegram for 5 min while nobody asked for it. "
                "It is delivered now, marked with its age."
            ),
        ),
        (
            [7_200.0, 90.0, 1.0],
            (
                "2 messages had waited at Telegram while nobody asked for them, the oldest for 2 h. "
                "They are delivered now, marked with their age."
            ),
        ),
    ],
)
def test_a_backlog_is_named_by_its_number_and_its_age(ages: list[float], text: str | None) -> None:
    assert Backlog().add(ages, more=False) == text


def test_who_is_away_and_back_is_told_with_what_waited() -> None:
    assert kept("otto", "14:02") == "Kept for otto, away since 14:02; it gets this when it is back."
    assert kept("otto", None) == "Kept for otto, away; it gets this when it is back."
    assert back("otto", 1, 20.0) == "otto is back and gets 1 kept message (20 s old)."
    assert back("otto", 3, 200.0) == "otto is back and gets 3 kept messages, the oldest 3 min old."
    assert expired("otto", 1, 604_800.0).startswith("1 message for otto expired: it was away for 7 d or more.")


@pytest.mark.parametrize(("waiting", "them"), [(1, "it"), (2, "them")])
def test_a_question_speaks_of_one_message_or_of_several(waiting: int, them: str) -> None:
    assert ask(5, waiting, []).splitlines()[0].endswith("then look again; for example:")
    assert f"until you choose who gets {them}." in ask(5, waiting, [])
    assert ask(5, waiting, [OTTO]).endswith(f"who shall get {them}?")
    assert closed("later", waiting).endswith(f"gets {them}.")


def test_a_name_that_means_nobody_or_several_is_answered_with_those_that_there_are() -> None:
    assert not_one("nora", [], [OTTO, ORLA]) == "No agent is called nora; there are: otto, orla."
    assert not_one("nora", [], []) == "No agent is called nora; none is here."
    assert not_one("o", [OTTO, ORLA], [OTTO, ORLA]) == "2 agents are called so: otto, orla. Which one?"
