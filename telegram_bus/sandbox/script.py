"""Reading a scenario: timed doings of people, and what the bot is expected to do.

A script has one step a line, each a JSON object; empty lines and lines that begin with `#` are skipped. JSON lines
and not TOML, because a step is then spelled like the control's requests and like the answers that are printed, can be
written and cut by line with any tool, and a complaint names its line.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import attrs

__all__ = ["TIMING", "ScriptError", "Step", "read_script"]

Json = dict[str, Any]

EXPECTATIONS: Final = ("message", "call", "topic", "nothing")
TIMING: Final = frozenset({"at", "wait"})
_MESSAGE: Final = frozenset({"text", "is", "like", "button", "message"})
_FIELDS: Final = {
    "message": _MESSAGE | {"chat", "thread", "user", "within", "as"},
    "call": frozenset({"method", "params", "text", "ok", "count", "within"}),
    "topic": frozenset({"name", "chat", "user", "within", "as"}),
    "nothing": frozenset({"for", "chat", "user", "thread"}),
}


class ScriptError(Exception):
    """A script that cannot be played; the message names file and line."""


@attrs.frozen
class Step:
    """One line of a script."""

    line: int
    fields: Json

    @property
    def is_doing(self) -> bool:
        """Whether a person does something, in contrast to an expectation or a mere pause."""
        return "do" in self.fields


def read_script(path: Path) -> list[Step]:
    """The steps of a file; raises ScriptError."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ScriptError(f"cannot read the script {path}: {why}") from error
    steps = []
    for line, content in enumerate(text.splitlines(), 1):
        if content.strip() and not content.lstrip().startswith("#"):
            steps.append(_checked(content, line, f"{path}, line {line}"))
    if not steps:
        raise ScriptError(f"the script {path} has no steps")
    return steps


def _checked(content: str, line: int, where: str) -> Step:
    try:
        fields = json.loads(content)
    except ValueError as error:
        raise ScriptError(f"{where}: this is no JSON ({error})") from error
    if not isinstance(fields, dict):
        raise ScriptError(f"{where}: a step is a JSON object")
    for name in ("at", "wait", "within", "for"):
        value = fields.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise ScriptError(f"{where}: {name} is a number of seconds")
    if "expect" in fields:
        _check_expectation(fields, where)
    elif not isinstance(fields.get("do", ""), str) or not fields.keys() & {"do", "at", "wait"}:
        raise ScriptError(f'{where}: a step has "do" (what a person does), "expect", or "wait"')
    return Step(line, fields)


def _check_expectation(fields: Json, where: str) -> None:
    kind = fields["expect"]
    if kind not in EXPECTATIONS:
        raise ScriptError(f"{where}: expect is one of {', '.join(EXPECTATIONS)}")
    unknown = fields.keys() - _FIELDS[kind] - TIMING - {"expect"}
    if unknown:
        raise ScriptError(f"{where}: expecting a {kind} has no {', '.join(sorted(unknown))}")
    try:
        re.compile(fields.get("like", ""))
    except (re.error, TypeError) as error:
        raise ScriptError(f"{where}: like is a regular expression: {error}") from error
