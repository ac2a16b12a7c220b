"""Questions to people: sent once, answered whenever, and whoever asked gets the answer, also after a restart."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Self

import trio
from attrs import define, field

from telegram_bus.core import identity
from telegram_bus.core.buttons import QUESTION_UNITS, check_content, question_message
from telegram_bus.core.errors import BusError, Expired
from telegram_bus.core.extensions import ButtonsKeep, QuestionWait
from telegram_bus.core.text import units
from telegram_bus.followers.keyboards import key_for, new_key
from telegram_bus.roles.member import Member

__all__ = ["Answer", "Choices", "Questions"]

Choices = Sequence[str | tuple[str, Any]]
"""What a person may choose: labels, or (label, value) with any JSON value."""

WAIT_MS: Final = 20_000  # that the leader keeps a request for answers; below its own bound of 25 s
WITHDRAWING: Final = 1.0  # seconds for taking a question back, when nobody waits for its answer any more

Make = Callable[[str, dict[str, Any], str | None], Awaitable[Any]]


class Answer(str):
    """What a person answered: the label of a choice, or a text.

    `value` is the value of the choice (the label where it has none; the text), `number` which choice it was (None: a
    text), `sender` Telegram's User object of who answered.
    """

    value: Any
    number: int | None
    sender: dict[str, Any]

    def __new__(cls, text: str, value: Any, number: int | None, sender: Mapping[str, Any]) -> Self:
        made = super().__new__(cls, text)
        made.value, made.number, made.sender = value, number, dict(sender)
        return made


@define(kw_only=True, eq=False)
class Questions:
    """The questions of one follower; `make` makes a Bot API call under a call id."""

    member: Member
    make: Make
    _asked: set[str] = field(factory=set)
    _answers: dict[str, dict[str, Any]] = field(factory=dict)
    _polling: bool = False
    _news: trio.Event = field(factory=trio.Event)

    async def ask(
        self,
        text: str,
        choices: Choices,
        *,
        once: str | None,
        allow_text: bool,
        users: Sequence[int] | None,
    ) -> Answer:
        """What `Bus.ask_person` does."""
        content = _content(text, choices, allow_text=allow_text or not choices, users=users)
        ident = new_key() if once is None else key_for("question", self.member.seat.key, once)
        content = check_content(ident, content)
        self._asked.add(ident)
        try:
            answer = await self._answer_to(ident, content, bound=once is None)
        except (trio.Cancelled, BusError):
            if once is None:
                await self._withdraw(ident)
            raise
        finally:
            self._asked.discard(ident)
            self._answers.pop(ident, None)
        if "expired" in answer:
            raise Expired(f"the question {text[:60]!r} has no answer: {answer['expired']}", code="expired")
        label: str = answer["label"]
        return Answer(label, answer.get("data", label), answer.get("number"), answer["by"])

    async def _answer_to(self, ident: str, content: dict[str, Any], *, bound: bool) -> dict[str, Any]:
        kept = await self._keep(ident, content, bound, None)
        if kept["answer"] is None and kept["messageId"] is None:
            # as it was asked first: who begins anew with other words attaches to the question that there is
            message = question_message(ident, kept["content"])
            sent = await self.make("sendMessage", message, identity.call_id("question", ident))
            kept = await self._keep(ident, content, bound, sent["message_id"])
        answer: dict[str, Any] | None = kept["answer"]
        return answer if answer is not None else await self._wait(ident)

    async def _keep(self, ident: str, content: dict[str, Any], bound: bool, message_id: int | None) -> dict[str, Any]:
        ack = await self.member.ask(
            lambda fields: ButtonsKeep(**fields, keyboard_id=ident, content=content, bound=bound, message_id=message_id)
        )
        result: dict[str, Any] = ack.result
        return result

    async def _wait(self, ident: str) -> dict[str, Any]:
        """The answer to a question; of all who wait one asks the leader, for all of them."""
        while ident not in self._answers:
            if self._polling:
                await self._news.wait()
                continue
            self._polling = True
            try:
                answers = await self._ask_for_answers(tuple(self._asked - self._answers.keys()))
                self._answers.update({one: answers[one] for one in answers if one in self._asked})
            finally:
                self._polling = False
                self._news.set()
                self._news = trio.Event()
        return self._answers[ident]

    async def _ask_for_answers(self, asked: tuple[str, ...]) -> dict[str, dict[str, Any]]:
        ack = await self.member.ask(lambda fields: QuestionWait(**fields, questions=asked, wait_ms=WAIT_MS))
        answers: dict[str, dict[str, Any]] = ack.result["answers"]
        return answers

    async def _withdraw(self, ident: str) -> None:
        with trio.move_on_after(WITHDRAWING, shield=True):
            try:
                await self.member.ask(lambda fields: QuestionWait(**fields, questions=(), withdrawn=(ident,)))
            except BusError:
                return  # then it expires when another process takes this one's place


def _content(text: str, choices: Choices, *, allow_text: bool, users: Sequence[int] | None) -> dict[str, Any]:
    if not text.strip() or units(text) > QUESTION_UNITS:
        raise ValueError(f"a question has 1 to {QUESTION_UNITS} characters; send what is longer before it")
    if isinstance(choices, str):
        raise TypeError(f"choices are a list, such as [{choices!r}]")
    buttons = [[choice, choice] if isinstance(choice, str) else list(choice) for choice in choices]
    content: dict[str, Any] = {"buttons": buttons, "question": {"text": text, "allow_text": allow_text}}
    if users is not None:
        content["users"] = list(users)
    return content
