"""`python -m telegram_bus.sandbox`: the sandbox without the rest of the command line."""

from __future__ import annotations

import argparse
import sys

from telegram_bus.sandbox.options import add_options, run

__all__ = ["main"]


def main() -> int:
    """Run the sandbox with the process's arguments."""
    parser = argparse.ArgumentParser(prog="python -m telegram_bus.sandbox", description="A Bot API server of your own.")
    add_options(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
