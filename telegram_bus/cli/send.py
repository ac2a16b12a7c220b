"""`telegram-bus send`: says one thing in the thread of a name, from a script or by hand."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from telegram_bus.cli import faults
from telegram_bus.cli.asking import profile_of
from telegram_bus.cli.faults import say
from telegram_bus.cli.terminal import put
from telegram_bus.core.errors import SettingsError
from telegram_bus.core.threads import slug

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from telegram_bus.agent import Bus, SentMessage
    from telegram_bus.home import Profile

__all__ = ["add_parser"]

_EPILOG: Final = """\
The text stands behind the options, or comes from stdin. What is too long for one message becomes several, and beyond 8
a file. The ids of the messages are printed, one a line.

With --stream the message grows while stdin is being read: for a program that thinks aloud. With --once a script that
runs again sends nothing again: what was sent under that name in the last 48 h is printed.

NAME is a follower as any other, with a thread of its own. One that runs has its thread for itself.

exit codes:
  0  it was sent
  1  Telegram refused it or its outcome is not known
  2  usage
  4  the leader refused
  5  the time is over

examples:
  telegram-bus send --name backup "The backup is done."
  make report | telegram-bus send --name build --once "report $BUILD"
  telegram-bus send --name build --file report.pdf --file log.txt "Build 17"
  llm "why is the sky blue" | telegram-bus send --name sky --stream
"""

_PATIENCE: Final = 60.0
_PIECE: Final = 1 << 16


def add_parser(subparsers: Any) -> None:
    """Adds the command and its options."""
    parser = subparsers.add_parser(
        "send", usage="telegram-bus send --name NAME [OPTION …] [TEXT]", description=__doc__, epilog=_EPILOG
    )
    parser.add_argument("--name", required=True, help="whose thread; also the key under which it is found again")
    parser.add_argument("--markdown", action="store_true", help="the text is Markdown")
    parser.add_argument("--html", action="store_true", help="the text has Telegram's HTML tags")
    parser.add_argument("--stream", action="store_true", help="show the text while it comes from stdin")
    parser.add_argument(
        "--file", action="append", default=[], metavar="PATH", help="send this file, with the text as its caption"
    )
    parser.add_argument("--silent", action="store_true", help="without a sound")
    parser.add_argument("--once", metavar="KEY", help="send it once in 48 h under this name of your choice")
    parser.add_argument(
        "--wait",
        type=float,
        default=_PATIENCE,
        metavar="SECONDS",
        help="give up after so long (60), but not with --stream",
    )
    parser.add_argument("--no-start", action="store_true", help="wait for a leader, but start none")
    parser.add_argument(
        "--json", action="store_true", help="one JSON object a line: how far files are, and the messages"
    )
    parser.add_argument(
        "text", nargs="?", metavar="TEXT", help="what to say; without it, or as -, it is read from stdin"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Sends it and prints what it became."""
    _check(arguments)
    text = "" if arguments.stream else _text_of(arguments)
    if not arguments.stream and not arguments.file and not text.strip():
        raise SettingsError("there is nothing to say: give a TEXT, or write it to stdin")
    for path in arguments.file:
        Path(path).open("rb").close()  # what cannot be read shall not make a thread
    import trio  # noqa: PLC0415 - the rest of the program is only worth loading now

    message = trio.run(_send, profile_of(arguments), arguments, text)
    if message is not None:
        for one in message:
            put(json.dumps(_facts(one)) if arguments.json else str(one.message_id))
    return faults.DONE


def _check(arguments: argparse.Namespace) -> None:
    if not arguments.name.strip():
        raise SettingsError("--name is empty: say whose thread it is")
    if arguments.markdown and arguments.html:
        raise SettingsError("--markdown and --html do not go together: a text is one of them")
    if arguments.stream and (arguments.text not in (None, "-") or arguments.file or arguments.html):
        raise SettingsError("--stream takes plain text or Markdown from stdin, and nothing else")
    if arguments.html and len(arguments.file) > 1:
        raise SettingsError("--html does not go with several files: their caption is plain, or Markdown")
    if len(arguments.file) > 10:
        raise SettingsError(f"--file is given {len(arguments.file)} times: an album has 10 files at most")


def _text_of(arguments: argparse.Namespace) -> str:
    if arguments.text not in (None, "-"):
        return str(arguments.text)
    if arguments.text is None and arguments.file:
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "replace").rstrip("\n")


async def _send(profile: Profile, arguments: argparse.Namespace, text: str) -> tuple[SentMessage, ...] | None:
    import trio  # noqa: PLC0415

    from telegram_bus.agent import join  # noqa: PLC0415

    with _free_seat(profile, arguments.name), trio.CancelScope() as everything:
        if not arguments.stream:
            everything.deadline = trio.current_time() + arguments.wait
        async with join(
            arguments.name, profile=profile.name, home=profile.home.root, start_leader=not arguments.no_start
        ) as bus:
            if arguments.stream:
                return await _stream(bus, arguments)
            if arguments.file:
                return await _send_files(bus, arguments, text)
            mode: Literal["HTML"] | None = "HTML" if arguments.html else None
            sent = await bus.send(
                text, markdown=arguments.markdown, parse_mode=mode, silent=arguments.silent, once=arguments.once
            )
            return sent.parts
    raise trio.TooSlowError(f"it was not sent within {arguments.wait:g} s: telegram-bus status says why")


async def _stream(bus: Bus, arguments: argparse.Namespace) -> tuple[SentMessage, ...] | None:
    import codecs  # noqa: PLC0415

    import trio  # noqa: PLC0415

    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    async with bus.stream(markdown=arguments.markdown, silent=arguments.silent, once=arguments.once) as stream:
        while data := await trio.to_thread.run_sync(os.read, sys.stdin.fileno(), _PIECE, abandon_on_cancel=True):
            await stream.write(decoder.decode(data))
        await stream.write(decoder.decode(b"", final=True))
    return None if stream.message is None else stream.message.parts


async def _send_files(bus: Bus, arguments: argparse.Namespace, text: str) -> tuple[SentMessage, ...]:
    def progress(sent: int, size: int) -> None:
        if arguments.json:
            put(json.dumps({"event": "progress", "sent": sent, "size": size}))
        elif sys.stderr.isatty():
            say(f"{100 * sent // max(1, size)} % of {size / 1e6:.1f} MB")

    caption = text or None
    paths = [Path(one) for one in arguments.file]
    if len(paths) == 1:
        mode: Literal["HTML"] | None = "HTML" if arguments.html else None
        sent = await bus.send_file(
            paths[0],
            caption=caption,
            markdown=arguments.markdown,
            parse_mode=mode,
            silent=arguments.silent,
            once=arguments.once,
            progress=progress,
        )
        return (sent,)
    from telegram_bus.agent import Media  # noqa: PLC0415

    album = [Media(path, "document") for path in paths]
    return await bus.send_album(
        album,
        caption=caption,
        markdown=arguments.markdown,
        silent=arguments.silent,
        once=arguments.once,
        progress=progress,
    )


@contextmanager
def _free_seat(profile: Profile, name: str) -> Iterator[None]:
    """Refuse a name that a live follower has: joining under it would make one more thread."""
    from telegram_bus.roles.seat import hold_seat  # noqa: PLC0415

    profile.ensure()
    with hold_seat(profile, name) as seat:
        taken = seat.key != slug(name)
    if taken:
        raise SettingsError(f"{name!r} runs, and its thread is its own: let it say it, or take another --name")
    yield


def _facts(message: SentMessage) -> dict[str, Any]:
    return {
        "event": "sent",
        "chat_id": message.chat_id,
        "message_id": message.message_id,
        "thread_id": message.thread_id,
    }
