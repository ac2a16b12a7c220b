"""Messages of a follower: what they are made of, and what comes back when they were sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from attrs import evolve, field, frozen

from telegram_bus.core import identity
from telegram_bus.core.errors import RequestRefused
from telegram_bus.core.files import ALBUM_KINDS
from telegram_bus.roles.outgoing import Source

__all__ = [
    "Buttons",
    "FileKind",
    "Keyboard",
    "Media",
    "SentMessage",
    "call_ids",
    "id_of",
    "joined",
    "keyboard",
    "message_params",
    "sent_message",
]

Rows = Sequence[Sequence[tuple[str, Any]]]


@frozen
class Keyboard:
    """Rows of buttons, with more to say of them.

    `one_time`: one press ends all of them, whoever comes second hears what was chosen; `users`: the ids of those who
    may press (None: everybody that the bot listens to).
    """

    rows: Rows
    one_time: bool = False
    users: Sequence[int] | None = None


Buttons = Rows | Keyboard
"""Rows of (label, data): a press comes back as an update of kind "callback" with that data, which is any JSON value.

Of a string of 1 to 64 bytes Telegram keeps it; everything else the leader keeps for 90 days, at most 64 KiB a message.
"""

FileKind = Literal["document", "photo", "audio", "voice", "video", "animation"]
"""How a file is shown in the chat."""


@frozen(kw_only=True)
class SentMessage:
    """A message of ours at Telegram; `raw` is its Message object.

    Of a text that became several messages this is the first, and `rest` are those after it.
    """

    chat_id: int
    message_id: int
    thread_id: int | None
    raw: dict[str, Any] = field(repr=False)
    rest: tuple[SentMessage, ...] = ()

    @property
    def parts(self) -> tuple[SentMessage, ...]:
        """All messages that the text became, in order: for most only this one."""
        return (self, *self.rest)


@frozen
class Media:
    """One file of an album: `file` as of `Bus.send_file`, `kind` "photo", "video", "document" or "audio"."""

    file: Source
    kind: Literal["photo", "video", "document", "audio"] = "photo"
    caption: str | None = None
    name: str | None = None

    def described(self, number: int) -> dict[str, Any]:
        """The InputMedia object of the file that travels in the field `file<number>`."""
        if self.kind not in ALBUM_KINDS:
            raise ValueError(f"an album takes {', '.join(ALBUM_KINDS)}, not {self.kind!r}")
        described = {"type": self.kind, "media": f"attach://file{number}", "caption": self.caption}
        return {name: value for name, value in described.items() if value is not None}


def message_params(
    text: str | None,
    *,
    buttons: Buttons | None = None,
    reply_to: int | None = None,
    parse_mode: str | None = None,
    silent: bool = False,
) -> dict[str, Any]:
    """The parameters of sendMessage, None where there is nothing to say."""
    return {
        "text": text,
        "parse_mode": parse_mode,
        "reply_markup": keyboard(buttons),
        "reply_parameters": {"message_id": reply_to, "allow_sending_without_reply": True} if reply_to else None,
        "disable_notification": silent or None,
    }


def id_of(message: SentMessage | int) -> int:
    """The id of a message that is given as itself or by its id."""
    return message if isinstance(message, int) else message.message_id


def call_ids(scope: str, once: str | None, number: int) -> list[str | None]:
    """The ids of the `number`-th message of a name: as it is, and without markup that was refused."""
    if once is None:
        return [None, None]
    which = () if number == 1 else (number,)
    return [identity.call_id(scope, once, *which), identity.call_id(scope, once, *which, "plain")]


def joined(messages: Sequence[SentMessage]) -> SentMessage:
    """The first of several messages, which knows the others."""
    return evolve(messages[0], rest=tuple(messages[1:]))


def keyboard(buttons: Buttons | None) -> dict[str, Any] | None:
    """The inline keyboard of the buttons, as a call may have it: the data of a button may be any JSON value.

    Raises ValueError for what is no rows of pairs.
    """
    if buttons is None:
        return None
    more = buttons if isinstance(buttons, Keyboard) else Keyboard(buttons)
    rows = [[_button(one) for one in row] for row in more.rows]
    markup: dict[str, Any] = {"inline_keyboard": rows}
    if more.one_time:
        markup["one_time"] = True
    if more.users is not None:
        markup["users"] = list(more.users)
    return markup


def _button(pair: Any) -> dict[str, Any]:
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise ValueError(
            f'buttons are rows of (label, data), such as [[("Yes", "y"), ("No", "n")]]; {pair!r} is no pair'
        )
    return {"text": pair[0], "callback_data": pair[1]}


def sent_message(result: Any) -> SentMessage:
    """The message that Telegram answered with; raises RequestRefused for anything else."""
    try:
        thread = result.get("message_thread_id")
        return SentMessage(chat_id=result["chat"]["id"], message_id=result["message_id"], thread_id=thread, raw=result)
    except (TypeError, KeyError, AttributeError) as error:
        raise RequestRefused(f"the answer is no message: {json.dumps(result)[:200]}") from error
