"""Skipping what a machine cannot run, with a line that says what to install; in CI such a skip is a failure."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

__all__ = ["missing"]


def missing(what: str, install: str) -> NoReturn:
    """Skip the test because `what` is missing; with TELEGRAM_BUS_REQUIRE_ALL=1 fail instead."""
    line = f"{what} is missing; install it: {install}"
    if os.environ.get("TELEGRAM_BUS_REQUIRE_ALL") == "1":
        pytest.fail(line, pytrace=False)
    pytest.skip(line)
