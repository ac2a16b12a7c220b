"""A pytest plugin for python-telegram-bot's suite: its bots talk to the sandbox that BOT_INFO describes."""

from __future__ import annotations

import json
import os
import socket
from typing import Any

import pytest
from telegram import Bot

_INFO = json.loads(os.environ["BOT_INFO"])
_make = Bot.__init__


def _make_on_sandbox(self: Bot, token: str, *args: Any, **options: Any) -> None:
    _make(self, token, *args, **(options | {"base_url": _INFO["base_url"], "base_file_url": _INFO["base_file_url"]}))


def _resolve_nothing(host: str) -> str:
    raise socket.gaierror(f"{host}: no name is looked up here")


# The tests of webhooks do that, and would go on differently where there is a network.
socket.gethostbyname = _resolve_nothing
Bot.__init__ = _make_on_sandbox  # type: ignore[method-assign]


def pytest_configure(config: pytest.Config) -> None:
    """Know the marker of a plugin that would run failed tests again, and do without that plugin."""
    config.addinivalue_line("markers", "flaky: each test runs once here")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Replace the bots that the suite knows, before a test module asks for one."""
    from tests.auxil import ci_bots  # noqa: PLC0415 - the suite's own, which is on the path only now

    ci_bots.FALLBACKS[:] = [_INFO]
    ci_bots.BOT_INFO_PROVIDER._cached = _INFO
