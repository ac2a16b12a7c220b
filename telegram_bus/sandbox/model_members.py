"""Who belongs to a chat, with which rights, and the updates that tell the bot of changes."""

from __future__ import annotations

from collections.abc import Iterable

from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_acts import show_chat
from telegram_bus.sandbox.model_types import Chat, Json, User
from telegram_bus.sandbox.model_views import PERMISSIONS, chat_view, user_view

__all__ = ["ALL_RIGHTS", "Change", "change_bot", "join", "leave", "member_view"]

ALL_RIGHTS = (
    "can_manage_chat can_delete_messages can_manage_video_chats can_restrict_members can_promote_members "
    "can_change_info can_invite_users can_post_stories can_edit_stories can_delete_stories can_pin_messages "
    "can_manage_topics can_manage_tags can_send_welcome_messages"
).split()


def member_view(world: World, chat: Chat, user: User) -> Json:
    """A ChatMember object."""
    shown: Json = {"user": user_view(user)}
    if user is world.bot:
        if chat.bot_is_admin:
            return shown | _administrator(chat.rights)
        return shown | {"status": chat.bot_status} | ({"until_date": 0} if chat.bot_status == "kicked" else {})
    if user.id in chat.banned:
        return shown | {"status": "kicked", "until_date": 0}
    if user.id not in chat.members:
        return shown | {"status": "left"}
    if chat.type != "private" and user is world.owner:
        return shown | {"status": "creator", "is_anonymous": False}
    if user.id in chat.admins:
        title = chat.admins[user.id].get("custom_title")
        made = _administrator(chat.admins[user.id]["rights"]) | {"can_be_edited": True}
        return shown | made | ({"custom_title": title} if title else {})
    if user.id in chat.restricted:
        may = dict.fromkeys(PERMISSIONS, False) | chat.restricted[user.id]
        return shown | {"status": "restricted", "is_member": True, "until_date": 0} | may
    return shown | {"status": "member"}


class Change:
    """Around a change of somebody's membership: tells the bot of it at the end, if it may know (U9, U10)."""

    def __init__(self, world: World, chat: Chat, actor: User, user: User) -> None:
        self._world, self._chat, self._actor, self._user = world, chat, actor, user
        self._before = member_view(world, chat, user)

    def done(self, now: float) -> None:
        """The change has happened."""
        world, chat = self._world, self._chat
        after = member_view(world, chat, self._user)
        show_chat(world, chat)
        if after == self._before:
            return
        about_bot = self._user is world.bot
        if not about_bot and not chat.bot_is_admin:
            return
        update: Json = {
            "chat": chat_view(world, chat),
            "from": user_view(self._actor),
            "date": int(now),
            "old_chat_member": self._before,
            "new_chat_member": after,
        }
        world.emit("my_chat_member" if about_bot else "chat_member", update, now)


def change_bot(
    world: World, chat: Chat, actor: User, now: float, *, status: str, rights: Iterable[str] = frozenset()
) -> None:
    """Make the bot administrator with these rights, member, left or kicked."""
    change = Change(world, chat, actor, world.bot)
    was_in = chat.bot_status not in {"left", "kicked"}
    chat.bot_status = status
    chat.rights = frozenset(rights) if status == "administrator" else frozenset()
    change.done(now)
    is_in = status not in {"left", "kicked"}
    if is_in and not was_in:
        world.post(chat, actor, now, service={"new_chat_members": [user_view(world.bot)]})
    elif was_in and not is_in:
        world.post(chat, actor, now, service={"left_chat_member": user_view(world.bot)})


def join(world: World, chat: Chat, user: User, now: float) -> None:
    """A person comes into a group."""
    change = Change(world, chat, user, user)
    chat.members.append(user.id)
    world.post(chat, user, now, service={"new_chat_members": [user_view(user)]})
    change.done(now)


def leave(world: World, chat: Chat, actor: User, user: User, now: float, *, banned: bool = False) -> None:
    """A person leaves a group, or is put out of it by `actor`."""
    change = Change(world, chat, actor, user)
    was_in = user.id in chat.members
    if was_in:
        chat.members.remove(user.id)
    chat.admins.pop(user.id, None)
    if banned:
        chat.banned.add(user.id)
    if was_in:
        world.post(chat, actor, now, service={"left_chat_member": user_view(user)})
    change.done(now)


def _administrator(rights: Iterable[str]) -> Json:
    shown: Json = {"status": "administrator", "can_be_edited": False, "is_anonymous": False}
    return shown | {right: right in rights for right in ALL_RIGHTS}
