"""`telegram-bus sandbox`: a Bot API server on this machine, with a chat page, for people without a token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from telegram_bus.sandbox.options import add_options, run

if TYPE_CHECKING:
    import argparse

__all__ = ["add_parser"]


def add_parser(subparsers: argparse._SubParsersAction[Any]) -> None:
    """Add the command to the program's parser."""
    parser = subparsers.add_parser(
        "sandbox",
        help="a Bot API server on this machine, with a chat page",
        description="Runs a strict Bot API server on 127.0.0.1 with a chat page. It talks to nobody: the bot, its "
        "token and the people are made up, and all is forgotten when it ends.",
    )
    add_options(parser)
    parser.set_defaults(run=run)
