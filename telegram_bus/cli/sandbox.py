"""`telegram-bus sandbox`: a Bot API server on this machine, with a chat page, for people without a token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from telegram_bus.sandbox.options import add_options, run

if TYPE_CHECKING:
    import argparse

__all__ = ["add_parser"]

_USAGE: Final = """\
telegram-bus sandbox [--port PORT] [--data DIR] [--json]
       telegram-bus sandbox --script FILE [-- BOT …]"""

_EPILOG: Final = """\
Ctrl-C ends it. With --script it plays what people do, checks what the bot does, prints the bot's answers as JSON lines
and ends; docs/sandbox.md describes the steps. --json prints one line: {api_root, page, token, chat_id, forum_id,
group_id, bot_id, bot_username, pid}.

exit codes:
  0  it was told to end, or the script went through
  1  the bot failed an expectation, ended, or did not poll in time;
     or the port cannot be used
  2  usage; the script cannot be played, or the directory cannot be used

examples:
  telegram-bus sandbox --port 8081 --data my-sandbox
  telegram-bus sandbox --script tea_bot.jsonl -- python tea_bot.py
"""


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the program's parser."""
    parser = subparsers.add_parser(
        "sandbox",
        help="a Bot API server on this machine, with a chat page",
        usage=_USAGE,
        epilog=_EPILOG,
        description="Runs a strict Bot API server on 127.0.0.1 with a chat page. It talks to nobody: the bot, its "
        "token and the people are made up, and all is forgotten when it ends.",
    )
    add_options(parser)
    parser.set_defaults(run=run)
