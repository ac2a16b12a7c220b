"""What belongs to whom: messages and files that followers were given or have sent, presses that they may answer."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import trio
from attrs import define, evolve, field, frozen

from telegram_bus.core.identity import MAX_SAFE_INTEGER
from telegram_bus.core.permissions import Owned, too_much
from telegram_bus.core.registry import Member
from telegram_bus.core.scopes import named_files, wire_id
from telegram_bus.core.updates import UpdateInfo
from telegram_bus.core.values import Number
from telegram_bus.roles.files import Files
from telegram_bus.roles.saving import Saving
from telegram_bus.store import Store

__all__ = ["Possessions"]

log = logging.getLogger(__name__)

REMEMBERED: Final = 4_096  # messages and presses of buttons, each, that followers were given last
MOST_FILES: Final = 100  # that one call names: an album has ten

Place = tuple[Number, Number]


@frozen(kw_only=True)
class _Property:
    """What belongs to one member, for the policy."""

    key: str
    all: Possessions

    def message(self, chat_id: Number, message_id: Number, /) -> bool:
        place = _place(chat_id, message_id)
        return place is not None and self.all.store.owner_nowait(*place) == self.key

    def seen(self, chat_id: Number, message_id: Number, /) -> bool:
        return self.all.messages.get((chat_id, message_id)) == self.key or self.message(chat_id, message_id)

    def callback(self, query_id: str, /) -> bool:
        return self.all.callbacks.get(query_id) == self.key

    def file(self, file_id: str, /) -> bool:
        return self.all.files.belongs(file_id, self.key)


@define(kw_only=True, eq=False)
class Possessions:
    """The possessions of one term: the latest in memory, all of 90 days in the store, a moment later.

    What a crash keeps from the store is in the updates and answers that are stored themselves, which the next leader
    reads (`Term.recall_given`). Presses are not stored: nobody can answer one that is minutes old (bot-api M12).
    """

    store: Store = field(repr=False)
    files: Files = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    messages: OrderedDict[Place, str] = field(factory=OrderedDict)
    callbacks: OrderedDict[str, str] = field(factory=OrderedDict)
    recalled: trio.Event = field(factory=trio.Event)
    """Set once what earlier leaders had given is known again (`Term.recall_given`)."""
    _saving: Saving[tuple[int, int], str] = field(factory=lambda: Saving("who was given which message"), repr=False)

    def note(self, info: UpdateInfo, key: str) -> None:
        """An update goes to this follower, which may react to its message, answer its button and fetch its files."""
        if info.chat_id is not None and info.message_id is not None:
            self._remember((info.chat_id, info.message_id), key)
            self._saving.note({(info.chat_id, info.message_id): key})
        if info.callback_id is not None:
            self.callbacks[info.callback_id] = key
            _keep(self.callbacks)
        self.files.note(key, info.files)

    async def passed_on(self, member: Member, info: UpdateInfo) -> UpdateInfo | None:
        """What the member may give away with an update: the rights that it has itself. None: it never got this.

        Nobody can make up an update that gives another follower a right to what is somebody else's.
        """
        if info.chat_id is None or info.message_id is None:
            return None
        place = {"chat_id": info.chat_id, "message_id": info.message_id}
        recall = self.recall(member, "", ("", place))
        if recall is not None:
            await recall()
        own = self.of(member)
        if not own.seen(info.chat_id, info.message_id):
            return None
        unknown = self.files.recall(member.key, info.files[:MOST_FILES])
        if unknown is not None:
            await unknown()
        callback = info.callback_id if info.callback_id is not None and own.callback(info.callback_id) else None
        return evolve(info, callback_id=callback, files=tuple(filter(own.file, info.files)))

    def recollect(self, info: UpdateInfo, key: str) -> None:
        """As `note`, of an update that an earlier leader had; what is known of its message already is newer."""
        if (info.chat_id, info.message_id) not in self.messages:
            self.note(info, key)

    def of(self, member: Member) -> Owned:
        """What belongs to the member."""
        return _Property(key=member.key, all=self)

    def recall(self, member: Member, method: str, args: Sequence[Any]) -> Callable[[], Awaitable[None]] | None:
        """What looks up in the store whose the messages and files are that a call names; None: memory knows them."""
        body = args[1] if len(args) > 1 and isinstance(args[1], dict) else {}
        if too_much(body):  # whatever it names it is refused
            return None
        reply = body.get("reply_parameters")
        places = (body, {"chat_id": body.get("chat_id"), **reply}) if isinstance(reply, dict) else (body,)
        pairs = [_place(wire_id(place.get("chat_id")), wire_id(place.get("message_id"))) for place in places]
        unknown = [pair for pair in pairs if pair is not None and self.store.owner_nowait(*pair) is None]
        named = list(args[:1]) if method == "downloadFile" else list(named_files(body)) if member.extended else []
        files = self.files.recall(member.key, [one for one in named if isinstance(one, str)][:MOST_FILES])
        pressed = isinstance(query_id := body.get("callback_query_id"), str) and query_id not in self.callbacks
        if not unknown and files is None and (not pressed or self.recalled.is_set()):
            return None

        async def recall() -> None:
            await self.recalled.wait()
            for chat, message in unknown:
                if await self.store.owner_of(chat, message) is None and (chat, message) not in self.messages:
                    key = await self.store.given_to(chat, message)
                    if key is not None:
                        self._remember((chat, message), key)
            if files is not None:
                await files()

        return recall

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the store informed until cancelled, of many things at once."""
        task_status.started()
        await self._saving.run(lambda given: self.store.note_given(list(given.items()), self.now_ms()))

    def _remember(self, place: Place, key: str) -> None:
        self.messages[place] = key
        _keep(self.messages)


def _place(chat_id: Number | None, message_id: Number | None) -> tuple[int, int] | None:
    """A chat and a message by whole numbers that a store takes (Telegram's have 52 bits); None for anything else."""
    if chat_id is None or message_id is None:
        return None
    if not (abs(chat_id) <= MAX_SAFE_INTEGER and abs(message_id) <= MAX_SAFE_INTEGER):  # so that NaN is none either
        return None
    chat, message = int(chat_id), int(message_id)
    return (chat, message) if (chat, message) == (chat_id, message_id) else None


def _keep(given: OrderedDict[Any, str]) -> None:
    if len(given) > REMEMBERED:
        given.popitem(last=False)
