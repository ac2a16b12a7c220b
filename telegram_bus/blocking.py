"""The Python API for programs with threads, or with asyncio: the same bus, with methods that block.

The follower lives in a thread of its own, in which Trio runs. Everything here may be used from any other thread.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

import trio
from attrs import define, field

from telegram_bus import agent
from telegram_bus.core.envelopes import Target
from telegram_bus.core.errors import BusError, NoLeader
from telegram_bus.core.parts import MOST_PARTS
from telegram_bus.followers.portal import Portal, deadline_of_this
from telegram_bus.followers.updates import UpdateKind
from telegram_bus.roles.member import MemberState

if TYPE_CHECKING:
    from telegram_bus.followers import streams

__all__ = ["Bus", "Stream", "Update", "join", "time_limit"]

P = ParamSpec("P")
T = TypeVar("T")

_END: Final = object()


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Whatever in the block waits for the bus raises TimeoutError once this time is over.

    As with `trio.fail_after`, a message that was asked for may still go out. Limits nest: the earlier one counts.
    """
    mine, outer = time.monotonic() + seconds, deadline_of_this.get()
    token = deadline_of_this.set(mine if outer is None else min(mine, outer))
    try:
        yield
    finally:
        deadline_of_this.reset(token)


def _blocking(method: Callable[Concatenate[agent.Bus, P], Awaitable[T]]) -> Callable[Concatenate[Bus, P], T]:
    """The same method, which blocks."""

    def call(self: Bus, /, *args: P.args, **options: P.kwargs) -> T:
        return self._run(lambda: method(self._bus, *args, **options))

    functools.update_wrapper(call, method)
    return call


def _blocking_of_update(
    method: Callable[Concatenate[agent.Update, P], Awaitable[T]],
) -> Callable[Concatenate[Update, P], T]:
    def call(self: Update, /, *args: P.args, **options: P.kwargs) -> T:
        return self._bus._run(lambda: method(self._update, *args, **options))  # noqa: SLF001 - the same module

    functools.update_wrapper(call, method)
    return call


@define(eq=False)
class Stream:
    """As what `telegram_bus.Bus.stream` gives; `write` waits for nothing."""

    _portal: Portal = field(repr=False)
    _stream: streams.Stream

    @property
    def text(self) -> str:
        """What has been written so far."""
        return self._stream.text

    @property
    def message(self) -> agent.SentMessage | None:
        """What it became, once its block has ended."""
        return self._stream.message

    def write(self, delta: str) -> None:
        """Add to the text."""
        self._portal.run(lambda: self._stream.write(delta))


@contextmanager
def _streaming(portal: Portal, begin: Callable[[], AbstractAsyncContextManager[streams.Stream]]) -> Iterator[Stream]:
    from telegram_bus.followers.held import hold_stream  # noqa: PLC0415 - for those who need it

    held = portal.run(lambda: portal.hold(hold_stream, begin()))
    try:
        yield Stream(portal, held.stream)
    except BaseException:
        with suppress(BusError, OSError, TimeoutError):
            portal.run(partial(held.end, give_up=True))
        raise
    portal.run(held.end)


@define(eq=False)
class Update:
    """As `telegram_bus.Update`; what sends or fetches blocks."""

    _bus: Bus = field(repr=False)
    _update: agent.Update

    @property
    def id(self) -> str:
        """The same when the update is seen again after a crash."""
        return self._update.id

    @property
    def kind(self) -> UpdateKind:
        """`message`, `edited_message`, `callback` or `reaction`."""
        return self._update.kind

    @property
    def raw(self) -> dict[str, Any]:
        """Telegram's object whole."""
        return self._update.raw

    @property
    def message(self) -> dict[str, Any]:
        """Telegram's Message object that the update is about."""
        return self._update.message

    @property
    def parts(self) -> tuple[dict[str, Any], ...]:
        """The Messages that it consists of, in the order in which they were sent: `message`, and seldom more."""
        return self._update.parts

    @property
    def follows(self) -> str | None:
        """The id of the update that it belongs to, for which it came too late."""
        return self._update.follows

    @property
    def text(self) -> str:
        """The text or caption; empty where there is none."""
        return self._update.text

    @property
    def command(self) -> tuple[str, str] | None:
        """The command that the message begins with, and the rest of it; None where there is none."""
        return self._update.command

    @property
    def data(self) -> Any:
        """The data of the pressed button, as it was given."""
        return self._update.data

    @property
    def sender(self) -> dict[str, Any] | None:
        """Telegram's User object of who did it."""
        return self._update.sender

    @property
    def handed_by(self) -> str | None:
        """Who gave this work to us, None where nobody did."""
        return self._update.handed_by

    @property
    def note(self) -> str | None:
        """What that one said about it."""
        return self._update.note

    @property
    def age(self) -> float | None:
        """Seconds since the person did it; None for a pressed button."""
        return self._update.age

    @property
    def files(self) -> tuple[agent.FileInfo, ...]:
        """The file of the message, if it has one."""
        return self._update.files

    def reply(self, text: str, *, once: str | None = None, **options: Any) -> agent.SentMessage:
        """Send a message into the thread as an answer to this one; options as of `Bus.send`."""
        return self._bus._run(lambda: self._update.reply(text, once=once, **options))  # noqa: SLF001

    def stream(self, *, once: str | None = None, **options: Any) -> AbstractContextManager[Stream]:
        """An answer to this one that grows while it is written; options as of `Bus.stream`."""
        begin = partial(self._update.stream, once=once, **options)
        return _streaming(self._bus._portal, begin)  # noqa: SLF001 - the same module

    answer = _blocking_of_update(agent.Update.answer)
    download = _blocking_of_update(agent.Update.download)
    hand_over = _blocking_of_update(agent.Update.hand_over)
    done = _blocking_of_update(agent.Update.done)


@define(eq=False)
class Bus:
    """As `telegram_bus.Bus`; what sends or asks blocks, for as long as `time_limit` says. Any thread may use it."""

    _portal: Portal = field(repr=False)
    _bus: agent.Bus

    @property
    def key(self) -> str:
        """The stable name of this follower."""
        return self._bus.key

    @property
    def name(self) -> str | None:
        """The name it was given, which its thread has too."""
        return self._bus.name

    @property
    def target(self) -> Target | None:
        """Its chat and thread; None before the first registration."""
        return self._bus.target

    @property
    def state(self) -> str:
        """What it does about its leader."""
        return self._bus.state

    @property
    def reason(self) -> str | None:
        """Why it is in that state, for people."""
        return self._bus.reason

    wait_serving = _blocking(agent.Bus.wait_serving)
    send = _blocking(agent.Bus.send)
    send_file = _blocking(agent.Bus.send_file)
    send_album = _blocking(agent.Bus.send_album)
    download = _blocking(agent.Bus.download)
    edit = _blocking(agent.Bus.edit)
    edit_file = _blocking(agent.Bus.edit_file)
    delete = _blocking(agent.Bus.delete)
    react = _blocking(agent.Bus.react)
    offer_commands = _blocking(agent.Bus.offer_commands)
    typing = _blocking(agent.Bus.typing)
    activity = _blocking(agent.Bus.activity)
    ask_person = _blocking(agent.Bus.ask_person)
    queue = _blocking(agent.Bus.queue)
    members = _blocking(agent.Bus.members)
    tell = _blocking(agent.Bus.tell)

    @contextmanager
    def typing_for(self, ttl: float = 600.0, *, action: str = "typing") -> Iterator[None]:
        """Show that this follower is typing while the block runs: `with bus.typing_for(): …`."""
        scope = trio.CancelScope()

        async def hold() -> None:
            with scope:
                async with self._bus.typing_for(ttl, action=action):
                    await trio.sleep_forever()

        async def end() -> None:
            scope.cancel("the work is done")
            await trio.lowlevel.checkpoint()

        self._portal.soon(hold)
        try:
            yield
        finally:
            self._portal.soon(end)

    def call(self, method: str, **params: Any) -> Any:
        """Make any Bot API call that the bus allows a follower, and return its result."""
        return self._run(lambda: self._bus.call(method, **params))

    def stream(
        self,
        *,
        buttons: agent.Buttons | None = None,
        reply_to: int | None = None,
        silent: bool = False,
        once: str | None = None,
        markdown: bool = False,
        most_parts: int = MOST_PARTS,
        drafts: bool = True,
    ) -> AbstractContextManager[Stream]:
        """A message that grows while it is written: `with bus.stream() as stream: stream.write("…")`."""
        begin = partial(
            self._bus.stream,
            buttons=buttons,
            reply_to=reply_to,
            silent=silent,
            once=once,
            markdown=markdown,
            most_parts=most_parts,
            drafts=drafts,
        )
        return _streaming(self._portal, begin)

    def hand_over(self, update: Update, to: str, *, note: str | None = None) -> agent.Recipient:
        """What `update.hand_over()` does."""
        return update.hand_over(to, note=note)

    def finish(self, update: Update) -> None:
        """What `update.done()` does."""
        update.done()

    def __iter__(self) -> Iterator[Update]:
        """The updates in order of arrival, until the bus is left; several threads share them."""
        return self.updates()

    def updates(self, seconds: float | None = None) -> Iterator[Update]:
        """As iterating over the bus, but it ends when no update came for so long."""
        while (update := self.next_update(seconds)) is not None:
            yield update

    def next_update(self, seconds: float | None = None) -> Update | None:
        """The next update; None when none came in time, or the bus was left."""
        taken: agent.Update | None = None

        async def take() -> agent.Update | None:
            with trio.move_on_after(float("inf") if seconds is None else seconds):
                return await anext(self._bus)
            return None

        with suppress(NoLeader):
            taken = self._run(take)
        return None if taken is None else Update(self, taken)

    def states(self) -> Iterator[MemberState]:
        """The state now and after each change."""
        return self._iterate(self._bus.states)

    def watch_members(self) -> Iterator[tuple[agent.MemberInfo, ...]]:
        """All live followers, now and whenever one comes or goes."""
        return self._iterate(self._bus.watch_members)

    def _run(self, work: Callable[[], Awaitable[T]]) -> T:
        return self._portal.run(work)

    def _iterate(self, begin: Callable[[], Any]) -> Iterator[Any]:
        """What an asynchronous iterator gives, until the bus is left."""
        values = begin()
        aclose = getattr(values, "aclose", None)

        async def following() -> Any:
            return await anext(values, _END)

        try:
            while (value := self._run(following)) is not _END:
                yield value
        except NoLeader:
            return
        finally:
            if aclose is not None:  # in whatever thread this is left to the garbage collector
                self._portal.soon(aclose)


@contextmanager
def join(
    name: str | None = None, *, profile: str | None = None, home: Path | None = None, start_leader: bool = True
) -> Iterator[Bus]:
    """Join the bus as a follower, as `telegram_bus.join` does; leave it when the block ends, by Ctrl-C too.

    Raises what that raises. Where the follower fails later, that is raised at the end of the block.
    """
    portal = Portal()
    ready: Future[Bus] = Future()

    async def follow() -> None:
        if not portal.open():
            return
        with portal.scope:
            async with (
                agent.join(name, profile=profile, home=home, start_leader=start_leader) as bus,
                trio.open_nursery() as nursery,
            ):
                with portal.serving(nursery):
                    ready.set_result(Bus(portal, bus))
                    await trio.sleep_forever()

    faults: list[BaseException] = []

    def run() -> None:
        try:
            trio.run(follow)
        except BaseException as fault:  # noqa: BLE001 - raised again in the thread that joined
            faults.append(fault)
            if not ready.done():
                ready.set_exception(fault)

    thread = threading.Thread(target=run, name=f"telegram-bus {name or ''}".strip(), daemon=True)
    thread.start()
    try:
        yield ready.result()
    except NoLeader as left:  # it may have failed, which its user noticed in this way
        portal.stop()
        thread.join()
        if faults:
            raise faults[0] from left
        raise
    finally:
        portal.stop()
        thread.join()
    if faults:
        raise faults[0]
