"""`telegram-bus threads`: shows the agents' threads, and mends them by hand."""

from __future__ import annotations

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
    import argparse
    from collections.abc import Iterator, Sequence

    from telegram_bus.home import Profile

__all__ = ["add_parser", "render"]

_EPILOG: Final = """\
actions:
  list                  who has which thread, which are being made or shall go
  rename KEY NAME       give a thread another name; it stays, as one that you
                        give in Telegram does
  bind KEY THREAD_ID    give a thread to a follower; its present one stays in
                        the chat, and is nobody's
  unbind KEY            forget whose a thread is; its follower gets a new one
  sync [KEY …]          find out whether the threads are there: one call for
                        each, within the chat's budget
  clean [KEY …]         close or delete the threads of followers that are
                        proven to be gone; nothing of one that lives, or that
                        messages wait for

--json prints one object:
  list                  {chat_id, outage, threads, making, clean_ups}, of
                        threads [{key, name, chat_id, thread_id, link, state,
                        here, named_by_person, waiting, since_ms}],
                        making [{key, name, since_ms, looked_for}],
                        clean_ups [{key, thread_id, how, why, since_ms}]
  rename, bind, unbind  {key, name, thread_id}
  sync                  {there, gone, unknown}, each a list of keys
  clean                 {how, done, left, kept}; kept is {KEY: why}

exit codes:
  0  done
  1  a thread is gone or was not cleaned up
  2  usage
  3  there is no leader
  4  refused
  5  it does not answer

examples:
  telegram-bus threads list
  telegram-bus threads rename build-server "Build server"
  telegram-bus threads clean --how delete --dry-run
"""

_USAGE: Final = """\
telegram-bus threads list [--json]
       telegram-bus threads rename KEY NAME
       telegram-bus threads bind KEY THREAD_ID
       telegram-bus threads unbind KEY
       telegram-bus threads sync [KEY …]
       telegram-bus threads clean [KEY …] [--how HOW] [--dry-run]"""

_ACTIONS: Final = ("list", "rename", "bind", "unbind", "sync", "clean")

_PATIENCE: Final = 60.0
"""Seconds for one request: the leader works 20 s on each, and a call may have to wait for Telegram's limits."""

_ROUNDS: Final = 60
"""Requests of one `sync`, each of which goes on where the last one ended."""


def add_parser(subparsers: Any) -> None:
    """Adds the command and its options."""
    parser = subparsers.add_parser("threads", usage=_USAGE, description=__doc__, epilog=_EPILOG)
    parser.add_argument("action", choices=_ACTIONS, metavar="ACTION", help="one of those below")
    parser.add_argument("words", nargs="*", metavar="KEY", help="the follower's key, and what the action needs more")
    parser.add_argument("--how", choices=("close", "delete"), help="clean: what to do; else as the leader's --clean-up")
    parser.add_argument("--dry-run", action="store_true", help="clean: only show what it would do")
    parser.add_argument("--json", action="store_true", help="one JSON object, for programs")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Asks the leader and prints what it says."""
    profile, words = profile_of(arguments), arguments.words
    match arguments.action:
        case "list":
            _no_more(words, "list")
            return _list(_ask(profile, "list"), as_json=arguments.json)
        case "rename":
            key, name = _two(words, "rename KEY NAME")
            return _say(_ask(profile, "rename", keys=[key], name=name), "is called", as_json=arguments.json)
        case "bind":
            key, thread = _two(words, "bind KEY THREAD_ID")
            if not thread.isdecimal():
                raise SettingsError(
                    f"{thread!r} is no thread: give its id, the number in its link or in `threads list`"
                )
            bound = _ask(profile, "bind", keys=[key], threadId=int(thread))
            return _say(bound, "has the thread", as_json=arguments.json)
        case "unbind":
            if len(words) != 1:
                raise SettingsError("say whose thread to forget: telegram-bus threads unbind KEY")
            return _say(_ask(profile, "unbind", keys=words), "has no longer the thread", as_json=arguments.json)
        case "sync":
            return _sync(profile, words, as_json=arguments.json)
    return _clean(profile, arguments)


def render(listed: dict[str, Any], *, now: float, colours: bool, width: int | None = None) -> Iterator[str]:
    """The lines for a person; `now` in seconds since 1970, `width` that of the terminal."""
    if listed.get("outage"):
        yield paint(clean(listed["outage"]), "red", on=colours)
    threads = listed["threads"]
    yield paint(f"{counted(len(threads), 'thread')} in chat {listed['chat_id']}", "bold", on=colours)
    if threads:
        heads = ("KEY", "NAME", "THREAD", "STATE", "AGENT", "WAITING", "AGE")
        rows = columns([heads, *_rows(threads, now)], width=width)
        yield paint("".join(rows[0]), "dim", on=colours)
        yield from ("".join(row) for row in rows[1:])
    for one in listed["making"]:
        age = duration(now - one["since_ms"] / 1_000)
        yield f"{clean(one['name'])} for {clean(one['key'])} was asked for {age} ago, and is looked for"
    for one in listed["clean_ups"]:
        yield f"thread {one['thread_id']} of {clean(one['key'])} will be {one['how']}d: {clean(one['why'])}"


def _rows(threads: Sequence[dict[str, Any]], now: float) -> Iterator[tuple[str, ...]]:
    for each in sorted(threads, key=lambda each: str(each["key"])):
        yield (
            clean(each["key"]),
            clean(each["name"]),
            clean(each["thread_id"]),
            clean(each["state"]),
            "here" if each["here"] else "away",
            clean(each["waiting"]),
            duration(now - each["since_ms"] / 1_000),
        )


def _list(listed: dict[str, Any], *, as_json: bool) -> int:
    if as_json:
        put(json.dumps(listed, indent=2, ensure_ascii=False))
    else:
        for line in render(listed, now=time.time(), colours=wants_colours(sys.stdout), width=width_of(sys.stdout)):
            put(line)
    return faults.DONE


def _say(about: dict[str, Any], verb: str, *, as_json: bool) -> int:
    if as_json:
        put(json.dumps(about, ensure_ascii=False))
    else:
        put(f"{clean(about['key'])} {verb} {clean(about['name'])} ({about['thread_id']})")
    return faults.DONE


def _sync(profile: Profile, keys: Sequence[str], *, as_json: bool) -> int:
    found: dict[str, list[str]] = {"there": [], "gone": [], "unknown": []}
    left = list(keys)
    for _ in range(_ROUNDS):
        answer = _ask(profile, "sync", keys=left or None)
        for verdict, some in found.items():
            some.extend(answer[verdict])
        left = answer["left"]
        if not left:
            break
    found["unknown"] += left
    if as_json:
        put(json.dumps(found, ensure_ascii=False))
    else:
        put(f"{len(found['there'])} there, {len(found['gone'])} gone, {len(found['unknown'])} not known")
        for key in found["gone"]:
            put(f"{clean(key)}: a person deleted its thread; it gets another with the next thing it says")
    return faults.FAILED if found["gone"] or found["unknown"] else faults.DONE


def _clean(profile: Profile, arguments: argparse.Namespace) -> int:
    wish = {"keys": arguments.words or None, "how": arguments.how, "dryRun": arguments.dry_run}
    answer = _ask(profile, "clean", **wish)
    if arguments.json:
        put(json.dumps(answer, ensure_ascii=False))
    elif arguments.dry_run:
        put(f"would {answer['how']} {counted(len(answer['left']), 'thread')}{_named(answer['left'])}")
    else:
        put(f"{answer['how']}d {counted(len(answer['done']), 'thread')}{_named(answer['done'])}")
        if answer["left"]:
            faults.say(f"not done: {', '.join(map(clean, answer['left']))}; telegram-bus logs says why")
    if not arguments.json and (arguments.words or not answer["done"]):
        for key, why in answer["kept"].items():
            faults.say(f"{clean(key)} keeps its thread: {clean(why)}")
    return faults.FAILED if answer["left"] and not arguments.dry_run else faults.DONE


def _named(keys: Sequence[str]) -> str:
    return f": {', '.join(map(clean, keys))}" if keys else ""


def _no_more(words: Sequence[str], action: str) -> None:
    if words:
        raise SettingsError(f"threads {action} takes no more words; {words[0]!r} is one too many")


def _two(words: Sequence[str], usage: str) -> tuple[str, str]:
    if len(words) != 2:
        raise SettingsError(f"usage: telegram-bus threads {usage}")
    return words[0], words[1]


def _ask(profile: Profile, action: str, **fields: Any) -> dict[str, Any]:
    given = {name: value for name, value in fields.items() if value is not None}
    result: dict[str, Any] = ask(
        profile, "x.operator.threads", profile.operator_secret, _PATIENCE, action=action, **given
    )
    return result
