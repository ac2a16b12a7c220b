"""Playing a script beside a running sandbox: the bot's program, the output, the exit code."""

# ruff: noqa: T201 - the output is what this is for

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from telegram_bus.sandbox.client import Client
from telegram_bus.sandbox.player import FailedError, Player
from telegram_bus.sandbox.script import ScriptError, Step, read_script

__all__ = ["Scenario"]

END: Final = 5.0  # seconds that the bot's program has to end in order

Json = dict[str, Any]


@attrs.define
class Scenario:
    """A script, how many seconds the bot has to begin polling, and the bot's command (empty: started by others)."""

    path: Path
    bot_within: float
    command: list[str]
    steps: list[Step] = attrs.field(factory=list)

    def read(self) -> None:
        """Read the script; raises ScriptError."""
        self.steps = read_script(self.path)

    async def play(self, address: Json) -> int:
        """Play it and print what the bot does; returns 0, 1 when the bot failed, 2 when the script cannot go on."""
        _emit({"event": "address", **address})
        try:
            async with _running(self.command, address) as bot:
                # Cancelled, we end, and the thread with us.
                await trio.to_thread.run_sync(self._play, address, bot, abandon_on_cancel=True)
        except FailedError as failure:
            _emit({"event": "failed", "line": failure.line, "expected": failure.expected, "instead": failure.instead})
            print(f"{self.path}, {failure}", file=sys.stderr)
            return 1
        except ScriptError as error:
            print(f"telegram-bus: {error}", file=sys.stderr)
            return 2
        _emit({"event": "end", "steps": len(self.steps)})
        return 0

    def _play(self, address: Json, bot: trio.Process | None) -> None:
        def check() -> None:
            # A process of Trio's is only asked in Trio's thread.
            code = None if bot is None else trio.from_thread.run_sync(lambda: bot.returncode)
            if code is not None:
                raise FailedError(0, {"expect": "running"}, f"the bot ended with exit code {code}")

        player = Player(Client(address), _emit, check)
        player.wait_for_bot(self.bot_within)
        player.play(self.steps)


@asynccontextmanager
async def _running(command: list[str], address: Json) -> AsyncIterator[trio.Process | None]:
    if not command:
        yield None
        return
    words = [_filled(word, address) for word in command]
    environment = {**os.environ, "TELEGRAM_BOT_TOKEN": address["token"], "TELEGRAM_BUS_API_ROOT": address["api_root"]}
    try:
        # Our standard output is for the answers alone; a group of its own, so that its children end with it.
        process = await trio.lowlevel.open_process(
            words, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True
        )
    except OSError as error:
        raise ScriptError(f"cannot run {words[0]}: {error.strerror}") from error
    try:
        yield process
    finally:
        with trio.CancelScope(shield=True):
            await _end(process)


async def _end(process: trio.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with trio.move_on_after(END):
        await process.wait()
    # Also what the program left behind.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def _filled(word: str, address: Json) -> str:
    for name in ("api_root", "token", "chat_id", "forum_id", "group_id"):
        word = word.replace("{" + name + "}", str(address[name]))
    return word


def _emit(line: Json) -> None:
    print(json.dumps(line, ensure_ascii=False), flush=True)
