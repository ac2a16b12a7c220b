"""What a person chooses about messages that nobody owns: the question, its buttons, and what a press means.

A place is a thread that belongs to nobody, or the main chat (0) where agents share it. Everything a press says is in
its data, so a chooser outlives its leader; whose message it was is a short digest of the agent's key, which is looked
up among the agents that are known at the press.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Final, Literal, NamedTuple

from telegram_bus.core.buttons import LEADERS
from telegram_bus.core.text import counted, units

__all__ = [
    "MAIN",
    "NOUN",
    "USE",
    "Choice",
    "Press",
    "ask",
    "button",
    "closed",
    "data_of",
    "keyboard",
    "mark_of",
    "named",
    "press_of",
    "selector",
    "shown",
]

MAIN: Final = 0
"""The main chat as a place: no thread of Telegram has this id."""

Verb = Literal["give", "bind", "later", "ignore", "show"]

_LETTERS: Final[Mapping[str, Verb]] = {"g": "give", "b": "bind", "l": "later", "i": "ignore", "s": "show"}
_VERBS: Final = {verb: letter for letter, verb in _LETTERS.items()}

NOUN: Final = "own"

USE: Final = "use"
"""Of the buttons that only choose whom a person writes to, where agents share the main chat."""

PREFIX: Final = f"{LEADERS}{NOUN}:"
"""Before the data of a chooser's buttons; the longest datum has 35 bytes of Telegram's 64."""

ON_A_PAGE: Final = 8  # agents: four rows of two, which a phone shows at once
SELECTABLE: Final = 40
LABEL: Final = 28  # UTF-16 units of a name on half of a phone's width


class Choice(NamedTuple):
    """An agent that may be chosen."""

    key: str
    name: str


class Press(NamedTuple):
    """A button of a chooser: which place, what to do; `arg` is an agent's mark, or a page (`give0`, `bind1`)."""

    place: int
    verb: Verb
    arg: str = ""


def mark_of(key: str) -> str:
    """An agent's key in eight characters."""
    return sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def named(mark: str, choices: Iterable[Choice]) -> Choice | None:
    """The agent that a mark means; None where it is not known (any more), or two have it."""
    found = [one for one in choices if mark_of(one.key) == mark]
    return found[0] if len(found) == 1 else None


def data_of(press: Press) -> str:
    """The press as a button's data."""
    return f"{PREFIX}{press.place}:{_VERBS[press.verb]}:{press.arg}"


def press_of(rest: str) -> Press | None:
    """What follows the prefix in a button's data; None for what is none of ours."""
    place, _, rest = rest.partition(":")
    letter, _, arg = rest.partition(":")
    verb = _LETTERS.get(letter)
    if verb is None or not (place.isascii() and place.isdecimal() and len(place) <= 16):
        return None
    return Press(int(place), verb, arg)


def ask(place: int, waiting: int, choices: Sequence[Choice], *, binding: bool = False, shared: bool = True) -> str:
    """The question above the buttons; `shared` says whether agents share the main chat."""
    wait, them = counted(waiting, "message waits", "messages wait"), "it" if waiting == 1 else "them"
    if not choices:
        where = "in this thread" if place else "here"
        return (
            f"No agent is here. {wait} {where} until you choose who gets {them}. Start an agent on your machine, then "
            "look again; for example:\ntelegram-bus follower --name builder -- sh"
        )
    if binding:
        return "Whose thread shall this be from now on? The agent's present thread is then deleted."
    if place or not shared:
        where = "No agent has this thread. " if place else ""
        return f"{where}{wait}: who shall get {them}?"
    return f"Whom do you write to? {wait}. Your choice stays until you choose again (/use NAME)."


def keyboard(
    place: int, choices: Sequence[Choice], *, page: int = 0, binding: bool = False
) -> list[list[dict[str, str]]]:
    """The buttons, as the rows of an inline keyboard."""
    verb: Verb = "bind" if binding else "give"
    pages = max(1, -(-len(choices) // ON_A_PAGE))
    page = page % pages
    shown = choices[page * ON_A_PAGE : (page + 1) * ON_A_PAGE]
    keys = [button(_short(one.name), Press(place, verb, mark_of(one.key))) for one in shown]
    rows = [keys[at : at + 2] for at in range(0, len(keys), 2)]
    if pages > 1:
        rows.append([button(f"More ({page + 1} of {pages}) →", Press(place, "show", f"{verb}{(page + 1) % pages}"))])
    if binding:
        return [*rows, [button("← Back", Press(place, "show", "give0"))]]
    if not choices:
        rows.append([button("↻ Look again", Press(place, "show", "give0"))])
    elif place:
        rows.append([button("Make it someone's thread …", Press(place, "show", "bind0"))])
    return [*rows, [button("Keep for later", Press(place, "later")), button("Ignore", Press(place, "ignore"))]]


def shown(arg: str) -> tuple[bool, int]:
    """Whether a `show` is about binding, and its page."""
    page = arg[4:]
    return arg.startswith("bind"), int(page) if page.isascii() and page.isdecimal() and len(page) < 6 else 0


def closed(verb: Verb, count: int, name: str = "", *, chosen: bool = False) -> str:
    """What was done, in the place of the question; `chosen`: the person writes to the agent from now on."""
    many = counted(count, "message")
    match verb:
        case "give" if chosen:
            return f"You write to {name} now, which got {many}."
        case "give":
            return f"Given to {name}: {many}."
        case "bind":
            return f"This is {name}'s thread now" + (f"; it got {many}." if count else ".")
        case "ignore":
            return f"Ignored: {many}."
        case _:
            wait, them = ("waits", "it") if count == 1 else ("wait", "them")
            return f"{many} {wait} here. Write again to be asked again; an agent that gets this thread gets {them}."


def selector(
    choice: str | None, spoke_last: str | None, here: Sequence[Choice]
) -> tuple[str, list[list[dict[str, str]]]]:
    """The question whom a person writes to, and its buttons: who is chosen and who spoke last is marked."""
    if not here:
        return (
            "No agent is here. Start one on your machine, for example:\ntelegram-bus follower --name builder -- sh",
            [],
        )
    now = next((one.name for one in here if one.key == choice), None)
    last = next((one.name for one in here if one.key == spoke_last), None)
    said = [f"You write to {now}." if now else "You have not chosen whom you write to."]
    said += [f"{last} spoke last."] if last else []
    keys = [
        {
            "text": ("✓ " if one.key == choice else "") + _short(one.name),
            "callback_data": f"{LEADERS}{USE}:{mark_of(one.key)}",
        }
        for one in here[:SELECTABLE]
    ]
    more = f" The other {len(here) - SELECTABLE}: /use NAME." if len(here) > SELECTABLE else ""
    return " ".join(said) + more, [keys[at : at + 2] for at in range(0, len(keys), 2)]


def button(text: str, press: Press) -> dict[str, str]:
    """A button of an inline keyboard."""
    return {"text": text, "callback_data": data_of(press)}


def _short(name: str) -> str:
    name = name.strip() or "?"
    if units(name) <= LABEL:
        return name
    kept = name
    while units(kept) > LABEL - 1:
        kept = kept[:-1]
    return kept.rstrip() + "…"
