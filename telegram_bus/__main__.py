"""The command line: `python -m telegram_bus` is the same as `telegram-bus`."""

from __future__ import annotations

import sys

from telegram_bus.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
