"""The menu of commands that one chat shows: what its followers offer, merged, and the bus's own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

__all__ = ["LEADERS", "MOST", "SHARED", "Command", "Offer", "merged", "offered"]

MOST: Final = 100
"""Commands of a menu (Bot API, setMyCommands)."""

LONGEST_NAME: Final = 32
LONGEST_DESCRIPTION: Final = 256


class Command(NamedTuple):
    """A command without its slash, and what it does."""

    name: str
    description: str


class Offer(NamedTuple):
    """What one follower offers; `who` is its name, for people."""

    who: str
    commands: tuple[Command, ...]


LEADERS: Final = Offer(
    "the bus",
    (
        Command("agents", "Who is here"),
        Command("status", "What is going on"),
        Command("mute", "An agent's messages make no sound (for a while: /mute 2h)"),
        Command("unmute", "They do again"),
        Command("help", "How this chat works"),
    ),
)
"""The leader's own commands (core/routing), offered once some follower offers any."""

SHARED: Final = Offer(LEADERS.who, (Command("use", "Whom you write to here"), *LEADERS.commands))
"""The same where agents share the main chat."""


def offered(commands: Any) -> tuple[Command, ...]:
    """The commands of a `setMyCommands` call, each name once (the first counts), as Telegram takes them.

    Raises ValueError, with the path of the field, for names that are not 1 to 32 of a-z, 0-9 and _ (a slash before it
    is taken away), descriptions that are not 1 to 256 characters, and more than 100.
    """
    if type(commands) is not list or len(commands) > MOST:
        raise ValueError(f"commands must be a list of at most {MOST}")
    found: dict[str, Command] = {}
    for number, one in enumerate(commands):
        name = one.get("command") if isinstance(one, dict) else None
        text = one.get("description") if isinstance(one, dict) else None
        if type(name) is not str or not re.fullmatch(r"/?[a-z0-9_]{1,32}", name):
            raise ValueError(f"commands.{number}.command must be 1 to {LONGEST_NAME} of a-z, 0-9 and _")
        if type(text) is not str or not 1 <= len(text.strip()) <= LONGEST_DESCRIPTION:
            raise ValueError(f"commands.{number}.description must be a text of 1 to {LONGEST_DESCRIPTION} characters")
        name = name.removeprefix("/")
        found.setdefault(name, Command(name, text.strip()))
    return tuple(found.values())


def merged(offers: Sequence[Offer], own: Offer = LEADERS) -> list[dict[str, str]]:
    """One menu of all offers, as setMyCommands takes it; empty where nobody offers anything.

    Where it would be too long each follower's first commands stay, one of each in turn. A command that several offer
    stands there once, with all descriptions: who gets it is decided by the thread in which it is written.
    """
    if not any(offer.commands for offer in offers):
        return []
    everybody = (*offers, own)
    kept = _kept(everybody)
    order = dict.fromkeys(one.name for offer in everybody for one in offer.commands if one.name in kept)
    return [{"command": name, "description": _description(name, everybody)} for name in order]


def _kept(offers: Iterable[Offer]) -> set[str]:
    """The names that the menu has room for; the bus's own go first, since they work in each chat."""
    *followers, own = (list(offer.commands) for offer in offers)
    kept = {one.name for one in own}
    for place in range(max(map(len, followers), default=0)):
        for commands in followers:
            if place < len(commands) and len(kept) < MOST:
                kept.add(commands[place].name)
    return kept


def _description(name: str, offers: Iterable[Offer]) -> str:
    said = [(offer.who, one.description) for offer in offers for one in offer.commands if one.name == name]
    texts = dict.fromkeys(text for _, text in said)
    whole = said[0][1] if len(texts) == 1 else " · ".join(f"{who}: {text}" for who, text in said)
    return whole if len(whole) <= LONGEST_DESCRIPTION else whole[: LONGEST_DESCRIPTION - 1].rstrip() + "…"
