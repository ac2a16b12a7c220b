"""A message's text and entities: parse modes, given entities, what Telegram finds by itself, and trimming."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from telegram_bus.core.markup_html import parse_html
from telegram_bus.core.markup_v2 import parse_markdown
from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.entities_legacy import parse_legacy
from telegram_bus.sandbox.model_types import Json
from telegram_bus.sandbox.refusal import bad_request

__all__ = ["found_entities", "read_caption", "read_formatted", "read_text", "utf16_length"]

MAX_RAW = 32_768  # bytes, M1
MAX_TEXT = 4_096  # Unicode scalars after parsing, M1
MAX_CAPTION = 1_024  # Unicode scalars after parsing, M2
MAX_ENTITIES = 100

_KINDS = frozenset(
    "mention hashtag cashtag bot_command url email phone_number bold italic underline strikethrough spoiler "
    "blockquote expandable_blockquote code pre text_link text_mention custom_emoji".split()
)
_FOUND_BY_ITSELF = (
    ("url", re.compile(r"\bhttps?://[^\s<>\"]*[^\s<>\".,;:!?)\]']")),
    ("email", re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")),
    ("bot_command", re.compile(r"(?<![\w/<>])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z]\w{2,31})?(?![\w/<>])")),
    ("mention", re.compile(r"(?<![\w/@.])@[A-Za-z]\w{2,31}(?!\w)")),
    ("phone_number", re.compile(r"(?<![\w+])\+\d{7,15}(?!\w)")),
    ("hashtag", re.compile(r"(?<![\w&/#])#(?=\w*[^\W\d_])\w{1,256}")),
)


def read_text(args: Args, name: str = "text", *, may_be_empty: bool = False) -> tuple[str, list[Json]]:
    """Text and entities that a call gives, as the message will have them; raises `Refusal`."""
    if not args.text(name) and not may_be_empty:
        raise bad_request("Message text is empty")
    text, entities = read_formatted(args, name)
    if not text and not may_be_empty:
        raise bad_request("Text must be non-empty")
    if len(text) > MAX_TEXT:
        raise bad_request("Message is too long")
    return text, entities


def read_caption(args: Args) -> tuple[str, list[Json]]:
    """The caption of a file that a call gives, with its entities; raises `Refusal` (M2)."""
    text, entities = read_formatted(args, "caption", "caption_entities")
    if len(text) > MAX_CAPTION:
        raise bad_request("Message caption is too long")
    return text, entities


def read_formatted(
    args: Args, name: str, entities: str = "entities", mode: str = "parse_mode"
) -> tuple[str, list[Json]]:
    """The text of an argument, of any length, and its entities, by the arguments called so; raises `Refusal`."""
    raw = args.text(name)
    if len(raw.encode("utf-8", "surrogatepass")) > MAX_RAW:
        raise bad_request("Text is too long")
    text, given = trimmed(*_parsed(raw, args, entities, mode))
    return text, found_entities(text, given)


def found_entities(text: str, given: Iterable[Json] = ()) -> list[Json]:
    """`given` entities and those that Telegram finds: links, addresses, commands, mentions, hashtags."""
    entities = list(given)
    taken = [(entity["offset"], entity["offset"] + entity["length"]) for entity in entities
             if entity["type"] in {"code", "pre", "text_link", "text_mention", "custom_emoji"}]  # fmt: skip
    for kind, pattern in _FOUND_BY_ITSELF:
        for match in pattern.finditer(text):
            begin = utf16_length(text[: match.start()])
            end = begin + utf16_length(match[0])
            if all(end <= low or begin >= high for low, high in taken):
                taken.append((begin, end))
                entities.append({"type": kind, "offset": begin, "length": end - begin})
    return _sorted(entities)[:MAX_ENTITIES]


def trimmed(text: str, entities: list[Json]) -> tuple[str, list[Json]]:
    """Text without white space around it, and its entities moved and cut to fit (M4)."""
    kept = text.strip()
    skipped = utf16_length(text[: len(text) - len(text.lstrip())])
    room = utf16_length(kept)
    fitting = []
    for entity in entities:
        begin = max(0, entity["offset"] - skipped)
        end = min(room, entity["offset"] + entity["length"] - skipped)
        if end > begin:
            fitting.append(entity | {"offset": begin, "length": end - begin})
    return kept, fitting


def utf16_length(text: str) -> int:
    """How many UTF-16 code units a text has; offsets of entities count these."""
    return len(text) + sum(1 for letter in text if ord(letter) > 0xFFFF)


def _parsed(raw: str, args: Args, entities: str, mode: str) -> tuple[str, list[Json]]:
    try:
        match args.text(mode).lower():
            case "html":
                return parse_html(raw)
            case "markdownv2":
                return parse_markdown(raw)
            case "" | "none":
                return raw, _given(args.parsed(entities, "can't parse entities: invalid JSON"))
            case "markdown":
                return parse_legacy(raw)
            case _:
                raise bad_request("Unsupported parse_mode")
    except (TypeError, ValueError) as error:
        raise bad_request(f"can't parse entities: {error}") from error


def _given(entities: Any) -> list[Json]:
    if entities is None:
        return []
    if not isinstance(entities, list):
        raise TypeError("expected an Array of MessageEntity")
    return _sorted(entity for entity in entities if _is_usable(entity))


def _is_usable(entity: Any) -> bool:
    if not isinstance(entity, dict):
        raise TypeError("expected an Object")
    if not all(isinstance(entity.get(name), int) for name in ("offset", "length")):
        raise ValueError('Field "offset" must be of type Number')
    # Unknown kinds and empty ranges are dropped, not refused.
    return entity.get("type") in _KINDS and entity["offset"] >= 0 and entity["length"] > 0


def _sorted(entities: Iterable[Json]) -> list[Json]:
    return sorted(entities, key=lambda entity: (entity["offset"], -entity["length"]))
