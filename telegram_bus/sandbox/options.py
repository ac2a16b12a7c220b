"""The sandbox's options on the command line; light, so that `--help` is fast."""

# ruff: noqa: T201 - says what is wrong with the options

from __future__ import annotations

import argparse
import sys
from pathlib import Path

__all__ = ["add_options", "port", "run"]


def port(text: str) -> int:
    """A port's number, 0 for any free one; raises argparse's error, which says what is one."""
    if text.isascii() and text.isdecimal() and len(text) < 6 and int(text) < 65_536:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port: 1 to 65535, or 0 for any free one")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the sandbox's options to a parser."""
    parser.add_argument(
        "--port", type=port, default=0, metavar="PORT", help="port on 127.0.0.1 (default: any free one)"
    )
    parser.add_argument("--json", action="store_true", help="print the addresses as one line of JSON")
    parser.add_argument("--until-eof", action="store_true", help="also end when standard input ends")
    parser.add_argument("--data", type=Path, metavar="DIR", help="keep the state there across restarts")
    parser.add_argument("--script", type=Path, metavar="FILE", help="play a scenario, print the bot's answers, and end")
    parser.add_argument(
        "--bot-within",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="with --script: how long to wait until the bot polls (60)",
    )
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="with --script: the bot to run, after --")


def run(options: argparse.Namespace) -> int:
    """Run the sandbox until it is ended. Returns the exit code."""
    from telegram_bus.sandbox.scenario import Scenario  # noqa: PLC0415
    from telegram_bus.sandbox.serve import run_sandbox  # noqa: PLC0415 - the server's imports are heavy

    if options.command and options.script is None:
        print("telegram-bus: a bot's command goes with --script FILE", file=sys.stderr)
        return 2
    return run_sandbox(
        options.port,
        as_json=options.json,
        until_eof=options.until_eof,
        data=options.data,
        scenario=options.script and Scenario(options.script, options.bot_within, options.command),
    )
