"""Running a leader: first the locks, then the store, then the socket, then its term; closed in the other order."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio

from telegram_bus import crash, home
from telegram_bus import log as logs
from telegram_bus.botapi.poller import Order
from telegram_bus.botapi.transport import BotApi, open_api
from telegram_bus.core.errors import single_fault
from telegram_bus.roles.bell import open_bell
from telegram_bus.roles.bot import BotFacts
from telegram_bus.roles.leadership import hold_leadership
from telegram_bus.roles.leading import STOPPED, Leader, StopReason
from telegram_bus.roles.lease import Lease
from telegram_bus.roles.locking import NotNeeded, Standby
from telegram_bus.roles.record import read_leader
from telegram_bus.roles.settings import Settings, store_settings
from telegram_bus.roles.standby import Relevance
from telegram_bus.roles.term import Term
from telegram_bus.store import open_store
from telegram_bus.wire.endpoint import open_endpoint

__all__ = ["StopReason", "run_leader"]

log = logging.getLogger(__name__)


async def run_leader(  # noqa: PLR0913 - each is one option of the command
    profile: home.Profile,
    settings: Settings,
    *,
    detached: bool = False,
    standby: bool | Relevance = False,
    report: Callable[[str], None] = log.info,
    stop: trio.Event | None = None,
    replace: bool = False,
    order: Order = Order(),  # noqa: B008 - it cannot be changed
    task_status: trio.TaskStatus[Term] = trio.TASK_STATUS_IGNORED,
) -> StopReason:
    """Lead until `stop` is set, an operator asks, a detached leader has lingered long enough, or the lease is lost.

    With `replace` a leader that runs is asked to end first. A `standby` waits until there is none, and a spare (its
    Relevance) only for as long as it is of use. `order` is for this leader, not for its successors.
    Returns why it ended. `report` gets a line for a person now and then. Started, with its term, once it answers
    requests. Raises LeadershipLost where another leads or took over, StateError and SettingsError for what lies in
    the profile.
    """
    stop = trio.Event() if stop is None else stop
    before = None if detached else _mark(profile)  # a person wants this one to lead, whatever was wanted before
    spare = standby if isinstance(standby, Relevance) else None
    if spare is not None and (reason := spare.lost_at_start()):
        return reason
    with single_fault():
        async with open_api(settings.token.reveal(), root=settings.api_root, proxy=settings.proxy) as api:
            facts = await _rehearse(settings, api, stop) if standby else None
            if spare is not None and (reason := spare.lost_at_start()):  # a rehearsal may take its time
                return reason
            with open_bell(profile) as bell:
                waiting = Standby(bell, spare.lost if spare is not None else lambda: None)
                try:
                    async with hold_leadership(
                        profile,
                        settings,
                        standby=waiting if standby else False,
                        replace=replace,
                        report=report,
                        stop=stop,
                    ) as lease:
                        if _mark(profile) not in (None, before):  # since we were started: a person wants it so
                            return STOPPED
                        if spare is not None and (reason := spare.lost()):
                            return reason
                        async with _open_term(lease, settings, api, order, detached, report) as leader:
                            if before is not None and _mark(profile) == before:
                                profile.stopped.unlink(missing_ok=True)  # only now: what cannot lead leaves it alone
                            leader.opened = bell.ring
                            if facts is not None:
                                leader.term.bot = facts  # and asked for anew: they may be days old
                            return await leader.run(stop, task_status)
                except NotNeeded as reason:
                    log.info("waits no more for the leadership: %s", reason)
                    return str(reason)


def _mark(profile: home.Profile) -> tuple[int, int] | None:
    """Which mark says that the bus is stopped; each stop makes another file."""
    try:
        status = profile.stopped.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


@asynccontextmanager
async def _open_term(
    lease: Lease,
    settings: Settings,
    api: BotApi,
    order: Order,
    detached: bool,
    report: Callable[[str], None],
) -> AsyncIterator[Leader]:
    """The next epoch in the store and a socket, open until the block ends, and the leader that works with them."""
    profile = lease.profile
    before = read_leader(profile)
    after = before.epoch if before else 0
    async with open_store(profile.database, holder=lease.instance, after_epoch=after) as store:
        lease.epoch = store.epoch
        crash.point("after-begin")
        secrets = _secrets(profile, settings)  # and only now, as below
        if profile.config_toml.exists():  # and only now: what cannot lead leaves the settings alone
            store_settings(profile, settings)
        crash.point("after-epoch")
        if store.notice:
            report(store.notice)
        with open_endpoint(settings.socket or profile.leader_socket) as endpoint:
            linger = settings.linger if detached else None
            leader = Leader(lease, settings, store, api, endpoint, secrets, linger, order)
            if store.notice:
                leader.notices.say(store.notice)
            yield leader


async def _rehearse(settings: Settings, api: BotApi, stop: trio.Event) -> BotFacts | None:
    from telegram_bus.roles.rehearsal import rehearse  # noqa: PLC0415 - it needs what a follower consists of, too

    return await rehearse(settings, api, stop)


def _secrets(profile: home.Profile, settings: Settings) -> tuple[str, str]:
    """The followers' secret and the operator's; followers find theirs in the profile, wherever it came from."""
    if settings.secret_file is not None:
        given = home.mint_secret(settings.secret_file)
        home.atomic_write(profile.follower_secret, given.encode() + b"\n")
    follower, operator = (home.mint_secret(path) for path in (profile.follower_secret, profile.operator_secret))
    logs.hide(follower, operator)
    return follower, operator
