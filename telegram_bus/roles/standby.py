"""Standing by: a process with everything imported and rehearsed takes a dead leader's place in milliseconds.

A leader that serves followers keeps such a spare beside it, because nearly all of a successor's start is imports
(trio, python-telegram-bot, our models: 0.5 s of CPU, benchmarks/failover.py). A person may stand another one by
(`telegram-bus leader --standby`), which then is the spare.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from telegram_bus import _version
from telegram_bus._version import __version__
from telegram_bus.core import identity
from telegram_bus.core.errors import NoLeader, StateError
from telegram_bus.home import Profile
from telegram_bus.locks import FileLock
from telegram_bus.roles.detached import start_leader_detached
from telegram_bus.roles.record import ENDED, read_leader
from telegram_bus.roles.settings import Settings

__all__ = ["Relevance", "keep_spare", "spare_of"]

log = logging.getLogger(__name__)

SPARE_AFTER: Final = 2.0
"""Seconds between a leader's start and that of its spare: whoever comes to its end at once needs none."""
SPARE_LOOK: Final = 5.0
SPARE_LAST: Final = 600.0
"""Seconds between two starts of a spare that ends each time, at most."""


def _package() -> tuple[int, int] | None:
    """Changes when another version is installed in this one's place."""
    try:
        status = Path(_version.__file__).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


@define(eq=False)
class Relevance:
    """Whether a spare is still what it was started for: the same settings, the same version, a bus that may run.

    It is made before the settings are read, so that a change in between is one too.
    """

    profile: Profile
    build: str
    _config: str = field(init=False)
    _package: object = field(init=False, factory=_package)

    def __attrs_post_init__(self) -> None:
        self._config = _digest(self.profile.config_toml)

    def lost_at_start(self) -> str | None:
        """As `lost`, for a spare that does not stand by yet: one is enough."""
        return "another one stands by" if FileLock.is_held(self.profile.standby_lock) else self.lost()

    def lost(self) -> str | None:
        """Why nobody needs the spare any more; None while it may be needed."""
        if self.profile.stopped.exists():
            return "the bus was stopped"
        if _digest(self.profile.config_toml) != self._config:
            return "the settings have changed"
        if _package() != self._package:  # what it has not imported yet would be of another version
            return "telegram_bus was updated"
        leader = read_leader(self.profile)
        if leader is not None and leader.state == ENDED:
            return "the leader has ended, and nobody misses it"
        if leader is not None and leader.protocol.runtime_build != self.build:
            return f"the leader is {leader.protocol.runtime_build}, and this is {self.build}"
        return None


def spare_of(profile: Profile) -> Relevance:
    """What a spare of this profile, run by this program, is of use for."""
    return Relevance(profile, identity.ours(__version__).runtime_build)


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

    A token command is not run for a spare: it may ask a person. A leader that is older than the installed package has
    none, since that would be another program.
    """
    if not settings.spare or not settings.store_token or settings.token_command is not None:
        await trio.sleep_forever()
    pause, next_pause = SPARE_AFTER, SPARE_LOOK
    package, said = _package(), ""
    while True:
        await trio.sleep(pause)
        try:
            if not wanted() or not profile.config_toml.exists() or _package() != package:
                pause = SPARE_AFTER
            elif FileLock.is_held(profile.standby_lock):
                pause = next_pause = SPARE_LOOK
            else:
                pause, next_pause = next_pause, min(next_pause * 2, SPARE_LAST)
                await start(profile, str(settings.interpreter))
        except (NoLeader, StateError, OSError) as error:  # without one a follower starts the successor
            if str(error) != said:
                log.warning("no spare leader was started: %s", error)
                said = str(error)
