"""The leader: holds the bot, serves the bus, polls Telegram; all of it ends when its scope is cancelled."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from telegram_bus import crash, home
from telegram_bus import log as logs
from telegram_bus._version import __version__
from telegram_bus.botapi.poller import Order, Renewal, run_poller
from telegram_bus.botapi.polling import PollState
from telegram_bus.botapi.transport import BotApi, open_api
from telegram_bus.core import admission, identity, outcomes
from telegram_bus.core.envelopes import Ack, Envelope
from telegram_bus.core.errors import StateError, single_fault
from telegram_bus.core.permissions import repeatable
from telegram_bus.core.registry import Member, Registry
from telegram_bus.core.routing import Rules
from telegram_bus.roles import leadership
from telegram_bus.roles.absences import Absences
from telegram_bus.roles.audit import Audit
from telegram_bus.roles.bot import BotFacts, hindrances, learn_bot
from telegram_bus.roles.calls import Calls
from telegram_bus.roles.clean_up import CleanUps
from telegram_bus.roles.deliveries import Deliveries
from telegram_bus.roles.dressing import DressingSender
from telegram_bus.roles.files import FileLimits, Files
from telegram_bus.roles.hearing import watch_clocks, watch_hearing
from telegram_bus.roles.intake import Intake
from telegram_bus.roles.links import Links
from telegram_bus.roles.lobby import LobbyDesk
from telegram_bus.roles.notices import Notices
from telegram_bus.roles.record import ENDED
from telegram_bus.roles.requests import Requests
from telegram_bus.roles.settings import Settings, store_settings
from telegram_bus.roles.standby import Relevance, keep_spare, rehearse
from telegram_bus.roles.term import Term, now_ms
from telegram_bus.roles.threads import Missing, Threads
from telegram_bus.roles.topic_names import wanted_name
from telegram_bus.roles.visibility import Visibility
from telegram_bus.roles.windows import Windows
from telegram_bus.store import Store, open_store
from telegram_bus.wire.endpoint import Endpoint, open_endpoint
from telegram_bus.wire.server import serve_bus

if TYPE_CHECKING:
    from telegram_bus.roles.icons import Icons
    from telegram_bus.roles.thread_care import ThreadCare

__all__ = ["StopReason", "run_leader"]

log = logging.getLogger(__name__)

StopReason = str
"""Why a leader ended, for people."""

STOPPED: Final = "an operator stopped it"
TOLD: Final = "it was told to stop"

MISSED_FOR: Final = 60.0
"""Seconds after the last follower was here in which a leader that was told to end (or was frozen) is missed."""

PRUNE_EVERY: Final = 1.0  # protocol section 10
PURGE_EVERY: Final = 3_600.0
DRAIN_LIMIT: Final = 1.0  # a leader that is told to end is gone in less than 2 s


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
    if not detached:
        profile.stopped.unlink(missing_ok=True)
    spare = standby if isinstance(standby, Relevance) else None
    if spare is not None and (reason := spare.lost_at_start()):
        return reason
    with single_fault():
        async with open_api(settings.token.reveal(), root=settings.api_root, proxy=settings.proxy) as api:
            facts = await rehearse(settings, api, stop) if standby else None
            if spare is not None and (reason := spare.lost_at_start()):  # a rehearsal may take its time
                return reason
            try:
                async with leadership.hold_leadership(
                    profile,
                    settings,
                    standby=bool(standby),
                    replace=replace,
                    report=report,
                    lost_relevance=spare.lost if spare is not None else lambda: None,
                    stop=stop,
                ) as lease:
                    if profile.stopped.exists():  # since we were started: nobody must undo what a person wants
                        return STOPPED
                    before = leadership.read_leader(profile)
                    if spare is not None and (reason := spare.lost()):
                        return reason
                    secrets = _secrets(profile, settings)
                    after = before.epoch if before else 0
                    async with open_store(profile.database, holder=lease.instance, after_epoch=after) as store:
                        lease.epoch = store.epoch
                        if profile.config_toml.exists():  # and only now: what cannot lead leaves the settings alone
                            store_settings(profile, settings)
                        crash.point("after-epoch")
                        if store.notice:
                            report(store.notice)
                        with open_endpoint(settings.socket or profile.leader_socket) as endpoint:
                            linger = settings.linger if detached else None
                            leader = _Leader(lease, settings, store, api, endpoint, secrets, linger, order)
                            if facts is not None:
                                leader.term.bot = facts  # and asked for anew: they may be days old
                            if store.notice:
                                leader.notices.say(store.notice)
                            return await leader.run(stop, task_status)
            except leadership.NotNeeded as reason:
                log.info("waits no more for the leadership: %s", reason)
                return str(reason)


def _secrets(profile: home.Profile, settings: Settings) -> tuple[str, str]:
    """The followers' secret and the operator's; followers find theirs in the profile, wherever it came from."""
    if settings.secret_file is not None:
        given = home.mint_secret(settings.secret_file)
        home.atomic_write(profile.follower_secret, given.encode() + b"\n")
    follower, operator = (home.mint_secret(path) for path in (profile.follower_secret, profile.operator_secret))
    logs.hide(follower, operator)
    return follower, operator


class _Leader:
    """What one term is made of, and the tasks that it consists of."""

    def __init__(
        self,
        lease: leadership.Term,
        settings: Settings,
        store: Store,
        api: BotApi,
        endpoint: Endpoint,
        secrets: tuple[str, str],
        linger: float | None,
        order: Order,
    ) -> None:
        self.lease, self.settings, self.store, self.api = lease, settings, store, api
        self.endpoint, self.linger, self.order = endpoint, linger, order
        self.identity = identity.ours(__version__)
        self.registry = Registry()
        self.windows = Windows(store.spent, now_ms)
        self.sender = DressingSender(api, repeatable=repeatable, limits=settings.limits, memory=self.windows)
        self.links = Links()
        self.term = Term(
            profile=lease.profile,
            store=store,
            registry=self.registry,
            threads=Threads(store=store, chat_id=settings.chat, call=self.sender.call, now_ms=now_ms),
            calls=Calls(
                store=store,
                sender=self.sender,
                now_ms=now_ms,
                files=Files(
                    profile=lease.profile,
                    call=self.sender.call,
                    api=api,
                    owners=store,
                    now_ms=now_ms,
                    limits=FileLimits.of(settings.api_root, settings.file_limit, settings.folder_limit),
                ),
            ),
            deliveries=Deliveries(
                store=store, members=self.registry, forward=self._forward, secret=secrets[0], now_ms=now_ms
            ),
            links=self.links,
            bot=BotFacts(id=settings.bot_id),
            lost=lambda: lease.lost is not None,
            keep=settings.keep,
            pid=os.getpid(),
        )
        # a person who pressed a button waits for it
        self.term.keyboards.edit = lambda key, params, chat: self.sender.call(
            "editMessageText", params, chat, owner=key, urgency="click", patient=True
        )
        self.notices = Notices(chat_id=settings.chat, call=partial(self.sender.call, patient=True))
        self.sender.parked.report = self.notices.say
        self.absences = Absences(
            store=store,
            threads=self.term.threads,
            members=self.registry,
            deliveries=self.term.deliveries,
            notices=self.notices,
            now_ms=now_ms,
            expire=settings.expire,
        )
        threads = self.term.threads
        threads.wanted = partial(wanted_name, settings.thread_names)
        threads.say = self.notices.say
        threads.move, threads.named = self.term.places.move, self.term.places.note_name
        threads.serving = lambda: (state := self.term.polling.value) is not None and state.state == "serving"
        self.visibility = Visibility(threads=threads)
        self.clean_ups = self.term.clean_ups = CleanUps(
            threads=threads,
            members=self.registry,
            waiting=self.term.deliveries.waiting,
            profile=lease.profile,
            leading=self.term.leading,
            policy=settings.clean_up,
            dead=settings.clean_up_dead,
        )
        self.term.thread_care = self._thread_care
        self.term.deliveries.aside = self.absences.set_aside
        self.term.away_since = self.absences.since
        self.term.deliveries.ails = self._note_storage
        self.renewal = Renewal()
        self.used_at = -MISSED_FOR
        self.lobby = LobbyDesk(term=self.term, rules=self._rules, call=self.sender.call, migrate=self._migrate)
        self.lobby.bind = self._give_thread
        outbox = self.term.calls.outbox
        outbox.passage.thread_missing, outbox.passage.chat_migrated = self._thread_missing, self._migrated
        self.lobby.opened, self.lobby.closed = outbox.parking.opened, outbox.parking.closed
        self.term.buttons.register(outcomes.AGAIN, outbox.doubts.pressed)
        self.sender.dress = self._dress
        self.term.sharing.learn = self._look
        self.notices.threadless = lambda: self.term.sharing.everyone
        self.term.sharing.say = self.notices.say
        self.term.sharing.reseat = self._reseat
        self.term.sharing.returned = self._prove_threads
        self.term.muting.quiet = settings.quiet_hours
        self.intake = Intake(
            term=self.term,
            rules=self._rules,
            lobby=self.lobby,
            absences=self.absences,
            notices=self.notices,
        )
        self.audit = Audit(path=lease.profile.audit_log, now_ms=now_ms)
        self.term.audit = self.term.calls.files.refused = self.audit.note
        self.requests = Requests(
            self.term,
            admission.Rules(identity=self.identity, secret=secrets[0], operator_secret=secrets[1]),
            self.registry,
            self.audit.note,
        )

    async def run(self, stop: trio.Event, task_status: trio.TaskStatus[Term]) -> StopReason:
        """The nurseries of a term: polling is the inner one, since it has to end first."""
        term = self.term
        await term.load()
        async with trio.open_nursery() as nursery:
            await nursery.start(self._send)
            await self.clean_ups.replay()
            for service in (term.threads, self.visibility, self.clean_ups):
                await nursery.start(service.run)
            await nursery.start(term.calls.outbox.run)
            await nursery.start(self.links.run)
            await nursery.start(self.audit.run)
            await nursery.start(term.calls.files.run)
            await nursery.start(term.possessions.run)
            await nursery.start(term.deliveries.run)
            await nursery.start(term.buttons.run)
            await nursery.start(term.keyboards.run)
            await nursery.start(term.typing.run)
            await nursery.start(term.commands.run)
            for start in (term.sharing.run, *([self._icons().run] if self.settings.show_state else [])):
                await nursery.start(start)
            await nursery.start(self.lobby.run)
            await nursery.start(self.notices.run)
            await nursery.start(self.absences.run)
            await nursery.start(
                partial(
                    serve_bus,
                    self.endpoint.listener,
                    self.requests.respond,
                    is_known=self.requests.knows,
                    stranger=self.audit.note_stranger,
                )
            )
            async with trio.open_nursery() as polling:
                polling.start_soon(self._poll)  # what it brings is stored, and waits for those who come back
                # in this order: who finds a new leader at the endpoint shall not read the record of an earlier one
                await self.lease.publish_record(self.endpoint.public, self.identity)
                self.lease.check()
                self._open()
                crash.point("after-publish")
                nursery.start_soon(self._prune)
                nursery.start_soon(self._follow_members)
                nursery.start_soon(self._purge)
                nursery.start_soon(self._learn_bot)
                nursery.start_soon(self._keep_spare)
                task_status.started(term)
                log.info("leading in epoch %d, bot %d", self.store.epoch, self.settings.bot_id)
                polling.start_soon(self._watch_hearing)
                polling.start_soon(self._watch_clocks)
                reason = await self._wait_until_over(stop)
                term.stop_wanted.set()
                polling.cancel_scope.cancel(reason)
            with trio.move_on_after(DRAIN_LIMIT):
                await self.sender.drain()
            missed = reason == TOLD and trio.current_time() - self.used_at < MISSED_FOR
            nursery.cancel_scope.cancel(reason)
        self.lease.check()  # the locks are held to the last: nobody can have published in our place
        self.endpoint.withdraw()
        if not missed:
            with suppress(StateError):  # a full disk: then a spare leads until nobody needs it
                await self.lease.publish_record(self.endpoint.public, self.identity, state=ENDED)
        log.info("ended: %s", reason)
        return reason

    async def _send(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Send under the limits that hold, what earlier leaders have sent included."""
        await self.windows.recall(self.sender.budget, sure=self.store.notice is None)
        await self.sender.run(task_status=task_status)

    def _open(self) -> None:
        """From now on followers find this leader."""
        self.endpoint.publish()
        self.term.opened.set(trio.current_time())
        self.absences.note_open()

    async def _poll(self) -> None:
        await run_poller(
            self.api,
            offset=await self.store.offset(),
            commit=self.intake.commit,
            report=self._note_polling,
            order=self.order,
            renewal=self.renewal,
        )

    def _note_polling(self, state: PollState) -> None:
        before = self.term.polling.value
        self.term.polling.set(state)
        if state.state != (before.state if before is not None else "starting"):
            level = logging.INFO if state.state in ("starting", "serving") else logging.WARNING
            log.log(level, "polling: %s%s", state.state, f" ({state.detail})" if state.detail else "")
        self.notices.note_polling(state)

    def _note_storage(self, why: str | None) -> None:
        self.term.note_trouble("storage", why)

    async def _watch_hearing(self) -> None:
        def report(why: str | None) -> None:
            if self.term.note_trouble("deaf", why) and why is not None:
                log.warning("polling: deaf (%s)", why)
                self.notices.say_once("deaf", why)
            if why is not None:
                self.renewal.ask(why)

        await watch_hearing(
            self.api.call,
            serving=lambda: (state := self.term.polling.value) is not None and state.state == "serving",
            received=lambda: self.intake.received,
            report=report,
        )

    async def _watch_clocks(self) -> None:
        def woke(slept: float) -> None:
            log.warning("this machine slept for %.0f s, or its clock was set; connecting anew", slept)
            self.renewal.ask("this machine slept")

        await watch_clocks(woke)

    async def _wait_until_over(self, stop: trio.Event) -> StopReason:
        reasons: list[StopReason] = []

        async def wait_for(waiting: Callable[[], Awaitable[None]], reason: StopReason, scope: trio.CancelScope) -> None:
            await waiting()
            reasons.append(reason)
            scope.cancel(reason)

        async with trio.open_nursery() as nursery:
            scope = nursery.cancel_scope
            nursery.start_soon(wait_for, stop.wait, TOLD, scope)
            nursery.start_soon(wait_for, self.term.stop_wanted.wait, STOPPED, scope)
            nursery.start_soon(wait_for, self._wait_stopped, STOPPED, scope)
            nursery.start_soon(wait_for, self._wait_unused, "no follower was left", scope)
        return reasons[0]

    async def _wait_stopped(self) -> None:
        """Wait for the mark: a stop that came before we could be asked has only written it."""
        while not self.lease.profile.stopped.exists():  # noqa: ASYNC110 - another process makes it
            await trio.sleep(PRUNE_EVERY)

    async def _wait_unused(self) -> None:
        """Wait until, for as long as a detached leader lingers, nobody was here and nothing waited."""
        if self.linger is None:
            await trio.sleep_forever()
        assert self.linger is not None
        unused_since = trio.current_time()
        while trio.current_time() - unused_since < self.linger:
            await trio.sleep(min(PRUNE_EVERY, self.linger))
            if len(self.registry) or self.term.deliveries.total_waiting() or self.term.calls.outbox.busy:
                unused_since = trio.current_time()

    async def _keep_spare(self) -> None:
        await keep_spare(self.lease.profile, self.settings, wanted=lambda: len(self.registry) > 0)

    async def _prune(self) -> None:
        """Once a second: let go of followers that fell silent, and keep the endpoint where it can be found."""
        while True:
            await trio.sleep(PRUNE_EVERY)
            if len(self.registry):
                self.used_at = trio.current_time()
            for member in self.requests.prune():
                log.warning("%s has not been heard for more than 5 s; its thread stays its own", member.key)
                await self._clean_up(member)
            self.lease.check()
            try:
                await self._stay_findable()
            except StateError as error:  # a full disk: those who are here need nothing of it
                log.warning("followers that come now may not find this leader: %s", error)

    def _thread_care(self) -> ThreadCare:
        from telegram_bus.roles.thread_care import ThreadCare  # noqa: PLC0415 - seldom needed

        return ThreadCare(
            threads=self.term.threads,
            visibility=self.visibility,
            clean_ups=self.clean_ups,
            registry=self.registry,
            waiting=self.term.deliveries.waiting,
            move=self.term.places.move,
            reseat=self._reseat_key,
        )

    async def _give_thread(self, key: str, thread_id: int) -> None:
        await self._thread_care().give(key, thread_id)

    def _reseat_key(self, key: str) -> None:
        member = self.registry.by_key(key)
        if member is not None:
            self._reseat(member)

    async def _clean_up(self, member: Member) -> None:
        try:
            await self.clean_ups.fell_silent(member)
        except StateError as error:
            log.warning("the thread of %s stays: %s", member.key, error)

    async def _stay_findable(self) -> None:
        if self.endpoint.ensure_published():
            log.warning("%s had been removed; published it again", self.endpoint.public)
        record = leadership.read_leader(self.lease.profile)
        if record is None or record.instance != self.lease.instance:
            await self.lease.publish_record(self.endpoint.public, self.identity)
            log.warning("%s had been removed or changed; wrote it again", self.lease.profile.leader_json)

    async def _follow_members(self) -> None:
        """When members come or go: wake what waits for them, close what led to them."""
        revision = 0
        while True:
            revision = await self.requests.wait_changed(revision)
            members = list(self.registry)
            self.term.keyboards.note_members(members)
            self.absences.note_members(member.key for member in members)
            self.links.keep_only(m.registration.bus_socket_path for m in members if m.registration.bus_socket_path)
            self.term.deliveries.wake(member.key for member in members)

    async def _purge(self) -> None:
        while True:
            try:
                await self.store.purge(now_ms(), self.settings.keep)
                await self.term.keyboards.forget_gone()
            except StateError as error:  # a full disk, say: the next time does
                log.warning("what is out of date was not deleted: %s", error)
            await trio.sleep(PURGE_EVERY)

    async def _learn_bot(self) -> None:
        """Learn who the bot is, and say what its settings forbid."""
        facts = await self._look()
        if not self.lease.profile.config_toml.exists():  # a token that was never right must not stick to the profile
            store_settings(self.lease.profile, self.settings)
        log.info("the bot is %s", facts.name)
        for hindrance in hindrances(facts, self.settings.chat):
            log.warning("%s", hindrance)
        try:
            await self.term.sharing.note(facts)
        except StateError as error:
            log.warning("whether the chat has threads was not noted: %s", error)

    async def _look(self) -> BotFacts:
        self.term.bot = await learn_bot(self.api.call, self.settings.bot_id, self.settings.chat)
        return self.term.bot

    def _reseat(self, member: Member) -> None:
        """Have a follower register again: with its next heartbeat, a second from now, it hears of its new place."""
        self.requests.remove(member)

    def _icons(self) -> Icons:
        from telegram_bus.roles.icons import Icons  # noqa: PLC0415 - for those who want them

        call = partial(self.sender.call, urgency="progress")
        return Icons(store=self.store, threads=self.term.threads, call=call, state=self.term.agent_state)

    async def _prove_threads(self) -> None:
        """Where there are threads again: those of the agents that are here may be others, or gone."""
        for member in self.registry:
            binding = self.term.threads.of_key(member.key)
            if binding is not None and binding.thread_id is not None:
                await self.visibility.look(binding)

    def _thread_missing(self, chat_id: int, thread_id: int, how: Missing) -> None:
        self.term.threads.thread_missing(chat_id, thread_id, how)
        self.term.sharing.look_again()  # perhaps it is none of them that is gone, but threads as such

    def _dress(self, key: str, method: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.term.muting.dress(key, method, self.term.sharing.dress(key, method, body))

    async def _migrate(self, old: int, new: int) -> None:
        """The group became a supergroup: everything goes on there, under its new id; raises what the store raises."""
        if old != self.settings.chat or old == new:
            return
        await self.term.threads.chat_migrated(old, new)
        await self.term.sharing.moved(old, new)
        self.settings = attrs.evolve(self.settings, chat=new)
        self.notices.chat_id = new
        if self.lease.profile.config_toml.exists():
            store_settings(self.lease.profile, self.settings)
        log.warning("the group %d became the supergroup %d; going on there", old, new)
        for member in self.registry:
            self._reseat(member)

    async def _migrated(self, old: int, new: int) -> bool:
        """As `_migrate`, for who heard it from Telegram's refusal; True where that was news."""
        news = old == self.settings.chat and old != new
        await self._migrate(old, new)
        return news

    def _rules(self) -> Rules:
        return Rules(
            chat_id=self.settings.chat,
            allowed=frozenset(self.settings.allow),
            bot_id=self.settings.bot_id,
            username=self.term.bot.username,
        )

    async def _forward(self, member: Member, envelope: Envelope) -> Ack:
        return await self.term.forward(member, envelope)
