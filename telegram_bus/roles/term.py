"""One leader's term, as its requests see it: what they can ask of the bot, the threads and the other followers."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio
from attrs import Factory, define, evolve, field

from telegram_bus.botapi.polling import PollState
from telegram_bus.core.chooser import Choice
from telegram_bus.core.codec import loads
from telegram_bus.core.envelopes import (
    Ack,
    AgentMessage,
    AgentSelector,
    Envelope,
    Registration,
)
from telegram_bus.core.errors import ApiError, BusError, NotSent, RequestRefused, StateError
from telegram_bus.core.extensions import (
    ActivitySet,
    AgentTell,
    ButtonsKeep,
    OperatorRequest,
    OperatorThreads,
    OwnRequest,
    QuestionWait,
    SendQueue,
    TypingHold,
    UpdateHand,
)
from telegram_bus.core.files import file_ids
from telegram_bus.core.health import LeaderState
from telegram_bus.core.permissions import Allowed, Owned
from telegram_bus.core.registry import Member, Provisioned, Registry, key_of
from telegram_bus.core.threads import free_slot
from telegram_bus.core.updates import UpdateInfo, describe
from telegram_bus.home import Profile
from telegram_bus.roles import overview, telling
from telegram_bus.roles.activities import Activities
from telegram_bus.roles.bot import BotFacts
from telegram_bus.roles.buttons import LeaderButtons
from telegram_bus.roles.calls import Calls
from telegram_bus.roles.care import Care
from telegram_bus.roles.clean_up import CleanUps
from telegram_bus.roles.commands import Commands
from telegram_bus.roles.deliveries import Deliveries
from telegram_bus.roles.files import Enclosed
from telegram_bus.roles.handing import hand_over
from telegram_bus.roles.judging import Note
from telegram_bus.roles.keyboards import Keyboards
from telegram_bus.roles.links import Links
from telegram_bus.roles.muting import Muting
from telegram_bus.roles.places import Places
from telegram_bus.roles.ports import Found
from telegram_bus.roles.possessions import Possessions
from telegram_bus.roles.sharing import Sharing
from telegram_bus.roles.threads import Threads
from telegram_bus.roles.together import together
from telegram_bus.roles.typing import Typing
from telegram_bus.roles.watched import Watched
from telegram_bus.store import Retention, Store
from telegram_bus.wire.descriptors import Descriptors

if TYPE_CHECKING:  # seldom needed
    from telegram_bus.roles.thread_care import ThreadCare

__all__ = ["Term", "now_ms"]

log = logging.getLogger(__name__)

PRESSED_LATELY_MS: Final = 60_000  # a button whose presser may still wait for an answer
RECENT: Final = 1_000  # of them a new leader reads back from the store: 20 ms


def now_ms() -> int:
    """The time (epoch, ms)."""
    return time.time_ns() // 1_000_000


@define(kw_only=True, eq=False)
class Term:
    """The state of a leader while it leads; implements what `Requests` asks for (LeaderPorts)."""

    profile: Profile
    store: Store = field(repr=False)
    registry: Registry = field(repr=False)
    threads: Threads
    calls: Calls
    deliveries: Deliveries
    links: Links
    bot: BotFacts
    lost: Callable[[], bool] = field(repr=False)
    away_since: Callable[[str], int | None] = field(default=lambda _: None, repr=False)
    audit: Note = field(default=lambda *_: None, repr=False)
    keep: Retention = field(factory=Retention)
    since_ms: int = field(factory=now_ms)
    polling: Watched[PollState | None] = field(factory=lambda: Watched(None))
    opened: Watched[float | None] = field(factory=lambda: Watched(None))
    """Since when this leader can be found (Trio's clock): the followers of the one before begin to return then."""
    troubles: dict[LeaderState, str] = field(factory=dict)
    stop_wanted: trio.Event = field(factory=trio.Event)
    pid: int = 0
    buttons: LeaderButtons = field(
        default=Factory(
            lambda term: LeaderButtons(
                call=term.threads.call, store=term.store, now_ms=now_ms, away=term.name_of_absent
            ),
            takes_self=True,
        ),
    )
    sharing: Sharing = field(
        default=Factory(
            lambda term: Sharing(
                store=term.store,
                threads=term.threads,
                members=term.registry,
                now_ms=now_ms,
                opened=lambda: term.opened.value,
            ),
            takes_self=True,
        ),
        repr=False,
    )
    muting: Muting = field(
        default=Factory(lambda term: Muting(store=term.store, now_ms=now_ms), takes_self=True), repr=False
    )
    activities: Activities = field(
        default=Factory(lambda term: Activities(store=term.store, now_ms=now_ms), takes_self=True), repr=False
    )
    keyboards: Keyboards = field(
        default=Factory(
            lambda term: Keyboards(
                edit=lambda _key, params, chat: term.threads.call("editMessageText", params, chat),
                ask=term.calls.named,
                store=term.store,
                now_ms=now_ms,
                away=term.name_of_absent,
                say=term.buttons.say,
            ),
            takes_self=True,
        ),
    )
    typing: Typing = field(
        default=Factory(lambda term: Typing(call=term.threads.call, registry=term.registry), takes_self=True)
    )
    commands: Commands = field(
        default=Factory(
            lambda term: Commands(
                store=term.store,
                threads=term.threads,
                members=term.registry,
                call=term.threads.call,
                now_ms=now_ms,
                away_since=lambda key: term.away_since(key),  # noqa: PLW0108 - it is set later
                shared=lambda: term.sharing.shared(term.threads.chat_id),
            ),
            takes_self=True,
        ),
        repr=False,
    )
    places: Places = field(
        default=Factory(
            lambda term: Places(
                threads=term.threads,
                registry=term.registry,
                forward=term.forward,
                secret=term.deliveries.secret,
                epoch=term.store.epoch,
                now_ms=now_ms,
            ),
            takes_self=True,
        ),
        repr=False,
    )
    clean_ups: CleanUps | None = None
    thread_care: Callable[[], ThreadCare] | None = None
    possessions: Possessions = field(
        default=Factory(
            lambda term: Possessions(store=term.store, files=term.calls.files, now_ms=now_ms), takes_self=True
        ),
        repr=False,
    )

    async def load(self) -> None:
        """Read back what this leader has to know before it serves anybody; raises what the store raises."""
        await together(
            self.threads.load,
            self.sharing.load,
            self.muting.load,
            self.activities.load,
            self.store.recall_owners,
            self.keyboards.load,
            self.commands.load,
        )

    async def recall_given(self) -> None:
        """Read back what followers were given last; whoever asks for such a thing waits until it is done."""
        try:
            await self._recall_given()
        except StateError as error:  # a full disk
            log.warning("what followers were given last is not known: %s", error)
        finally:
            self.possessions.recalled.set()

    async def _recall_given(self) -> None:
        for update in await self.store.recent(RECENT):
            if update.owner_key is not None:
                self.possessions.recollect(info := describe(loads(update.body)), update.owner_key)
                if info.callback_id is not None and now_ms() - update.admitted_ms < PRESSED_LATELY_MS:
                    self.buttons.expect(info.callback_id, update.owner_key)  # the leader before us may not have
        for key, answer in await self.store.recent_answers(RECENT):
            if b"file_id" in answer:
                self.calls.files.note(key, file_ids(loads(answer)))

    # -- LeaderPorts

    def now_ms(self) -> int:
        """The time (epoch, ms)."""
        return now_ms()

    def leading(self) -> bool:
        """Whether this process still leads."""
        return not self.lost()

    async def provision(self, registration: Registration) -> Provisioned | None:
        """The follower's thread, made where it has none."""
        try:
            provisioned = await self._place(registration)
        except BusError as error:
            log.warning("%s gets no place: %s", key_of(registration), error)
            raise
        # Only now, with no checkpoint before the follower is admitted: two that come at once get two slots.
        slot = free_slot(registration.slot, self.registry.slots_of_others(registration.instance_id))
        return evolve(provisioned, slot=slot)

    async def _place(self, registration: Registration) -> Provisioned:
        if self.sharing.everyone:
            return self.sharing.place(registration)
        try:
            return await self.threads.provide(registration)
        except RequestRefused as error:
            if isinstance(error.__cause__, ApiError) and self.sharing.refused(error.__cause__):
                return self.sharing.place(registration)
            raise

    async def retire(self, member: Member) -> None:
        """A follower leaves of its own will: its thread stays, as a hint for its return, unless it shall be cleaned up.

        That is stored then, and done later: raises StateError where it cannot be.
        """
        log.info("%s leaves", member.key)
        if self.clean_ups is not None:
            await self.clean_ups.left(member)

    def owned_by(self, member: Member) -> Owned:
        """What belongs to the member."""
        return self.possessions.of(member)

    async def call_api(
        self,
        member: Member,
        call: Allowed,
        request_id: str,
        call_id: str | None = None,
        enclosed: Enclosed | None = None,
    ) -> Any:
        """Make a call in the member's name.

        While this leader ends, a call that was surely not made gets no answer, so that one of our followers asks the
        successor for it, under the same id, as it does when a leader is killed.
        """
        if self.commands.handles(call):
            return await self.commands.serve(member, call)
        try:
            call = await self.places.in_place(member, call)
        except RequestRefused as error:
            if isinstance(error.__cause__, ApiError):
                self.sharing.refused(error.__cause__)  # threads were switched off, perhaps
            raise
        make = partial(self.calls.make, member, call, request_id, call_id, enclosed)
        try:
            if call.api_method == "answerCallbackQuery":
                return await self.buttons.by_owner(str(call.body.get("callback_query_id")), make)
            result = await self.typing.made(member.key, call.api_method, make)
            if call_id is not None:
                await self.keyboards.note_sent(member, call_id, result)
            return result  # noqa: TRY300 - the answer to a question may come before its follower hears of this
        except NotSent:
            if self.stop_wanted.is_set() and member.extended:
                await trio.sleep_forever()
            raise

    async def fetch_file(
        self, member: Member, file_id: str, beside: Descriptors | None, *, resume: bool = False
    ) -> Any:
        """Write a file of the member's into the descriptor beside its request."""
        facts = await self.calls.files.fetch(member, file_id, beside, resume=resume)
        log.debug("%s fetched a file of %d bytes", member.key, facts["size"])
        return facts

    async def serve(self, member: Member, request: OwnRequest) -> Any:
        """Do what one of our own followers asks for itself."""
        match request:
            case ButtonsKeep():
                return await self.keyboards.keep(member, request)
            case QuestionWait():
                return await self.keyboards.wait(member, request)
            case TypingHold():
                return self.typing.hold(member, request)
            case ActivitySet():
                return await self.activities.note(member, request)
            case SendQueue():
                return self.calls.sender.queue(member.key)
            case AgentTell():
                return await telling.tell(self, member, request)
            case UpdateHand():
                return await hand_over(self, member, request)
            case _:
                raise RequestRefused(f"this leader does not know what to do with {request.KIND}")

    async def resolve(self, member: Member, selector: AgentSelector, *, main_chat: bool = False) -> Found:
        """Where the one other agent that the selector names is written to; raises RequestRefused."""
        return telling.find(self, member, selector, main_chat=main_chat)

    async def route(self, member: Member, message: AgentMessage) -> None:
        """Put an agent's message into the queue of the agent whose thread it stands in, once."""
        await telling.route(self, member, message)

    async def forward(self, member: Member, envelope: Envelope) -> Ack:
        """Send an envelope to the member's endpoint."""
        path = member.registration.bus_socket_path
        if path is None:
            raise NotSent(f"{member.key} registered without an endpoint (busSocketPath)")
        return await self.links.request(path, envelope)

    def recall(self, member: Member, method: str, args: Sequence[Any]) -> Callable[[], Awaitable[None]] | None:
        """What looks up in the store whose the messages and files are that a call names, where memory does not know."""
        return self.possessions.recall(member, method, args)

    def upload_root(self, member: Member) -> str | None:
        """None: our own followers send files as open descriptors, and what the others may is seen to at opening."""

    def status(self) -> dict[str, Any]:
        """What `x.status.get` answers; docs/protocol.md lists the fields."""
        return overview.status(self)

    async def operate(self, request: OperatorRequest) -> Any:
        """Do what somebody who looks after the bus asks for."""
        if isinstance(request, OperatorThreads) and self.thread_care is not None:
            return await self.thread_care().operate(request)
        care = Care(store=self.store, deliveries=self.deliveries, keep=self.keep, now_ms=now_ms)
        return await care.operate(request)

    def request_stop(self) -> None:
        """Begin an orderly end."""
        self.stop_wanted.set()

    # -- for the leader itself

    def note_trouble(self, state: LeaderState, detail: str | None) -> bool:
        """Something is wrong beside polling (None: not any more); True where that is news."""
        if detail is None:
            return self.troubles.pop(state, None) is not None
        news = state not in self.troubles
        self.troubles[state] = detail
        return news

    def note_given(self, info: UpdateInfo, key: str) -> None:
        """An update goes to this follower, which may react to its message, answer its button and fetch its files."""
        self.possessions.note(info, key)

    def name_of_absent(self, key: str) -> str | None:
        """What people call a follower that is not here; None for one that is."""
        return self.threads.name_of(key) if self.registry.by_key(key) is None else None

    def given_to(self, chat_id: int, message_id: int, /) -> str | None:
        """The follower that was given a person's message lately."""
        return self.possessions.messages.get((chat_id, message_id))

    def choices(self) -> list[Choice]:
        """The agents that are here, by name."""
        here = [Choice(member.key, self.name_of(member.key)) for member in self.registry]
        return sorted(here, key=lambda one: one.name.casefold())

    def name_of(self, key: str) -> str:
        """What people call an agent, here or not."""
        return self.sharing.name_of(key)

    def called(self, name: str, keys: Iterable[str]) -> list[str]:
        """Those of the agents, by key, that people call so, whatever the case."""
        return [key for key in keys if self.name_of(key).casefold() == name.casefold()]
