"""A world with a clock of its own, and short ways to act in it: what the contract's rows are written in."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from telegram_bus.sandbox import methods
from telegram_bus.sandbox import model_doings as doings
from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.methods.settings import stick_allowed_updates
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_polls import Delivered, Waiting
from telegram_bus.sandbox.refusal import Refusal

__all__ = ["Rows", "Talk"]

Json = dict[str, Any]


class Talk:
    """A fresh world at noon; `now` moves only when a test moves it."""

    def __init__(self, seed: int = 1) -> None:
        self.world = World(random.Random(seed))
        self.now = 1_800_000_000.0
        self.owner = self.world.owner
        self.private = self.world.chats[self.owner.id]
        self.forum = self.world.chats[self.world.forum_id]
        self.group = self.world.chats[self.world.group_id]

    def call(self, method: str, **params: Any) -> Any:
        """What the bot gets."""
        return methods.call(self.world, method, Args(params), self.now)

    def send(self, said: str = "hello", **params: Any) -> Any:
        """sendMessage, to the private chat unless told otherwise."""
        return self.call("sendMessage", **{"chat_id": self.private.id, "text": said, **params})

    def refused(self, method: str, **params: Any) -> str:
        """The description of a refusal with code 400."""
        code, description = self.refusal(method, **params)
        assert code == 400, description
        return description.removeprefix("Bad Request: ")

    def refusal(self, method: str, **params: Any) -> tuple[int, str]:
        """Code and description of a refusal."""
        with pytest.raises(Refusal) as caught:
            self.call(method, **params)
        return caught.value.code, caught.value.description

    def topic(self, chat_id: int | None = None, name: str = "topic") -> int:
        """A topic made by the bot."""
        return int(self.call("createForumTopic", chat_id=chat_id or self.private.id, name=name)["message_thread_id"])

    def say(self, text: str = "hi", *, chat: Any = None, user: Any = None, **more: int) -> Json:
        """A person writes."""
        return doings.say(self.world, chat or self.private, user or self.owner, text, self.now, **more)

    def updates(self, offset: int = 0, limit: int = 100) -> list[Json]:
        """What waits in the queue from `offset` on, confirming what is before."""
        return self.world.queue.take(offset, limit, self.now)

    def ids(self, offset: int = 0, limit: int = 100) -> list[int]:
        """The ids of `updates`."""
        return [update["update_id"] for update in self.updates(offset, limit)]

    def poll(self, offset: int = 0, limit: int = 100, timeout: int = 0) -> list[int] | Waiting:
        """getUpdates: the ids, or the poll that waits."""
        answer = self.world.polls.ask(offset, limit, timeout, self.now)
        return [update["update_id"] for update in answer.updates] if isinstance(answer, Delivered) else answer

    def allow(self, value: Any) -> None:
        """The `allowed_updates` of a getUpdates."""
        stick_allowed_updates(self.world, Args({"allowed_updates": value}))


class Rows:
    """The rows of one table of the contract: functions of a `Talk`, each with the row's number."""

    def __init__(self) -> None:
        self.params: list[Any] = []

    def row(self, number: str) -> Callable[[Callable[[Talk], None]], Callable[[Talk], None]]:
        """Add a row."""

        def add(check: Callable[[Talk], None]) -> Callable[[Talk], None]:
            self.params.append(pytest.param(check, id=f"{number}-{check.__name__}"))
            return check

        return add
