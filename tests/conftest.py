"""What holds for all tests."""

from __future__ import annotations

import os

# A spare leader comes at a time of its own, some seconds after a leader; tests of spares ask for one.
os.environ["TELEGRAM_BUS_SPARE"] = "no"
