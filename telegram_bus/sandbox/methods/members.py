"""Members and their rights: ban, restrict, promote, leave."""

from __future__ import annotations

from typing import Any

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.methods.finding import find_open_chat, find_user, need_right
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_acts import show_chat
from telegram_bus.sandbox.model_members import ALL_RIGHTS, Change, change_bot, leave
from telegram_bus.sandbox.model_types import Chat, Json, User
from telegram_bus.sandbox.model_views import PERMISSIONS
from telegram_bus.sandbox.refusal import bad_request

__all__ = [
    "METHODS", "banchatmember", "leavechat", "promotechatmember", "restrictchatmember",
    "setchatadministratorcustomtitle", "setchatpermissions", "unbanchatmember",
]  # fmt: skip

MAX_TITLE = 16


def banchatmember(world: World, args: Args, now: float) -> bool:
    """banChatMember."""
    chat, user = _whom(world, args, "can_restrict_members", "restrict/unrestrict chat member")
    leave(world, chat, world.bot, user, now, banned=True)
    return True


def unbanchatmember(world: World, args: Args, now: float) -> bool:
    """unbanChatMember: who is a member is put out, unless `only_if_banned`."""
    chat, user = _whom(world, args, "can_restrict_members", "restrict/unrestrict chat member")
    if user.id in chat.banned:
        change = Change(world, chat, world.bot, user)
        chat.banned.discard(user.id)
        change.done(now)
    elif not args.flag("only_if_banned"):
        leave(world, chat, world.bot, user, now)
    return True


def restrictchatmember(world: World, args: Args, now: float) -> bool:
    """restrictChatMember, in supergroups only."""
    may = _permissions(args)
    chat, user = _whom(world, args, "can_restrict_members", "restrict/unrestrict chat member")
    if chat.type != "supergroup":
        raise bad_request("method is available only for supergroups")
    if user.id in chat.admins:
        raise bad_request("user is an administrator of the chat")
    change = Change(world, chat, world.bot, user)
    if all(may.values()):
        chat.restricted.pop(user.id, None)
    else:
        chat.restricted[user.id] = may
    change.done(now)
    return True


def promotechatmember(world: World, args: Args, now: float) -> bool:
    """promoteChatMember: without any right, the person is no administrator any more."""
    chat = find_open_chat(world, args)
    _need_group(chat)
    need_right(chat, "can_promote_members", "promote/demote chat member")
    user = _target(world, chat, args)
    rights = sorted(right for right in ALL_RIGHTS if args.flag(right))
    if not set(rights) <= chat.rights:
        raise bad_request("RIGHT_FORBIDDEN")
    change = Change(world, chat, world.bot, user)
    if rights:
        chat.admins[user.id] = {"rights": rights} | {
            name: title for name, title in chat.admins.get(user.id, {}).items() if name == "custom_title"
        }
    else:
        chat.admins.pop(user.id, None)
    change.done(now)
    return True


def setchatadministratorcustomtitle(world: World, args: Args, now: float) -> bool:  # noqa: ARG001 - one shape for all
    """setChatAdministratorCustomTitle."""
    chat, user = _whom(world, args, "can_promote_members", "change custom title of the user")
    if user.id not in chat.admins:
        raise bad_request("user is not an administrator")
    chat.admins[user.id]["custom_title"] = args.text("custom_title").strip()[:MAX_TITLE]
    return True


def setchatpermissions(world: World, args: Args, now: float) -> bool:  # noqa: ARG001
    """setChatPermissions."""
    may = _permissions(args)
    chat = find_open_chat(world, args)
    _need_group(chat)
    need_right(chat, "can_restrict_members", "change chat permissions")
    chat.permissions = may
    show_chat(world, chat)
    return True


def leavechat(world: World, args: Args, now: float) -> bool:
    """leaveChat."""
    chat = find_open_chat(world, args)
    _need_group(chat)
    change_bot(world, chat, world.bot, now, status="left")
    return True


METHODS = (
    banchatmember, unbanchatmember, restrictchatmember, promotechatmember, setchatadministratorcustomtitle,
    setchatpermissions, leavechat,
)  # fmt: skip


def _need_group(chat: Chat) -> None:
    if chat.type == "private":
        raise bad_request("chat_id must be of a group")


def _whom(world: World, args: Args, right: str, doing: str) -> tuple[Chat, User]:
    chat = find_open_chat(world, args)
    if chat.type == "private":
        raise bad_request("can't restrict self" if find_user(world, args) is world.bot else "can't ban members here")
    need_right(chat, right, doing)
    return chat, _target(world, chat, args)


def _target(world: World, chat: Chat, args: Args) -> User:
    user = find_user(world, args)
    if user is world.bot:
        raise bad_request("can't restrict self")
    if user is world.owner:
        raise bad_request("can't remove chat owner")
    if user.id not in chat.members and user.id not in chat.banned:
        raise bad_request("USER_NOT_PARTICIPANT")
    return user


def _permissions(args: Args) -> Json:
    given: Any = args.parsed("permissions", "can't parse permissions JSON object")
    if not isinstance(given, dict):
        raise bad_request("can't parse permissions JSON object: expected an Object")
    return {name: given.get(name) is True for name in PERMISSIONS}
