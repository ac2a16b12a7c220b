"""For tests of bots: `Sandbox` runs a Bot API server in a process of its own and acts as the people who use the bot.

Needs nothing but the standard library, and blocks: from Trio, call it through `trio.to_thread.run_sync`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from telegram_bus.sandbox.client import Client, SandboxError

__all__ = ["Sandbox", "SandboxError"]

START = 30.0  # seconds for the process to come up, on a machine that is busy
END = 10.0  # seconds for it to end in order
# The package is found wherever this process found it, whatever the working directory.
_CODE = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from telegram_bus.sandbox.__main__ import main; sys.exit(main())"
)


class Sandbox(Client):
    """A sandbox in a process of its own, as a context manager; it ends with the block, and with this process.

    `options` are those of `telegram-bus sandbox`. Entering raises SandboxError when it does not start.
    """

    def __init__(self, *options: str) -> None:
        super().__init__({})
        self._options = options
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        root = str(Path(__file__).resolve().parent.parent)
        command = [sys.executable, "-c", _CODE, root, "--json", "--until-eof", *self._options]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
        try:
            self._move_in(_read_address(self._process))
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(END)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            stream.close()


def _read_address(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    watchdog = threading.Timer(START, process.kill)
    watchdog.start()
    try:
        line = process.stdout.readline()
    finally:
        watchdog.cancel()
    if not line:
        raise SandboxError(f"the sandbox did not start within {START} s (exit code {process.wait()})")
    address: dict[str, Any] = json.loads(line)
    return address
