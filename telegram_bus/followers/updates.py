"""Updates, as a follower's program gets them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from attrs import define, field

from telegram_bus.core.buttons import BUTTON_DATA
from telegram_bus.core.files import FileInfo, files_of
from telegram_bus.core.gathering import text_of
from telegram_bus.core.handing import marks
from telegram_bus.followers.handing import Recipient
from telegram_bus.followers.messages import SentMessage

if TYPE_CHECKING:
    from telegram_bus.followers.streams import Stream

__all__ = ["Update", "UpdateKind"]

UpdateKind = Literal["message", "edited_message", "callback", "reaction"]
"""A reaction and a pressed button are about a message; the other two are one."""


class _Bus(Protocol):
    """What an update needs of the bus that it came over."""

    @property
    def _send_text(self) -> Callable[..., Awaitable[SentMessage]]: ...
    @property
    def _note_press(self) -> Callable[[Any], None]: ...
    @property
    def _open_stream(self) -> Callable[..., AbstractAsyncContextManager[Stream]]: ...
    async def call(self, method: str, **params: Any) -> Any: ...
    async def download(
        self, file_id: str, *, name: str | None = None, into: str | os.PathLike[str] | None = None
    ) -> Path: ...
    async def finish(self, update: Update) -> None: ...
    async def hand_over(self, update: Update, to: str, *, note: str | None = None) -> Recipient: ...


@define(kw_only=True, eq=False)
class Update:
    """What a person did in this follower's thread.

    `id` is the same when an update is seen again after a crash. `text` is the text or caption of a message, `data`
    that of a pressed button. `message` is the Message it is about (for a reaction: the reaction itself).

    An album, a long text that a client split, and a comment with what was forwarded together with it are one update:
    `parts` are its messages, `text` and `files` are those of all of them. A part that comes when the update has been
    handed out already is an update of its own, and `follows` is the id of that earlier one.
    """

    id: str
    kind: UpdateKind
    raw: dict[str, Any] = field(repr=False)
    _more: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    follows: str | None = None
    _bus: _Bus = field(repr=False)

    @property
    def message(self) -> dict[str, Any]:
        """Telegram's Message object that the update is about."""
        message = self.raw.get("message") if self.kind == "callback" else self.raw
        return message if isinstance(message, dict) else {}

    @property
    def parts(self) -> tuple[dict[str, Any], ...]:
        """The Messages that it consists of, in the order in which they were sent: `message`, and seldom more."""
        return (self.message, *self._more)

    @property
    def text(self) -> str:
        """The text or caption; empty where there is none. A comment stands above what was forwarded with it."""
        return text_of(self.parts)

    @property
    def command(self) -> tuple[str, str] | None:
        """The command that a message or caption begins with, and the rest of it: ("build", "all") of "/build@bot all".

        In lower case, without the slash and the bot's name; None where there is none, and for an edit, which repeats
        no command.
        """
        found = re.match(r"/([A-Za-z0-9_]{1,32})(?:@\w+)?(?:\s+|$)", self.text) if self.kind == "message" else None
        return None if found is None else (found[1].lower(), self.text[found.end() :])

    @property
    def data(self) -> Any:
        """The data of the pressed button, as it was given; None for other updates."""
        if self.kind != "callback":
            return None
        if BUTTON_DATA in self.raw:
            return self.raw[BUTTON_DATA]
        data = self.raw.get("data")
        return data if isinstance(data, str) else None

    @property
    def age(self) -> float | None:
        """Seconds since the person did it, by Telegram's date and this machine's clock; None for a pressed button.

        Much, where this program was away or nobody led: old orders may be better asked about than carried out.
        """
        date = self.raw.get("edit_date") if self.kind == "edited_message" else self.raw.get("date")
        if self.kind == "callback" or not isinstance(date, int):
            return None
        return max(0.0, time.time() - date)

    @property
    def handed_by(self) -> str | None:
        """Who gave this work to us (`hand_over`); None where a person's message came straight here."""
        return marks(self.message if self.kind != "callback" else self.raw)[0]

    @property
    def note(self) -> str | None:
        """What that one said about it."""
        return marks(self.message if self.kind != "callback" else self.raw)[1]

    @property
    def sender(self) -> dict[str, Any] | None:
        """Telegram's User object of who did it."""
        sender = self.raw.get("user") if self.kind == "reaction" else self.raw.get("from")
        return sender if isinstance(sender, dict) else None

    @property
    def _message_id(self) -> int | None:
        """What an answer replies to: nothing for work that was handed over, whose message stands in another thread."""
        return None if self.handed_by is not None else self.message.get("message_id")

    async def reply(self, text: str, *, once: str | None = None, **options: Any) -> SentMessage:
        """Send a message into the thread as an answer to this one; options as of `Bus.send`.

        With `once` (a name of your choice) it is sent once for this update: a handler that died and sees the update
        again gets the message that its predecessor sent, whatever the text is by then.
        """
        reply_to = self._message_id
        if self.kind == "callback":
            options.setdefault("urgency", "click")
        return await self._bus._send_text(text, (self.id, once), reply_to=reply_to, **options)  # noqa: SLF001

    def stream(self, *, once: str | None = None, **options: Any) -> AbstractAsyncContextManager[Stream]:
        """An answer to this one that grows while it is written; options as of `Bus.stream`, `once` as of `reply`."""
        reply_to = self._message_id
        return self._bus._open_stream((self.id, once), reply_to=reply_to, **options)  # noqa: SLF001

    async def answer(self, text: str | None = None, *, alert: bool = False) -> None:
        """Answer a pressed button: the person's client stops waiting and shows `text` (at most 200 characters).

        Answer within 0.8 s: after that the leader has answered without a text, and this does nothing.
        Raises ValueError for any other kind of update.
        """
        if self.kind != "callback":
            raise ValueError(f"only a pressed button is answered; this is a {self.kind}: use reply()")
        self._bus._note_press(self.message.get("message_id"))  # noqa: SLF001
        await self._bus.call(
            "answerCallbackQuery", callback_query_id=self.raw.get("id"), text=text, show_alert=alert or None
        )

    @property
    def files(self) -> tuple[FileInfo, ...]:
        """The file of the message, if it has one, or those of an album in order; of a photo the largest size."""
        return tuple(file for part in self.parts for file in files_of(part))

    async def download(self, file: FileInfo | None = None, *, into: str | os.PathLike[str] | None = None) -> Path:
        """Fetch the file of the message (or another one of it) and return where it lies; as `Bus.download`.

        Raises ValueError where the message has no file.
        """
        if file is None:
            file = next(iter(self.files), None)
        if file is None:
            raise ValueError("this update has no file: look at update.files first")
        return await self._bus.download(file.file_id, name=file.name, into=into)

    async def hand_over(self, to: str, *, note: str | None = None) -> Recipient:
        """Give this update to another follower, by its name or key, and be done with it; `note` is for its program.

        At every moment one of the two has it, whoever dies. Its thread gets a line that says where the work went. A
        follower that is away gets it when it returns. Returned is who has it now.

        Raises RequestRefused where there is no such follower, or several: then it is still ours.
        """
        return await self._bus.hand_over(self, to, note=note)

    async def done(self) -> None:
        """Say that this update has been dealt with: after that it is never seen again, not even after a crash."""
        await self._bus.finish(self)
