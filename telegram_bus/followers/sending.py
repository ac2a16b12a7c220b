"""What a follower sends: messages, files, albums, and what is changed of them later."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Literal

from attrs import define

from telegram_bus.core import identity
from telegram_bus.core.extensions import FilePart
from telegram_bus.core.files import SENDABLE, safe_name
from telegram_bus.followers.calling import Calling
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

__all__ = ["Sending"]


@define(kw_only=True, eq=False)
class Sending(Calling):
    """The part of a bus that sends."""

    async def send(
        self,
        text: str,
        *,
        buttons: Buttons | None = None,
        reply_to: int | None = None,
        parse_mode: Literal["HTML", "MarkdownV2"] | None = None,
        silent: bool = False,
        once: str | None = None,
    ) -> SentMessage:
        """Send a message into this follower's thread.

        With `once` (a name of your choice) a message of that name is sent once in 48 h, also over crashes and restarts
        of this program and of leaders; who sends it again gets the first one's result, be it an ApiError or
        CommitUnknown. RequestRefused where the leader is a program that cannot promise it.
        """
        params = message_params(text, buttons=buttons, reply_to=reply_to, parse_mode=parse_mode, silent=silent)
        return sent_message(
            await self._make("sendMessage", params, None if once is None else identity.call_id("", once))
        )

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
    ) -> SentMessage:
        """Send a file into this follower's thread: a path, bytes, or a binary file (from its position on).

        `kind` is how it is shown; `name` what people see in place of its own. `once` as of `send`. Raises OSError for
        a path that cannot be opened, RequestRefused for more than the Bot API server takes (50 MB at Telegram's own).
        """
        if kind not in SENDABLE:
            raise ValueError(f"kind must be one of {', '.join(SENDABLE)}, not {kind!r}")
        params = message_params(None, buttons=buttons, reply_to=reply_to, parse_mode=parse_mode, silent=silent)
        params["caption"] = caption
        call_id = None if once is None else identity.call_id("", once)
        async with opened(file, self._folder) as (descriptor, own):
            part = FilePart(field=kind, name=safe_name(name or own or kind))
            return sent_message(await self._upload(SENDABLE[kind], params, {descriptor: part}, call_id))

    async def send_album(
        self,
        files: Sequence[Source | Media],
        *,
        caption: str | None = None,
        reply_to: int | None = None,
        silent: bool = False,
    ) -> tuple[SentMessage, ...]:
        """Send 2 to 10 files as one album: sources as of `send_file`, as photos, or `Media` to say more of each.

        `caption` is the first one's. Photos and videos mix; documents and audio files stay among themselves.
        """
        items = [one if isinstance(one, Media) else Media(one) for one in files]
        if not 2 <= len(items) <= 10:
            raise ValueError(f"an album has 2 to 10 files, not {len(items)}")
        params = message_params(None, reply_to=reply_to, silent=silent)
        params["media"] = [item.described(number) for number, item in enumerate(items)]
        if caption is not None:
            params["media"][0]["caption"] = caption
        async with AsyncExitStack() as stack:
            parts = {}
            for number, item in enumerate(items):
                descriptor, own = await stack.enter_async_context(opened(item.file, self._folder))
                parts[os.dup(descriptor)] = FilePart(
                    field=f"file{number}", name=safe_name(item.name or own or item.kind)
                )
                stack.callback(os.close, list(parts)[-1])  # a file that is sent twice is two
            result = await self._upload("sendMediaGroup", params, parts, None)
        return tuple(sent_message(one) for one in result)

    async def edit(
        self,
        message: SentMessage | int,
        text: str,
        *,
        buttons: Buttons | None = None,
        parse_mode: Literal["HTML", "MarkdownV2"] | None = None,
    ) -> None:
        """Change the text of a message of ours; without `buttons` it has none afterwards."""
        await self.call(
            "editMessageText",
            message_id=id_of(message),
            text=text,
            parse_mode=parse_mode,
            reply_markup=keyboard(buttons),
        )

    async def delete(self, message: SentMessage | int) -> None:
        """Delete a message of ours."""
        await self.call("deleteMessage", message_id=id_of(message))

    async def react(self, message: SentMessage | int, emoji: str | None) -> None:
        """Put a reaction on a message of this thread; None takes it away."""
        reaction = [{"type": "emoji", "emoji": emoji}] if emoji else []
        await self.call("setMessageReaction", message_id=id_of(message), reaction=reaction)
