"""Byte streams as lines."""

from __future__ import annotations

import itertools
import time

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


def test_what_was_read_is_not_searched_again() -> None:
    """16 times the bytes in equal chunks take about 16 times as long; a rescan would take 256 times."""

    def cost(chunk_count: int) -> float:
        splitter = LineSplitter(1 << 30)
        started = time.process_time()
        for _ in range(chunk_count):
            splitter.feed(b"x" * 1024)
        assert splitter.pending == chunk_count * 1024
        return time.process_time() - started

    cost(1000)
    small = min(cost(1000) for _ in range(5))
    assert cost(16_000) < 16 * small * 5
