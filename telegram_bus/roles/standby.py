"""Standing by: a process with everything imported and rehearsed takes a dead leader's place in milliseconds.

A leader that serves followers keeps such a spare beside it, because nearly all of a successor's start is imports
(trio, python-telegram-bot, our models: 0.5 s of CPU, benchmarks/failover.py). A person may stand another one by
(`telegram-bus leader --standby`), which then is the spare.
"""

from __future__ import annotations

import hashlib
import logging
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from telegram_bus.botapi.transport import BotApi
from telegram_bus.core.errors import BusError, NoLeader, StateError
from telegram_bus.home import Profile
from telegram_bus.locks import FileLock
from telegram_bus.roles.bot import BotFacts, learn_bot
from telegram_bus.roles.detached import start_leader_detached
from telegram_bus.roles.record import ENDED, LeaderRecord, read_leader
from telegram_bus.roles.settings import Settings
from telegram_bus.store import open_store

__all__ = ["Relevance", "keep_spare", "rehearse"]

log = logging.getLogger(__name__)

REHEARSAL: Final = 5.0
"""Seconds that a rehearsal may take; without a network it is left half done."""

SPARE_AFTER: Final = 2.0
"""Seconds between a leader's start and that of its spare: whoever comes to its end at once needs none."""
SPARE_LOOK: Final = 5.0
SPARE_LAST: Final = 600.0
"""Seconds between two starts of a spare that ends each time, at most."""


async def rehearse(settings: Settings, api: BotApi) -> BotFacts | None:
    """Do once, on files of our own, what is slow the first time that a process does it; what Telegram said of the bot.

    Whatever goes wrong here shows again when it matters.
    """
    with suppress(OSError, StateError), tempfile.TemporaryDirectory(prefix="telegram-bus-") as scratch:
        async with open_store(Path(scratch) / "rehearsal.sqlite3", holder="rehearsal") as store:
            await store.offset()
    with trio.move_on_after(REHEARSAL), suppress(BusError):
        return await learn_bot(api.call, settings.bot_id, settings.chat)
    return None


@define(eq=False)
class Relevance:
    """Whether a spare is still what it was started for: the same settings, the same version, a bus that may run."""

    profile: Profile
    build: str
    _config: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._config = _digest(self.profile.config_toml)

    def over(self, before: LeaderRecord | None) -> str | None:
        """Why a spare that has the locks does not lead: as `lost`, and where the leader `before` it is not missed."""
        if before is not None and before.state == ENDED:
            return "the leader has ended, and nobody misses it"
        return self.lost()

    def lost(self) -> str | None:
        """Why nobody needs the spare any more; None while it may be needed."""
        if self.profile.stopped.exists():
            return "the bus was stopped"
        if _digest(self.profile.config_toml) != self._config:
            return "the settings have changed"
        leader = read_leader(self.profile)
        if leader is not None and leader.protocol.runtime_build != self.build:
            return f"the leader is {leader.protocol.runtime_build}, and this is {self.build}"
        return None


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return "it is gone"


Start = Callable[[Profile, str], Awaitable[object]]


async def _start_spare(profile: Profile, interpreter: str) -> None:
    await start_leader_detached(profile, interpreter, spare=True)


async def keep_spare(
    profile: Profile, settings: Settings, *, wanted: Callable[[], bool], start: Start = _start_spare
) -> None:
    """Keep a spare leader ready for as long as it is `wanted`; does nothing where none could get the token by itself.

    A token command is not run for a spare: it may ask a person.
    """
    if not settings.spare or not settings.store_token or settings.token_command is not None:
        await trio.sleep_forever()
    pause, next_pause = SPARE_AFTER, SPARE_LOOK
    while True:
        await trio.sleep(pause)
        try:
            if not wanted():
                pause = SPARE_AFTER
            elif FileLock.is_held(profile.standby_lock):
                pause = next_pause = SPARE_LOOK
            else:
                pause, next_pause = next_pause, min(next_pause * 2, SPARE_LAST)
                await start(profile, str(settings.interpreter))
        except (NoLeader, StateError) as error:  # without one a follower starts the successor
            log.warning("no spare leader was started: %s", error)
