"""An open database for rules that are synchronous, and what a kill would leave of it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from threading import Event, Thread
from typing import Any, Generic, TypeVar

import trio
from hypothesis.stateful import RuleBasedStateMachine, rule

T = TypeVar("T")


class StoredMachine(RuleBasedStateMachine):
    """A database that is held open between rules, is closed in order or killed at any moment, and opened again."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="telegram-bus-test-"))
        self.opened = 0
        self.path = self.directory / "0.sqlite3"
        self.loop = Loop()

    def hold(self, context: AbstractAsyncContextManager[T]) -> T:
        """Keep what was opened."""
        self.held: Held[Any] = Held(self.loop, context)
        value: T = self.held.value
        return value

    def open(self) -> None:
        """Open what stands at `path`, and see that it is what it should be."""
        raise NotImplementedError

    @rule()
    def restart(self) -> None:
        self.held.close()
        self.open()

    @rule()
    def crash(self) -> None:
        """What a kill leaves: the file and its log as they are, no checkpoint, no farewell."""
        self.opened += 1
        survivor = crash_image(self.path, self.directory / f"{self.opened}.sqlite3")
        self.held.close()
        self.path = survivor
        self.open()

    def teardown(self) -> None:
        self.held.close()
        self.loop.stop()
        shutil.rmtree(self.directory)


class Loop:
    """A Trio loop in a thread, so that synchronous rules can use one open store."""

    def __init__(self) -> None:
        self._ready = Event()
        self._thread = Thread(target=trio.run, args=(self._main,), daemon=True)
        self._thread.start()
        self._ready.wait()

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._stop = trio.Event()
        self._ready.set()
        await self._stop.wait()

    def run(self, afn: Callable[..., Awaitable[T]], *args: Any) -> T:
        return trio.from_thread.run(afn, *args, trio_token=self._token)

    def stop(self) -> None:
        trio.from_thread.run_sync(self._stop.set, trio_token=self._token)
        self._thread.join()


class Held(Generic[T]):
    """An asynchronous context that stays open between rules; its nursery lives in one task of the loop."""

    value: T

    def __init__(self, loop: Loop, context: AbstractAsyncContextManager[T]) -> None:
        self._loop = loop
        loop.run(self._enter, context)

    def close(self) -> None:
        self._loop.run(self._close)

    async def _enter(self, context: AbstractAsyncContextManager[T]) -> None:
        self._leave, self._left, entered = trio.Event(), trio.Event(), trio.Event()
        trio.lowlevel.spawn_system_task(self._hold, context, entered)
        await entered.wait()

    async def _hold(self, context: AbstractAsyncContextManager[T], entered: trio.Event) -> None:
        async with context as self.value:
            entered.set()
            await self._leave.wait()
        self._left.set()

    async def _close(self) -> None:
        self._leave.set()
        await self._left.wait()


def crash_image(path: Path, copy: Path) -> Path:
    """Copy what a kill at this moment would leave: the file and its log, no checkpoint, no farewell."""
    shutil.copyfile(path, copy)
    log = Path(f"{path}-wal")
    if log.exists():
        shutil.copyfile(log, f"{copy}-wal")
    return copy
