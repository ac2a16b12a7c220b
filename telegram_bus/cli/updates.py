"""`telegram-bus updates`: shows, retries or drops updates that wait or were set aside."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from telegram_bus.cli import faults
from telegram_bus.cli.asking import ask, profile_of
from telegram_bus.cli.terminal import clean, columns, paint, put, wants_colours, width_of
from telegram_bus.core.errors import SettingsError
from telegram_bus.core.text import counted, duration

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from telegram_bus.home import Profile

__all__ = ["add_parser", "render"]

_EPILOG: Final = """\
An update is set aside when its agent, being there, refused it 20 times (`rejected`), or was away for too long
(`expired`). It is kept for a week. `retry` has it delivered after all; `drop` lets go of it, and of one that waits.

--json prints one object:
  list                  {updates, waiting, set_aside}, of updates
                        [{id, update_id, kind, key, chat_id, thread_id, text,
                        admitted_ms, attempts, outcome, settled_ms, reason}]
  retry, drop           {done, unknown}, each a list of ids

exit codes:
  0  done
  1  an id is unknown or of another state
  2  usage
  3  there is no leader
  4  it refused
  5  it does not answer

examples:
  telegram-bus updates list
  telegram-bus updates retry 17 18
  telegram-bus updates drop --all
"""

_USAGE: Final = """\
telegram-bus updates list [--json]
       telegram-bus updates retry ID … | --all
       telegram-bus updates drop ID … | --all"""

_TEXT: Final = 40  # characters of a text in the table
_LONGEST_ID: Final = 18  # digits
_MOST: Final = 1_000  # the leader lists no more at once


def add_parser(subparsers: Any) -> None:
    """Adds the command and its options."""
    parser = subparsers.add_parser("updates", usage=_USAGE, description=__doc__, epilog=_EPILOG)
    parser.add_argument("action", choices=("list", "retry", "drop"), metavar="ACTION", help="list, retry or drop")
    parser.add_argument("ids", nargs="*", type=_id, metavar="ID", help="which ones, by the ID of the list")
    parser.add_argument("--all", action="store_true", help="all that were set aside")
    parser.add_argument("--json", action="store_true", help="one JSON object, for programs")
    parser.set_defaults(run=run)


def _id(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _LONGEST_ID:
        raise argparse.ArgumentTypeError(f"{text!r} is no ID: give numbers from the list")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Asks the leader and prints what it says."""
    profile = profile_of(arguments)
    if arguments.action == "list":
        listed = _ask(profile, "list", limit=_MOST)
        if arguments.json:
            put(json.dumps(listed, indent=2, ensure_ascii=False))
        else:
            for line in render(listed, now=time.time(), colours=wants_colours(sys.stdout), width=width_of(sys.stdout)):
                put(line)
        return faults.DONE
    ids = arguments.ids
    if bool(ids) is arguments.all:
        raise SettingsError(f"say which updates to {arguments.action}: their ids, or --all that were set aside")
    if arguments.all:
        ids = [each["id"] for each in _ask(profile, "list", limit=_MOST)["updates"] if each["outcome"]]
    result = _ask(profile, arguments.action, ids=ids)
    if arguments.json:
        put(json.dumps(result))
    else:
        put(f"{counted(len(result['done']), 'update')} {'retried' if arguments.action == 'retry' else 'dropped'}")
        if result["unknown"]:
            ids = ", ".join(map(str, result["unknown"]))
            faults.say(f"there is nothing to {arguments.action} at {ids}; telegram-bus updates list shows the ids")
    return faults.FAILED if result["unknown"] else faults.DONE


def render(listed: dict[str, Any], *, now: float, colours: bool, width: int | None = None) -> Iterator[str]:
    """The lines for a person; `now` in seconds since 1970, `width` that of the terminal."""
    yield f"{counted(int(listed['set_aside']), 'update')} set aside, {int(listed['waiting'])} waiting"
    if not listed["updates"]:
        return
    heads = ("ID", "FOR", "KIND", "AGE", "STATE", "TRIES", "TEXT")
    rows = columns([heads, *(_row(each, now) for each in listed["updates"])], width=width)
    yield paint("".join(rows[0]), "dim", on=colours)
    for row, each in zip(rows[1:], listed["updates"], strict=True):
        yield "".join(row)
        if each.get("reason"):
            yield paint(f"  {clean(each['reason'])}", "dim", on=colours)


def _row(each: dict[str, Any], now: float) -> tuple[str, ...]:
    text = clean(each.get("text") or "")
    return (
        clean(each["id"]),
        clean(each.get("key") or "the leader"),
        clean(each["kind"]),
        duration(now - each["admitted_ms"] / 1_000),
        clean(each.get("outcome") or "waiting"),
        clean(each["attempts"]),
        text if len(text) <= _TEXT else text[: _TEXT - 1] + "…",
    )


def _ask(profile: Profile, action: str, **fields: Any) -> dict[str, Any]:
    secret: Path = profile.operator_secret
    result: dict[str, Any] = ask(profile, f"x.operator.updates.{action}", secret, **fields)
    return result
