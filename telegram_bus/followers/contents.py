"""What a text becomes before it is sent: one message, several, or a file where it would be too many."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from telegram_bus.core.parts import CAPTION_LENGTH, MESSAGE_LENGTH, MOST_PARTS, Entity, Part, beginning, split
from telegram_bus.core.text import units

__all__ = [
    "CONVERTED",
    "HEAD_LENGTH",
    "Content",
    "asked_by",
    "caption_fields",
    "content_of",
    "fields_of",
    "file_of",
    "formatted",
]

HEAD_LENGTH: Final = 600
"""UTF-16 units of a text that are shown where the text itself is a file: a screen of a phone."""

CONVERTED: Final = 1 << 18
"""Characters of the longest text whose markup is looked at, which takes less than a second; it is a file anyway."""

_SUFFIXES: Final = {"html": "html", "markdown": "md"}


class Content(NamedTuple):
    """The messages that a text becomes, as fields of sendMessage; then a file (name, text), where it became one."""

    bodies: list[dict[str, Any]]
    file: tuple[str, str] | None = None

    @property
    def single(self) -> bool:
        """Whether it is one message."""
        return self.messages == 1

    @property
    def messages(self) -> int:
        """How many messages it is."""
        return len(self.bodies) + (self.file is not None)


def content_of(
    text: str, *, markdown: bool = False, parse_mode: str | None = None, most_parts: int = MOST_PARTS
) -> Content:
    """The messages of a text; beyond `most_parts` of them, its beginning and a file with all of it.

    Raises ValueError for `markdown` with a `parse_mode`, for a `parse_mode` that is none, for markup of more than one
    message that is not valid, and for less than one part.
    """
    if most_parts < 1:
        raise ValueError(f"most_parts is at least 1, not {most_parts}")
    if markdown and parse_mode is not None:
        raise ValueError("a text is either Markdown or has a parse_mode, not both")
    _check_mode(parse_mode)
    if not markdown and units(text) <= MESSAGE_LENGTH:
        return Content([{"text": text, "parse_mode": parse_mode}])
    plain: str = text
    entities: Sequence[Entity] = ()
    if len(text) <= CONVERTED:
        plain, entities = formatted(text, markdown=markdown, parse_mode=parse_mode)
    parts = list(islice(split(plain, entities), most_parts + 1))
    if not parts:  # Telegram says what is wrong with it
        return Content([{"text": text}])
    if len(parts) <= most_parts:
        return Content([fields_of(part) for part in parts])
    file, notice = file_of(text, markdown=markdown, parse_mode=parse_mode)
    head = beginning(plain, entities, HEAD_LENGTH)
    return Content([fields_of(Part(f"{head.text} …\n\n{notice}", head.entities))], file)


def asked_by(who: str, text: str) -> list[dict[str, Any]]:
    """What people see of a text that one agent gives to another, as fields of sendMessage: who asks whom, and the text.

    Of one that is too long for `MOST_PARTS` messages only its beginning: nobody can put a file into another's thread.
    """
    shown = f"{who}: {text}"
    content = content_of(shown)
    if content.file is None:
        return content.bodies
    return [{"text": f"{beginning(shown, (), MESSAGE_LENGTH - 2).text} …"}]


def formatted(text: str, *, markdown: bool = False, parse_mode: str | None = None) -> tuple[str, Sequence[Entity]]:
    """The text that people see, and its entities. Raises ValueError for markup that is not valid."""
    if markdown:
        from telegram_bus.core.markdown import convert  # noqa: PLC0415 - only who sends Markdown pays for it

        return convert(text)
    if parse_mode is None:
        return text, ()
    try:
        if parse_mode.lower() == "html":
            from telegram_bus.core.markup_html import parse_html  # noqa: PLC0415 - for long texts with markup

            return parse_html(text)
        from telegram_bus.core.markup_v2 import parse_markdown  # noqa: PLC0415 - for long texts with markup

        return parse_markdown(text)
    except ValueError as error:
        raise ValueError(f"the text is no valid {parse_mode}, so it cannot be cut into messages: {error}") from error


def caption_fields(caption: str | None, *, markdown: bool = False, parse_mode: str | None = None) -> dict[str, Any]:
    """The fields of a caption. Raises ValueError for one that Telegram would refuse after the file has travelled."""
    if caption is None:
        return {}
    if markdown and parse_mode is not None:
        raise ValueError("a caption is either Markdown or has a parse_mode, not both")
    _check_mode(parse_mode)
    if parse_mode is not None:
        return {"caption": caption, "parse_mode": parse_mode}
    text, entities = formatted(caption, markdown=markdown)
    if len(text.strip()) > CAPTION_LENGTH:
        raise ValueError(
            f"the caption has {len(text.strip())} characters; Telegram takes {CAPTION_LENGTH}: send the text by itself"
        )
    return {"caption": text, "caption_entities": list(entities) or None}


def _check_mode(parse_mode: str | None) -> None:
    """Telegram also has "Markdown", its oldest markup: what people call Markdown looks odd in it, or is refused."""
    if parse_mode is not None and parse_mode.lower() not in ("html", "markdownv2"):
        raise ValueError(
            f'parse_mode is "HTML" or "MarkdownV2", not {parse_mode!r}; for Markdown as people write it: markdown=True'
        )


def fields_of(part: Part) -> dict[str, Any]:
    """The fields of sendMessage for a part."""
    return {"text": part.text, "entities": list(part.entities)} if part.entities else {"text": part.text}


def file_of(text: str, *, markdown: bool = False, parse_mode: str | None = None) -> tuple[tuple[str, str], str]:
    """A text as a file (name, text), and what a message says of it."""
    name = f"answer.{_SUFFIXES.get('markdown' if markdown else (parse_mode or '').lower(), 'txt')}"
    size = len(text.encode("utf-8", "replace"))
    return (name, text), f"The whole text ({size / 1000:.0f} kB) is in {name}."
