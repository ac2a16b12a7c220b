"""Buttons: what the data of a button means, and what a press comes to."""

from __future__ import annotations

from typing import Final

__all__ = ["ANSWER_UNITS", "LEADERS", "leaders", "toast"]

LEADERS: Final = "tb:"
"""Data that begins so is the bus's own; a program's data never does where our own followers send it."""

ANSWER_UNITS: Final = 200
"""The longest text of an answer to a pressed button (bot-api M12)."""


def leaders(data: str) -> tuple[str, str] | None:
    """The two halves of `tb:<prefix>:<rest>`; None for other data."""
    if not data.startswith(LEADERS):
        return None
    prefix, _, rest = data.removeprefix(LEADERS).partition(":")
    return prefix, rest


def toast(text: str) -> str:
    """A text as an answer to a pressed button shows it: cut where it is too long."""
    return text if len(text) <= ANSWER_UNITS else text[: ANSWER_UNITS - 1] + "…"
