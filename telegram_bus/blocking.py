"""The Python API for programs with threads, or with asyncio: the same bus, with methods that block.

The follower lives in a thread of its own, in which Trio runs. Everything here may be used from any other thread.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import trio
from attrs import define, field

from telegram_bus import agent
from telegram_bus.core.envelopes import Target
from telegram_bus.core.errors import NoLeader
from telegram_bus.followers.updates import UpdateKind
from telegram_bus.roles.member import MemberState

__all__ = ["Bus", "Update", "join", "time_limit"]

P = ParamSpec("P")
T = TypeVar("T")

_END: Final = object()

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)
"""When, in `time.monotonic`, what this thread or asyncio task asks for has to be done."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Whatever in the block waits for the bus raises TimeoutError once this time is over.

    As with `trio.fail_after`, a message that was asked for may still go out. Limits nest: the earlier one counts.
    """
    mine, outer = time.monotonic() + seconds, _deadline.get()
    token = _deadline.set(mine if outer is None else min(mine, outer))
    try:
        yield
    finally:
        _deadline.reset(token)


class _Portal:
    """The way into the thread in which Trio runs."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self._lock = threading.Lock()
        self._token: trio.lowlevel.TrioToken | None = None
        self._nursery: trio.Nursery | None = None
        self._thread = 0
        self._process = os.getpid()
        self._stopped = False

    def open(self) -> bool:
        """In the Trio thread: from now on `stop` is heard; False where it was called before."""
        with self._lock:
            self._token, self._thread = trio.lowlevel.current_trio_token(), threading.get_ident()
            return not self._stopped

    @contextmanager
    def serving(self, nursery: trio.Nursery) -> Iterator[None]:
        """In the Trio thread: work is taken while the block runs."""
        self._nursery = nursery
        try:
            yield
        finally:
            self._nursery = None

    def stop(self) -> None:
        """From any thread: leave the bus."""
        with self._lock:
            self._stopped = True
            if self._token is not None:
                with suppress(trio.RunFinishedError):
                    self._token.run_sync_soon(self.scope.cancel, "the program left the bus")

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """From any other thread: do the work there, and wait for its end.

        Raises what it raises, TimeoutError, and NoLeader once the bus was left. A KeyboardInterrupt cancels it.
        """
        if threading.get_ident() == self._thread:
            raise RuntimeError("this is the thread of the bus itself: in asynchronous code use telegram_bus.join()")
        if os.getpid() != self._process:
            raise RuntimeError("a bus does not survive a fork: join in the child, under a name of its own")
        deadline = _deadline.get()
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        future: Future[T] = Future()
        scope = trio.CancelScope()
        assert self._token is not None
        try:
            self._token.run_sync_soon(self._begin, work, future, scope, left)
        except trio.RunFinishedError:
            raise _left() from None
        try:
            return future.result()
        except CancelledError:
            raise _left() from None
        finally:
            if not future.done():  # interrupted
                future.cancel()
                with suppress(trio.RunFinishedError):
                    self._token.run_sync_soon(scope.cancel, "nobody waits for it any more")

    def soon(self, work: Callable[[], Awaitable[object]]) -> None:
        """From any thread: do the work there some time, unless the bus is left."""
        assert self._token is not None
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._begin, work, Future(), trio.CancelScope(), None)

    def _begin(
        self, work: Callable[[], Awaitable[T]], future: Future[T], scope: trio.CancelScope, left: float | None
    ) -> None:
        if self._nursery is None:
            future.cancel()
            return
        if left is not None:
            scope.deadline = trio.current_time() + left
        self._nursery.start_soon(_do, work, future, scope)


async def _do(work: Callable[[], Awaitable[T]], future: Future[T], scope: trio.CancelScope) -> None:
    try:
        with scope:
            result = await work()
            if not future.cancelled():
                future.set_result(result)
    except Exception as fault:  # noqa: BLE001 - it belongs to the thread that waits
        if not future.cancelled():
            future.set_exception(fault)
    finally:
        if not future.done():
            if scope.cancelled_caught:
                future.set_exception(TimeoutError("the time is over; what was asked for may still be done"))
            else:  # the bus was left
                future.cancel()


def _left() -> NoLeader:
    return NoLeader("this follower has left the bus; join it anew")


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
    def data(self) -> str | None:
        """The data of the pressed button."""
        return self._update.data

    @property
    def sender(self) -> dict[str, Any] | None:
        """Telegram's User object of who did it."""
        return self._update.sender

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

    answer = _blocking_of_update(agent.Update.answer)
    download = _blocking_of_update(agent.Update.download)
    done = _blocking_of_update(agent.Update.done)


@define(eq=False)
class Bus:
    """As `telegram_bus.Bus`; what sends or asks blocks, for as long as `time_limit` says. Any thread may use it."""

    _portal: _Portal = field(repr=False)
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
    delete = _blocking(agent.Bus.delete)
    react = _blocking(agent.Bus.react)
    typing = _blocking(agent.Bus.typing)
    members = _blocking(agent.Bus.members)
    tell = _blocking(agent.Bus.tell)

    def call(self, method: str, **params: Any) -> Any:
        """Make any Bot API call that the bus allows a follower, and return its result."""
        return self._run(lambda: self._bus.call(method, **params))

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
    portal = _Portal()
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
