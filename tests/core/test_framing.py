"""Byte streams as lines."""

from __future__ import annotations

import itertools
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_bus.core.errors import LineTooLong
from telegram_bus.core.framing import LineSplitter

STREAMS = st.binary(max_size=200) | st.lists(
    st.sampled_from([b"\n", b"a", b"bc", b"\r\n", "\u2028".encode(), b"\x00"])
).map(b"".join)


def chunks(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(STREAMS, st.lists(st.integers(0, 1000)))
def test_any_chunking_gives_the_same_lines(data: bytes, cuts: list[int]) -> None:
    splitter = LineSplitter(1000)
    lines = [line for chunk in chunks(data, cuts) for line in splitter.feed(chunk)]
    *expected, rest = data.split(b"\n")
    assert lines == expected
    assert splitter.pending == len(rest)


@given(STREAMS, st.lists(st.integers(0, 1000)), st.integers(0, 20))
def test_any_chunking_finds_the_line_that_is_too_long(data: bytes, cuts: list[int], limit: int) -> None:
    splitter = LineSplitter(limit)
    too_long = False
    try:
        for chunk in chunks(data, cuts):
            splitter.feed(chunk)
    except LineTooLong:
        too_long = True
    assert too_long == any(len(line) > limit for line in data.split(b"\n"))


def test_a_line_of_exactly_the_limit_passes() -> None:
    assert LineSplitter(3).feed(b"abc\ndef\n") == [b"abc", b"def"]
    with pytest.raises(LineTooLong, match="more than 3 bytes"):
        LineSplitter(3).feed(b"abcd\n")


def test_a_limit_that_was_raised_lets_the_half_line_grow() -> None:
    splitter = LineSplitter(3)
    splitter.feed(b"abc")
    splitter.limit = 6
    assert splitter.feed(b"def\n") == [b"abcdef"]


class Unsearched(bytearray):
    """Bytes that nobody may look through again."""

    def _searched(self, *_: Any) -> NoReturn:
        raise AssertionError("what was read before is looked through again")

    find = index = count = partition = rfind = __contains__ = __getitem__ = __iter__ = __add__ = _searched
    split = rsplit = splitlines = _searched  # type: ignore[assignment]


def test_what_was_read_is_neither_searched_nor_copied_again() -> None:
    """Else a long line that comes in many pieces would cost the square of its length."""
    splitter = LineSplitter(1 << 20)
    splitter._half = half = Unsearched()
    for _ in range(100):
        assert splitter.feed(b"x" * 1024) == []
        assert splitter._half is half
    assert splitter.feed(b"y\nz") == [b"x" * 102_400 + b"y"]
    assert splitter.pending == 1
