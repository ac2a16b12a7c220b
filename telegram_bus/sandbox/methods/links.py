"""Invite links of a group; nobody comes in through one by itself."""

from __future__ import annotations

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.methods.finding import find_open_chat, find_user, need_right
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_types import Chat, Json
from telegram_bus.sandbox.model_views import user_view
from telegram_bus.sandbox.refusal import bad_request

__all__ = [
    "METHODS",
    "approvechatjoinrequest",
    "createchatinvitelink",
    "declinechatjoinrequest",
    "editchatinvitelink",
    "exportchatinvitelink",
    "revokechatinvitelink",
]

MAX_NAME = 32
MAX_LINKS = 1_000  # of one chat; the oldest are forgotten
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def exportchatinvitelink(world: World, args: Args, now: float) -> str:  # noqa: ARG001 - one shape for all methods
    """exportChatInviteLink: a new primary link; the former one is revoked."""
    chat = _chat(world, args)
    for link in chat.links.values():
        if link["is_primary"]:
            link["is_revoked"] = True
    return str(_new(world, chat, {}, is_primary=True)["invite_link"])


def createchatinvitelink(world: World, args: Args, now: float) -> Json:  # noqa: ARG001
    """createChatInviteLink."""
    terms = _terms(args)
    return _new(world, _chat(world, args), terms, is_primary=False)


def editchatinvitelink(world: World, args: Args, now: float) -> Json:  # noqa: ARG001
    """editChatInviteLink: what is left out is taken away."""
    terms = _terms(args)
    link = _link(_chat(world, args), args)
    if link["is_primary"] or link["is_revoked"]:
        raise bad_request("INVITE_HASH_EXPIRED")
    kept = {name: link[name] for name in ("invite_link", "creator", "is_primary", "is_revoked")}
    link.clear()
    link |= {"creates_join_request": False} | kept | terms
    return dict(link)


def revokechatinvitelink(world: World, args: Args, now: float) -> Json:  # noqa: ARG001
    """revokeChatInviteLink."""
    link = _link(_chat(world, args), args)
    link["is_revoked"] = True
    return dict(link)


def approvechatjoinrequest(world: World, args: Args, now: float) -> bool:  # noqa: ARG001
    """approveChatJoinRequest: nobody ever asks, so it is always refused."""
    return _answer_request(world, args)


def declinechatjoinrequest(world: World, args: Args, now: float) -> bool:  # noqa: ARG001
    """declineChatJoinRequest: nobody ever asks, so it is always refused."""
    return _answer_request(world, args)


METHODS = (
    exportchatinvitelink,
    createchatinvitelink,
    editchatinvitelink,
    revokechatinvitelink,
    approvechatjoinrequest,
    declinechatjoinrequest,
)


def _chat(world: World, args: Args) -> Chat:
    chat = find_open_chat(world, args)
    if chat.type == "private":
        raise bad_request("can't access the chat invite link")
    need_right(chat, "can_invite_users", "manage chat invite link")
    return chat


def _answer_request(world: World, args: Args) -> bool:
    chat = _chat(world, args)
    user = find_user(world, args)
    raise bad_request("USER_ALREADY_PARTICIPANT" if user.id in chat.members else "HIDE_REQUESTER_MISSING")


def _link(chat: Chat, args: Args) -> Json:
    link: Json | None = chat.links.get(args.text("invite_link"))
    if link is None:
        raise bad_request("INVITE_HASH_EXPIRED")
    return link


def _new(world: World, chat: Chat, terms: Json, *, is_primary: bool) -> Json:
    url = "https://t.me/+" + "".join(world.rng.choice(_LETTERS) for _ in range(16))
    link = {
        "invite_link": url, "creator": user_view(world.bot), "creates_join_request": False, "is_primary": is_primary,
        "is_revoked": False,
    } | terms  # fmt: skip
    chat.links[url] = link
    if len(chat.links) > MAX_LINKS:
        del chat.links[next(iter(chat.links))]
    return dict(link)


def _terms(args: Args) -> Json:
    terms: Json = {}
    if name := args.text("name").strip()[:MAX_NAME]:
        terms["name"] = name
    if (date := args.integer("expire_date")) > 0:
        terms["expire_date"] = date
    limit = args.integer("member_limit")
    if not 0 <= limit <= 99_999:
        raise bad_request("wrong member limit specified")
    if args.flag("creates_join_request"):
        if limit:
            raise bad_request("member limit can't be specified for links requiring administrator approval")
        terms["creates_join_request"] = True
    return terms | ({"member_limit": limit} if limit else {})
