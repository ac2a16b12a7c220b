"""A sandbox's state in a directory: written atomically while it runs, read at the next start, damage set aside."""

from __future__ import annotations

import hashlib
import json
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import trio

from telegram_bus.core.errors import StateError
from telegram_bus.locks import FileLock
from telegram_bus.sandbox.engine import Engine
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.snapshot import DamagedError, Snapshot, from_snapshot, take_snapshot

__all__ = ["Keeper", "KeepingError"]

FORMAT: Final = "telegram-bus sandbox"
VERSION: Final = 1
# Seconds from a change until it is written, and what a crash can lose; longer where writing takes long, so that it
# never takes more than a twentieth of the time.
PAUSE: Final = 0.5
SHARE: Final = 20


class KeepingError(Exception):
    """The directory cannot be used; the message says why."""


class Keeper:
    """A locked directory with `state.json` and `files/`. Close it when the sandbox has ended."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        """Make and lock the directory; raises KeepingError when that fails or another sandbox uses it.

        `say` gets what a person should know; it may be called from another thread.
        """
        self._folder = folder
        self._state = folder / "state.json"
        self._files = folder / "files"
        try:
            self._files.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = FileLock.try_lock(folder / "lock")
        except (OSError, StateError) as error:
            raise KeepingError(
                f"cannot keep the state in {folder}: {getattr(error, 'strerror', None) or error}"
            ) from error
        if lock is None:
            raise KeepingError(f"another sandbox keeps its state in {folder}")
        self._lock = lock
        self._say = say
        self._failing = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._lock.close()

    def load(self, rng: random.Random) -> World:
        """The kept world, or a new one where there is none, or where it is damaged (then it is set aside).

        Raises KeepingError for what a newer version wrote: that is not damage.
        """
        try:
            text = self._state.read_bytes()
        except FileNotFoundError:
            return World(rng)
        except OSError as error:
            raise KeepingError(f"cannot read {self._state}: {error.strerror}") from error
        try:
            return from_snapshot(_checked(text), _Blobs(self._files), rng)
        except DamagedError as error:
            aside = self._state.with_name(f"state.json.damaged-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}")
            self._state.replace(aside)
            self._say(f"The kept state was damaged ({error}). It is in {aside} now; this is a new sandbox.")
            return World(rng)

    async def run(self, engine: Engine, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Write what changes until cancelled, and once more then. What cannot be written is said and tried again."""
        self._try_save(take_snapshot(engine.world))
        task_status.started()
        written = _look(engine)
        try:
            while True:
                while _look(engine) == written:
                    await engine.wait_change()
                await trio.sleep(PAUSE)
                written = _look(engine)
                began = time.perf_counter()
                snapshot = take_snapshot(engine.world)
                text = _sealed(snapshot)
                took = time.perf_counter() - began
                # The writing itself waits for the disk, not for us.
                await trio.to_thread.run_sync(self._try_write, text, snapshot.blobs)
                await trio.sleep(max(0.0, took * SHARE - PAUSE))
        finally:
            self._try_save(take_snapshot(engine.world))

    def _try_save(self, snapshot: Snapshot) -> None:
        self._try_write(_sealed(snapshot), snapshot.blobs)

    def _try_write(self, text: bytes, blobs: Mapping[str, bytes]) -> None:
        try:
            self._write(text, blobs)
        except OSError as error:
            if not self._failing:
                self._say(f"The state cannot be written to {self._folder}: {error.strerror}. It is tried again.")
            self._failing = True
        else:
            self._failing = False

    def _write(self, text: bytes, blobs: Mapping[str, bytes]) -> None:
        there = {item.name for item in self._files.iterdir()}
        for name in blobs.keys() - there:
            _replace(self._files / name, blobs[name])
        _replace(self._state, text)
        for name in there - blobs.keys():
            with suppress(OSError):
                (self._files / name).unlink()


class _Blobs(Mapping[str, bytes]):
    # Contents of files, read when they are asked for and believed only when they are what they are called.
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, name: str) -> bytes:
        if not isinstance(name, str) or len(name) != 64 or not name.isalnum():
            raise DamagedError("a file has no proper name")
        try:
            content = (self._folder / name).read_bytes()
        except OSError as error:
            raise DamagedError(f"the file {name} is missing") from error
        if hashlib.sha256(content).hexdigest() != name:
            raise DamagedError(f"the file {name} is not what it was")
        return content

    def __iter__(self) -> Iterator[str]:
        return (item.name for item in self._folder.iterdir())

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _look(engine: Engine) -> tuple[int, int]:
    # The record changes with each poll, and a poll may confirm updates.
    return engine.world.changes.last, engine.record.version


def _sealed(snapshot: Snapshot) -> bytes:
    body = json.dumps(snapshot.graph, separators=(",", ":")).encode()
    head = {"format": FORMAT, "version": VERSION, "sha256": hashlib.sha256(body).hexdigest()}
    return json.dumps(head).encode() + b"\n" + body + b"\n"


def _checked(text: bytes) -> Any:
    head, _, body = text.partition(b"\n")
    try:
        facts = json.loads(head)
        version, seal = facts["version"], facts["sha256"]
        if facts["format"] != FORMAT or not isinstance(version, int):
            raise DamagedError("it is no state of a sandbox")
    except (ValueError, LookupError, TypeError) as error:
        raise DamagedError("its first line cannot be read") from error
    if version > VERSION:
        raise KeepingError(f"the kept state has version {version}, this program knows {VERSION}: update it")
    if hashlib.sha256(body.removesuffix(b"\n")).hexdigest() != seal:
        raise DamagedError("it is incomplete or was altered")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DamagedError("it is no JSON") from error


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
