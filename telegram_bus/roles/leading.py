"""One term of a leader: what it is made of, in which order that starts, and how it ends."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs
import trio

from telegram_bus import crash
from telegram_bus._version import __version__
from telegram_bus.botapi.poller import Order
from telegram_bus.botapi.transport import BotApi
from telegram_bus.core import admission, identity, outcomes
from telegram_bus.core.envelopes import Ack, Envelope
from telegram_bus.core.errors import StateError
from telegram_bus.core.permissions import repeatable
from telegram_bus.core.registry import Member, Registry
from telegram_bus.core.routing import Rules
from telegram_bus.roles import overview
from telegram_bus.roles.absences import Absences
from telegram_bus.roles.audit import Audit
from telegram_bus.roles.bot import BotFacts, hindrances, learn_bot
from telegram_bus.roles.calls import Calls
from telegram_bus.roles.clean_up import CleanUps
from telegram_bus.roles.deliveries import Deliveries
from telegram_bus.roles.dressing import DressingSender
from telegram_bus.roles.files import FileLimits, Files
from telegram_bus.roles.intake import Intake
from telegram_bus.roles.lease import Draft, Lease
from telegram_bus.roles.links import Links
from telegram_bus.roles.lobby import LobbyDesk
from telegram_bus.roles.notices import Notices, once_by
from telegram_bus.roles.reception import Reception
from telegram_bus.roles.record import ENDED
from telegram_bus.roles.requests import Requests
from telegram_bus.roles.settings import Settings
from telegram_bus.roles.term import Term, now_ms
from telegram_bus.roles.threads import Missing, Threads
from telegram_bus.roles.together import together
from telegram_bus.roles.topic_names import wanted_name
from telegram_bus.roles.upkeep import PRUNE_EVERY, Upkeep
from telegram_bus.roles.visibility import Visibility
from telegram_bus.roles.windows import Windows
from telegram_bus.store import Store
from telegram_bus.wire.endpoint import Endpoint
from telegram_bus.wire.server import serve_bus

if TYPE_CHECKING:
    from telegram_bus.roles.icons import Icons
    from telegram_bus.roles.thread_care import ThreadCare

__all__ = ["STOPPED", "Leader", "StopReason"]

log = logging.getLogger(__name__)

StopReason = str
"""Why a leader ended, for people."""

STOPPED: Final = "an operator stopped it"
TOLD: Final = "it was told to stop"

DRAIN_LIMIT: Final = 1.0  # a leader that is told to end is gone in less than 2 s
KNOWN_FOR: Final = 5.0
"""Seconds of a term before a spare that took over asks again who the bot is: others wait for those."""


class Leader:
    """What one term is made of, and the tasks that it consists of."""

    def __init__(
        self,
        lease: Lease,
        settings: Settings,
        store: Store,
        api: BotApi,
        endpoint: Endpoint,
        secrets: tuple[str, str],
        linger: float | None,
        order: Order,
    ) -> None:
        self.lease, self.settings, self.store, self.api = lease, settings, store, api
        self.endpoint, self.linger = endpoint, linger
        self.opened: Callable[[], None] = lambda: None
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
                    secrets=tuple(path for path in (settings.token_file, settings.secret_file) if path is not None),
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
        self.lobby = LobbyDesk(term=self.term, rules=self._rules, call=self.sender.call, migrate=self._migrate)
        self.lobby.bind = self._give_thread
        outbox = self.term.calls.outbox
        outbox.passage.thread_missing, outbox.passage.chat_migrated = self._thread_missing, self._migrated
        self.lobby.opened, self.lobby.closed = outbox.parking.opened, outbox.parking.closed
        self.term.buttons.register(outcomes.AGAIN, outbox.doubts.pressed)
        self.sender.dress = self._dress
        self.term.sharing.learn = self._look
        self.notices.threadless = lambda: self.term.sharing.everyone
        self.notices.named = once_by(outbox)
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
        self.reception = Reception(term=self.term, api=api, intake=self.intake, notices=self.notices, order=order)
        threads.serving = lambda: self.reception.serving
        self.audit = Audit(path=lease.profile.audit_log, now_ms=now_ms)
        self.term.audit = self.term.calls.files.refused = self.audit.note
        self.requests = Requests(
            self.term,
            admission.Rules(identity=self.identity, secret=secrets[0], operator_secret=secrets[1]),
            self.registry,
            self.audit.note,
        )
        self.upkeep = Upkeep(
            term=self.term,
            lease=lease,
            identity=self.identity,
            endpoint=endpoint,
            settings=settings,
            requests=self.requests,
            clean_ups=self.clean_ups,
            absences=self.absences,
        )

    async def run(self, stop: trio.Event, task_status: trio.TaskStatus[Term]) -> StopReason:
        """The nurseries of a term: polling is the inner one, since it has to end first."""
        term, upkeep = self.term, self.upkeep
        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as polling:
                polling.start_soon(self.reception.poll)  # the longest wait of all: it begins before anything else
                await self._come_up(nursery)
                crash.point("after-publish")
                task_status.started(term)
                log.info("leading in epoch %d, bot %d", self.store.epoch, self.settings.bot_id)
                polling.start_soon(self.reception.watch_hearing)
                polling.start_soon(self.reception.watch_clocks)
                reason = await self._wait_until_over(stop)
                term.stop_wanted.set()
                polling.cancel_scope.cancel(reason)
            with trio.move_on_after(DRAIN_LIMIT):
                await self.sender.drain()
            missed = reason == TOLD and upkeep.missed
            nursery.cancel_scope.cancel(reason)
        self.lease.check()  # the locks are held to the last: nobody can have published in our place
        self.endpoint.withdraw()
        if not missed:
            with suppress(StateError):  # a full disk: then a spare leads until nobody needs it
                await self.lease.publish_record(self.endpoint.public, self.identity, state=ENDED)
        log.info("ended: %s", reason)
        return reason

    async def _come_up(self, nursery: trio.Nursery) -> None:
        """Read what earlier leaders left, start what a term consists of, and be found.

        Whatever waits for the disk or the store does so at the same time: followers wait for all of this.
        """
        drafts: list[Draft] = []

        async def draft() -> None:
            drafts.append(await self.lease.draft_record(self.endpoint.public, self.identity))

        try:
            await together(draft, self.term.load, self.absences.load, self._recall_limits)
            await self._start(nursery)
            self.reception.ready.set()
            self.lease.check()
            # in this order: who finds a new leader at the endpoint shall not read the record of an earlier one
            drafts[0].publish()
            crash.point("after-record")
            self._open()
        finally:
            for one in drafts:
                one.discard()
        nursery.start_soon(self._settle, drafts[0])

    async def _start(self, nursery: trio.Nursery) -> None:
        """Start all services of a term; those that followers and updates come to are the last ones."""
        term, upkeep = self.term, self.upkeep
        await nursery.start(self.sender.run)
        await nursery.start(self.clean_ups.replay)
        for service in (
            *(term.threads.run, self.visibility.run, self.clean_ups.run, self.links.run, self.audit.run),
            *(term.calls.files.run, term.possessions.run, term.buttons.run, term.keyboards.run, term.typing.run),
            *(term.commands.run, term.sharing.run, self.notices.run),
            *([self._icons().run] if self.settings.show_state else ()),
        ):
            nursery.start_soon(service)  # what is put to them before they run waits for them
        readers = (term.calls.outbox.run, term.deliveries.run, self.lobby.run)
        await together(*(partial(nursery.start, reader) for reader in readers))
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
        for task in (upkeep.prune, upkeep.follow_members, upkeep.purge, self._learn_bot, upkeep.keep_spare):
            nursery.start_soon(task)
        nursery.start_soon(upkeep.watch_for_dead)
        nursery.start_soon(term.recall_given)

    async def _recall_limits(self) -> None:
        """Send under the limits that hold, what earlier leaders have sent included."""
        await self.windows.recall(self.sender.budget, sure=self.store.notice is None)

    async def _settle(self, record: Draft) -> None:
        try:
            await record.settle()
        except StateError as error:
            log.warning("a power cut may bring back the record of an earlier leader: %s", error)

    def _open(self) -> None:
        """From now on followers find this leader."""
        self.endpoint.publish()
        self.opened()
        self.term.opened.set(trio.current_time())
        self.absences.note_open()

    def _note_storage(self, why: str | None) -> None:
        self.term.note_trouble("storage", why)

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

    async def _learn_bot(self) -> None:
        """Learn who the bot is, and say what its settings forbid."""
        if self.term.bot.username is not None:  # the rehearsal of a spare found out, some time ago
            self._store_proven_settings()
            await trio.sleep(KNOWN_FOR)
        facts = await self._look()
        self._store_proven_settings()
        log.info("the bot is %s", facts.name)
        for hindrance in hindrances(facts, self.settings.chat):
            log.warning("%s", hindrance)
        try:
            await self.term.sharing.note(facts)
        except StateError as error:
            log.warning("whether the chat has threads was not noted: %s", error)

    def _store_proven_settings(self) -> None:
        """Once Telegram has taken the token: one that was never right must not stick to the profile."""
        if not self.lease.profile.config_toml.exists():
            self.upkeep.store_settings(self.settings)

    async def _look(self) -> BotFacts:
        self.term.bot = await learn_bot(self.api.call, self.settings.bot_id, self.settings.chat)
        return self.term.bot

    def _reseat(self, member: Member) -> None:
        """Have a follower register again: with its next heartbeat, a second from now, it hears of its new place."""
        self.requests.remove(member)

    def _icons(self) -> Icons:
        from telegram_bus.roles.icons import Icons  # noqa: PLC0415 - for those who want them

        call = partial(self.sender.call, urgency="progress")
        return Icons(
            store=self.store, threads=self.term.threads, call=call, state=partial(overview.agent_state, self.term)
        )

    async def _prove_threads(self) -> None:
        """Where there are threads again: those of the agents that are here may be others, or gone."""
        for member in self.registry:
            binding = self.term.threads.of_key(member.key)
            if binding is not None:
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
        await self.term.keyboards.moved(old, new)
        self.settings = attrs.evolve(self.settings, chat=new)
        self.notices.chat_id = new
        for member in self.registry:
            self._reseat(member)
        log.warning("the group %d became the supergroup %d; going on there", old, new)
        if self.lease.profile.config_toml.exists():
            self.upkeep.store_settings(self.settings)

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
