"""`telegram-bus status`: who leads, and which followers live."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from telegram_bus._version import __version__
from telegram_bus.cli import faults
from telegram_bus.cli.asking import ask, profile_of
from telegram_bus.cli.terminal import Colour, clean, columns, paint, put, wants_colours, width_of
from telegram_bus.core.text import counted, duration

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

__all__ = ["add_parser", "render"]

_EPILOG: Final = """\
--json prints one object, whose fields only ever get more:
  version, state, detail   of the leader; detail is null, or why it cannot work
  states                   [{state, detail}]: all there are, the worst first
  installed_version        of this command; an older leader is worth replacing
  pid, epoch, since_ms     its process, its term, when the term began
  bot, chat                {id, username}, {id, kind}
  last_poll_ms             when Telegram last answered
  waiting                  updates that wait for their followers
  standby                  whether a spare leader is ready to take over
  sends                    {waiting, unknown, unknown_calls, parked}: messages
                           not settled yet; those that perhaps went out, and
                           the newest 20 of them; chats that take nothing
  followers                [{key, name, chat_id, thread_id, slot, pid, state,
                           joined_ms, connected_at_ms, last_heartbeat_ms,
                           waiting, sending, unknown, activity}]
Times are milliseconds since 1970. docs/commands.md explains each field.

exit codes:
  0  there is a leader
  1  a file cannot be read
  2  usage
  3  there is no leader
  4  it refused (a wrong secret)
  5  it does not answer

examples:
  telegram-bus status
  telegram-bus status --json | jq -r '.followers[] | .name'
"""

_GOOD: Final = frozenset({"serving", "running", "polling", "leading", "live", "ready", "ok"})


def add_parser(subparsers: Any) -> None:
    """Adds the command and its options."""
    parser = subparsers.add_parser("status", usage="telegram-bus status [--json]", description=__doc__, epilog=_EPILOG)
    parser.add_argument("--json", action="store_true", help="one JSON object, for programs")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Asks the leader and prints what it says."""
    profile = profile_of(arguments)
    status = ask(profile, "x.status.get", profile.follower_secret)
    status["installed_version"] = __version__
    if arguments.json:
        put(json.dumps(status, indent=2, ensure_ascii=False))
    else:
        for line in render(status, now=time.time(), colours=wants_colours(sys.stdout), width=width_of(sys.stdout)):
            put(line)
    return faults.DONE


def render(status: dict[str, Any], *, now: float, colours: bool, width: int | None = None) -> Iterator[str]:
    """The lines for a person; `now` in seconds since 1970, `width` that of the terminal."""
    for label, value, colour in _leader(status, now):
        yield f"{paint(f'{label:<10}', 'dim', on=colours)}{paint(value, colour, on=colours)}"
    followers = status.get("followers") or []
    yield ""
    if not followers:
        yield faults.as_called("no followers; give a program a thread: telegram-bus follower --name NAME -- COMMAND")
        return
    yield paint(counted(len(followers), "follower"), "bold", on=colours)
    heads = ("NAME", "KEY", "THREAD", "SLOT", "AGE", "BEAT", "WAITING", "STATE")
    rows = columns([heads, *_rows(followers, now)], width=width)
    yield paint("".join(rows[0]), "dim", on=colours)
    for row in rows[1:]:
        yield "".join([*row[:-1], paint(row[-1], _judged(row[-1]), on=colours)])


def _leader(status: dict[str, Any], now: float) -> Iterator[tuple[str, str, Colour | None]]:
    state = clean(status.get("state"))
    yield "leader", state, _judged(state)
    if status.get("detail"):
        yield "", clean(status["detail"]), None
    if state not in _GOOD:
        yield from _troubles(status)
    since = _age(status.get("since_ms"), now)
    yield "process", f"pid {status.get('pid')}, term {status.get('epoch')}, for {since}", None
    bot, chat = status.get("bot") or {}, status.get("chat") or {}
    if bot:
        yield "bot", f"@{clean(bot['username'])} ({bot.get('id')})" if bot.get("username") else str(bot.get("id")), None
    if chat:
        yield "chat", f"{chat.get('id')} ({clean(chat.get('kind'))})", None
    polled = status.get("last_poll_ms")
    yield "last poll", f"{_age(polled, now)} ago" if polled else "none yet", None
    yield "waiting", counted(int(status.get("waiting") or 0), "update"), None
    yield from _sends(status.get("sends") or {}, now)
    if status.get("standby"):
        yield "spare", "ready to take over", None
    version, installed = clean(status.get("version")), clean(status.get("installed_version") or status.get("version"))
    if version == installed:
        yield "version", version, None
    else:
        words = f"{version}; {installed} is installed, so replace this leader: telegram-bus leader --replace"
        yield "version", faults.as_called(words), "yellow"


def _troubles(status: dict[str, Any]) -> Iterator[tuple[str, str, Colour | None]]:
    """What to do about the worst, and what else is wrong."""
    from telegram_bus.core.health import Condition, advice, remedy  # noqa: PLC0415 - only where something is wrong

    worst, *others = [
        Condition(each["state"], clean(each["detail"]) if each.get("detail") else None)
        for each in status.get("states") or [{"state": status.get("state"), "detail": status.get("detail")}]
    ]
    todo = remedy(worst)
    if todo is not None:
        yield "", faults.as_called(f"→ {todo}"), None
    for other in others:
        if other.state not in _GOOD and other.state != "starting":
            yield "also", faults.as_called(clean(advice(other))), "yellow"


def _sends(sends: dict[str, Any], now: float) -> Iterator[tuple[str, str, Colour | None]]:
    if sends.get("waiting"):
        yield "sending", counted(int(sends["waiting"]), "message"), None
    calls = sends.get("unknown_calls") or []
    if sends.get("unknown"):
        newest = calls[-1] if calls else {}
        words = f"{counted(int(sends['unknown']), 'message')} perhaps sent"
        words += f", the newest of {clean(newest.get('key'))} {_age(newest.get('since_ms'), now)} ago" if newest else ""
        yield "unknown", f"{words}: look into its thread", "yellow"
    for chat in sends.get("parked") or []:
        yield "closed", f"chat {clean(chat.get('chat_id'))}: {clean(chat.get('why'))}; write to the bot there", "yellow"


def _rows(followers: list[dict[str, Any]], now: float) -> Iterator[tuple[str, ...]]:
    for follower in sorted(followers, key=lambda each: str(each.get("key"))):
        yield (
            clean(follower.get("name") or "-"),
            clean(follower.get("key") or "-"),
            clean(follower.get("thread_id") or "-"),
            clean(follower.get("slot") or "-"),
            _age(follower.get("joined_ms") or follower.get("connected_at_ms"), now),
            _age(follower.get("last_heartbeat_ms"), now),
            clean(follower.get("waiting") or 0),
            _doing(follower, now),
        )


def _doing(follower: dict[str, Any], now: float) -> str:
    """What the follower says it does, since when; else its state."""
    activity = follower.get("activity")
    if not isinstance(activity, dict):
        return clean(follower.get("state") or "-")
    words = clean(activity.get("text") or "") or "waiting"
    person = ", waits for a person" if activity.get("needs_person") else ""
    return f"{words} for {_age(activity.get('since_ms'), now)}{person}"


def _age(since_ms: Any, now: float) -> str:
    return duration(now - since_ms / 1_000) if isinstance(since_ms, int | float) and since_ms else "-"


def _judged(state: str) -> Colour:
    return "green" if state in _GOOD else "yellow"
