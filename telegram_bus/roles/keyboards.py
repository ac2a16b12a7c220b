"""The buttons whose meaning the leader keeps, and the questions that agents ask people."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

import trio
from attrs import define, evolve, field

from telegram_bus import crash
from telegram_bus.core import buttons
from telegram_bus.core.buttons import Kept
from telegram_bus.core.codec import dumps
from telegram_bus.core.errors import ApiError, BusError, LeadershipLost, RequestRefused, StateError
from telegram_bus.core.extensions import ButtonsKeep, QuestionWait
from telegram_bus.core.identity import MAX_SAFE_INTEGER, call_id
from telegram_bus.core.outcomes import chat_of
from telegram_bus.core.registry import Member
from telegram_bus.core.updates import UpdateInfo
from telegram_bus.roles.calls import NAMED
from telegram_bus.store import NewUpdate, Store
from telegram_bus.store.buttons import End

__all__ = ["Edit", "Ends", "Keyboards"]

log = logging.getLogger(__name__)

LONGEST_WAIT: Final = 25.0  # seconds that a question for answers may wait: less than the asker's 30 s
SHOWING_TRIES: Final = 5  # to change a question into its answer; the next leader tries again
FIRST_PAUSE: Final = 1.0
MOST_ASKED: Final = 10_000  # questions whose answers one request asks for: each may be a look into the store

NOT_KNOWN: Final = "the bus does not know this question any more"
WITHDRAWN: Final = "not needed any more"


Edit = Callable[[str, Mapping[str, Any], int], Awaitable[Any]]
Ask = Callable[[str, str, dict[str, Any], str], Awaitable[Any]]


class Ends:
    """What the presses of a batch come to: the keyboards that they end, and what people are told at once."""

    def __init__(self) -> None:
        self.ends: dict[str, End] = {}
        self.toasts: list[tuple[str, str | None]] = []


@define(kw_only=True, eq=False)
class Keyboards:
    """Keeps buttons and questions for their owners; `run` shows people what became of questions.

    `edit` changes the text of a message (whose it is, the parameters, its chat), `ask` makes a call under an id (its
    owner's key, method, parameters, id), `away` names an owner that is not here, `say` answers a press.
    """

    store: Store = field(repr=False)
    edit: Edit = field(repr=False)
    ask: Ask = field(repr=False)
    now_ms: Callable[[], int] = field(repr=False)
    away: Callable[[str], str | None] = field(repr=False)
    say: Callable[[str, str | None], None] = field(repr=False)
    _open: dict[str, Kept] = field(factory=dict)
    _sending: dict[str, str] = field(factory=dict)
    _asking: set[str] = field(factory=set)  # again, in another chat: where they stood is nothing any more
    _changed: dict[str, trio.Event] = field(factory=dict)
    _channel: tuple[
        trio.MemorySendChannel[Callable[[], Awaitable[None]]], trio.MemoryReceiveChannel[Callable[[], Awaitable[None]]]
    ] = field(
        factory=lambda: trio.open_memory_channel[Callable[[], Awaitable[None]]](math.inf)  # one for each question
    )

    async def load(self) -> None:
        """Read back the questions that earlier leaders were asked."""
        for kept in await self.store.keyboards.open_questions():
            self._open[kept.id] = kept
            if kept.answer is not None and not kept.shown:
                self._show_soon(kept)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Show answers until cancelled."""
        async with trio.open_nursery() as nursery:
            task_status.started()
            nursery.start_soon(self._ask_left)
            async for work in self._channel[1]:
                nursery.start_soon(work)

    # -- for followers

    async def keep(self, member: Member, request: ButtonsKeep) -> dict[str, Any]:
        """Keep a keyboard before the message with it is sent; the same id again gets what was kept first.

        Raises RequestRefused for what is no keyboard, for an id that is another follower's, and for a message that is
        not its own: the answer would be written over it, and replies to it would be taken for answers.
        """
        try:
            content = buttons.check_content(request.keyboard_id, request.content)
        except ValueError as error:
            raise RequestRefused(str(error)) from error
        known = self._open.get(request.keyboard_id)
        placed = request.keyboard_id in self._asking or (known is not None and known.place is not None)
        place = None if placed else _place(member, request.message_id)
        if place is not None and not await self._is_own(member, place):
            raise RequestRefused(f"message {request.message_id} is not one that {member.key} sent")
        holder = member.instance_id if request.bound and "question" in content else None
        kept = await self.store.keyboards.keep(
            Kept(request.keyboard_id, member.key, content, holder, None, None, shown=False, taken=False), self.now_ms()
        )
        if kept.key != member.key:
            raise RequestRefused("this id is that of another follower's keyboard: take a new one")
        if place is not None and kept.place is None:
            await self.store.keyboards.place(kept.id, place)
            kept = kept._replace(place=place)
        if kept.question is not None and not (kept.shown and (kept.taken or kept.holder is None)):
            kept = self._open.setdefault(kept.id, kept)
            if kept.place is None and place is None:
                self._sending[_call(kept.id)] = kept.id
            if place is not None and kept.place is None:
                kept = self._open[kept.id] = kept._replace(place=place)
                if kept.answer is not None:
                    self._show_soon(kept)
            self._wake(kept.key)
        return {
            "content": kept.content,
            "messageId": kept.place[1] if kept.place is not None else None,
            "answer": kept.answer,
        }

    async def note_sent(self, member: Member, call: str, result: Any) -> None:
        """The call of this id was made: if it asked a question, that stands under the message from now on."""
        kept = self._open.get(self._sending.pop(call, ""))
        place = _sent(result) or _place(member, result.get("message_id") if isinstance(result, dict) else None)
        if kept is None or kept.place is not None or place is None:
            return
        self._open[kept.id] = kept._replace(place=place)
        try:
            await self.store.keyboards.place(kept.id, place)
        except StateError as error:  # its follower says it once more
            log.warning("not noted where a question of %s stands: %s", kept.key, error)

    async def wait(self, member: Member, request: QuestionWait) -> dict[str, Any]:
        """The answers to those of the member's questions that have one; none after `wait_ms`, or when it asks another.

        What is not known, or not its own, has expired. Raises RequestRefused for more than 10,000 at once.
        """
        if len(request.questions) + len(request.withdrawn or ()) > MOST_ASKED:
            raise RequestRefused(f"ask for the answers to at most {MOST_ASKED} questions at once")
        for keyboard_id in request.withdrawn or ():
            kept = await self._of(member, keyboard_id)
            if kept is not None and kept.answer is None:
                await self._expire(kept, WITHDRAWN)
        changed = self._changed.setdefault(member.key, trio.Event())
        answers = await self._answers(member, request.questions)
        if not answers and request.wait_ms:
            with trio.move_on_after(min(LONGEST_WAIT, max(0, request.wait_ms) / 1000)):
                await changed.wait()
            answers = await self._answers(member, request.questions)
        return {"answers": answers}

    async def _is_own(self, member: Member, place: tuple[int, int]) -> bool:
        return 0 < place[1] <= MAX_SAFE_INTEGER and await self.store.owner_of(*place) == member.key

    async def _of(self, member: Member, keyboard_id: str) -> Kept | None:
        """The member's question of this id; None for what is not its own."""
        kept = self._open.get(keyboard_id) or await self.store.keyboards.find(keyboard_id)
        if kept is None or kept.key != member.key or kept.holder not in (None, member.instance_id):
            return None
        return kept

    async def _answers(self, member: Member, questions: Iterable[str]) -> dict[str, Any]:
        answers: dict[str, Any] = {}
        taken = []
        for keyboard_id in questions:
            kept = await self._of(member, keyboard_id)
            if kept is None:
                answers[keyboard_id] = {"expired": NOT_KNOWN}
            elif kept.answer is not None:
                answers[keyboard_id] = kept.answer
                if kept.holder is not None and not kept.taken:
                    taken.append(kept)
        if taken:
            await self.store.keyboards.note_taken([kept.id for kept in taken])
            for kept in taken:
                self._note(kept.id, taken=True)
        return answers

    def note_members(self, members: Iterable[Member]) -> None:
        """These followers are here: what an earlier process of theirs asked for itself has no asker any more."""
        instances = {member.key: member.instance_id for member in members}
        for kept in list(self._open.values()):
            instance = instances.get(kept.key)
            if kept.holder is not None and instance is not None and instance != kept.holder and not kept.taken:
                self._note(kept.id, taken=True)  # and so only once
                self._channel[0].send_nowait(partial(self._lose, kept))

    async def forget_gone(self) -> None:
        """What is out of date was deleted from the store: whoever waits for an answer to it hears so."""
        known = list(self._open)
        there = {kept.id for kept in await self.store.keyboards.open_questions()}
        for keyboard_id in known:
            if keyboard_id not in there and (kept := self._open.pop(keyboard_id, None)) is not None:
                self._wake(kept.key)
        self._sending = {call: one for call, one in self._sending.items() if one in self._open}

    # -- in another chat

    async def moved(self, old: int, new: int) -> None:
        """The group became a supergroup: what people were asked in it and have not answered is asked there again.

        Messages of the old one can be neither changed nor answered. Raises what the store raises.
        """
        asked = [kept for kept in self._open.values() if kept.answer is None and (kept.place or (None,))[0] == old]
        if not asked:
            return
        await self.store.keyboards.ask_again([(one.id, one.key, NAMED + _call(one.id)) for one in asked], new)
        for kept in asked:
            self._open[kept.id] = self._open.get(kept.id, kept)._replace(place=None)
            self._ask_soon(kept.id, new)

    async def _ask_left(self) -> None:
        """What an earlier leader could not ask again."""
        try:
            for keyboard_id, chat_id in await self.store.keyboards.to_ask_again():
                if keyboard_id in self._open:
                    self._ask_soon(keyboard_id, chat_id)
        except StateError as error:
            log.warning("which questions are to be asked again is not known: %s", error)

    def _ask_soon(self, keyboard_id: str, chat_id: int) -> None:
        if keyboard_id not in self._asking:
            self._asking.add(keyboard_id)
            self._channel[0].send_nowait(partial(self._ask_again, keyboard_id, chat_id))

    async def _ask_again(self, keyboard_id: str, chat_id: int) -> None:
        try:
            kept = self._open.get(keyboard_id)
            if kept is None or kept.answer is not None:
                return
            params = {"chat_id": chat_id, **buttons.question_message(keyboard_id, kept.content)}
            place = _sent(await self.ask(kept.key, "sendMessage", params, _call(keyboard_id)))
            if place is None:
                return
            await self.store.keyboards.place(keyboard_id, place)
            kept = self._open.get(keyboard_id) or await self.store.keyboards.find(keyboard_id)
            if kept is None:
                return
            if keyboard_id in self._open:
                self._open[keyboard_id] = kept._replace(place=place)
            if kept.answer is not None:  # it ended while it was on its way
                await self._show(kept._replace(place=place))
        except LeadershipLost:
            raise
        except BusError as error:
            log.warning("the question %s is not asked in chat %d: %s", keyboard_id, chat_id, error)
        finally:
            self._asking.discard(keyboard_id)

    # -- for updates

    async def weigh(self, info: UpdateInfo, raw: Mapping[str, Any], row: NewUpdate, ends: Ends) -> NewUpdate:
        """What an update that was let in comes to where it is a press of a kept button, or answers a question."""
        if row.outcome is not None:
            return row
        if info.kind == "callback_query" and (place := buttons.kept_place(info.text)) is not None:
            return await self._weigh_press(info, raw, row, ends, place)
        if info.kind == "message" and info.reply_to is not None and info.chat_id is not None:
            where = (info.chat_id, info.reply_to)
            kept = next((one for one in self._open.values() if one.place == where), None)
            if kept is not None and kept.id not in ends.ends:
                user = raw["message"].get("from") or {}
                replied = buttons.replied(kept, info.text, user=user, update_id=info.update_id)
                if replied is not None and replied.answer is not None:
                    ends.ends[kept.id] = (kept.id, replied.answer, where)
                    return evolve(row, owner_key=kept.key, outcome="answered")
        return row

    async def _weigh_press(
        self, info: UpdateInfo, raw: Mapping[str, Any], row: NewUpdate, ends: Ends, place: tuple[str, int]
    ) -> NewUpdate:
        keyboard_id, number = place
        kept = self._open.get(keyboard_id) or await self.store.keyboards.find(keyboard_id)
        if kept is not None and keyboard_id in ends.ends:
            kept = kept._replace(answer=ends.ends[keyboard_id][1])
        query = raw["callback_query"]
        where = None if info.chat_id is None or info.message_id is None else (info.chat_id, info.message_id)
        outcome = buttons.pressed(
            kept,
            number,
            user=query["from"],
            owner=None if where is None else self.store.owner_nowait(*where),
            update_id=info.update_id,
            away=None if kept is None else self.away(kept.key),
        )
        if kept is not None and outcome.answer is not None:
            ends.ends[keyboard_id] = (keyboard_id, outcome.answer, where)
        if kept is not None and outcome.deliver:
            carried = {**raw, "callback_query": {**query, buttons.BUTTON_DATA: outcome.data}}
            return evolve(row, owner_key=kept.key, body=dumps(carried))
        if info.callback_id is not None and outcome.toast is not None:
            ends.toasts.append((info.callback_id, outcome.toast))
        return evolve(row, owner_key=None if kept is None else kept.key, outcome="answered")

    def note_ends(self, ends: Ends) -> None:
        """The ends are on the disk: tell people, and those who asked."""
        for query_id, text in ends.toasts:
            self.say(query_id, text)
        for keyboard_id, (_, answer, where) in ends.ends.items():
            kept = self._open.get(keyboard_id)  # where every question is that has not ended
            if kept is not None and kept.answer in (None, answer):
                self._ended(kept._replace(answer=answer, place=kept.place or where))

    # -- what became of questions

    async def _expire(self, kept: Kept, why: str) -> None:
        answer = {"expired": why}
        if await self.store.keyboards.end((kept.id, answer, None)):
            await self.store.keyboards.note_taken([kept.id])  # nobody is going to
            self._ended(self._open.get(kept.id, kept)._replace(answer=answer, taken=True))

    async def _lose(self, kept: Kept) -> None:
        """The process that asked for itself has gone: its question expires, or its answer has come in vain."""
        kept = self._open.get(kept.id, kept)
        try:
            await self.store.keyboards.note_taken([kept.id])
            if kept.answer is None:
                await self._expire(kept, f"{kept.key} was started anew since it asked this")
            elif "expired" not in kept.answer:
                lost = f"{kept.key} was started anew and has not got this answer"
                await self._show(kept._replace(answer={**kept.answer, "lost": lost}, shown=False))
        except StateError as error:
            log.warning("a question of %s stays open: %s", kept.key, error)

    def _ended(self, kept: Kept) -> None:
        self._open[kept.id] = kept
        self._wake(kept.key)
        self._show_soon(kept)

    def _wake(self, key: str) -> None:
        self._changed.pop(key, trio.Event()).set()

    def _show_soon(self, kept: Kept) -> None:
        if kept.place is not None or "expired" in (kept.answer or {}):  # else once it is known
            self._channel[0].send_nowait(partial(self._show, kept))

    async def _show(self, kept: Kept) -> None:
        """Change the message of a question to what became of it, without buttons."""
        if kept.place is None:  # its message was not sent
            await self._note_shown(kept)
            return
        crash.point("before-show-answer")
        chat_id, message_id = kept.place
        params = {"chat_id": chat_id, "message_id": message_id, "text": buttons.closed_text(kept)}
        for number in range(SHOWING_TRIES):
            try:
                await self.edit(kept.key, params, chat_id)
            except ApiError as refusal:  # it was changed so before, or is gone
                log.debug("the answer to a question of %s is not shown: %s", kept.key, refusal)
            except BusError as error:
                log.warning("the answer to a question of %s is not shown yet: %s", kept.key, error)
                await trio.sleep(FIRST_PAUSE * 2**number)
                continue
            break
        else:
            return
        await self._note_shown(kept)

    async def _note_shown(self, kept: Kept) -> None:
        try:
            await self.store.keyboards.note_shown(kept.id)
        except StateError as error:  # the next leader shows it once more
            log.warning("not noted that an answer is shown: %s", error)
        self._note(kept.id, shown=True)

    def _note(self, keyboard_id: str, *, shown: bool = False, taken: bool = False) -> None:
        """Something happened to a question; one that everybody knows all of is not kept in memory."""
        kept = self._open.get(keyboard_id)
        if kept is None:
            return
        kept = self._open[keyboard_id] = kept._replace(shown=kept.shown or shown, taken=kept.taken or taken)
        if kept.shown and kept.answer is not None and (kept.taken or kept.holder is None):
            del self._open[keyboard_id]


def _call(keyboard_id: str) -> str:
    """The id of the call that asks a question, whoever makes it."""
    return call_id("question", keyboard_id)


def _sent(result: Any) -> tuple[int, int] | None:
    """Where the message stands that a call has sent."""
    message = result if isinstance(result, dict) else {}
    chat, message_id = chat_of({"chat_id": (message.get("chat") or {}).get("id")}), message.get("message_id")
    return (chat, message_id) if chat is not None and isinstance(message_id, int) else None


def _place(member: Member, message_id: int | None) -> tuple[int, int] | None:
    chat = member.target.chat_id if member.target is not None else None
    return (chat, message_id) if isinstance(chat, int) and message_id is not None else None
