"""The leader's lobby: answers what belongs to no follower, one thing after another."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any, Final, assert_never

import trio
from attrs import define, evolve, field

from telegram_bus.core import chooser, lobby, sharing
from telegram_bus.core.chooser import Choice
from telegram_bus.core.codec import loads
from telegram_bus.core.errors import BusError, RequestRefused, StateError
from telegram_bus.core.routing import Deliver, Drop, Lobby, LobbyTopic, Rules, route
from telegram_bus.core.updates import UpdateInfo, describe
from telegram_bus.roles import overview
from telegram_bus.roles.buttons import Press
from telegram_bus.roles.chooser import Chooser
from telegram_bus.roles.muting import ALL
from telegram_bus.roles.term import Term
from telegram_bus.roles.threads import Call
from telegram_bus.store import StoredUpdate

__all__ = ["Known", "LobbyDesk", "look_up_owner"]

log = logging.getLogger(__name__)

PROMOTION_GRACE: Final = 2.5  # seconds in which the followers of a leader that died come to the next one (section 10)
LOBBY_BATCH: Final = 256  # of what an earlier leader left, at once

_OUT: Final = {
    "kicked": "the bot was blocked, or thrown out of the group",
    "left": "the bot is no member of the group",
}
"""What the bot is in a chat that takes nothing from it (my_chat_member)."""


async def _cannot_bind(_key: str, _thread_id: int) -> None:
    raise RequestRefused("this leader gives no threads away")


async def _stay(_old: int, _new: int) -> None:
    pass


async def _never_parked(_chat_id: int) -> bool:
    return False


async def _not_noted(_chat_id: int, _why: str) -> None:
    pass


class Known:
    """Who owns what, from memory."""

    def __init__(self, term: Term) -> None:
        self.of_thread = term.threads.of_thread
        self.given = term.given_to
        self.shared = term.sharing.shared
        self.chosen = term.sharing.chosen
        self._store = term.store

    def of_message(self, chat_id: int, message_id: int, /) -> str | None:
        """The follower that sent a message."""
        return self._store.owner_nowait(chat_id, message_id)


async def look_up_owner(term: Term, info: UpdateInfo) -> None:
    """Bring the owner of the message that the update is about into memory, where `route` looks."""
    message = info.reply_to if info.kind in ("message", "edited_message") else info.message_id
    if info.chat_id is not None and message is not None:
        await term.store.owner_of(info.chat_id, message)
    if info.kind == "edited_message":
        await term.possessions.recalled.wait()  # an earlier leader may have given the message to somebody


@define(kw_only=True, eq=False)
class LobbyDesk:
    """Sees to updates without an owner, which are in the store.

    `bind` gives an agent a thread in the place of its present one, `migrate` has the bus work in a supergroup;
    `opened` and `closed` hear that a chat takes messages, or none any more.
    """

    term: Term
    rules: Callable[[], Rules]
    call: Call = field(repr=False)
    bind: Callable[[str, int], Awaitable[None]] = field(default=_cannot_bind, repr=False)
    migrate: Callable[[int, int], Awaitable[None]] = field(default=_stay, repr=False)
    opened: Callable[[int], Awaitable[bool]] = field(default=_never_parked, repr=False)
    closed: Callable[[int, str], Awaitable[None]] = field(default=_not_noted, repr=False)
    chooser: Chooser = field(init=False, repr=False)
    _channel: tuple[trio.MemorySendChannel[StoredUpdate], trio.MemoryReceiveChannel[StoredUpdate]] = field(
        factory=lambda: trio.open_memory_channel[StoredUpdate](math.inf)  # what is in it is in the store too
    )

    def __attrs_post_init__(self) -> None:
        self.chooser = Chooser(
            store=self.term.store,
            call=self.call,
            deliveries=self.term.deliveries,
            sharing=self.term.sharing,
            live=self.term.choices,
            bind=self._bind,
            owner=self.term.threads.of_thread,
            given=self.term.note_given,
            now_ms=self.term.now_ms,
            come=self._let_owners_come,
        )
        self.term.buttons.register(chooser.NOUN, self.chooser.press)
        self.term.buttons.register(chooser.USE, self._pressed_use)

    @property
    def known(self) -> Known:
        """Who owns what."""
        return Known(self.term)

    async def _bind(self, key: str, thread_id: int) -> None:
        await self.bind(key, thread_id)

    async def notice(self, info: UpdateInfo, rules: Rules) -> None:
        """What any update, stored or not, says of the chat: whether it takes messages, and whether it has threads."""
        if info.chat_id != rules.chat_id:
            return
        share = self.term.sharing
        if info.membership in _OUT:
            await self.closed(rules.chat_id, _OUT[info.membership])
        elif info.membership is not None or info.sender_id in rules.allowed:
            await self.opened(rules.chat_id)
        news = info.kind == "message" and (info.thread_id is not None) == share.everyone
        if info.membership is not None or news:
            share.look_again()

    def put(self, update: StoredUpdate) -> None:
        """Take an update that is in the store and has no owner."""
        if self.term.buttons.put(update):
            return
        self._channel[0].send_nowait(update)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """See to what is put, and to what an earlier leader left, until cancelled."""
        await self._take_over()
        async with trio.open_nursery() as nursery:
            task_status.started()
            try:
                await self.chooser.resume()
            except StateError as error:
                log.error("choices that an earlier leader offered may not be shown as made: %s", error)  # noqa: TRY400
            nursery.start_soon(self.chooser.follow, self.term.threads.changed)
            async for update in self._channel[1]:
                try:
                    await self._see_to(update)
                except StateError as error:  # the next leader finds it; this one goes on with what it can do
                    log.error("update %d may be answered once more: %s", update.update_id, error)  # noqa: TRY400

    async def _take_over(self) -> None:
        """What an earlier leader left."""
        left = await self.term.store.lobby.unattended(LOBBY_BATCH)
        while left:
            for update in left:
                if (migrated := describe(loads(update.body)).migrated) is not None:
                    try:
                        await self.migrate(*migrated)  # before anything else: what comes now comes from the new chat
                    except StateError as error:  # tried again when its turn comes
                        log.error("the move to %d is not noted yet: %s", migrated[1], error)  # noqa: TRY400
                self.put(update)
            full = len(left) == LOBBY_BATCH
            left = await self.term.store.lobby.unattended(LOBBY_BATCH, left[-1].seq) if full else []

    def _store_is_new(self) -> bool:
        return all(binding.since_ms >= self.term.since_ms for binding in self.term.threads.all())

    async def _let_owners_come(self) -> None:
        """The followers of the leader before register soon; where a store was lost only they know their threads."""
        opened = await self.term.opened.wait_for(lambda since: since is not None)
        assert opened is not None
        await trio.sleep_until(opened + PROMOTION_GRACE)

    def _owner_may_come(self, way: Lobby, info: UpdateInfo) -> bool:
        return (info.thread_id is not None and self._store_is_new()) or (
            way.topic == "unowned" and info.thread_id is None
        )

    async def _see_to(self, update: StoredUpdate) -> None:
        info = describe(loads(update.body))
        await look_up_owner(self.term, info)
        way = route(info, self.rules(), self.known)
        if isinstance(way, Lobby) and self._owner_may_come(way, info):
            await self._let_owners_come()
            way = route(info, self.rules(), self.known)
        if isinstance(way, Lobby) and info.thread_id is None and way.topic in ("who", "unowned", "use"):
            await self.term.sharing.look_done()  # written at the moment at which threads were switched on or off
            way = route(info, self.rules(), self.known)
        match way:
            case Deliver(key=key):  # it has got an owner since
                await self.term.store.assign(update.seq, key)
                self.term.note_given(info, key)
                self.term.deliveries.take_over(update, key)
                return
            case Lobby(topic="unowned"):
                await self.chooser.hold(update, info)
                return
            case Lobby(topic=topic):
                try:
                    await self._answer(topic, info)
                except StateError:
                    raise
                except BusError as error:
                    log.warning("update %d got no answer: %s", update.update_id, error)
            case Drop(reason=reason):
                log.debug("update %d dropped: %s", update.update_id, reason)
        await self.term.store.settle(update.seq, "answered", self.term.now_ms())

    async def _answer(self, topic: LobbyTopic, info: UpdateInfo) -> None:
        match topic:
            case "migrated":
                assert info.migrated is not None
                await self.migrate(*info.migrated)
            case "use":
                await self._use(info)
            case "mute" | "unmute":
                await self._say(info, await self._mute(info, off=topic == "unmute"))
            case "unowned":
                raise AssertionError("it waits for a choice")
            case "status" | "agents" | "help" | "who" | "unowned button" | "other chat":
                await self._say_of_agents(topic, info)
            case _:
                assert_never(topic)

    async def _say_of_agents(self, topic: lobby.Topic, info: UpdateInfo) -> None:
        bus = overview.bus_line(self.term)
        if topic == "status":
            await self.chooser.renew()  # who is told that messages wait for a choice shall find the question
            unowned = sum(one.waiting for one in await self.term.store.lobby.choosers())
            bus = evolve(bus, unowned=unowned)
        said = lobby.answer(topic, bus, overview.agent_lines(self.term, info.sender_id))
        if info.callback_id is not None:
            self.term.buttons.say(info.callback_id, said.text)
            return
        await self._say(info, said.text, **({"entities": said.entities} if said.entities else {}))

    async def _say(self, info: UpdateInfo, text: str, **more: Any) -> None:
        place: dict[str, Any] = {"chat_id": info.chat_id, "text": text, "link_preview_options": {"is_disabled": True}}
        if info.thread_id is not None:
            place["message_thread_id"] = info.thread_id
        await self.call("sendMessage", place | more, info.chat_id)

    async def _use(self, info: UpdateInfo) -> None:
        """`/use NAME`: whom the person writes to from now on, where agents share the main chat."""
        assert info.chat_id is not None
        assert info.sender_id is not None
        share = self.term.sharing
        wanted, here = _words(info), share.known()
        if not share.shared(info.chat_id):
            await self._say(info, "Each agent has a thread of its own here: write there, there is nothing to choose.")
        elif not wanted:
            text, rows = chooser.selector(share.choice_of(info.sender_id), share.spoke_last, here)
            await self._say(info, text, reply_markup={"inline_keyboard": rows})
        elif len(found := sharing.find(wanted, here)) == 1:
            await self._say(info, await self._choose(info.chat_id, info.sender_id, found[0]))
        else:
            await self._say(info, sharing.not_one(wanted, found, here))

    async def _choose(self, chat_id: int, user_id: int, agent: Choice) -> str:
        got = await self.chooser.choose(chat_id, user_id, agent)
        return f"You write to {agent.name} now" + (f", which got what waited here ({got})." if got else ".")

    async def _pressed_use(self, press: Press) -> str | None:
        agent = chooser.named(press.rest, self.term.sharing.present())
        chat_id, user_id = press.message.get("chat", {}).get("id"), press.user.get("id")
        if agent is None or not isinstance(chat_id, int) or not isinstance(user_id, int):
            return "This agent is not here any more."
        return await self._choose(chat_id, user_id, agent)

    async def _mute(self, info: UpdateInfo, *, off: bool) -> str:
        """`/mute [NAME] [TIME]` and `/unmute [NAME]`; without a name the thread's owner, else whom one writes to."""
        wanted, seconds = sharing.mute_of(_words(info))
        if wanted.casefold() == "off":
            wanted, off = "", True
        agent = self._meant(wanted, info)
        if isinstance(agent, str):
            return agent
        many = agent.key == ALL
        if off:
            sounded = not await self.term.muting.unmute(agent.key)
            if sounded:
                return "Nothing was muted." if many else f"{agent.name} was not muted."
            return f"{agent.name} can be heard again."
        await self.term.muting.mute(agent.key, seconds)
        how_long = "until /unmute" if seconds is None else f"for {lobby.age(seconds)}"
        return f"{agent.name} {'make' if many else 'makes'} no sound {how_long}."

    def _meant(self, wanted: str, info: UpdateInfo) -> Choice | str:
        """The agent that a command is about, or what to say where there is none."""
        assert info.chat_id is not None
        away = [
            Choice(one.key, one.name) for one in self.term.threads.all()
        ]  # whose messages may still be on their way
        known = list({one.key: one for one in [*away, *self.term.choices()]}.values())
        if wanted:
            found = sharing.find(wanted, known)
            return found[0] if len(found) == 1 else sharing.not_one(wanted, found, known)
        if info.thread_id is not None:
            key = self.term.threads.of_thread(info.chat_id, info.thread_id)
            if key is None:
                return "No agent has this thread."
        else:
            key = (
                self.term.sharing.chosen(info.chat_id, info.sender_id or 0)
                if self.term.sharing.shared(info.chat_id)
                else None
            )
        if key is None:
            return Choice(ALL, "All agents")
        return next((one for one in known if one.key == key), Choice(key, key))


def _words(info: UpdateInfo) -> str:
    """What follows the command, in the same line or below it."""
    return " ".join(info.text.split()[1:])
