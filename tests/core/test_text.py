"""What becomes of a program's output on its way into a chat, and how things are worded."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_bus.core.text import (
    MESSAGE_UNITS,
    ControlRemover,
    OutputCutter,
    counted,
    duration,
    ending,
    plain,
    units,
)

TERMINAL = st.text(alphabet=st.sampled_from("ab \n\r\t\b;?0m[]\\P\x07\x18\x1b\x9b\x9c\x9d\x7fé😀"), max_size=80)


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize(
    ("raw", "left"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[?2004hprompt", "prompt"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0;2~~\x1b\\after", "after"),
        ("\x1b(Bascii", "ascii"),
        ("\x1b7saved\x1b8", "saved"),
        ("\x1b[12\x18text", "text"),
        ("\x1b[1\x1b[2mtext", "text"),
        ("bell\x07 null\x00 delete\x7f", "bell null delete"),
        ("\x1b[3\nnew line survives", "\nnew line survives"),
        ("tab\tand umlaut ä", "tab\tand umlaut ä"),
    ],
)
def test_control_sequences_are_removed(raw: str, left: str) -> None:
    assert ControlRemover().feed(raw) == left


def test_a_control_string_that_never_ends_does_not_swallow_everything() -> None:
    remover = ControlRemover()
    lost = "".join(remover.feed(part) for part in ["\x1b]", *["x" * 100_000] * 12])
    assert len(lost) < 300_000
    assert remover.feed("back") == "back"


@given(TERMINAL, st.integers(1, 7))
def test_the_cut_of_the_stream_does_not_matter(text: str, size: int) -> None:
    whole, parts = ControlRemover(), ControlRemover()
    assert "".join(parts.feed(part) for part in pieces(text, size)) == whole.feed(text)


@given(TERMINAL, st.integers(1, 7), st.booleans())
def test_messages_do_not_depend_on_how_the_output_arrived(text: str, size: int, rewrites: bool) -> None:
    # what was sent cannot be rewritten, so only lines that fit are the same with returns and backspaces
    limit = 200 if rewrites else 10
    text = text if rewrites else text.replace("\r", "").replace("\b", "")
    whole, parts = OutputCutter(limit), OutputCutter(limit)
    expected = [*whole.feed(text), *whole.flush()]
    assert [*itertools.chain.from_iterable(map(parts.feed, pieces(text, size))), *parts.flush()] == expected


@given(TERMINAL)
def test_nothing_but_printable_text_is_left(text: str) -> None:
    assert not set(plain(text)) & set("\x00\x07\x08\x0d\x18\x1b\x7f\x9b\x9c\x9d")


@given(st.text(alphabet=st.sampled_from("ab \n😀é"), max_size=300), st.integers(2, 40))
def test_messages_keep_order_and_lose_only_white_space(text: str, limit: int) -> None:
    cutter = OutputCutter(limit)
    messages = [*cutter.feed(text), *cutter.flush()]
    assert all(0 < units(message) <= limit and message.strip() for message in messages)
    assert "".join("".join(messages).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("raw", "left"),
    [
        ("10 %\r50 %\r100 %\ndone", "100 %\ndone"),
        ("windows\r\nlines\r\n", "windows\nlines"),
        ("N\bNA\bAM\bM", "NAM"),
        ("typp\bo", "typo"),
        ("kept\n\b\bstill", "kept\nstill"),
        ("  indented\n    more", "  indented\n    more"),
    ],
)
def test_lines_end_up_as_on_a_terminal(raw: str, left: str) -> None:
    assert plain(raw) == left


def test_a_flood_is_cut_at_ends_of_lines_and_nothing_more_is_held() -> None:
    cutter = OutputCutter()
    lines = [f"line {number}" for number in range(20_000)]
    messages: list[str] = []
    for line in lines:
        messages += cutter.feed(line + "\n")
    messages += cutter.flush()
    assert "\n".join(messages).split("\n") == lines
    assert all(MESSAGE_UNITS // 2 < units(message) <= MESSAGE_UNITS for message in messages[:-1])


def test_a_line_without_any_place_to_cut_is_cut_hard() -> None:
    cutter = OutputCutter(limit=10)
    assert [*cutter.feed("😀" * 12), *cutter.flush()] == ["😀" * 5, "😀" * 5, "😀" * 2]


def test_blank_output_is_no_message_and_leaves_nothing_pending() -> None:
    cutter = OutputCutter()
    waits = [cutter.pending]
    assert cutter.feed(" \n\n\t") == []
    waits.append(cutter.pending)
    assert cutter.flush() == []
    assert [*waits, cutter.pending] == [False, True, False]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0 s"),
        (0.9, "0 s"),
        (119.9, "119 s"),
        (120, "2 min"),
        (7_199, "119 min"),
        (7_200, "2 h"),
        (172_800, "2 d"),
    ],
)
def test_durations_are_worded_in_one_unit(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_counts_agree_with_their_nouns() -> None:
    assert [counted(number, "follower") for number in (0, 1, 2)] == [
        "0 followers",
        "1 follower",
        "2 followers",
    ]
    assert counted(2, "reply", "replies") == "2 replies"


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "ended with exit status 0"),
        (3, "ended with exit status 3"),
        (-9, "was ended by SIGKILL (signal 9)"),
        (-250, "was ended by signal 250"),
    ],
)
def test_the_end_of_a_program_names_its_status_or_signal(status: int, words: str) -> None:
    assert ending(status) == words
