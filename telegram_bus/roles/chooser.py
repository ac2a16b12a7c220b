"""Messages that nobody owns: they wait in the store until a person has chosen who gets them."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

import trio
from attrs import define, evolve, field

from telegram_bus import crash
from telegram_bus.core import chooser
from telegram_bus.core.chooser import MAIN, Choice
from telegram_bus.core.codec import loads
from telegram_bus.core.errors import ApiError, BusError, CommitUnknown, StateError
from telegram_bus.core.outcomes import thread_trouble
from telegram_bus.core.updates import UpdateInfo, describe
from telegram_bus.roles.buttons import Press
from telegram_bus.roles.deliveries import Deliveries
from telegram_bus.roles.once import Turns
from telegram_bus.roles.sharing import Sharing
from telegram_bus.roles.threads import Call
from telegram_bus.roles.watched import Watched
from telegram_bus.store import Store, StoredUpdate
from telegram_bus.store.lobby import Chooser as Asked

__all__ = ["Chooser"]

log = logging.getLogger(__name__)

AGAIN: Final = 30.0  # seconds until a disk that failed is tried again

ANSWERED: Final = "This was answered before, or is asked anew below."

_NOT_THERE: Final = "message to edit not found"


@define(kw_only=True, eq=False)
class Chooser:
    """Asks people once a place, and does once what they choose.

    `live` are the agents that may get a thread's messages, `bind` gives an agent a thread in the place of its present
    one, `owner` knows whose a thread is, `given` hears of each update that gets an owner, before it is delivered,
    `come` waits until the followers of the leader before have had time to come.
    """

    store: Store = field(repr=False)
    call: Call = field(repr=False)
    deliveries: Deliveries = field(repr=False)
    sharing: Sharing = field(repr=False)
    live: Callable[[], list[Choice]] = field(repr=False)
    bind: Callable[[str, int], Awaitable[None]] = field(repr=False)
    owner: Callable[[int, int], str | None] = field(repr=False)
    given: Callable[[UpdateInfo, str], None] = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    come: Callable[[], Awaitable[None]] = field(repr=False)
    _turns: Turns = field(factory=Turns)
    _places: set[tuple[int, int]] = field(factory=set)  # where something waits

    async def hold(self, update: StoredUpdate, info: UpdateInfo) -> None:
        """Keep an update that nobody owns, and ask people unless they are asked already."""
        assert info.chat_id is not None
        place = (info.chat_id, info.thread_id or MAIN)
        self._places.add(place)
        ask, waiting = await self.store.lobby.hold(update.seq, place, self.now_ms())
        crash.point("after-hold")
        if ask:
            await self._ask(place, waiting)

    async def resume(self) -> None:
        """Ask where an earlier leader may not have asked."""
        for one in await self.store.lobby.choosers():
            place = (one.chat_id, one.place)
            self._places.add(place)
            lost = one.state == "open" and one.message_id is None
            if lost and self.owner(*place) is None and await self.store.lobby.ask_again(place, self.now_ms()):
                await self._ask(place, one.waiting)

    async def renew(self) -> None:
        """Ask anew where a question is not there any more: a person may have deleted it, or the thread around it."""
        for one in await self.store.lobby.choosers():
            place = (one.chat_id, one.place)
            if one.message_id is not None:
                if await self._stands(one):
                    continue
                await self.store.lobby.unask(place, one.message_id)
            if await self.store.lobby.ask_again(place, self.now_ms()):
                await self._ask(place, one.waiting)

    async def follow(self, changed: Watched[int]) -> None:
        """Give what waits in a thread to whoever gets that thread, until cancelled; `changed` tells that one may."""
        seen: trio.Event | None = None
        pause = math.inf
        while True:
            with trio.move_on_after(pause):
                _, seen = await changed.wait_news(seen)  # also of what changes while this is at work
            pause = math.inf
            for place in list(self._places):
                key = self.owner(*place) if place[1] != MAIN else None
                if key is not None:
                    try:
                        self._deliver(await self.store.lobby.bound(place, key), key)
                        self._places.discard(place)
                    except StateError as error:
                        log.warning("what waits in thread %d goes to %s later: %s", place[1], key, error)
                        pause = AGAIN

    async def press(self, press: Press) -> str | None:
        """Do what a button says; returns what the person is shown."""
        said = chooser.press_of(press.rest)
        chat_id = press.message.get("chat", {}).get("id")
        if said is None or not isinstance(chat_id, int):
            return "This button says nothing that this version knows."
        place, message_id = (chat_id, said.place), press.message.get("message_id")
        if said.verb == "show":
            return await self._show(place, message_id, said.arg)
        if said.verb in ("give", "bind"):
            agent = chooser.named(said.arg, self._choices(said.place))
            if agent is None:
                await self.come()
                agent = chooser.named(said.arg, self._choices(said.place))
            if agent is None:
                await self._show(place, message_id, "give0")
                return "This agent is not here any more."
            return await self._give(place, message_id, agent, press, said.verb)
        if said.verb == "later":
            waiting = await self.store.lobby.later(place, message_id)
            return await self._close(place, message_id, None if waiting is None else chooser.closed("later", waiting))
        gone = await self.store.lobby.ignore(place, message_id, self.now_ms())
        return await self._close(place, message_id, None if gone is None else chooser.closed("ignore", gone))

    async def choose(self, chat_id: int, user_id: int, agent: Choice) -> int:
        """A person chose by word whom it writes to in the main chat; returns how many messages that agent got."""
        await self.sharing.choose(user_id, agent.key)
        given = await self.store.lobby.give((chat_id, MAIN), agent.key, None)
        self._deliver(given or (), agent.key)
        return len(given or ())

    # --

    def _choices(self, place: int) -> list[Choice]:
        """Of the main chat those that share it; what was written there before there were threads is for all."""
        return (self.sharing.present() if place == MAIN else []) or self.live()

    async def _choices_by_now(self, place: int) -> list[Choice]:
        """Those; where a leader has just begun, nobody is offered only once its followers had time to find it."""
        if not self._choices(place):
            await self.come()
        return self._choices(place)

    async def _give(
        self, place: tuple[int, int], message_id: int | None, agent: Choice, press: Press, verb: chooser.Verb
    ) -> str | None:
        async with self._turns.take(place):
            waiting = await self.store.lobby.waiting_at(place, message_id)
            if waiting is None:
                return ANSWERED
            if verb == "bind":  # from then on what waits there is the agent's, whoever leads
                await self.bind(agent.key, place[1])
                given = await self.store.lobby.bound(place, agent.key)
            else:
                given = await self.store.lobby.give(place, agent.key, message_id) or []
                waiting = len(given)
        crash.point("after-give")
        user_id = press.user.get("id")
        chosen = place[1] == MAIN and self.sharing.shared(place[0])
        if chosen and isinstance(user_id, int):
            await self.sharing.choose(user_id, agent.key)
        self._deliver(given, agent.key)
        return await self._close(place, message_id, chooser.closed(verb, waiting, agent.name, chosen=chosen))

    def _deliver(self, updates: Iterable[StoredUpdate], key: str) -> None:
        for update in updates:
            self.given(describe(loads(update.body)), key)
            self.deliveries.take_over(evolve(update, owner_key=key), key)

    async def _ask(self, place: tuple[int, int], waiting: int) -> None:
        choices = await self._choices_by_now(place[1])
        params = self._question(place, waiting, choices)
        if place[1] != MAIN:
            params["message_thread_id"] = place[1]
        message_id: int | None = None
        try:
            sent = await self.call("sendMessage", params, place[0])
            message_id = sent.get("message_id") if isinstance(sent, dict) else None
        except CommitUnknown as error:  # it may be there: any press of it counts
            log.warning("whether people were asked about thread %d is not known: %s", place[1], error)
            return
        except BusError as error:
            log.warning("people could not be asked about thread %d: %s", place[1], error)
            if place[1] != MAIN and isinstance(error, ApiError) and thread_trouble(error) == "not found":
                await self._ask_in_main(place)
                return
        await self.store.lobby.asked(place, message_id)

    async def _ask_in_main(self, place: tuple[int, int]) -> None:
        """Somebody deleted the thread in which messages wait, so that nobody can choose there."""
        main = (place[0], MAIN)
        await self.store.lobby.move_to_main(place)
        self._places.discard(place)
        self._places.add(main)
        if await self.store.lobby.ask_again(main, self.now_ms()):
            waiting = await self.store.lobby.waiting_at(main, None)
            await self._ask(main, waiting or 0)

    async def _stands(self, one: Asked) -> bool:
        """Whether a question is there; it offers the agents of now then. An edit of its text might not even leave."""
        place = (one.chat_id, one.place)
        shown = self._question(place, one.waiting, self._choices(one.place))
        if one.state != "open":
            shown = self._closed(place, chooser.closed("later", one.waiting), again=True)
        body = {"chat_id": one.chat_id, "message_id": one.message_id, "reply_markup": shown["reply_markup"]}
        try:
            await self.call("editMessageReplyMarkup", body, one.chat_id)
        except ApiError as error:
            return _NOT_THERE not in error.description.casefold() and thread_trouble(error) != "not found"
        except BusError as error:
            log.warning("whether a question is still there is not known: %s", error)
        return True

    async def _show(self, place: tuple[int, int], message_id: int | None, arg: str) -> str | None:
        binding, page = chooser.shown(arg)
        waiting = await self.store.lobby.waiting_at(place, message_id)
        if waiting is None:
            return await self._close(place, message_id, None)
        choices = await self._choices_by_now(place[1])
        await self._edit(place[0], message_id, self._question(place, waiting, choices, page=page, binding=binding))
        return None if choices else "No agent is here yet."

    async def _close(self, place: tuple[int, int], message_id: int | None, text: str | None) -> str:
        """Say in the question's place what was done; None: it was done before, and what is there says so."""
        if text is not None:
            shown = self._closed(place, text, again=await self._waits(place, message_id))
            await self._edit(place[0], message_id, shown)
        return ANSWERED if text is None else text

    def _closed(self, place: tuple[int, int], text: str, *, again: bool) -> dict[str, Any]:
        rows = [[chooser.button("Choose now", chooser.Press(place[1], "show", "give0"))]] if again else []
        return {"text": text, "reply_markup": {"inline_keyboard": rows}}

    async def _waits(self, place: tuple[int, int], message_id: int | None) -> bool:
        return bool(await self.store.lobby.waiting_at(place, message_id))

    def _question(
        self, place: tuple[int, int], waiting: int, choices: list[Choice], *, page: int = 0, binding: bool = False
    ) -> dict[str, Any]:
        rows = chooser.keyboard(place[1], choices, page=page, binding=binding)
        text = chooser.ask(place[1], waiting, choices, binding=binding, shared=self.sharing.shared(place[0]))
        return {"chat_id": place[0], "text": text, "reply_markup": {"inline_keyboard": rows}}

    async def _edit(self, chat_id: int, message_id: int | None, params: dict[str, Any]) -> None:
        if message_id is None:
            return
        body = {**params, "chat_id": chat_id, "message_id": message_id}
        try:
            await self.call("editMessageText", body, chat_id)
        except ApiError as error:
            if "not modified" not in error.description.casefold():
                log.warning("a question that was answered stays as it was: %s", error)
        except BusError as error:
            log.warning("a question that was answered stays as it was: %s", error)
