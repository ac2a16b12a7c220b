"""Which follower has which thread: durable bindings, and new threads for those who have none."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Literal, Protocol, TypeGuard, assert_never

import trio
from attrs import define, field

from telegram_bus import crash
from telegram_bus.core import threads
from telegram_bus.core.bindings import Binding, Changes, verdict_of
from telegram_bus.core.book import Adopted, Book, Given, Make, Wait
from telegram_bus.core.envelopes import Registration, Target
from telegram_bus.core.errors import ApiError, BusError, NotSent, RequestRefused, StateError
from telegram_bus.core.identity import MAX_SAFE_INTEGER
from telegram_bus.core.registry import Provisioned, key_of
from telegram_bus.core.updates import GENERAL
from telegram_bus.roles.watched import Watched
from telegram_bus.store import Store

__all__ = ["Call", "Calling", "Missing", "Threads"]

log = logging.getLogger(__name__)

Call = Callable[[str, Mapping[str, Any], int | None], Awaitable[Any]]
"""Makes a Bot API call: method, parameters, the chat whose queue it waits in."""

Missing = Literal["not found", "elsewhere", "closed"]

ANSWER_WITHIN: Final = 25.0
"""Seconds that a registration waits for news of a thread; its follower gives up after 30 s (protocol section 1)."""

LONGEST_WAIT: Final = 20.0
"""Seconds that output waits for the end of an outage; what would wait longer is refused (protocol section 5)."""

TICK: Final = 1.0

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


class Calling(Protocol):
    """`Sender.call`, as far as threads need it."""

    async def __call__(
        self,
        method: str,
        params: Mapping[str, Any],
        chat_id: int | None = None,
        /,
        *,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> Any:
        """Makes the call; `before` is awaited when it is its turn, and what it raises (a BusError) becomes of it."""


async def _as_it_is(registration: Registration) -> str | None:
    return registration.thread_name


async def _nobody_moves(_key: str, _binding: Binding) -> None:
    pass


@define(kw_only=True, eq=False)
class Threads:
    """The bindings of one bot's chat; every change is in the store before its follower hears of it.

    `wanted` is what a follower's thread shall be called (None: the palette decides), `move` tells a live follower of
    another thread, `say` tells people in the main chat, `serving` says whether polls come through, `named` hears of
    each thread whose row was changed, since its name may be another.
    """

    store: Store = field(repr=False)
    chat_id: int
    call: Calling = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    wanted: Callable[[Registration], Awaitable[str | None]] = field(default=_as_it_is, repr=False)
    move: Callable[[str, Binding], Awaitable[None]] = field(default=_nobody_moves, repr=False)
    say: Callable[[str], None] = field(default=log.warning, repr=False)
    serving: Callable[[], bool] = field(default=lambda: True, repr=False)
    named: Callable[[Binding], None] = field(default=lambda _: None, repr=False)
    book: Book = field(init=False)
    outage: str | None = None
    """Why nothing is sent into any thread just now; None: it is."""
    cleaning: dict[str, trio.Event] = field(factory=dict)
    """Keys whose thread is being closed or deleted at this moment, and when that has ended."""
    changed: Watched[int] = field(factory=lambda: Watched(0), repr=False)
    """Counts the changes of any thread that are on the disk."""
    reports: tuple[trio.MemorySendChannel[tuple[int, Missing]], trio.MemoryReceiveChannel[tuple[int, Missing]]] = field(
        factory=lambda: trio.open_memory_channel[tuple[int, Missing]](math.inf), repr=False
    )
    _making: dict[str, trio.Event] = field(factory=dict)
    _clear: trio.Event = field(factory=trio.Event)
    _owed: Changes = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.book = Book(self.chat_id)

    async def load(self) -> None:
        """Read what earlier leaders knew."""
        self.book = Book(self.chat_id, await self.store.threads_kept())

    def of_thread(self, chat_id: int, thread_id: int, /) -> str | None:
        """The key of the follower that this thread belongs to."""
        return self.book.owner(thread_id) if chat_id == self.chat_id else None

    def of_key(self, key: str) -> Binding | None:
        """The binding of a follower."""
        return self.book.bindings.get(key)

    def name_of(self, key: str) -> str:
        """What people call a follower, here or not: as its thread is called, or by its key where it has none."""
        binding = self.of_key(key)
        return binding.name if binding is not None else key

    def all(self) -> tuple[Binding, ...]:
        """All bindings, in the order in which they were made."""
        return tuple(self.book.bindings.values())

    # -- what others notice

    def thread_missing(self, chat_id: int, thread_id: int, how: Missing) -> None:
        """A send into the thread was not what it should be; call it wherever that is seen, it returns at once.

        `how` is "not found" (Telegram refused: `message thread not found`, `TOPIC_ID_INVALID`), "elsewhere" (the
        message came back with another thread, or none), or "closed" (`TOPIC_CLOSED`). Whether the thread is really
        gone is found out by roles/visibility.py; nothing is changed before that.
        """
        log.warning("a message for thread %d of chat %d: %s", thread_id, chat_id, how)
        if chat_id == self.chat_id:
            self.reports[0].send_nowait((thread_id, how))

    async def chat_migrated(self, old: int, new: int) -> bool:
        """The group became a supergroup (an error's or a service message's `migrate_to_chat_id`).

        Every binding is the new chat's when it returns, in the store too; False where `old` is not our chat (any
        more), so who sends again after it may come twice. Whoever keeps the chat elsewhere (settings, rules, queues)
        changes it there.
        """
        if old != self.chat_id or old == new:
            return False
        self.chat_id = new
        await self.note(self.book.migrate(new))
        return True

    async def heard(self, batch: Iterable[Mapping[str, Any]], bot_id: int) -> None:
        """What a batch of updates says of threads, stored before the batch's offset is: it will not come again."""
        changes: Changes = []
        for update in batch:
            message = update.get("message")
            if isinstance(message, dict):
                changes += self.book.heard(message, bot_id, self.now_ms())
        await self.note(changes)
        if changes:
            crash.point("after-bind-thread")

    # -- places for followers

    async def provide(self, registration: Registration) -> Provisioned:
        """Find the follower's thread or make one.

        Raises RequestRefused, with what a person has to do, where Telegram does not let us make one, and where one
        was asked for and nobody knows whether it was made: then its follower asks again later.
        """
        binding = await self._provide(registration)
        target = Target(chat_id=binding.chat_id, thread_id=binding.thread_id)
        return Provisioned(target=target, thread_name=binding.name)

    async def before_output(self, key: str, holder: str | None = None) -> Binding | None:
        """To be awaited before something goes out into a follower's own thread; returns the thread where it is new.

        One that a person deleted is made anew, once for each process that has it. Raises RequestRefused while
        Telegram seems to have lost threads, and where the person deleted it once more.
        """
        if self.outage is not None:
            await self._sit_out()
        binding = self.book.bindings.get(key)
        if binding is None or binding.gone_ms is None:
            return None
        while (making := self._making.get(key)) is not None:
            await making.wait()
        try:
            step = self.book.remake(key)
        except PermissionError as error:
            raise RequestRefused(f"{error}; to have it made again: telegram-bus threads unbind {key}") from None
        match step:
            case Make(name=name):
                log.warning("the thread %s (%s) was deleted; making it anew", name, binding.thread_id)
                await self._create(key, name, holder or binding.holder)
            case Wait():
                await self._wait_settled(key)
            case _:
                pass
        made = self.book.bindings.get(key)
        return None if made is None or made.gone_ms is not None else made

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Give threads up that were asked for and do not appear, until cancelled."""
        task_status.started()
        while True:
            while not self.book.creations:
                await self.changed.wait_changed()
            await trio.sleep(TICK)
            if self.serving():
                await self._give_up()

    async def note(self, changes: Changes) -> None:
        """Have the changes on the disk, and wake who waits for them.

        What a disk that fails did not take is written with the next changes, before them: the book is ahead meanwhile.
        """
        owed, self._owed = [*map(self.book.current, self._owed), *changes], []
        if not owed:
            return
        try:
            await self.store.note_threads(owed)
        except StateError:
            self._owed = owed + self._owed
            raise
        self.changed.set(self.changed.value + 1)
        for row in owed:
            if isinstance(row, Binding):
                self.named(row)

    def note_outage(self, why: str | None) -> None:
        """Telegram seems to have lost threads (None: not any more): nothing is sent into any of them meanwhile."""
        self.outage = why
        if why is None:
            self._clear.set()
        elif self._clear.is_set():
            self._clear = trio.Event()

    # --

    async def _provide(self, registration: Registration) -> Binding:
        key, target = key_of(registration), registration.target
        while (ending := self.cleaning.get(key, self._making.get(key))) is not None:
            await ending.wait()
        known = key in self.book.bindings or key in self.book.creations
        name = None if known else await self.wanted(registration)
        ours = target is not None and target.chat_id == self.chat_id
        named = target.thread_id if target is not None and ours and _may_be_kept(target.thread_id) else None
        holder = registration.instance_id
        while True:
            step, changes = self.book.register(key, holder=holder, thread_id=named, wanted=name, now_ms=self.now_ms())
            await self.note(changes)
            match step:
                case Given(binding=binding, reopen=reopen):
                    if reopen:
                        await self._reopen(binding)
                    return self.book.bindings.get(key, binding)
                case Adopted(binding=binding):
                    crash.point("after-bind-thread")
                    log.info("%s keeps thread %s, which it had before", key, binding.thread_id)
                    return binding
                case Wait():
                    await self._wait_settled(key)
                case Make(name=chosen):
                    await self._create(key, chosen, holder)
                case _:
                    assert_never(step)

    async def _create(self, key: str, name: str, holder: str | None) -> None:
        """Make a thread; returns once it is bound, or once its making has to be waited for."""
        self._making[key] = done = trio.Event()
        try:
            # A follower that gives up meanwhile comes back, and shall find its thread instead of getting a second one.
            # It cannot hang: the sender answers whatever was asked of it, also when it is ended itself.
            with trio.CancelScope(shield=True):
                await self._make(key, name, holder)
        finally:
            del self._making[key]
            done.set()

    async def _make(self, key: str, name: str, holder: str | None) -> None:
        self.book.reserve(key, name)
        colour = threads.icon_colour(len(self.book.bindings) + len(self.book.creations))
        wanted = {"chat_id": self.chat_id, "name": name, "icon_color": colour}
        begun = False

        async def begin() -> None:
            """When it is its turn: what only waits when this leader dies was surely not made."""
            nonlocal begun
            await self.note(self.book.begin(key, name, holder=holder, now_ms=self.now_ms()))
            begun = True
            crash.point("after-intend-thread")

        try:
            topic = await self.call("createForumTopic", wanted, self.chat_id, before=begin)
        except (ApiError, NotSent, RequestRefused, StateError) as error:  # surely not made
            changes = self.book.not_made(key)
            if begun:
                await self.note(changes)
            else:
                self._owed += changes
            if isinstance(error, ApiError):
                raise RequestRefused(_explain(error, name)) from error
            raise
        except BusError as error:
            self.book.lost(key)
            log.warning("whether the thread %s was made is not known (%s); looking for it", name, error)
            return
        thread_id = topic.get("message_thread_id") if isinstance(topic, dict) else None
        if not isinstance(thread_id, int):
            await self.note(self.book.not_made(key))
            raise RequestRefused(f"Telegram's answer to createForumTopic names no thread: {str(topic)[:100]}")
        crash.point("after-make-thread")
        await self._made(key, name, thread_id)

    async def _made(self, key: str, name: str, thread_id: int) -> None:
        changes = self.book.made(key, thread_id, self.now_ms())
        await self.note(changes)
        crash.point("after-bind-thread")
        if changes:
            log.info("made the thread %s (%d) for %s", name, thread_id, key)
        elif self.book.owner(thread_id) != key:
            log.warning("the thread %s (%d) was made for %s, which needs it no more: delete it", name, thread_id, key)

    async def _sit_out(self) -> None:
        with trio.move_on_after(LONGEST_WAIT):
            while self.outage is not None:
                await self._clear.wait()
        if self.outage is not None:
            raise RequestRefused(f"nothing is sent into threads just now: {self.outage}; ask again later")

    async def _wait_settled(self, key: str) -> None:
        """Wait for news of a thread that was asked for; raises RequestRefused where none comes in time."""
        with trio.move_on_after(ANSWER_WITHIN):
            while key in self.book.creations:
                await self.changed.wait_changed()
            return
        creation = self.book.creations.get(key)
        if creation is not None:
            raise RequestRefused(
                f"the thread {creation.name} was asked for and Telegram's answer was lost; it is looked for "
                f"({self.book.still_looked_for(key):.0f} s more), then made once more: ask again"
            )

    async def _give_up(self) -> None:
        """Count a tick of polling; what was asked for and did not appear counts as not made."""
        for creation in self.book.polled(TICK):
            log.warning("the thread %s does not appear; it is made once more for %s", creation.name, creation.key)
            try:
                await self.note(self.book.not_made(creation.key))
            except StateError as error:
                log.warning("the next leader will look for the thread %s again: %s", creation.name, error)

    async def _reopen(self, binding: Binding) -> None:
        """A closed thread whose owner is back; where it cannot be opened, an administrator still can write there."""
        place = {"chat_id": binding.chat_id, "message_thread_id": binding.thread_id}
        try:
            await self.call("reopenForumTopic", place, binding.chat_id)
        except ApiError as error:
            if verdict_of(error.description) != "there":
                log.warning("the thread %s stays closed: %s", binding.name, error.description)
                return
        except BusError as error:
            log.warning("the thread %s stays closed: %s", binding.name, error)
            return
        await self.note(self.book.closed(binding.thread_id, closed=False))


def _may_be_kept(thread_id: object) -> TypeGuard[int]:
    """Whether a follower may say that this thread is its own: General is everybody's, and 0 and the like are no thread.

    Telegram takes 0 for the chat outside of all threads; its ids have 52 bits at most.
    """
    return type(thread_id) is int and GENERAL < thread_id <= MAX_SAFE_INTEGER


def _explain(error: ApiError, name: str) -> str:
    text = error.description.casefold()
    remedy = next((remedy for sign, remedy in _REMEDIES if sign.casefold() in text), None)
    said = f"no thread could be made for {name}: Telegram says {error.description!r}"
    return f"{said}; {remedy}" if remedy else said
