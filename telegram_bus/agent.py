"""The Python API of a follower: join the bus, read what people write in your thread, and answer there."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal, cast

import trio
from attrs import define, field

from telegram_bus import crash
from telegram_bus import home as homes
from telegram_bus._version import __version__
from telegram_bus.core import identity
from telegram_bus.core.codec import loads
from telegram_bus.core.envelopes import (
    AgentMessage,
    AgentSelector,
    CallApi,
    ResolveAgentTarget,
    RouteAgentMessage,
    Target,
)
from telegram_bus.core.errors import BusError, NoLeader, SettingsError, single_fault
from telegram_bus.core.extensions import FileGet, FilePart, FileSend
from telegram_bus.core.files import SENDABLE, FileInfo, safe_name
from telegram_bus.followers.members import MemberInfo, list_members, watch_members
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
from telegram_bus.followers.updates import Update, UpdateKind
from telegram_bus.roles.folder import begin_file, finish_file, sweep
from telegram_bus.roles.member import Member, MemberState
from telegram_bus.roles.outgoing import Source, opened
from telegram_bus.roles.seat import hold_seat
from telegram_bus.roles.starter import PARENT_VARIABLE
from telegram_bus.store.inbox import open_inbox

__all__ = ["Bus", "Buttons", "FileInfo", "FileKind", "Media", "MemberInfo", "SentMessage", "Source", "Update", "join"]

log = logging.getLogger(__name__)

CROSS_TARGET: Final = "__piTelegramCrossTargetDelivery"
"""Marks a message for another agent's thread of the same chat (protocol section 9)."""

CALLS_AT_ONCE: Final = 32
"""Calls of one follower on their way to the leader; it works on 64 requests a connection (wire/limits.py), and while
Telegram is slow a follower with more than that would not get its heartbeats through."""

FILES_AT_ONCE: Final = 4
"""Of them with files: each is an open file in the leader, and Telegram takes a chat's uploads one after the other."""


@define(kw_only=True, eq=False)
class Bus:
    """A follower's place on the bus. Iterate over it for updates; everything it sends goes into its own thread.

    Whatever sends or asks waits while there is no leader; limit it with `trio.fail_after`. It raises RequestRefused
    when the leader refuses, ApiError when Telegram does, CommitUnknown when nobody can tell whether a message went
    out, and NoLeader after the block of `join` has ended.
    """

    _member: Member
    _calls: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(CALLS_AT_ONCE), repr=False)
    _transfers: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(FILES_AT_ONCE), repr=False)

    @property
    def key(self) -> str:
        """The stable name of this follower: the same after a restart, different from all live ones."""
        return self._member.seat.key

    @property
    def name(self) -> str | None:
        """The name it was given, which its thread has too."""
        return self._member.thread_name

    @property
    def target(self) -> Target | None:
        """Its chat and thread; None before the first registration."""
        return self._member.target.value

    @property
    def state(self) -> str:
        """`connecting`, `serving`, `no leader`, `stopped` (by an operator), `refused` or `left`."""
        return self._member.state.value.phase

    @property
    def reason(self) -> str | None:
        """Why it is in that state, for people."""
        return self._member.state.value.reason

    def states(self) -> AsyncIterator[MemberState]:
        """The state now and after each change."""
        return self._member.state.values()

    async def wait_serving(self) -> None:
        """Wait until a leader has given this follower its place. Raises NoLeader once it has left the bus."""
        state = await self._member.state.wait_for(lambda state: state.phase in ("serving", "left"))
        if state.phase == "left":
            raise NoLeader("this follower has left the bus; join it anew")

    def __aiter__(self) -> Bus:
        return self

    async def __anext__(self) -> Update:
        """The next update in order of arrival; those that an earlier process did not finish come first."""
        delivery = await self._member.unread.next()
        crash.point("after-take")
        return Update(id=delivery.delivery_id, kind=cast(UpdateKind, delivery.kind), raw=loads(delivery.body), bus=self)

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

    async def download(
        self, file_id: str, *, name: str | None = None, into: str | os.PathLike[str] | None = None
    ) -> Path:
        """Fetch a file that was sent to this follower and return where it lies.

        That is the directory `into`, or this follower's own folder, where it stays until you delete it. It is called
        `name`, or as Telegram calls it, without what is unsafe in a file's name, and with a number where that is
        taken. Raises RequestRefused for another's file, or for more than the Bot API server gives (20 MB at
        Telegram's own).
        """
        directory = self._folder if into is None else Path(into)
        descriptor, temporary = await trio.to_thread.run_sync(begin_file, directory)
        try:
            async with self._transfers, self._calls:
                await self.wait_serving()
                ack = await self._member.ask(lambda fields: FileGet(**fields, file_id=file_id), [descriptor])
            told = ack.result.get("name") if isinstance(ack.result, dict) else None
            return await trio.to_thread.run_sync(finish_file, temporary, name or told or "file")
        finally:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)

    @property
    def _folder(self) -> Path:
        return self._member.profile.files(self.key)

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

    async def typing(self) -> None:
        """Show that this follower is typing, for some five seconds or until it sends."""
        await self.call("sendChatAction", action="typing")

    async def call(self, method: str, **params: Any) -> Any:
        """Make any Bot API call that the bus allows a follower, and return its result.

        The chat and thread of this follower are filled in where they are missing; parameters that are None are left
        out. Many may be made at once; 32 of them are on their way, the others wait their turn.
        """
        return await self._make(method, params)

    async def _make(self, method: str, params: dict[str, Any], call_id: str | None = None) -> Any:
        """What `call` does, under a call id of one's own where that is given."""
        async with self._calls:
            return await self._ask(method, params, call_id)

    async def _upload(
        self, method: str, params: dict[str, Any], parts: dict[int, FilePart], call_id: str | None
    ) -> Any:
        async with self._transfers, self._calls:
            body = await self._body(method, params)
            files = tuple(parts.values())
            ack = await self._member.ask(
                lambda fields: FileSend(**fields, method=method, params=body, files=files, call_id=call_id),
                tuple(parts),
            )
        return ack.result

    async def _body(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters, with chat and thread where they are missing; waits until those are known."""
        await self.wait_serving()
        body = {name: value for name, value in params.items() if value is not None}
        target = self.target
        if target is not None and method not in _WITHOUT_CHAT:
            body.setdefault("chat_id", target.chat_id)
            if target.thread_id is not None and method.startswith(_INTO_THREAD):
                body.setdefault("message_thread_id", target.thread_id)
        return body

    async def _ask(self, method: str, params: dict[str, Any], call_id: str | None) -> Any:
        body = await self._body(method, params)
        ack = await self._member.ask(
            lambda fields: CallApi(**fields, method="call", args=(method, body), call_id=call_id)
        )
        crash.point("after-answer")
        return ack.result

    async def members(self) -> tuple[MemberInfo, ...]:
        """All live followers."""
        return await list_members(self._member)

    def watch_members(self) -> AsyncIterator[tuple[MemberInfo, ...]]:
        """All live followers, now and whenever one comes or goes."""
        return watch_members(self._member)

    async def tell(self, agent: str | int, text: str) -> SentMessage:
        """Write into another agent's thread and have its owner work on it; `agent` is its thread's name or id.

        Raises RequestRefused when not exactly one other live agent has that thread.
        """
        selector = AgentSelector(thread_id=agent) if isinstance(agent, int) else AgentSelector(thread_name=agent)
        ack = await self._member.ask(lambda fields: ResolveAgentTarget(**fields, selector=selector))
        target = Target(chat_id=ack.result["chatId"], thread_id=ack.result["threadId"])
        sent = sent_message(
            await self.call(
                "sendMessage",
                chat_id=target.chat_id,
                message_thread_id=target.thread_id,
                text=text,
                **{CROSS_TARGET: True},
            )
        )
        message = AgentMessage(target=target, message_id=sent.message_id, text=text)
        await self._member.ask(lambda fields: RouteAgentMessage(**fields, message=message))
        return sent

    async def finish(self, update: Update) -> None:
        """What `update.done()` does."""
        crash.point("before-done")
        await self._member.inbox.done(update.id)
        crash.point("after-done")


_WITHOUT_CHAT: Final = frozenset({"getMe", "answerCallbackQuery", "answerGuestQuery", "setMyCommands"})
_INTO_THREAD: Final = ("send", "copyMessage", "editForumTopic", "closeForumTopic", "deleteForumTopic")


@asynccontextmanager
async def join(
    name: str | None = None,
    *,
    profile: str | None = None,
    home: Path | None = None,
    start_leader: bool = True,
) -> AsyncIterator[Bus]:
    """Join the bus as a follower; leave it when the block ends.

    `name` names the thread (by default the leader picks one) and, as a key, the follower's files; without it the
    working directory's name is the key. `profile` and `home` choose the bot: by default `$TELEGRAM_BUS_PROFILE` and
    `$TELEGRAM_BUS_HOME`. Where no leader runs one is started, unless `start_leader` is false.

    Raises SettingsError for a bad profile, and without a name in a working directory that is gone or inside a wrapped
    program (`$TELEGRAM_BUS_PARENT`), which has its parent's thread; StateError where the follower's files cannot be
    used.
    """
    if name is None and (parent := os.environ.get(PARENT_VARIABLE)):
        raise SettingsError(
            f"this program runs inside the follower {parent!r} and has its thread; "
            f"to get one of its own it has to ask for it: join(name=…)"
        )
    place = homes.Home(home).profile(profile)
    place.ensure()
    with single_fault(), hold_seat(place, name if name is not None else _directory_name()) as seat:
        await trio.to_thread.run_sync(sweep, place.files(seat.key))
        async with open_inbox(place.inbox(seat.key)) as inbox, trio.open_nursery() as nursery:
            member = Member(
                profile=place,
                seat=seat,
                inbox=inbox,
                identity=identity.ours(__version__),
                thread_name=name,
                start_leader=start_leader,
            )
            await nursery.start(member.run)
            bus = Bus(member=member)
            if inbox.notice is not None:
                nursery.start_soon(_tell_loss, bus, inbox.notice)
            try:
                yield bus
            finally:
                nursery.cancel_scope.cancel("the program left the bus")


async def _tell_loss(bus: Bus, notice: str) -> None:
    """Say in the log, and once in the thread, that what this follower had not worked off is gone."""
    log.warning("%s", notice)
    with suppress(BusError):
        await bus.send(f"{notice}. What had not been worked off is lost: please say it again.", silent=True)


def _directory_name() -> str:
    try:
        return Path.cwd().name
    except OSError as error:
        raise SettingsError(
            f"the working directory is gone ({error.strerror}); name this follower: join(name=…)"
        ) from error
