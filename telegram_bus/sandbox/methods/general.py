"""The topic General of a forum: a machine of two switches, closed and hidden."""

from __future__ import annotations

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.methods.finding import find_open_chat, need_right
from telegram_bus.sandbox.methods.topics import clean_name
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_acts import change_general
from telegram_bus.sandbox.model_types import Chat
from telegram_bus.sandbox.refusal import bad_request

__all__ = [
    "METHODS", "closegeneralforumtopic", "editgeneralforumtopic", "hidegeneralforumtopic", "reopengeneralforumtopic",
    "unhidegeneralforumtopic",
]  # fmt: skip


def editgeneralforumtopic(world: World, args: Args, now: float) -> bool:
    """editGeneralForumTopic."""
    chat = _forum(world, args)
    name = clean_name(args.text("name"))
    if not name:
        raise bad_request("name must be non-empty")
    if name == chat.general.name:
        raise bad_request("TOPIC_NOT_MODIFIED")
    change_general(world, chat, world.bot, now, {"forum_topic_edited": {"name": name}}, name=name)
    return True


def closegeneralforumtopic(world: World, args: Args, now: float) -> bool:
    """closeGeneralForumTopic."""
    chat = _forum(world, args)
    _need(chat, closed=False)
    change_general(world, chat, world.bot, now, {"forum_topic_closed": {}}, closed=True)
    return True


def reopengeneralforumtopic(world: World, args: Args, now: float) -> bool:
    """reopenGeneralForumTopic: it is shown again, too."""
    chat = _forum(world, args)
    _need(chat, closed=True)
    if chat.general.hidden:
        change_general(world, chat, world.bot, now, {"general_forum_topic_unhidden": {}}, hidden=False)
    change_general(world, chat, world.bot, now, {"forum_topic_reopened": {}}, closed=False)
    return True


def hidegeneralforumtopic(world: World, args: Args, now: float) -> bool:
    """hideGeneralForumTopic: it is closed, too."""
    chat = _forum(world, args)
    _need(chat, hidden=False)
    if not chat.general.closed:
        change_general(world, chat, world.bot, now, {"forum_topic_closed": {}}, closed=True)
    change_general(world, chat, world.bot, now, {"general_forum_topic_hidden": {}}, hidden=True)
    return True


def unhidegeneralforumtopic(world: World, args: Args, now: float) -> bool:
    """unhideGeneralForumTopic: it stays closed."""
    chat = _forum(world, args)
    _need(chat, hidden=True)
    change_general(world, chat, world.bot, now, {"general_forum_topic_unhidden": {}}, hidden=False)
    return True


METHODS = (
    editgeneralforumtopic, closegeneralforumtopic, reopengeneralforumtopic, hidegeneralforumtopic,
    unhidegeneralforumtopic,
)  # fmt: skip


def _forum(world: World, args: Args) -> Chat:
    chat = find_open_chat(world, args)
    if not chat.is_forum:
        raise bad_request("the chat is not a supergroup forum")
    need_right(chat, "can_manage_topics", "edit the topic")
    return chat


def _need(chat: Chat, **state: bool) -> None:
    if any(getattr(chat.general, name) is not value for name, value in state.items()):
        raise bad_request("TOPIC_NOT_MODIFIED")
