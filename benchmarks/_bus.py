"""A whole bus for benchmarks: a sandbox, a profile whose followers have their threads already, a leader process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio
from attrs import frozen

from benchmarks._leader import SECRET
from telegram_bus.cli.asking import ask
from telegram_bus.core.bindings import Binding, Changes
from telegram_bus.core.errors import NoLeader
from telegram_bus.home import Home, Profile, atomic_write
from telegram_bus.store import open_store

__all__ = ["FIRST_THREAD", "UNLIMITED", "Place", "bind", "cpu_seconds", "leading", "memory", "one_line", "running"]

FIRST_THREAD = 1_000_001  # above any id that the sandbox gives out
UNLIMITED = "overall=1000000/1 private=1000000/1 group=1000000/1 typing=1000000/1 burst=1000000"  # as the sandbox is
START = 30.0  # seconds for a leader to serve
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


@frozen
class Place:
    """Where a bus lives; everything is below `root`."""

    root: Path

    @property
    def profile(self) -> Profile:
        return Home(self.root / "home").profile("default")

    @property
    def environ(self) -> dict[str, str]:
        """What its processes are started with: nothing of another bus, and no proxy before the sandbox."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TELEGRAM_")}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program has its bytecode
        return kept | {
            "TELEGRAM_BUS_HOME": str(self.root / "home"),
            "XDG_STATE_HOME": str(self.root / "state"),
            "NO_PROXY": "127.0.0.1",
            "TELEGRAM_BUS_LIMITS": UNLIMITED,
        }


def bind(place: Place, chat_id: int, keys: Sequence[str]) -> None:
    """Give each key a thread, in order from FIRST_THREAD, before anybody leads; the secret is that of benchmarks."""

    async def write() -> None:
        async with open_store(place.profile.database, holder="benchmark") as store, trio.open_nursery() as nursery:
            for number, key in enumerate(keys):
                row: Changes = [Binding(key, chat_id, FIRST_THREAD + number, key[:40], 0)]
                nursery.start_soon(store.note_threads, row)

    place.profile.ensure()
    atomic_write(place.profile.follower_secret, SECRET.encode() + b"\n")
    trio.run(write)


@contextmanager
def leading(place: Place, api_root: str, token: str, chat_id: int, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A leader process that polls; it is killed with the block, so that no follower has to leave first.

    Where followers come, `--no-spare` keeps a successor from taking its place then, and from the two cores meanwhile.
    """
    options = ["--api-root", api_root, "--chat", str(chat_id), *more]
    command = [sys.executable, "-m", "telegram_bus", "leader", *options]
    environ = place.environ | {"TELEGRAM_BOT_TOKEN": token}
    with subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_serving(place, process)
            yield process
        finally:
            process.kill()


def _wait_serving(place: Place, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START
    while time.monotonic() < deadline and process.poll() is None:
        try:
            status = ask(place.profile, "x.status.get", place.profile.follower_secret)
        except NoLeader:
            time.sleep(0.02)
            continue
        if status["pid"] == process.pid and status["state"] == "serving":
            return
        time.sleep(0.02)
    raise RuntimeError(f"the leader does not serve (exit status {process.poll()})")


@contextmanager
def running(place: Place, module: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process of ours on that bus, killed with the block; it talks in lines of JSON (`one_line`)."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, env=place.environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def one_line(process: subprocess.Popen[str]) -> Any:
    """The next thing that a process said."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"{process.args!r} ended with {process.wait()}")
    return json.loads(line)


def memory(pid: int) -> float:
    """The resident memory of a process, in MB."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / 1e6
    except FileNotFoundError:  # no Linux
        said = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout
        return int(said) * 1024 / 1e6


def cpu_seconds(pid: int) -> float:
    """The CPU time that a process has used, in seconds."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS
    except FileNotFoundError:
        said = subprocess.run(["ps", "-o", "time=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout
        seconds = 0.0
        for part in said.strip().split(":"):
            seconds = seconds * 60 + float(part)
        return seconds
