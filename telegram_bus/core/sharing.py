"""One chat for all agents, where there are no threads: whom a person writes to, and whose message is whose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final

from telegram_bus.core.chooser import Choice
from telegram_bus.core.text import units
from telegram_bus.core.updates import GENERAL

__all__ = ["duration_of", "find", "hours_of", "mute_of", "not_one", "signed", "silenced", "within"]

TEXT_LIMIT: Final = 4_096  # UTF-16 units, which is always safe (bot-api M1)
CAPTION_LIMIT: Final = 1_024
LONGEST_MUTE: Final = 365 * 86_400

_TEXTS: Final = {"text": "entities", "caption": "caption_entities"}
_MARKDOWN_V2: Final = re.compile(r"([_*\[\]()~`>#+\-=|{}.!\\])")
_MARKDOWN: Final = re.compile(r"([_*`\[])")
_UNITS: Final = {"": 60, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}


def find(wanted: str, choices: Iterable[Choice]) -> list[Choice]:
    """The agents that a person may mean: by name or key, whatever the case; else those that begin so."""
    word = wanted.strip().lstrip("@").casefold()
    known = list(choices)
    exact = [one for one in known if word in (one.name.casefold(), one.key.casefold())]
    return exact or [one for one in known if word and one.name.casefold().startswith(word)]


def not_one(wanted: str, found: Sequence[Choice], known: Sequence[Choice]) -> str:
    """What to say where a person named no agent, or several."""
    names = ", ".join(one.name for one in (found or known)[:20])
    if found:
        return f"{len(found)} agents are called so: {names}. Which one?"
    return (
        f"No agent is called {wanted}; there are: {names}." if names else f"No agent is called {wanted}; none is here."
    )


def duration_of(text: str) -> int | None:
    """`30`, `45m`, `2h`, `3d` and `1w` in seconds (a bare number is minutes); None for anything else."""
    match = re.fullmatch(r"([0-9]{1,6})\s*(m|min|h|d|w)?", text.strip().casefold(), re.ASCII)
    if match is None:
        return None
    return min(int(match[1]) * _UNITS[match[2] or ""], LONGEST_MUTE) or None


def signed(method: str, body: Mapping[str, Any], name: str, *, forum: bool = False) -> Mapping[str, Any]:
    """A call of an agent that shares the main chat: its text (or caption) begins with the agent's name.

    What would become too long, and what has no text, goes as it is. In a forum a chat action needs General's id.
    """
    if method == "sendChatAction":
        return {**body, "message_thread_id": GENERAL} if forum else body
    if method == "sendMediaGroup":
        return _signed_album(body, name)
    if method == "editMessageMedia" and isinstance(media := body.get("media"), dict):
        return {**body, "media": _signed_text(media, name)}
    if not method.startswith(("sendMessage", "editMessageText", "editMessageCaption")) and "caption" not in body:
        return body
    return _signed_text(body, name)


def _signed_text(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    for field, entities in _TEXTS.items():
        text = body.get(field)
        if not isinstance(text, str) or not text:
            continue
        mode = str(body.get("parse_mode") or "").casefold()
        quote = mode == "markdownv2" and text.startswith((">", "**>"))  # which is one at the beginning of a line only
        prefix = f"{_escaped(name, mode)}:" + ("\n" if quote else " ")
        limit = TEXT_LIMIT if field == "text" else CAPTION_LIMIT
        if units(prefix) + units(text) > limit:
            return body
        changed: dict[str, Any] = {**body, field: prefix + text}
        given = body.get(entities)
        if isinstance(given, Sequence) and not isinstance(given, str) and not mode:
            changed[entities] = [_moved(one, units(prefix)) for one in given]
        return changed
    return body


def _signed_album(body: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    media = body.get("media")
    if not isinstance(media, list) or not media or not isinstance(media[0], dict):
        return body
    first = media[0]
    with_caption = _signed_text(first, name) if first.get("caption") else {**first, "caption": name}
    return {**body, "media": [with_caption, *media[1:]]}


def _moved(entity: Any, by: int) -> Any:
    if isinstance(entity, dict) and isinstance(entity.get("offset"), int):
        return {**entity, "offset": entity["offset"] + by}
    return entity


def _escaped(name: str, mode: str) -> str:
    match mode:
        case "html":
            return escape(name, quote=False)
        case "markdownv2":
            return _MARKDOWN_V2.sub(r"\\\1", name)
        case "markdown":
            return _MARKDOWN.sub(r"\\\1", name)
        case _:
            return name


def silenced(method: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """A call whose message makes no sound."""
    if not method.startswith(("send", "copy", "forward")) or method in ("sendChatAction", "sendMessageDraft"):
        return body
    return {**body, "disable_notification": True}


def within(minute: int, hours: tuple[int, int]) -> bool:
    """Whether a minute of the day lies in these hours (its first and last minute but one), which may pass midnight."""
    begin, end = hours
    return begin <= minute < end if begin <= end else minute >= begin or minute < end


def hours_of(text: str) -> tuple[int, int] | None:
    """`22:00-07:30` as minutes of a day; None for anything else, and for hours that are none or all of it."""
    match = re.fullmatch(r"([01]?[0-9]|2[0-3]):([0-5][0-9])-([01]?[0-9]|2[0-3]):([0-5][0-9])", text.strip(), re.ASCII)
    if match is None:
        return None
    begin, end = int(match[1]) * 60 + int(match[2]), int(match[3]) * 60 + int(match[4])
    return None if begin == end else (begin, end)


def mute_of(text: str) -> tuple[str, int | None]:
    """The words after /mute: an agent's name (perhaps none), and for how many seconds (None: for good)."""
    words = text.split()
    if words and (seconds := duration_of(words[-1])) is not None:
        return " ".join(words[:-1]), seconds
    return " ".join(words), None
