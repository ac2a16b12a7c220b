"""`telegram-bus demo`: a bot, a leader and two agents on this machine, without a token."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from telegram_bus.cli import faults
from telegram_bus.cli.faults import say
from telegram_bus.cli.terminal import clean, put
from telegram_bus.core.errors import BusError
from telegram_bus.sandbox.options import port

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from telegram_bus.cli.demo_bus import DemoBus

__all__ = ["add_parser"]

_EPILOG: Final = """\
Everything runs on 127.0.0.1 and in a temporary directory, and is gone when it ends.

exit codes:
  0  it ended, or the agent answered
  1  failed, for the reason on stderr
  2  usage

examples:
  telegram-bus demo                a page with two threads; Ctrl-C ends it
  telegram-bus demo --say hello    write to the first agent, print its answer
"""

_SHELL_AGENT: Final = r"""
echo "I am a shell script. Try: date, or count 5, or bye"
while read -r word rest; do
    case "$word" in
        date) date ;;
        count) i=0; while [ "$i" -lt "${rest:-3}" ] && [ "$i" -lt 100 ]; do i=$((i + 1)); echo "$i"; done ;;
        bye) echo "Goodbye."; exit 7 ;;
        *) echo "You said: $word $rest" ;;
    esac
done
"""

_ANSWER: Final = 30.0
"""Seconds for an answer; it takes a few hundredths."""

_LOOK: Final = 0.2


def add_parser(subparsers: Any) -> None:
    """Adds the command and its options."""
    parser = subparsers.add_parser(
        "demo", usage="telegram-bus demo [--say TEXT] [--port N]", description=__doc__, epilog=_EPILOG
    )
    parser.add_argument("--say", metavar="TEXT", help="write this to the first agent, print what comes back, and end")
    parser.add_argument("--port", type=port, default=0, metavar="N", help="the page's port (default: any free one)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Runs the demo until Ctrl-C, or for one message."""
    if arguments.say is not None and not arguments.say.strip():
        say("--say needs a text")
        return faults.USAGE
    from telegram_bus.cli.demo_bus import open_demo_bus  # noqa: PLC0415 - not needed for --help

    with _sigterm_as_ctrl_c(), _temporary_directory() as directory:
        say("starting a sandbox, a leader and two agents …")
        try:
            with open_demo_bus(directory, arguments.port) as bus:
                _start_agents(bus)
                if arguments.say is not None:
                    return _one_message(bus, arguments.say)
                return _until_ctrl_c(bus)
        except TimeoutError as error:
            raise BusError(str(error)) from error  # the reason, and exit code 1


def _start_agents(bus: DemoBus) -> None:
    from telegram_bus.cli.demo_bus import BUS  # noqa: PLC0415

    bus.start("echo", [sys.executable, "-m", "telegram_bus.cli.demo_agent"])
    bus.start("shell", [*BUS, "follower", "--name", "shell", "--", "sh", "-c", _SHELL_AGENT, "shell-agent"])


def _one_message(bus: DemoBus, text: str) -> int:
    thread = bus.thread_of("echo")
    say("the agent 'echo' has its thread; writing to it …")
    began = time.monotonic()
    seen = bus.person.say(text, thread)
    reply = bus.person.reply(thread, seen, _ANSWER)
    say(f"answered after {(time.monotonic() - began) * 1_000:.0f} ms")
    put(reply["text"])
    return faults.DONE


def _until_ctrl_c(bus: DemoBus) -> int:
    try:
        for name in ("echo", "shell"):
            bus.thread_of(name)
        for line in _what_to_try(bus):
            put(line)
        sys.stdout.flush()
        ended: set[str] = set()
        while True:
            time.sleep(_LOOK)
            for name, process in bus.processes.items():
                if process.poll() is not None and name not in ended:
                    ended.add(name)
                    say(_ended(name, process.returncode))
            if "sandbox" in ended:
                return faults.FAILED
    except KeyboardInterrupt:
        say("stopping everything …")
        return faults.DONE


def _what_to_try(bus: DemoBus) -> Iterator[str]:
    home, leader = bus.profile.home.root, bus.processes["leader"].pid
    yield ""
    yield f"  {clean(bus.person.address['page'])}   is the chat; open it in a browser."
    yield ""
    yield "  1. Write to 'echo', and press its buttons. It is a small Python program."
    yield "  2. Write 'date', 'count 5' or 'bye' to 'shell'. It is a shell script that knows nothing of Telegram."
    yield f"  3. Kill the leader: kill -KILL {leader}. Write again: a successor has taken over."
    yield "  4. In another terminal, give a program of yours a thread:"
    yield f"     {_command()} --home {home} follower --name mine -- sh -c 'while read -r x; do echo \"$x!\"; done'"
    yield ""
    yield f"  Who is there: {_command()} --home {home} status"
    yield "  Ctrl-C ends it all."
    yield ""


def _command() -> str:
    """How to call this program again: in a checkout it is not on the PATH."""
    if shutil.which("telegram-bus"):
        return "telegram-bus"
    beside = Path(sys.executable).with_name("telegram-bus")
    if not beside.exists():
        return f"{sys.executable} -m telegram_bus"
    return str(beside.relative_to(Path.cwd()) if beside.is_relative_to(Path.cwd()) else beside)


def _ended(name: str, status: int) -> str:
    if name == "leader":
        return "the leader is gone; its spare takes over, or a follower starts a successor"
    return f"the {name} ended with exit status {status}"


@contextmanager
def _temporary_directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="telegram-bus-demo-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Whoever ends the demo, it leaves no process behind: what comes while it stops changes nothing."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(_number: int, _frame: object) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
