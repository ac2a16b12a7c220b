"""Files that a follower sends: by open descriptors, with what has travelled of them shown meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any, Final, Literal

import trio
from attrs import define, evolve

from telegram_bus.core import identity
from telegram_bus.core.errors import BusError, single_fault
from telegram_bus.core.extensions import FilePart
from telegram_bus.core.files import EDITABLE, SENDABLE, safe_name
from telegram_bus.followers.calling import Calling
from telegram_bus.followers.contents import caption_fields
from telegram_bus.followers.messages import (
    Buttons,
    FileKind,
    Media,
    SentMessage,
    id_of,
    keyboard,
    message_params,
    sent_message,
)
from telegram_bus.roles.outgoing import Source, opened

__all__ = ["Progress", "Uploading"]

Progress = Callable[[int, int], None]
"""Is told how many bytes have been handed to the network, and how many there are."""

LOOK_EVERY: Final = 0.5
SHOWN_AFTER: Final = 1.0
SHOWN_AGAIN: Final = 4.5  # an action is shown for 5 s (T17)

_ACTIONS: Final = {
    "sendPhoto": "upload_photo",
    "sendVideo": "upload_video",
    "sendAnimation": "upload_video",
    "sendVoice": "upload_voice",
}


@define(kw_only=True, eq=False)
class Uploading(Calling):
    """The part of a bus that sends files."""

    async def send_file(  # noqa: PLR0913 - as many as a message has
        self,
        file: Source,
        *,
        caption: str | None = None,
        kind: FileKind = "document",
        name: str | None = None,
        buttons: Buttons | None = None,
        reply_to: int | None = None,
        parse_mode: Literal["HTML", "MarkdownV2"] | None = None,
        silent: bool = False,
        once: str | None = None,
        markdown: bool = False,
        progress: Progress | None = None,
    ) -> SentMessage:
        """Send a file into this follower's thread: a path, bytes, or a binary file (from its position on).

        `kind` is how it is shown; `name` what people see in place of its own. `once` and `markdown` (of the caption)
        as of `send`. While it takes longer than a second, people see that a file is on its way; `progress` is called
        twice a second with the bytes that have gone out and all there are. Raises OSError for a path that cannot be
        opened, ValueError for a caption of more than 1,024 characters, RequestRefused for more than the Bot API server
        takes (50 MB at Telegram's own): both before anything travels.
        """
        if kind not in SENDABLE:
            raise ValueError(f"kind must be one of {', '.join(SENDABLE)}, not {kind!r}")
        params = message_params(None, buttons=buttons, reply_to=reply_to, silent=silent)
        params |= caption_fields(caption, markdown=markdown, parse_mode=parse_mode)
        call_id = None if once is None else identity.call_id("", once)
        return await self._send_one(file, kind, name, params, call_id, progress)

    async def send_album(
        self,
        files: Sequence[Source | Media],
        *,
        caption: str | None = None,
        reply_to: int | None = None,
        silent: bool = False,
        once: str | None = None,
        markdown: bool = False,
        progress: Progress | None = None,
    ) -> tuple[SentMessage, ...]:
        """Send 2 to 10 files as one album: sources as of `send_file`, as photos, or `Media` to say more of each.

        `caption` is the first one's. Photos and videos mix; documents and audio files stay among themselves. `once`,
        `markdown` (of all captions) and `progress` (over all files together) as of `send_file`.
        """
        items = [one if isinstance(one, Media) else Media(one) for one in files]
        if not 2 <= len(items) <= 10:
            raise ValueError(f"an album has 2 to 10 files, not {len(items)}")
        params = message_params(None, reply_to=reply_to, silent=silent)
        params["media"] = [item.described(number) for number, item in enumerate(items)]
        if caption is not None:
            params["media"][0]["caption"] = caption
        for described in params["media"]:
            fields = caption_fields(described.pop("caption", None), markdown=markdown)
            described |= {name: value for name, value in fields.items() if value is not None}
        call_id = None if once is None else identity.call_id("", once)
        async with AsyncExitStack() as stack:
            parts = {}
            for number, item in enumerate(items):
                descriptor, own = await stack.enter_async_context(opened(item.file, self._folder))
                parts[os.dup(descriptor)] = FilePart(
                    field=f"file{number}", name=safe_name(item.name or own or item.kind)
                )
                stack.callback(os.close, list(parts)[-1])  # a file that is sent twice is two
            result = await self._upload_shown("sendMediaGroup", params, parts, call_id, progress)
        return tuple(sent_message(one) for one in result)

    async def edit_file(  # noqa: PLR0913 - as many as a message has
        self,
        message: SentMessage | int,
        file: Source,
        *,
        caption: str | None = None,
        kind: FileKind = "document",
        name: str | None = None,
        buttons: Buttons | None = None,
        parse_mode: Literal["HTML", "MarkdownV2"] | None = None,
        markdown: bool = False,
        progress: Progress | None = None,
    ) -> SentMessage:
        """Put another file, with its caption, in the place of that of a message of ours; arguments as of `send_file`.

        Without `caption` or `buttons` it has none afterwards. Of an album's file the kinds are those of albums, a voice
        message stays one. Raises as `send_file`.
        """
        if kind not in EDITABLE:
            raise ValueError(f"kind must be one of {', '.join(EDITABLE)}, not {kind!r}")
        media = {"type": kind, "media": "attach://file0"}
        media |= caption_fields(caption, markdown=markdown, parse_mode=parse_mode)
        media = {field: value for field, value in media.items() if value is not None}
        params = {"message_id": id_of(message), "media": media, "reply_markup": keyboard(buttons)}
        async with opened(file, self._folder) as (descriptor, own):
            part = FilePart(field="file0", name=safe_name(name or own or kind))
            action = _ACTIONS.get(SENDABLE[kind])
            result = await self._upload_shown("editMessageMedia", params, {descriptor: part}, None, progress, action)
        if isinstance(result, dict):
            return sent_message(result)
        return self._placed(message) if isinstance(message, int) else evolve(message, rest=())  # nothing was new

    def _placed(self, message_id: int) -> SentMessage:
        """A message of which only the id is known."""
        chat_id, thread_id = (0, None) if self.target is None else (self.target.chat_id, self.target.thread_id)
        return SentMessage(
            chat_id=int(chat_id),
            message_id=message_id,
            thread_id=None if thread_id is None else int(thread_id),
            raw={},
        )

    async def _send_one(
        self,
        file: Source,
        kind: FileKind,
        name: str | None,
        params: dict[str, Any],
        call_id: str | None,
        progress: Progress | None = None,
    ) -> SentMessage:
        async with opened(file, self._folder) as (descriptor, own):
            part = FilePart(field=kind, name=safe_name(name or own or kind))
            result = await self._upload_shown(SENDABLE[kind], params, {descriptor: part}, call_id, progress)
            return sent_message(result)

    async def _upload_shown(
        self,
        method: str,
        params: dict[str, Any],
        parts: dict[int, FilePart],
        call_id: str | None,
        progress: Progress | None,
        action: str | None = None,
    ) -> Any:
        action = action or _ACTIONS.get(method, "upload_document")
        result: Any = None
        with single_fault():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._show, action, list(parts), progress)
                result = await self._upload(method, params, parts, call_id)
                nursery.cancel_scope.cancel("the files are there")
        if progress is not None:
            size = _size_of(list(parts))
            progress(size, size)
        return result

    async def _show(self, action: str, descriptors: list[int], progress: Progress | None) -> None:
        """While files travel: tell the program how far they are, and people that there is something to come.

        The leader moves the position of each open file, which it shares with us, as it reads it (docs/protocol.md).
        """
        size, told = _size_of(descriptors), -1
        shown = trio.current_time() + SHOWN_AFTER
        while True:
            await trio.sleep(LOOK_EVERY)
            sent = min(size, sum(os.lseek(one, 0, os.SEEK_CUR) for one in descriptors))
            if progress is not None and told < sent < size:
                progress(sent, size)
                told = sent
            if trio.current_time() >= shown:
                shown = trio.current_time() + SHOWN_AGAIN
                with suppress(BusError):
                    await self.call("sendChatAction", action=action)


def _size_of(descriptors: list[int]) -> int:
    return sum(os.fstat(one).st_size for one in descriptors)
