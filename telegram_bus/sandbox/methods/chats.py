"""Who the bot is and what it can learn of chats and their members."""

from __future__ import annotations

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.methods.finding import find_chat, find_open_chat
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_types import Chat, Json, User
from telegram_bus.sandbox.model_views import chat_full_view, user_view
from telegram_bus.sandbox.refusal import bad_request

__all__ = ["METHODS", "getchat", "getchatadministrators", "getchatmember", "getchatmembercount", "getme"]

_ALL_RIGHTS = (
    "can_manage_chat can_delete_messages can_manage_video_chats can_restrict_members can_promote_members "
    "can_change_info can_invite_users can_post_stories can_edit_stories can_delete_stories can_pin_messages "
    "can_manage_topics can_send_welcome_messages"
).split()


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
    user_id = args.integer("user_id")
    if user_id <= 0:
        raise bad_request("invalid user_id specified")
    user = world.bot if user_id == world.bot.id else world.users.get(user_id)
    if user is None:
        raise bad_request("user not found")
    return _member(world, chat, user)


def getchatadministrators(world: World, args: Args, now: float) -> list[Json]:  # noqa: ARG001
    """getChatAdministrators: without other bots, but with this one."""
    chat = find_open_chat(world, args)
    if chat.type == "private":
        raise bad_request("there are no administrators in the private chat")
    owner = [_member(world, chat, world.owner)]
    return [*owner, _member(world, chat, world.bot)] if chat.bot_is_admin else owner


def getchatmembercount(world: World, args: Args, now: float) -> int:  # noqa: ARG001
    """getChatMemberCount."""
    return len(find_open_chat(world, args).members) + 1


METHODS = (getme, getchat, getchatmember, getchatadministrators, getchatmembercount)


def _member(world: World, chat: Chat, user: User) -> Json:
    shown = {"user": user_view(user)}
    if user is world.bot:
        if not chat.bot_is_admin:
            return shown | {"status": chat.bot_status}
        rights = {right: right in chat.rights for right in _ALL_RIGHTS}
        return shown | {"status": "administrator", "can_be_edited": False, "is_anonymous": False} | rights
    if user.id not in chat.members:
        return shown | {"status": "left"}
    if chat.type != "private" and user is world.owner:
        return shown | {"status": "creator", "is_anonymous": False}
    return shown | {"status": "member"}
