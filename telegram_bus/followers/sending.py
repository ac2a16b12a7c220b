"""What a follower sends: messages, texts of any length, and what is changed of them later."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, Any, Final, Literal

import attrs
import trio
from attrs import define, field

from telegram_bus.core import identity
from telegram_bus.core.errors import ApiError, BusError
from telegram_bus.core.extensions import SendQueue
from telegram_bus.core.files import files_of
from telegram_bus.core.jsontext import dumps, loads
from telegram_bus.core.parts import MOST_PARTS
from telegram_bus.followers.contents import Content, content_of
from telegram_bus.followers.messages import (
    Buttons,
    SentMessage,
    call_ids,
    id_of,
    joined,
    keyboard,
    message_params,
    sent_message,
)
from telegram_bus.followers.uploading import Uploading

if TYPE_CHECKING:
    from telegram_bus.followers.streams import Stream

__all__ = ["Sending"]

ParseMode = Literal["HTML", "MarkdownV2"]
Urgency = Literal["final", "progress"]

UNCHANGED: Final = "message is not modified"
"""How Telegram refuses an edit that changes nothing (M6): what was wanted is there."""


PRESS_SECONDS: Final = 30.0
"""How long a person waits for what comes of a press."""

PRESSES: Final = 64


@define(kw_only=True, eq=False)
class Sending(Uploading):
    """The part of a bus that sends."""

    _draftless: set[float] = field(factory=set, init=False, repr=False)
    """Chats in which Telegram refused a draft: messages grow by edits there."""

    _pressed: dict[int, float] = field(factory=dict, init=False, repr=False)
    """Messages whose buttons were pressed, and when that was answered."""

    async def send(  # noqa: PLR0913 - as many as a message has
        self,
        text: str,
        *,
        buttons: Buttons | None = None,
        reply_to: int | None = None,
        parse_mode: ParseMode | None = None,
        silent: bool = False,
        once: str | None = None,
        markdown: bool = False,
        most_parts: int = MOST_PARTS,
        urgency: Urgency | None = None,
    ) -> SentMessage:
        """Send a message into this follower's thread; with `markdown` as Markdown reads, see `core.markdown`.

        A text that is too long for one message becomes several, cut between paragraphs, lines or words, and beyond
        `most_parts` its beginning and a file. Returned is the first, whose `parts` are all. Markup that Telegram
        refuses is sent once more as plain text, if it was Markdown. Buttons stand under the last message.

        With `once` (a name of your choice) a message of that name is sent once in 48 h, also over crashes and restarts
        of this program and of leaders; who sends it again gets the first one's result, be it an ApiError or
        CommitUnknown; what is missing of several messages is sent. RequestRefused where the leader is a program that
        cannot promise it. ValueError for a text in a `parse_mode` that is too long for one message and not valid.

        Where more is to be sent than Telegram takes, a message of the `urgency` "final" (a result) goes before others,
        and one that shows "progress", which makes no sound, behind them.
        """
        return await self._send_text(
            text,
            ("", once),
            buttons=buttons,
            reply_to=reply_to,
            parse_mode=parse_mode,
            silent=silent,
            markdown=markdown,
            most_parts=most_parts,
            urgency=urgency,
        )

    async def edit(
        self,
        message: SentMessage | int,
        text: str,
        *,
        buttons: Buttons | None = None,
        parse_mode: ParseMode | None = None,
        markdown: bool = False,
        urgency: Urgency | None = None,
    ) -> SentMessage:
        """Change the text of a message of ours; without `buttons` it has none afterwards.

        Of edits that wait for their turn only the newest is made. They wait behind messages, unless their `urgency` is
        "final" or they follow the answer to a press of a button of that message.

        Given as what `send` returned, all its parts are changed: more are sent, those that are too many deleted.
        That nothing had to be changed is no error.
        """
        _check_urgency(urgency)
        content = content_of(text, markdown=markdown, parse_mode=parse_mode)
        parts = _parts(message) or [self._placed(id_of(message))]
        old = [parts[0], *(one for one in parts[1:] if not files_of(one.raw))][: len(content.bodies)]
        surplus = [one for one in parts if one not in old]
        hint = "click" if self._was_pressed(parts[0].message_id) else urgency
        made: list[SentMessage] = []
        for number, body in enumerate(content.bodies):
            last = number == len(content.bodies) - 1 and content.file is None
            shown = keyboard(buttons) if last else None
            if number < len(old):
                body["reply_markup"] = shown
                made.append(await self._change(old[number], body, may_fall_back=markdown, hint=hint))
            else:
                params = message_params(None, buttons=buttons if last else None) | body
                made.append(await self._send_part(params, [None, None], may_fall_back=markdown, hint=hint))
        if content.file is not None:
            made.append(await self._send_text_file(content.file, message_params(None, buttons=buttons), None))
        for one in surplus:
            with suppress(ApiError):
                await self.delete(one)
        return joined(made)

    def stream(
        self,
        *,
        buttons: Buttons | None = None,
        reply_to: int | None = None,
        silent: bool = False,
        once: str | None = None,
        markdown: bool = False,
        most_parts: int = MOST_PARTS,
        drafts: bool = True,
    ) -> AbstractAsyncContextManager[Stream]:
        """A message that grows while it is written: `async with bus.stream() as stream: await stream.write("…")`.

        In a private chat it is a draft first (unless `drafts` is false), elsewhere a message that is edited, as often
        as Telegram's limits allow, always to the newest text. When the block ends, the whole text is there, as `send`
        would have sent it, and `stream.message` is what that returns. A block that fails leaves what was written, and
        that it is not all. With `once` (as of `send`) a program that died and begins anew goes on in the same message.
        """
        return self._open_stream(
            ("", once),
            buttons=buttons,
            reply_to=reply_to,
            silent=silent,
            markdown=markdown,
            most_parts=most_parts,
            drafts=drafts,
        )

    async def delete(self, message: SentMessage | int) -> None:
        """Delete a message of ours, with all its parts, those that can be; raises the first refusal."""
        refused: ApiError | None = None
        for message_id in [one.message_id for one in _parts(message)] or [id_of(message)]:
            try:
                await self.call("deleteMessage", message_id=message_id)
            except ApiError as error:
                refused = refused or error
        if refused is not None:
            raise refused

    async def react(self, message: SentMessage | int, emoji: str | None) -> None:
        """Put a reaction on a message of this thread; None takes it away."""
        reaction = [{"type": "emoji", "emoji": emoji}] if emoji else []
        await self.call("setMessageReaction", message_id=id_of(message), reaction=reaction)

    async def _send_text(  # noqa: PLR0913 - as `send`
        self,
        text: str,
        name: tuple[str, str | None],
        *,
        buttons: Buttons | None = None,
        reply_to: int | None = None,
        parse_mode: ParseMode | None = None,
        silent: bool = False,
        markdown: bool = False,
        most_parts: int = MOST_PARTS,
        urgency: Urgency | Literal["click"] | None = None,
    ) -> SentMessage:
        """What `send` does; `name` is the scope and the name under which it is done once."""
        _check_urgency(urgency)
        silent = silent or urgency == "progress"
        content = content_of(text, markdown=markdown, parse_mode=parse_mode, most_parts=most_parts)
        if name[1] is not None:
            content = await self._planned(identity.call_id(name[0], name[1]), content)
        made: list[SentMessage] = []
        try:
            for number, body in enumerate(content.bodies):
                last = number == len(content.bodies) - 1 and content.file is None
                params = message_params(
                    None, buttons=buttons if last else None, reply_to=None if number else reply_to, silent=silent
                )
                ids = call_ids(*name, number + 1)
                made.append(await self._send_part(params | body, ids, may_fall_back=markdown, hint=urgency))
                if name[1] is not None and not number and not content.single and not _shows(made[0], body["text"]):
                    return made[0]  # it was another text, which was sent whole
            if content.file is not None:
                params = message_params(None, buttons=buttons, silent=silent)
                call_id = call_ids(*name, len(content.bodies) + 1)[0]
                made.append(await self._send_text_file(content.file, params, call_id))
        except BusError as error:
            if made:
                error.add_note(f"{len(made)} of {content.messages} messages had been sent")
            raise
        return joined(made)

    def _open_stream(
        self,
        name: tuple[str, str | None],
        *,
        buttons: Buttons | None = None,
        reply_to: int | None = None,
        silent: bool = False,
        markdown: bool = False,
        most_parts: int = MOST_PARTS,
        drafts: bool = True,
    ) -> AbstractAsyncContextManager[Stream]:
        from telegram_bus.followers.streams import open_stream  # noqa: PLC0415 - for those who need it

        options = message_params(None, reply_to=reply_to, silent=silent)
        return open_stream(
            self,
            options,
            name,
            buttons=buttons,
            markdown=markdown,
            most_parts=most_parts,
            draftless=self._draftless if drafts else None,
        )

    async def queue(self) -> dict[str, Any]:
        """What of this follower's calls waits in the leader for Telegram's limits.

        `waiting` (how many, of `limit` that may), `classes` (how many of each: `click`, `final`, `message`, `progress`,
        `typing`), `pausedMs` (for how long Telegram wants nothing, in milliseconds).
        """
        ack = await self._member.ask(lambda fields: SendQueue(**fields))
        return dict(ack.result)

    def _note_press(self, message_id: Any) -> None:
        """A press of a button of this message was answered: an edit that follows is what the person waits for."""
        if isinstance(message_id, int):
            self._pressed[message_id] = trio.current_time()
            if len(self._pressed) > PRESSES:
                del self._pressed[next(iter(self._pressed))]

    def _was_pressed(self, message_id: int) -> bool:
        return trio.current_time() - self._pressed.get(message_id, -PRESS_SECONDS) < PRESS_SECONDS

    async def _begin_stream(self, scope: str, once: str) -> bool:
        """Note that a stream begins under this name; whether one has begun before."""
        inbox, name = self._member.inbox, identity.call_id(scope, once, "stream")
        if await inbox.plan(name) is not None:
            return True
        await inbox.keep_plan(name, b"")
        return False

    async def _planned(self, call_id: str, content: Content) -> Content:
        """What was begun under this name, else this content, which is kept if it is more than one message."""
        inbox = self._member.inbox
        kept = await inbox.plan(call_id)
        if kept is not None:
            bodies, file = loads(kept)
            return Content(bodies, None if file is None else (file[0], file[1]))
        if not content.single:
            await inbox.keep_plan(call_id, dumps([content.bodies, content.file]))
        return content

    async def _send_part(
        self, params: dict[str, Any], ids: list[str | None], *, may_fall_back: bool, hint: str | None = None
    ) -> SentMessage:
        """One message; where Telegram refuses its markup, once more without, under the second of the ids."""
        try:
            return sent_message(await self._make("sendMessage", params, ids[0], hint))
        except ApiError as error:
            if not (may_fall_back and _refuses_markup(error, params)):
                raise
        return sent_message(await self._make("sendMessage", {**params, "entities": None}, ids[1], hint))

    async def _change(
        self, message: SentMessage, params: dict[str, Any], *, may_fall_back: bool, hint: str | None = None
    ) -> SentMessage:
        try:
            result = await self._make("editMessageText", {"message_id": message.message_id, **params}, None, hint)
        except ApiError as error:
            if UNCHANGED in error.description.lower():
                return attrs.evolve(message, rest=())
            if not (may_fall_back and _refuses_markup(error, params)):
                raise
            return await self._change(message, {**params, "entities": None}, may_fall_back=False, hint=hint)
        changed = isinstance(result, dict) and "message_id" in result and "chat" in result
        return sent_message(result) if changed else attrs.evolve(message, rest=())

    async def _send_text_file(self, file: tuple[str, str], params: dict[str, Any], call_id: str | None) -> SentMessage:
        name, text = file
        return await self._send_one(text.encode("utf-8", "replace"), "document", name, params, call_id)


def _check_urgency(urgency: str | None) -> None:
    if urgency not in (None, "click", "final", "progress"):
        raise ValueError(f'urgency is "final", "progress" or None, not {urgency!r}')


def _refuses_markup(error: ApiError, params: dict[str, Any]) -> bool:
    return bool(params.get("entities")) and error.code == 400 and "entit" in error.description.lower()


def _shows(message: SentMessage, text: str) -> bool:
    """Whether a message is that of the text; of what Telegram may have changed (white space) nothing is compared."""
    shown = message.raw.get("text")
    return not isinstance(shown, str) or _letters(shown) == _letters(text)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _parts(message: SentMessage | int) -> list[SentMessage]:
    return [] if isinstance(message, int) else list(message.parts)
