"""Which follower has which thread: durable bindings, and new threads for those who have none."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import trio
from attrs import define, field

from telegram_bus import crash
from telegram_bus.core import threads
from telegram_bus.core.envelopes import Registration, Target
from telegram_bus.core.errors import ApiError, NotSent, RequestRefused
from telegram_bus.core.registry import Provisioned, key_of
from telegram_bus.store import Binding, Store

__all__ = ["Call", "Threads"]

log = logging.getLogger(__name__)

Call = Callable[[str, Mapping[str, Any], int | None], Awaitable[Any]]
"""Makes a Bot API call: method, parameters, the chat whose queue it waits in."""

_TOPICS: Final = (
    "switch on threads: for a private chat Threaded Mode of the bot in @BotFather's mini app, "
    "for a group Topics in its settings"
)
_REMEDIES: Final = (
    ("the chat is not a forum", _TOPICS),
    ("not enough rights", "make the bot an administrator of the group with the right to manage topics"),
    ("chat not found", "open the chat with the bot and press Start, and check the number given as --chat"),
    ("bot was blocked", "unblock the bot in Telegram"),
    ("BOT_FORUM_CREATE_FORBIDDEN", _TOPICS),
    ("unauthorized", "take the bot's present token from @BotFather and give it to telegram-bus leader"),
)
"""What a person has to do about a refused thread (texts of the Bot API, compared without regard to case)."""


@define(kw_only=True, eq=False)
class Threads:
    """The bindings of one bot's chat; every change is in the store before its follower hears of it."""

    store: Store
    chat_id: int
    call: Call = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    _by_key: dict[str, Binding] = field(factory=dict)
    _by_thread: dict[int, str] = field(factory=dict)

    async def load(self) -> None:
        """Read the bindings that earlier leaders made."""
        for binding in await self.store.bindings():
            self._remember(binding)

    def of_thread(self, chat_id: int, thread_id: int, /) -> str | None:
        """The key of the follower that this thread belongs to."""
        return self._by_thread.get(thread_id) if chat_id == self.chat_id else None

    def of_key(self, key: str) -> Binding | None:
        """The binding of a follower."""
        return self._by_key.get(key)

    def all(self) -> tuple[Binding, ...]:
        """All bindings, in the order in which they were made."""
        return tuple(self._by_key.values())

    # -- what others notice

    def thread_missing(self, chat_id: int, thread_id: int, how: str) -> None:
        """A send into the thread was not what it should be; call it wherever that is seen, it returns at once.

        `how` is "not found" (Telegram refused: `message thread not found`, `TOPIC_ID_INVALID`), "elsewhere" (the
        message came back with another thread, or none), or "closed" (`TOPIC_CLOSED`). Whether the thread is really
        gone is found out here; nothing is changed before that.
        """
        log.warning("a message for thread %d of chat %d: %s", thread_id, chat_id, how)

    async def chat_migrated(self, old: int, new: int) -> bool:
        """The group became a supergroup (an error's or a service message's `migrate_to_chat_id`).

        Every binding is the new chat's when it returns, in the store too; False where `old` is not our chat (any
        more), so who sends again after it may come twice. Whoever keeps the chat elsewhere (settings, rules, queues)
        changes it there.
        """
        if old != self.chat_id or old == new:
            return False
        self.chat_id = new
        for binding in [binding for binding in self._by_key.values() if binding.chat_id == old]:
            if binding.thread_id is not None:
                await self._bind(binding.key, binding.thread_id, binding.name)
        return True

    async def provide(self, registration: Registration) -> Provisioned:
        """Find the follower's thread or make one.

        Raises RequestRefused, with what a person has to do, where Telegram does not let us make one.
        """
        key = key_of(registration)
        binding = self._by_key.get(key)
        if binding is None or binding.thread_id is None or binding.chat_id != self.chat_id:
            binding = await self._adopt(key, registration) or await self._create(key, registration)
        target = Target(chat_id=binding.chat_id, thread_id=binding.thread_id)
        return Provisioned(target=target, thread_name=binding.name)

    async def _adopt(self, key: str, registration: Registration) -> Binding | None:
        """Take over the thread that the follower had with a leader whose store we do not have."""
        target = registration.target
        if target is None or target.chat_id != self.chat_id or not isinstance(target.thread_id, int):
            return None
        if target.thread_id in self._by_thread:
            return None  # it belongs to another follower by now
        name = threads.thread_name(registration.thread_name, key, self._names(key))
        return await self._bind(key, target.thread_id, name)

    async def _create(self, key: str, registration: Registration) -> Binding:
        name = threads.thread_name(registration.thread_name, key, self._names(key))
        if (begun := self._by_key.get(key)) is not None and begun.chat_id == self.chat_id:
            log.warning("making the thread %s was begun before and cut off; if there are two, delete the other", name)
        # The intent comes first: another follower cannot take the name meanwhile, and a crash leaves a trace.
        now = self.now_ms()
        colour = threads.icon_colour(len(self._by_key))
        self._by_key[key] = Binding(key=key, chat_id=self.chat_id, thread_id=None, name=name, since_ms=now)
        await self.store.intend_thread(key, self.chat_id, name, now)
        crash.point("after-intend-thread")
        # A follower that gives up meanwhile comes back, and shall find its thread instead of getting a second one.
        # It cannot hang: the sender answers whatever was asked of it, also when it is ended itself.
        with trio.CancelScope(shield=True):
            await self._make(key, name, colour)
        return self._by_key[key]

    async def _make(self, key: str, name: str, colour: int) -> None:
        try:
            wanted = {"chat_id": self.chat_id, "name": name, "icon_color": colour}
            topic = await self.call("createForumTopic", wanted, self.chat_id)
        except (ApiError, NotSent, RequestRefused) as error:  # surely not made; anything else leaves a trace
            await self.store.unbind(key)
            del self._by_key[key]
            if isinstance(error, ApiError):
                raise RequestRefused(_explain(error, name)) from error
            raise
        thread_id = topic.get("message_thread_id") if isinstance(topic, dict) else None
        if not isinstance(thread_id, int):
            raise RequestRefused(f"Telegram's answer to createForumTopic names no thread: {str(topic)[:100]}")
        crash.point("after-make-thread")
        log.info("made the thread %s (%d) for %s", name, thread_id, key)
        await self._bind(key, thread_id, name)

    async def _bind(self, key: str, thread_id: int, name: str) -> Binding:
        now = self.now_ms()
        binding = Binding(key=key, chat_id=self.chat_id, thread_id=thread_id, name=name, since_ms=now)
        self._remember(binding)  # first, so that nobody else takes the thread or the name meanwhile
        await self.store.bind_thread(key, self.chat_id, thread_id, name, now)
        crash.point("after-bind-thread")
        return binding

    def _remember(self, binding: Binding) -> None:
        self._by_key[binding.key] = binding
        if binding.thread_id is not None and binding.chat_id == self.chat_id:
            earlier = self._by_thread.get(binding.thread_id)
            if earlier is not None and earlier != binding.key:  # as in the store: a thread has one owner
                del self._by_key[earlier]
            self._by_thread[binding.thread_id] = binding.key

    def _names(self, key: str) -> set[str]:
        return {b.name for b in self._by_key.values() if b.chat_id == self.chat_id and b.key != key}


def _explain(error: ApiError, name: str) -> str:
    text = error.description.casefold()
    remedy = next((remedy for sign, remedy in _REMEDIES if sign.casefold() in text), None)
    said = f"no thread could be made for {name}: Telegram says {error.description!r}"
    return f"{said}; {remedy}" if remedy else said
