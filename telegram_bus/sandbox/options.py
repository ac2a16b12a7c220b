"""The sandbox's options on the command line; light, so that `--help` is fast."""

from __future__ import annotations

import argparse

__all__ = ["add_options", "run"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the sandbox's options to a parser."""
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: any free one)")
    parser.add_argument("--json", action="store_true", help="print the addresses as one line of JSON")
    parser.add_argument("--until-eof", action="store_true", help="also end when standard input ends")


def run(options: argparse.Namespace) -> int:
    """Run the sandbox until it is ended. Returns the exit code."""
    from telegram_bus.sandbox.serve import run_sandbox  # noqa: PLC0415 - the server's imports are heavy

    return run_sandbox(options.port, as_json=options.json, until_eof=options.until_eof)
