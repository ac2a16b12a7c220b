"""One chat for all agents: whether there are threads, who shares the main chat, and whom a person writes to there."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import trio
from attrs import define, field

from telegram_bus.core import lobby, sharing, threads
from telegram_bus.core.chooser import Choice
from telegram_bus.core.envelopes import Registration, Target
from telegram_bus.core.errors import ApiError, BusError, LeadershipLost, StateError
from telegram_bus.core.registry import Member, Provisioned, Registry, key_of
from telegram_bus.roles.bot import BotFacts, why_no_chat, without_threads
from telegram_bus.roles.threads import Threads
from telegram_bus.store import Store

__all__ = ["Sharing"]

log = logging.getLogger(__name__)

LOOK_AGAIN: Final = 20.0
"""Seconds between two questions to Telegram whether there are threads by now, while there are none; a change of the
bot's rights and a message in a thread are looked into at once."""

SETTLED: Final = 2.5
"""Seconds after a leader's beginning in which followers find it: until then the only one here is not all there are."""

AT_ONCE: Final = 2.0
"""Seconds between two such questions at least, whatever happens in the chat."""

_NO_THREADS: Final = ("the chat is not a forum", "BOT_FORUM_CREATE_FORBIDDEN", "not enough rights to create a topic")
"""Refusals of createForumTopic that mean: not in this chat (bot-api T5, T6; compared without case)."""


@define(kw_only=True, eq=False)
class Sharing:
    """Who has no thread of its own, and what that means for messages both ways.

    `learn` asks Telegram about the bot and its chat, `say` tells people in the main chat, `reseat` has a live
    follower register again, so that it gets its place of now, `returned` is awaited when there are threads again.
    """

    store: Store = field(repr=False)
    threads: Threads = field(repr=False)
    members: Registry = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    learn: Callable[[], Awaitable[BotFacts]] | None = field(default=None, repr=False)
    say: Callable[[str], None] = field(default=log.warning, repr=False)
    reseat: Callable[[Member], None] = field(default=lambda _: None, repr=False)
    returned: Callable[[], Awaitable[None]] | None = field(default=None, repr=False)
    why: str | None = None
    """Why agents cannot get threads here, with the switch to turn; None: they can, as far as is known."""
    everyone: bool = False
    """Whether that is so for agents that had threads too: the chat has none at all."""
    no_chat: str | None = None
    """Why the bot can do nothing in its chat at all; None: it can, as far as is known."""
    forum: bool = False
    opened: Callable[[], float | None] = field(default=trio.current_time, repr=False)
    """Since when followers can find this leader (Trio's clock); None: they cannot yet."""
    spoke_last: str | None = None
    """The key of the agent that wrote into the main chat last."""
    _choices: dict[tuple[int, int], str] = field(factory=dict)
    _knock: trio.Event = field(factory=trio.Event)
    _looking: bool = False
    _asked: int = 0
    _looked: int = 0
    _news: trio.Event = field(factory=trio.Event)
    _changed: float = float("-inf")  # when everybody was sent to another place last (Trio's clock)

    async def load(self) -> None:
        """Read who writes to whom, and whether there were threads; raises what the store raises."""
        self._choices, told = await self.store.lobby.choices_and("no threads")
        self.why = told.get("no threads") or None
        self.everyone = self.why is not None and told.get("no threads for") == "all"

    # -- for routing

    def shared(self, chat_id: int, /) -> bool:
        """Whether agents without a thread of their own share the main chat."""
        return chat_id == self.threads.chat_id and (self.everyone or any(member.shares for member in self.members))

    def chosen(self, chat_id: int, user_id: int, /) -> str | None:
        """To which of them this person writes: the one that was chosen, else the only one."""
        here = [member.key for member in self.members if member.shares]
        key = self._choices.get((chat_id, user_id))
        if key is not None and (self.everyone or key in here or self.members.by_key(key) is None):
            return key
        opened = self.opened()
        settled = opened is not None and trio.current_time() - opened > SETTLED
        return here[0] if len(here) == 1 and settled else None

    async def choose(self, user_id: int, key: str) -> None:
        """The person writes to this agent from now on; raises what the store raises."""
        chat = self.threads.chat_id
        await self.store.lobby.choose(chat, user_id, key, self.now_ms())
        self._choices[chat, user_id] = key

    def choice_of(self, user_id: int) -> str | None:
        """Whom the person has chosen, here or not."""
        return self._choices.get((self.threads.chat_id, user_id))

    def present(self) -> list[Choice]:
        """The agents that share the main chat and are here."""
        found = [Choice(member.key, self.name_of(member.key)) for member in self.members if member.shares]
        return sorted(found, key=lambda one: one.name.casefold())

    def known(self) -> list[Choice]:
        """Those, and where nobody has a thread also the ones that had, here or not."""
        absent = [] if not self.everyone else [Choice(one.key, one.name) for one in self.threads.all()]
        return sorted(
            {one.key: one for one in [*absent, *self.present()]}.values(), key=lambda one: one.name.casefold()
        )

    # -- for followers

    def place(self, registration: Registration) -> Provisioned:
        """The main chat as a follower's destination, under a name that no other agent has."""
        key = key_of(registration)
        binding = self.threads.of_key(key)
        taken = {_name(member) for member in self.members if member.key != key}
        taken |= {other.name for other in self.threads.all() if other.key != key}
        wanted = binding.name if binding is not None else registration.thread_name
        name = threads.thread_name(wanted, key, taken)
        return Provisioned(target=Target(chat_id=self.threads.chat_id), thread_name=name, shared=True)

    def refused(self, error: ApiError) -> bool:
        """A thread was refused; True where its follower shall share the main chat instead."""
        text = error.description.casefold()
        if not any(sign.casefold() in text for sign in _NO_THREADS):
            return False
        self.look_again()
        return True

    def dress(self, key: str, method: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """A call of this agent as it goes out: with the agent's name where agents share the chat."""
        member = self.members.by_key(key)
        if not (member.shares if member is not None else self.everyone) or "message_thread_id" in body:
            return body  # what goes into another agent's thread says itself who asks
        if method.startswith("send") and method != "sendChatAction":
            self.spoke_last = key
        return sharing.signed(method, body, self.name_of(key), forum=self.forum)

    def name_of(self, key: str) -> str:
        """What people call an agent: as a person may have named its thread; else as the leader did."""
        member = self.members.by_key(key)
        if member is not None and self.threads.of_key(key) is None:
            return _name(member)
        return self.threads.name_of(key)

    # -- modes

    async def moved(self, old: int, new: int) -> None:
        """The group became a supergroup; raises what the store raises."""
        await self.store.lobby.move_chat(old, new)
        self._choices = await self.store.lobby.choices()
        self.look_again()

    def look_again(self) -> None:
        """Something happened that may mean that there are threads, or none any more."""
        self._asked += self.learn is not None
        self._knock.set()

    async def look_done(self) -> None:
        """Wait until that was looked into, and until those that got another place for it have had time to come."""
        asked = self._asked
        with trio.move_on_after(SETTLED):
            while self._looked < asked:
                await self._news.wait()
        await trio.sleep_until(self._changed + SETTLED)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow what the chat can do until cancelled."""
        task_status.started()
        failed = False
        while True:
            with trio.move_on_after(LOOK_AGAIN if failed or self.why or self.no_chat else float("inf")):
                await self._knock.wait()
            self._knock, asked = trio.Event(), self._asked
            self._looking, failed = True, False
            try:
                if self.learn is not None:
                    await self.note(await self.learn())
            except LeadershipLost:
                raise
            except BusError as error:
                log.warning("whether the chat has threads was not found out, or is not noted yet: %s", error)
                failed = True
            finally:
                self._looking = False
            self._looked = asked
            self._news.set()
            self._news = trio.Event()
            await trio.sleep(AT_ONCE)

    async def note(self, facts: BotFacts) -> None:
        """Telegram said what the bot is and what the chat can do; raises what the store raises."""
        self.forum = facts.is_forum is True
        if self.no_chat is None and facts.no_chat is not None and not self._looking:
            self._knock.set()  # as below
        self.no_chat = why_no_chat(facts, self.threads.chat_id)
        told = without_threads(facts, self.threads.chat_id)
        if told is None or told == (self.why, self.everyone):
            return
        before, (why, everyone) = (self.why, self.everyone), told
        self.why, self.everyone = told
        if not self._looking:
            self._knock.set()  # `run` does not wait in the rhythm of the other mode
        log.info("the chat has %s", f"no threads: {why}" if why is not None else "threads")
        try:
            await self.store.told.tell("no threads for", "all" if everyone else "new")
            news = await self.store.told.tell("no threads", why or "")
        except StateError:
            if (self.why, self.everyone) == told:
                self.why, self.everyone = before  # it is news once more, with all that it means for those who are here
            raise
        if why is not None and news:
            self.say(lobby.shared_intro(why, everyone=everyone))
        if why is None and before[0] is not None:
            self.say("There are threads again: each agent gets its own.")
            await self._prove_threads()
        for member in self.members:
            if member.shares != everyone:  # where only new threads are refused, it comes back to what it has
                self._changed = trio.current_time()
                self.reseat(member)

    async def _prove_threads(self) -> None:
        if self.returned is None:
            return
        try:
            await self.returned()
        except LeadershipLost:
            raise
        except BusError as error:  # what an agent sends into its own proves it too
            log.warning("not all threads were found to be there: %s", error)


def _name(member: Member) -> str:
    return member.registration.thread_name or member.key
