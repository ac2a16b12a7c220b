"""Functions that read and write a model, written out field by field and compiled once, as attrs does it.

A loop over the fields, or a call for each, takes two to four times as long; every request is read and written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import attrs

from telegram_bus.core import checks
from telegram_bus.core.checks import Check, Mismatch

__all__ = ["Read", "Write", "Writer", "compile_reader", "compile_writer"]

Writer = Callable[[Any], dict[str, Any]]

_EXACT: Final[Mapping[Check, str]] = {
    checks.text: "str",
    checks.boolean: "bool",
    checks.number: "int",
    checks.integer: "int",
}
"""Checks that let values of this very type pass as they are, so that they are called for others only."""


class Read(NamedTuple):
    """How a field is read: its name here and on the wire, and what it may be.

    `default` is for one that is not there (`attrs.NOTHING`: it has to be); one that may be dropped is None when it is
    ill-typed.
    """

    name: str
    wire: str
    check: Check
    default: Any
    droppable: bool


class Write(NamedTuple):
    """How a field is written: by `write` (None: as it is), left out when it holds its `default`."""

    name: str
    wire: str
    write: Callable[[Any], Any] | None
    default: Any


def compile_reader(cls: type, fields: Sequence[Read]) -> Check:
    """A function that reads a JSON object into `cls`; it raises `Mismatch`."""
    known: dict[str, Any] = {"Mismatch": Mismatch, "make": cls, "missing": object()}
    lines = ["def read(raw):", " if type(raw) is not dict:", "  raise Mismatch('must be an object')"]
    required = [(number, field) for number, field in enumerate(fields) if field.default is attrs.NOTHING]
    if required:
        lines.append(" try:")
        lines += [f"  v{number} = raw[{field.wire!r}]" for number, field in required]
        lines += [" except KeyError as fault:", "  raise Mismatch('is missing', fault.args[0]) from None"]
    for number, field in enumerate(fields):
        value, known[f"check{number}"] = f"v{number}", field.check
        steps = _checking(value, f"check{number}", field)
        if field.default is attrs.NOTHING:
            lines += [f" {step}" for step in steps]
        elif field.droppable:
            lines.append(f" {value} = raw.get({field.wire!r})")
            lines += [f" if {value} is not None:", *(f"  {step}" for step in steps)] if steps else []
        else:
            known[f"default{number}"] = field.default
            lines += [
                f" {value} = raw.get({field.wire!r}, missing)",
                f" if {value} is missing:",
                f"  {value} = default{number}",
            ]
            lines += [" else:", *(f"  {step}" for step in steps)] if steps else []
    arguments = ", ".join(f"{field.name}=v{number}" for number, field in enumerate(fields))
    lines.append(f" return make({arguments})")
    return cast(Check, _compiled(lines, "read", cls, known))


def _checking(value: str, check: str, field: Read) -> list[str]:
    """The lines that have a value checked."""
    if field.check is checks.anything:
        return []
    handling = f"{value} = None" if field.droppable else f"raise fault.inside({field.wire!r}) from None"
    caught = "except Mismatch:" if field.droppable else "except Mismatch as fault:"
    steps = ["try:", f" {value} = {check}({value})", caught, f" {handling}"]
    exact = _EXACT.get(field.check)
    return steps if exact is None else [f"if type({value}) is not {exact}:", *(f" {step}" for step in steps)]


def compile_writer(cls: type, fields: Sequence[Write], first: dict[str, str]) -> Writer:
    """A function that writes a `cls` as a JSON object, which begins with the entries of `first`."""
    known: dict[str, Any] = {}
    entries = [f"{name!r}: {value!r}" for name, value in first.items()]
    more = []
    for number, field in enumerate(fields):
        known[f"write{number}"], known[f"default{number}"] = field.write, field.default
        written = f"write{number}(it.{field.name})" if field.write is not None else f"it.{field.name}"
        if field.default is attrs.NOTHING:
            entries.append(f"{field.wire!r}: {written}")
        else:
            more += [
                f" if it.{field.name} is not default{number}:",
                f"  raw[{field.wire!r}] = {written}",
            ]
    lines = ["def write(it):", f" raw = {{{', '.join(entries)}}}", *more, " return raw"]
    return cast(Writer, _compiled(lines, "write", cls, known))


def _compiled(lines: list[str], name: str, cls: type, known: dict[str, Any]) -> Any:
    """The function that the lines define; nothing in them but names of fields of our own models."""
    exec(compile("\n".join(lines), f"<{name} {cls.__name__}>", "exec"), known)  # noqa: S102 - as attrs does it
    return known[name]
