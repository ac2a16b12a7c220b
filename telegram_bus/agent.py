"""The Python API of a follower: join the bus, read what people write in your thread, and answer there."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

import trio
from attrs import define, field

from telegram_bus import crash
from telegram_bus import home as homes
from telegram_bus._version import __version__
from telegram_bus.core import identity
from telegram_bus.core.errors import BusError, SettingsError, single_fault
from telegram_bus.core.extensions import FileGet
from telegram_bus.core.files import FileInfo
from telegram_bus.followers.calling import CALLS_AT_ONCE
from telegram_bus.followers.handing import Handing, Recipient
from telegram_bus.followers.members import MemberInfo, list_members, watch_members
from telegram_bus.followers.messages import Buttons, FileKind, Keyboard, Media, SentMessage
from telegram_bus.followers.sending import Sending
from telegram_bus.followers.updates import Update, UpdateKind
from telegram_bus.roles.folder import begin_file, finish_file, sweep
from telegram_bus.roles.member import Member, MemberState
from telegram_bus.roles.outgoing import Source
from telegram_bus.roles.seat import hold_seat
from telegram_bus.roles.starter import PARENT_VARIABLE
from telegram_bus.store.inbox import open_inbox

if TYPE_CHECKING:
    from telegram_bus.followers.questions import Answer, Choices, Questions

__all__ = [
    "CALLS_AT_ONCE",
    "Bus",
    "Buttons",
    "FileInfo",
    "FileKind",
    "Keyboard",
    "Media",
    "MemberInfo",
    "Recipient",
    "SentMessage",
    "Source",
    "Update",
    "join",
]

log = logging.getLogger(__name__)


@define(kw_only=True, eq=False)
class Bus(Sending):
    """A follower's place on the bus. Iterate over it for updates; everything it sends goes into its own thread.

    Whatever sends or asks waits while there is no leader; limit it with `trio.fail_after`. It raises RequestRefused
    when the leader refuses, ApiError when Telegram does, CommitUnknown when nobody can tell whether a message went
    out, and NoLeader after the block of `join` has ended.
    """

    _handing: Handing = field(init=False, repr=False)
    _questions: Questions | None = field(default=None, init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._handing = Handing(member=self._member, say=self._say_once)

    async def _say_once(self, text: str, name: str) -> None:
        await self.send(text, silent=True, once=name)

    @property
    def name(self) -> str | None:
        """The name it was given, which its thread has too."""
        return self._member.thread_name

    @property
    def state(self) -> str:
        """`connecting`, `serving`, `no leader`, `stopped` (by an operator), `refused` or `left`."""
        return self._member.state.value.phase

    @property
    def reason(self) -> str | None:
        """Why it is in that state, or that its inbox cannot be written just now, for people."""
        return self._member.state.value.reason or self._member.unread.trouble

    def states(self) -> AsyncIterator[MemberState]:
        """The state now and after each change."""
        return self._member.state.values()

    def __aiter__(self) -> Bus:
        return self

    async def __anext__(self) -> Update:
        """The next update in order of arrival; those that an earlier process did not finish come first."""
        item = await self._member.unread.next()
        crash.point("after-take")
        first, *more = item.bodies()
        kind = cast(UpdateKind, item.kind)
        return Update(id=item.id, kind=kind, raw=first, more=tuple(more), follows=item.follows, bus=self)

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
                ack = await self._member.ask(
                    lambda fields: FileGet(**fields, file_id=file_id, resume=True), [descriptor]
                )
            told = ack.result.get("name") if isinstance(ack.result, dict) else None
            return await trio.to_thread.run_sync(finish_file, temporary, name or told or "file")
        finally:
            os.close(descriptor)
            temporary.unlink(missing_ok=True)

    async def offer_commands(self, commands: Mapping[str, str]) -> None:
        """Offer these commands, each with what it does, for the chat's menu; an empty mapping takes the offer back.

        The menu is merged from what all followers offer. The offer lasts until it is replaced or this follower is gone
        for good. RequestRefused for names that are not 1 to 32 of a-z, 0-9 and _, for descriptions that are not 1 to
        256 characters, and for more than 100.
        """
        offered = [{"command": name, "description": text} for name, text in commands.items()]
        await self.call("setMyCommands", commands=offered)

    async def typing(self) -> None:
        """Show that this follower is typing, for some five seconds or until it sends."""
        await self.call("sendChatAction", action="typing")

    async def ask_person(
        self,
        question: str,
        choices: Choices = (),
        *,
        once: str | None = None,
        allow_text: bool = False,
        users: Sequence[int] | None = None,
    ) -> Answer:
        """Ask people in this thread and return the answer, which may come tomorrow: limit it with `trio.fail_after`.

        `choices` become buttons; with `allow_text`, or without choices, any text that replies to the question is an
        answer too. The answer is a string (the label of the choice, or the text) with `value`, `number` and `sender`;
        the message then shows it. `users` are the ids of those who may answer (None: everybody that the bot listens
        to).

        With `once` (a name of your choice) it is asked once in 90 days: a program that was started anew and asks under
        that name again attaches to the question that there is, and gets an answer that came meanwhile. Without, the
        answer is for this process only, and the question is taken back when nobody waits for it any more.

        Raises Expired where there will be no answer, what `send` raises, and ValueError for a question of more than
        3,000 characters or choices of more than 64 KiB.
        """
        if self._questions is None:
            from telegram_bus.followers.questions import Questions  # noqa: PLC0415 - for those who ask

            self._questions = Questions(member=self._member, make=self._make)
        return await self._questions.ask(question, choices, once=once, allow_text=allow_text, users=users)

    def typing_for(self, ttl: float = 600.0, *, action: str = "typing") -> AbstractAsyncContextManager[None]:
        """Show that this follower is typing while the block runs: `async with bus.typing_for(): …`.

        It ends with the block, with the first message that is sent, with this process, and after `ttl` seconds.
        """
        from telegram_bus.followers.typing import typing_for  # noqa: PLC0415 - for those who need it

        return typing_for(self._member, ttl, action)

    async def activity(self, text: str | None = None, *, needs_person: bool = False) -> None:
        """Say what this follower does (`running tests`), for /status and `telegram-bus status`; None: nothing now.

        `needs_person` marks that it cannot go on before a person has done something. It holds until it is replaced,
        or this process ends. RequestRefused for more than 200 characters.
        """
        from telegram_bus.core.extensions import ActivitySet  # noqa: PLC0415 - for those who need it

        await self._member.ask(lambda fields: ActivitySet(**fields, text=text, needs_person=needs_person or None))

    async def members(self) -> tuple[MemberInfo, ...]:
        """All live followers."""
        return await list_members(self._member)

    def watch_members(self) -> AsyncIterator[tuple[MemberInfo, ...]]:
        """All live followers, now and whenever one comes or goes."""
        return watch_members(self._member)

    async def tell(self, agent: str | int, text: str) -> SentMessage:
        """Write into another agent's thread and have its owner work on it; `agent` is its thread's name or id.

        In a chat without threads an agent is written to in the main chat, by its name. People see there who asks
        ("from nora: …"), of a very long text the beginning; the agent gets the text as it is.
        Raises RequestRefused when not exactly one other live agent is called so.
        """
        from telegram_bus.followers.telling import tell  # noqa: PLC0415 - for those who do

        return await tell(self, self._member, agent, text)

    async def hand_over(self, update: Update, to: str, *, note: str | None = None) -> Recipient:
        """What `update.hand_over()` does."""
        return await self._handing.give(update.id, to, note)

    async def finish(self, update: Update) -> None:
        """What `update.done()` does."""
        crash.point("before-done")
        await self._member.unread.done(update.id)
        crash.point("after-done")


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
            nursery.start_soon(bus._handing.run)  # noqa: SLF001 - the same module
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
