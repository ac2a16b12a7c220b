"""Each foreign suite runs once, against a sandbox of its own; many tests look at what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
import pytest

from telegram_bus.testing import Sandbox
from tests.clients import peers
from tests.clients.cafe import visit
from tests.clients.suite import Outcome, run_suite
from tests.clients.traffic import Traffic, read_traffic

SLOW = "open_period or close_date"


@attrs.frozen
class Run:
    """A run of a foreign suite: what became of its tests, and what went over the wire."""

    outcomes: dict[str, Outcome]
    traffic: Traffic


@pytest.fixture(scope="session")
def ptb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """python-telegram-bot's live tests of the bot and of forums."""
    python, source = peers.python(), peers.ptb_source()
    plugged = ("-p", "ptb_on_sandbox", "-o", "addopts=", "-W", "ignore")
    # Nine tests wait five seconds each for a poll to close: they run side by side, beside all others.
    parts = {
        "slow": [*plugged, "-n", "3", "-k", f"WithRequest and ({SLOW})", "tests/test_bot.py"],
        "fast": [*plugged, "-k", f"WithRequest and not ({SLOW})", "tests/test_bot.py", "tests/test_forum.py"],
    }
    with Sandbox() as sandbox, ThreadPoolExecutor() as threads:
        environment = {"BOT_INFO": json.dumps(_bot_info(sandbox))}
        running = [
            threads.submit(run_suite, python, source, arguments, environment, tmp_path_factory.mktemp(name))
            for name, arguments in parts.items()
        ]
        outcomes = {test_id: outcome for part in running for test_id, outcome in part.result().items()}
        yield Run(outcomes, read_traffic(sandbox))


@pytest.fixture(scope="session")
def telebot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """pyTelegramBotAPI's own tests of its bot."""
    python, folder = peers.python(), peers.telebot_source() / "tests"
    with Sandbox() as sandbox:
        environment = {
            "API_ROOT": sandbox.api_root,
            "TOKEN": sandbox.token,
            "CHAT_ID": str(sandbox.chat_id),
            "GROUP_ID": str(sandbox.forum_id),
        }
        arguments = ["-p", "telebot_on_sandbox", "-p", "no:asyncio", "-W", "ignore", "test_telebot.py"]
        outcomes = run_suite(python, folder, arguments, environment, tmp_path_factory.mktemp("telebot"))
        yield Run(outcomes, read_traffic(sandbox))


class Conversations:
    """Each program's conversation, held once, when somebody first asks for what it sent."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._held: dict[str, Traffic] = {}

    def traffic(self, program: str) -> Traffic:
        """What went over the wire; raises when the conversation goes wrong."""
        if program not in self._held:
            with Sandbox() as sandbox:
                visit(program, sandbox, self._scratch)
                self._held[program] = read_traffic(sandbox)
        return self._held[program]


@pytest.fixture(scope="session")
def conversations(tmp_path_factory: pytest.TempPathFactory) -> Conversations:
    """The conversations with the programs in `programs/`."""
    return Conversations(tmp_path_factory.mktemp("conversations"))


def _bot_info(sandbox: Sandbox) -> dict[str, str | int]:
    # The suite knows its own bots by these facts; ours are made up anew for each sandbox.
    username = f"@{sandbox.bot_username}"
    supergroup = sandbox.migrate(sandbox.group_id)
    sandbox.set_bot(supergroup)
    sandbox.rename_chat(supergroup, f">>> telegram.Bot(test) {username}")
    return {
        "token": sandbox.token,
        "name": "Sandbox Bot",
        "username": username,
        "chat_id": str(sandbox.chat_id),
        "super_group_id": str(supergroup),
        "forum_group_id": str(sandbox.forum_id),
        "channel_id": str(sandbox.forum_id),
        "subscription_channel_id": sandbox.forum_id,
        "payment_provider_token": "1:TEST:made-up",
        "base_url": f"{sandbox.api_root}/bot",
        "base_file_url": f"{sandbox.api_root}/file/bot",
    }
