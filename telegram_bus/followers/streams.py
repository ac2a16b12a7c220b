"""A message that grows while its text is still being written: by edits, or in private chats as a draft."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from itertools import islice
from typing import Any, Final, Protocol

import trio
from attrs import define, field

from telegram_bus.core.envelopes import Target
from telegram_bus.core.errors import ApiError, BusError, NoLeader, RequestRefused, single_fault
from telegram_bus.core.parts import MESSAGE_LENGTH, Part, beginning, split
from telegram_bus.core.text import units
from telegram_bus.followers.contents import CONVERTED, fields_of, file_of, formatted
from telegram_bus.followers.messages import Buttons, SentMessage, call_ids, joined, keyboard

__all__ = ["Stream", "open_stream"]

UNFINISHED: Final = " …"
"""Stands behind a text that goes on, so that a crash leaves nothing that looks like an answer."""

BROKEN_OFF: Final = "\n\n(This is not all: it was broken off.)"

ROOM: Final = 96
"""UTF-16 units of each message for what is said about the text."""

PRIVATE_PACE: Final = 1.0, 5.0
GROUP_PACE: Final = 4.0, 15.0
"""Seconds from one edit to the next at least, at first and in the end: a private chat takes one call a second, a group
20 a minute (M18), of which three long texts at once leave room for their ends. Who reads a long text needs no haste.
The leader's budget, which many followers share, may make it longer."""

SLOWER: Final = 1.5
"""How much longer each pause is than the one before."""

LONGEST_PACE: Final = 30.0
COSTS: Final = 10.0
"""Markdown is read anew each time; so much longer than that took the next time waits, for the program's own sake."""

DRAFT_AGAIN: Final = 20.0
"""Seconds after which a draft is sent again that did not change: it is shown for 30 (T18)."""

FAREWELL: Final = 5.0
"""Seconds for saying that a text was broken off, when the program is being cancelled."""


class _Bus(Protocol):
    """What a stream needs of the bus that it is sent over."""

    @property
    def target(self) -> Target | None: ...
    async def wait_serving(self) -> None: ...
    async def call(self, method: str, **params: Any) -> Any: ...
    async def delete(self, message: SentMessage | int) -> None: ...
    async def _send_part(
        self, params: dict[str, Any], ids: list[str | None], *, may_fall_back: bool, hint: str | None = None
    ) -> SentMessage: ...
    async def _change(
        self, message: SentMessage, params: dict[str, Any], *, may_fall_back: bool, hint: str | None = None
    ) -> SentMessage: ...
    async def _begin_stream(self, scope: str, once: str) -> bool: ...
    async def _send_text_file(
        self, file: tuple[str, str], params: dict[str, Any], call_id: str | None
    ) -> SentMessage: ...


@define(eq=False)
class _Shown:
    """A message of the stream, and what it shows; None: that is not known."""

    message: SentMessage
    body: dict[str, Any] | None


@define(kw_only=True, eq=False)
class Stream:
    """A text that is being written. `write` to it; `message` is what it became, once its block has ended."""

    _bus: _Bus = field(repr=False)
    _options: dict[str, Any] = field(repr=False)
    _name: tuple[str, str | None]
    _buttons: Buttons | None
    _markdown: bool
    _most_parts: int
    _draftless: set[float] | None = field(repr=False)  # chats that refuse drafts; None: none are wanted
    _drafting: bool = field(default=False, init=False)
    message: SentMessage | None = field(default=None, init=False)
    _pieces: list[str] = field(factory=list, init=False, repr=False)
    _changed: trio.Event = field(factory=trio.Event, init=False, repr=False)
    _closed: trio.Event = field(factory=trio.Event, init=False, repr=False)
    _pause: trio.CancelScope = field(factory=trio.CancelScope, init=False, repr=False)
    _passing: trio.CancelScope = field(factory=trio.CancelScope, init=False, repr=False)
    _life: trio.CancelScope = field(factory=lambda: trio.CancelScope(shield=True), init=False, repr=False)
    _shown: list[_Shown] = field(factory=list, init=False, repr=False)
    _draft: dict[str, Any] | None = field(default=None, init=False, repr=False)
    _draft_id: int = field(factory=lambda: random.randrange(1, 2**31), init=False)
    _least: float = field(default=0.0, init=False)
    _most: float = field(default=0.0, init=False)
    _pace: float = field(default=0.0, init=False)
    _cost: float = field(default=0.0, init=False)
    _begun: bool = field(default=False, init=False)
    _full: bool = field(default=False, init=False)  # no more of it is shown before its end
    _failed: bool = field(default=False, init=False)  # what is shown meanwhile; the end is tried all the same

    @property
    def text(self) -> str:
        """What has been written so far."""
        text = "".join(self._pieces)
        self._pieces = [text]
        return text

    async def write(self, delta: str) -> None:
        """Add to the text. It is shown soon; this waits for nothing, and never fails for the bus.

        Raises RuntimeError once the block has ended.
        """
        await trio.lowlevel.checkpoint()
        if self._closed.is_set():
            raise RuntimeError("this stream has ended, and its text is complete: begin another one")
        if delta:
            self._pieces.append(delta)
            self._changed.set()

    async def _run(self) -> None:
        """Show the newest text, one call after another, until the block has ended.

        A cancelled program does not cut a call that is under way: what it sends has to be known to be changed.
        """
        with self._life:
            await self._show()

    def _close(self, deadline: float | None) -> None:
        """Show nothing more; a call under way is waited for: up to `deadline`, or as long as the program waits."""
        self._closed.set()
        self._changed.set()
        self._pause.cancel("the block has ended")
        self._passing.cancel("the block has ended")
        if deadline is None:
            self._life.shield = False
        else:
            self._life.deadline = deadline

    async def _show(self) -> None:
        if self._closed.is_set():
            return
        try:
            with trio.CancelScope() as self._pause:
                await self._bus.wait_serving()
        except NoLeader:  # the end of the block says it
            return
        target = self._bus.target
        chat_id = target.chat_id if target is not None else 0
        private = chat_id > 0
        self._drafting = private and self._draftless is not None and chat_id not in self._draftless
        self._least, self._most = PRIVATE_PACE if private else GROUP_PACE
        self._pace = self._least
        while not self._closed.is_set():
            with trio.move_on_after(DRAFT_AGAIN if self._draft is not None else float("inf")):
                await self._changed.wait()
            if self._closed.is_set():
                return
            self._changed = trio.Event()
            await self._show_newest()
            if self._closed.is_set():
                return
            with trio.CancelScope() as self._pause:
                await trio.sleep(max(self._pace, COSTS * self._cost))

    async def _show_newest(self) -> None:
        if self._failed or self._full or not self.text.strip():
            return
        try:
            began = trio.current_time()
            parts = self._parts()
            self._cost = trio.current_time() - began
            full = len(parts) > self._most_parts
            del parts[self._most_parts :]
            if self._drafting:
                await self._update(parts[:-1], UNFINISHED, "progress")
                await self._show_draft(parts[-1])
            if not self._drafting:
                await self._update(parts, UNFINISHED, "progress")
            self._pace = max(self._least, self._pace / 2)
            if not self._drafting:
                self._least = min(self._least * SLOWER, self._most)
            self._full = full
        except RequestRefused:
            self._slow_down()
        except ApiError as error:
            if error.code == 429:
                self._slow_down()
            else:
                self._failed = True
        except BusError:
            self._failed = True

    def _slow_down(self) -> None:
        """The limits are reached, which others share."""
        self._pace = min(2 * self._pace, LONGEST_PACE)
        self._changed.set()

    async def _show_draft(self, part: Part) -> None:
        body = fields_of(part)
        try:
            with self._needless():
                await self._bus.call("sendMessageDraft", draft_id=self._draft_id, **body)
            self._draft = body
        except (ApiError, RequestRefused) as error:
            if isinstance(error, ApiError) and error.code == 429:
                raise
            target = self._bus.target
            if target is not None and self._draftless is not None:
                self._draftless.add(target.chat_id)
            self._drafting, self._draft = False, None

    def _parts(self) -> list[Part]:
        """The messages of the text so far, and one more where it has more than it may have."""
        text, entities = formatted(self.text[:CONVERTED], markdown=self._markdown)
        parts = list(islice(split(text, entities, MESSAGE_LENGTH - ROOM), self._most_parts + 1))
        return parts or [Part(UNFINISHED.strip())]  # a quarter of a million blanks, and then something

    async def _update(self, parts: list[Part], mark: str, hint: str) -> None:
        """Have the messages show these parts; the mark stands behind the last of them."""
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            body = fields_of(_marked(part, mark) if last and mark else part)
            if last and not mark and self._buttons is not None:
                body["reply_markup"] = keyboard(self._buttons)
            await self._have(number, body, hint)

    async def _have(self, number: int, body: dict[str, Any], hint: str) -> None:
        """Send a message, or change it where it shows something else."""
        if number < len(self._shown):
            shown = self._shown[number]
            if shown.body == body:
                return
            before, shown.body = shown.message, None
            try:
                with self._needless() if hint == "progress" else nullcontext():
                    shown.message = await self._bus._change(  # noqa: SLF001 - made for it
                        before, body, may_fall_back=self._markdown, hint=hint
                    )
                    shown.body = body
            except ApiError as error:
                if hint != "final" or "not found" not in error.description.lower():
                    raise
                shown.message = await self._send(body, [None, None], hint)  # somebody deleted it
                shown.body = body
            return
        begun = await self._is_begun() if number == 0 else self._begun
        options = self._options if number == 0 else {**self._options, "reply_parameters": None}
        # a message that begins is no progress, which has to wait, and the end of the block waits for it
        sent_as = None if hint == "progress" else hint
        message = await self._send({**options, **body}, call_ids(*self._name, number + 1), sent_as)
        self._shown.append(_Shown(message, None if begun else body))  # of a predecessor's it is not known what it shows
        if begun:
            await self._have(number, body, hint)

    def _needless(self) -> trio.CancelScope:
        """Around a call that the end of the block makes needless, and which may be overtaken: it is not waited for."""
        self._passing = trio.CancelScope()
        if self._closed.is_set():
            self._passing.cancel("the block has ended")
        return self._passing

    async def _is_begun(self) -> bool:
        """Whether a predecessor may have sent messages under the name of this stream."""
        scope, once = self._name
        self._begun = once is not None and await self._bus._begin_stream(scope, once)  # noqa: SLF001
        return self._begun

    async def _send(self, params: dict[str, Any], ids: list[str | None], hint: str | None) -> SentMessage:
        return await self._bus._send_part(params, ids, may_fall_back=self._markdown, hint=hint)  # noqa: SLF001

    async def _finish(self) -> None:
        """Have all of the text there."""
        if not self.text.strip():
            return
        parts = self._parts()
        file = None
        if len(parts) > self._most_parts or len(self.text) > CONVERTED:
            file, notice = file_of(self.text, markdown=self._markdown)
            del parts[self._most_parts :]
            parts[-1] = _marked(parts[-1], f" …\n\n{notice}")
        await self._update(parts, "", "final")
        surplus = self._shown[len(parts) :]  # a list or a fence that was closed late may have made it shorter
        del self._shown[len(parts) :]
        for one in surplus:
            with suppress(ApiError):
                await self._bus.delete(one.message)
        made = [shown.message for shown in self._shown]
        if file is not None:
            call_id = call_ids(*self._name, len(parts) + 1)[0]
            silent = {"disable_notification": self._options.get("disable_notification")}
            made.append(await self._bus._send_text_file(file, silent, call_id))  # noqa: SLF001
        self.message = joined(made)

    async def _break_off(self) -> None:
        """Say that the text is not all, in place of its mark; where nothing was shown, nothing is said."""
        if self._shown or self._draft is not None:
            await self._update(self._parts()[: self._most_parts], BROKEN_OFF, "final")


@asynccontextmanager
async def open_stream(
    bus: _Bus,
    options: dict[str, Any],
    name: tuple[str, str | None],
    *,
    buttons: Buttons | None,
    markdown: bool,
    most_parts: int,
    draftless: set[float] | None,
) -> AsyncIterator[Stream]:
    """The block of `Bus.stream`; `name` are the scope and the name under which its messages are sent once.

    `draftless` are the chats that refuse drafts, to which this may add one; None: no drafts are wanted.
    """
    if most_parts < 1:
        raise ValueError(f"most_parts is at least 1, not {most_parts}")
    keyboard(buttons)
    stream = Stream(
        bus=bus,
        options=options,
        name=name,
        buttons=buttons,
        markdown=markdown,
        most_parts=most_parts,
        draftless=draftless,
    )
    farewell: float | None = None
    try:
        with single_fault():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stream._run)  # noqa: SLF001 - it is made here
                try:
                    yield stream
                except BaseException:
                    farewell = trio.current_time() + FAREWELL
                    stream._close(farewell)  # noqa: SLF001
                    raise
                stream._close(None)  # noqa: SLF001
    except BaseException:
        deadline = trio.current_time() + FAREWELL if farewell is None else farewell
        with trio.CancelScope(deadline=deadline, shield=True), suppress(BusError):
            await stream._break_off()  # noqa: SLF001
        raise
    await stream._finish()  # noqa: SLF001


def _marked(part: Part, mark: str) -> Part:
    """A part with something said behind it, in place of the white space at its end."""
    kept = beginning(part.text, part.entities, MESSAGE_LENGTH - units(mark))
    return Part(kept.text + mark, kept.entities)
