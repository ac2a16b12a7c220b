"""Messages that are one thing: an album, a text that a client split, a comment with what it was forwarded with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

__all__ = [
    "ALBUM_WAIT",
    "FORWARD_WAIT",
    "MOST_PARTS",
    "TEXT_WAIT",
    "Trace",
    "belongs",
    "comments_on",
    "in_order",
    "patience",
    "text_of",
    "trace",
]

Message = dict[str, Any]

ALBUM_WAIT: Final = 0.6
"""Seconds after the newest part of an album: its updates come together, apart from those that a poll cut off."""

TEXT_WAIT: Final = 0.6
"""Seconds after a text near the limit: a client sends what it split as fast as it can."""

FORWARD_WAIT: Final = 0.3
"""Seconds after a comment whose forward is known to come, and between the forwards of one comment."""

NEAR_LIMIT: Final = 3_500
"""UTF-16 units: clients split at the last line or word before 4,096 (bot-api M1)."""

ALBUM: Final = 10
"""Messages in an album at most (Bot API, sendMediaGroup)."""

MOST_PARTS: Final = 100
"""Messages in one item; clients forward so many at once."""

MOMENT: Final = 2
"""Seconds by Telegram's dates, which are whole, between messages that a client sent in one go."""


class Trace(NamedTuple):
    """What of a message decides whether it belongs to others; `origin` is None for a message that is no forward."""

    place: tuple[int, int | None, int]
    """Chat, thread and sender."""
    date: int
    album: str | None
    full: bool
    """A text so long that more of it may follow."""
    text: bool
    origin: tuple[Any, ...] | None
    reply: int | None

    @property
    def plain(self) -> bool:
        """A person's own words, which may be the comment on a forward."""
        return self.text and self.origin is None


def trace(message: Message) -> Trace | None:
    """What belongs to this message depends on this; None where it does not say who wrote it, where and when."""
    chat, sender, date = _id(message.get("chat")), _id(message.get("from")), message.get("date")
    if chat is None or sender is None or type(date) is not int:
        return None
    thread = message.get("message_thread_id") if message.get("is_topic_message") is True else None
    group, text, origin = message.get("media_group_id"), message.get("text"), message.get("forward_origin")
    return Trace(
        place=(chat, thread if type(thread) is int else None, sender),
        date=date,
        album=f"{chat}:{group}" if isinstance(group, str) else None,
        full=isinstance(text, str) and _near_limit(text),
        text=isinstance(text, str),
        origin=_origin(origin) if isinstance(origin, dict) else None,
        reply=_id(message.get("reply_to_message"), "message_id"),
    )


def belongs(first: Trace, last: Trace, new: Trace) -> bool:
    """Whether a message belongs to an item that began with `first`, ended with `last`, and that it came right after."""
    if new.place != first.place:
        return False
    if new.album is not None and new.album == last.album:
        return True
    if not 0 <= new.date - last.date <= MOMENT:
        return False
    return _continues(last, new) or _comments(first, last, new)


def comments_on(message: Message, following: Message) -> bool:
    """Whether a message is a person's comment on the forward that comes right after it."""
    comment, forward = trace(message), trace(following)
    return (
        comment is not None
        and forward is not None
        and forward.origin is not None
        and belongs(comment, comment, forward)
    )


def patience(first: Trace, last: Trace, parts: int, *, announced: bool = False) -> float:
    """Seconds for which an item of so many parts waits for one more; 0.0 for all that is whole.

    `announced`: the leader has seen that the newest one is a comment whose forward follows.
    """
    if parts >= MOST_PARTS:
        return 0.0
    if last.album is not None:
        return 0.0 if parts >= ALBUM and first.album == last.album else ALBUM_WAIT
    if last.full:
        return TEXT_WAIT
    if announced or (first.plain and last.origin is not None):
        return FORWARD_WAIT
    return 0.0


def in_order(messages: Sequence[Message]) -> list[Message]:
    """The parts of an item as they were sent."""
    return sorted(messages, key=lambda message: number if type(number := message.get("message_id")) is int else 0)


def text_of(messages: Sequence[Message]) -> str:
    """The text of an item: what was split is put together with nothing between, anything else with an empty line."""
    text, last = "", None
    for message in messages:
        piece = message.get("text", message.get("caption"))
        new = trace(message)
        if isinstance(piece, str) and piece:
            split = last is not None and new is not None and _continues(last, new)
            text += piece if split or not text else f"\n\n{piece}"
        last = new
    return text


def _continues(last: Trace, new: Trace) -> bool:
    """Whether a text goes on where another one ended."""
    return last.full and new.text and new.origin == last.origin and new.reply in (None, last.reply)


def _comments(first: Trace, last: Trace, new: Trace) -> bool:
    """Whether a forward came with a comment, alone or with others."""
    return new.origin is not None and first.plain and (last.plain or last.origin is not None)


def _near_limit(text: str) -> bool:
    return 2 * len(text) >= NEAR_LIMIT and len(text.encode("utf-16-le", "surrogatepass")) // 2 >= NEAR_LIMIT


def _origin(origin: dict[str, Any]) -> tuple[Any, ...]:
    """Whose words a forward holds (Bot API, MessageOrigin), without its date and number."""
    places = (origin.get(name) for name in ("sender_user", "sender_chat", "chat"))
    return (origin.get("type"), origin.get("sender_user_name"), *(_id(place) for place in places))


def _id(value: object, name: str = "id") -> int | None:
    number = value.get(name) if isinstance(value, dict) else None
    return number if type(number) is int else None
