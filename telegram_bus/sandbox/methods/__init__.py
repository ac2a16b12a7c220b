"""The Bot API's methods, by name: pure functions of the world, the arguments and the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.methods import (
    chats,
    contents,
    copies,
    editing_chats,
    files,
    general,
    links,
    media,
    members,
    messages,
    pins,
    polls,
    presence,
    profile,
    settings,
    topics,
)
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_acts import close_due_polls
from telegram_bus.sandbox.refusal import Refusal

__all__ = ["METHODS", "Method", "call"]

Method = Callable[[World, Args, float], Any]

_MODULES = (
    chats, contents, copies, editing_chats, files, general, links, media, members, messages, pins, polls, presence,
    profile, settings, topics,
)  # fmt: skip

# getUpdates is absent: it may wait, so the poll endpoint answers it.
METHODS: dict[str, Method] = {
    method.__name__.replace("_", ""): method for module in _MODULES for method in module.METHODS
}


def call(world: World, method: str, args: Args, now: float) -> Any:
    """The result of a method, whatever the case of its name; raises `Refusal`, also for an unknown one."""
    found = METHODS.get(method.lower())
    if found is None:
        raise Refusal(404, "Not Found: method not found")
    close_due_polls(world, now)
    for chat in world.chats.values():
        chat.forget_deleted_topics(now)
    return found(world, args, now)
