"""What a follower may call (protocol section 9): the compatible policy and, stricter, our own."""

from __future__ import annotations

from typing import Any, Final, Literal, Protocol

from attrs import frozen

from telegram_bus.core.values import Number, Target

__all__ = ["Allowed", "Denied", "Owned", "Policy", "judge"]

Policy = Literal["compatible", "own"]


class Owned(Protocol):
    """What belongs to the follower that calls."""

    def message(self, chat_id: Number, message_id: int, /) -> bool:
        """Whether it sent this message."""

    def callback(self, callback_query_id: str, /) -> bool:
        """Whether this press of a button was delivered to it."""

    def file(self, file_id: str, /) -> bool:
        """Whether this file came in an update of its own (or in the answer to one of its calls)."""


@frozen(kw_only=True)
class Allowed:
    """The call may go out as it stands here: without markers.

    `method` is the bus method (`call`, `callMultipart`, `downloadFile`), `args` its arguments (section 9).
    """

    method: Literal["call", "callMultipart", "downloadFile"]
    args: tuple[Any, ...]


@frozen(kw_only=True)
class Denied:
    """The call is refused; the reason names the field."""

    reason: str
