"""Who the bot is and what it can learn of chats and their members."""

from __future__ import annotations

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.methods.finding import find_chat, find_open_chat, find_user
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_members import member_view
from telegram_bus.sandbox.model_types import Json
from telegram_bus.sandbox.model_views import chat_full_view, user_view
from telegram_bus.sandbox.refusal import bad_request

__all__ = ["METHODS", "getchat", "getchatadministrators", "getchatmember", "getchatmembercount", "getme"]


def getme(world: World, args: Args, now: float) -> Json:  # noqa: ARG001 - one shape for all methods
    """getMe, the only place that tells of Threaded Mode (T1)."""
    settings = world.settings
    return user_view(world.bot) | {
        "can_join_groups": True,
        "can_read_all_group_messages": not settings.privacy,
        "supports_inline_queries": False,
        "can_connect_to_business": False,
        "has_main_web_app": False,
        "has_topics_enabled": settings.threaded_mode,
        "allows_users_to_create_topics": settings.threaded_mode and settings.users_create_topics,
    }


def getchat(world: World, args: Args, now: float) -> Json:  # noqa: ARG001
    """getChat."""
    return chat_full_view(world, find_chat(world, args))


def getchatmember(world: World, args: Args, now: float) -> Json:  # noqa: ARG001
    """getChatMember."""
    chat = find_open_chat(world, args)
    return member_view(world, chat, find_user(world, args))


def getchatadministrators(world: World, args: Args, now: float) -> list[Json]:  # noqa: ARG001
    """getChatAdministrators: without other bots, but with this one."""
    chat = find_open_chat(world, args)
    if chat.type == "private":
        raise bad_request("there are no administrators in the private chat")
    people = [world.users[user_id] for user_id in (world.owner.id, *chat.admins)]
    return [member_view(world, chat, user) for user in (*people, *([world.bot] if chat.bot_is_admin else []))]


def getchatmembercount(world: World, args: Args, now: float) -> int:  # noqa: ARG001
    """getChatMemberCount."""
    return len(find_open_chat(world, args).members) + 1


METHODS = (getme, getchat, getchatmember, getchatadministrators, getchatmembercount)
