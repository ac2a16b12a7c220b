"""What holds for all tests."""

from __future__ import annotations

import os

# A spare leader comes at a time of its own, some seconds after a leader; tests of spares ask for one.
os.environ["TELEGRAM_BUS_SPARE"] = "no"

# The sandbox has no limits unless a test switches them on; what a leader keeps to has tests of its own.
os.environ["TELEGRAM_BUS_LIMITS"] = "overall=1000000/1 private=1000000/1 group=1000000/1 typing=1000000/1 burst=1000000"
