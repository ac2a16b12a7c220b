"""A rehearsal: everything that a takeover consists of, done once on files of our own, without Telegram.

The first time a process does something costs it imports, generated code and cold caches: 25 ms of CPU for a takeover
with one follower (benchmarks/failover.py), which everybody would wait for.
"""

from __future__ import annotations

import gc
import logging
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, cast

import trio
from attrs import evolve

from telegram_bus import crash
from telegram_bus._version import __version__
from telegram_bus.botapi.poller import Order
from telegram_bus.botapi.transport import BotApi
from telegram_bus.core import identity
from telegram_bus.core.errors import BusError, StateError
from telegram_bus.home import Home, Profile, mint_secret
from telegram_bus.roles.bot import BotFacts, learn_bot
from telegram_bus.roles.leading import Leader
from telegram_bus.roles.lease import Lease
from telegram_bus.roles.member import Member
from telegram_bus.roles.seat import hold_seat
from telegram_bus.roles.settings import Settings
from telegram_bus.store import open_inbox, open_store
from telegram_bus.wire.endpoint import open_endpoint

__all__ = ["REHEARSAL", "rehearse"]

log = logging.getLogger(__name__)

REHEARSAL: Final = 5.0
"""Seconds that a rehearsal may take; without a network it is left half done."""

NAME: Final = "rehearsal"
CHAT: Final = 1  # a private chat, whose id is its person's
THREAD: Final = 2


async def rehearse(settings: Settings, api: BotApi, stop: trio.Event) -> BotFacts | None:
    """Do once what is slow the first time that a process does it; returns what Telegram said of the bot.

    Whatever goes wrong here shows again when it matters. `stop` cuts it short.
    """
    facts: BotFacts | None = None
    async with trio.open_nursery() as nursery:

        async def learn() -> None:
            nonlocal facts
            with trio.move_on_after(REHEARSAL):
                try:
                    facts = await learn_bot(api.call, settings.bot_id, settings.chat)
                except BusError as error:
                    log.debug("a spare did not learn who the bot is: %s", error)

        async def play() -> None:
            async with trio.open_nursery() as acts:
                acts.start_soon(learn)
                acts.start_soon(_play_in_silence, settings)
            nursery.cancel_scope.cancel("it was all done")

        nursery.start_soon(play)
        await stop.wait()
        nursery.cancel_scope.cancel("it was told to stop")
    gc.collect()
    gc.freeze()  # what is there now stays for good: no collection in the middle of a takeover looks at it
    return facts


async def _play_in_silence(settings: Settings) -> None:
    try:
        with (
            trio.move_on_after(REHEARSAL),
            _silence(),
            crash.unarmed(),
            tempfile.TemporaryDirectory(prefix="telegram-bus-") as scratch,
        ):
            await _play(settings, Home(Path(scratch)).profile(NAME))
    except* (OSError, StateError) as faults:  # a full disk, a path that is too long for a socket
        log.debug("a rehearsal broke off: %s", faults.exceptions[0])


@contextmanager
def _silence() -> Iterator[None]:
    """Nobody shall read of a leader that never was."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


class _Stage:
    """Stands in for Telegram: there is a thread for who wants one, and one update for it. All else takes for ever."""

    def __init__(self) -> None:
        self.is_set = trio.Event()
        self._polls = 0

    async def call(self, method: str, _params: Mapping[str, Any] | None = None, **_: Any) -> Any:
        if method != "createForumTopic":
            await trio.sleep_forever()
        return {"message_thread_id": THREAD, "name": NAME, "icon_color": 0}

    async def poll(self, _params: Mapping[str, Any], _window: float) -> Any:
        self._polls += 1
        if self._polls == 1:
            return []
        if self._polls > 2:
            await trio.sleep_forever()
        await self.is_set.wait()
        person = {"id": CHAT, "is_bot": False, "first_name": NAME}
        message = {
            "message_id": 3,
            "message_thread_id": THREAD,
            "is_topic_message": True,
            "date": int(time.time()),
            "chat": {"id": CHAT, "type": "private", "first_name": NAME},
            "from": person,
            "text": NAME,
        }
        return [{"update_id": 1, "message": message}]


async def _play(settings: Settings, profile: Profile) -> None:
    """A term with one follower, to which one update is delivered."""
    profile.ensure()
    settings = evolve(
        settings,
        chat=CHAT,
        allow=(CHAT,),
        socket=None,
        secret_file=None,
        spare=False,
        show_state=False,
        clean_up="keep",
    )
    secrets = mint_secret(profile.follower_secret), mint_secret(profile.operator_secret)
    lease = Lease(profile, NAME, time.time())
    stage = _Stage()
    async with open_store(profile.database, holder=NAME) as store:
        lease.epoch = store.epoch
        with open_endpoint(profile.leader_socket) as endpoint:
            leader = Leader(lease, settings, store, cast("BotApi", stage), endpoint, secrets, None, Order())
            async with trio.open_nursery() as nursery:
                await nursery.start(leader.run, trio.Event())
                nursery.start_soon(_follow, profile, stage.is_set)
                while not leader.intake.received or leader.term.deliveries.total_waiting():  # noqa: ASYNC110 - soon
                    await trio.sleep(0.01)
                nursery.cancel_scope.cancel("the play is over")


async def _follow(profile: Profile, seated: trio.Event) -> None:
    with hold_seat(profile, NAME) as seat:
        async with open_inbox(profile.inbox(seat.key)) as inbox, trio.open_nursery() as nursery:
            member = Member(
                profile=profile, seat=seat, inbox=inbox, identity=identity.ours(__version__), start_leader=False
            )
            nursery.start_soon(member.run)
            await member.session.wait_for(lambda session: session is not None)
            seated.set()
