"""What the bot tells of itself and how it shows: names, descriptions, menu buttons, wished rights, photos."""

from __future__ import annotations

from typing import Any

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.media import content_of, take_file
from telegram_bus.sandbox.methods.finding import find_chat, find_user
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_members import ALL_RIGHTS
from telegram_bus.sandbox.model_types import Json
from telegram_bus.sandbox.refusal import bad_request

__all__ = ["METHODS"]

MAX_NAME = 64
MAX_DESCRIPTION = 512
MAX_SHORT_DESCRIPTION = 120
_FOR_CHANNELS = ("can_post_messages", "can_edit_messages", "can_manage_direct_messages")
_FOR_GROUPS = ("can_pin_messages", "can_manage_topics", "can_manage_tags")


def setmyname(world: World, args: Args, now: float) -> bool:  # noqa: ARG001 - one shape for all methods
    """setMyName."""
    return _set(world.profile.names, args, "name", MAX_NAME)


def getmyname(world: World, args: Args, now: float) -> Json:  # noqa: ARG001
    """getMyName: in another language, or as it was made."""
    names = world.profile.names
    return {"name": names.get(args.text("language_code")) or names.get("") or world.bot.first_name}


def setmydescription(world: World, args: Args, now: float) -> bool:  # noqa: ARG001
    """setMyDescription."""
    return _set(world.profile.descriptions, args, "description", MAX_DESCRIPTION)


def getmydescription(world: World, args: Args, now: float) -> Json:  # noqa: ARG001
    """getMyDescription."""
    return {"description": _get(world.profile.descriptions, args)}


def setmyshortdescription(world: World, args: Args, now: float) -> bool:  # noqa: ARG001
    """setMyShortDescription."""
    return _set(world.profile.short_descriptions, args, "short_description", MAX_SHORT_DESCRIPTION)


def getmyshortdescription(world: World, args: Args, now: float) -> Json:  # noqa: ARG001
    """getMyShortDescription."""
    return {"short_description": _get(world.profile.short_descriptions, args)}


def setchatmenubutton(world: World, args: Args, now: float) -> bool:  # noqa: ARG001
    """setChatMenuButton: in one private chat, or in all without a button of their own."""
    chat_id = _button_chat(world, args)
    button = args.parsed("menu_button", "can't parse menu button JSON object")
    world.profile.buttons[chat_id] = _button({"type": "default"} if button is None else button)
    return True


def getchatmenubutton(world: World, args: Args, now: float) -> Json:  # noqa: ARG001
    """getChatMenuButton."""
    chat_id = _button_chat(world, args)
    return world.profile.buttons.get(chat_id, {"type": "default" if chat_id else "commands"})


def setmydefaultadministratorrights(world: World, args: Args, now: float) -> bool:  # noqa: ARG001
    """setMyDefaultAdministratorRights."""
    rights = args.parsed("rights", "can't parse administrator rights JSON object")
    if rights is not None and not isinstance(rights, dict):
        raise bad_request("can't parse administrator rights JSON object: expected an Object")
    world.profile.rights[args.flag("for_channels")] = rights or {}
    return True


def getmydefaultadministratorrights(world: World, args: Args, now: float) -> Json:  # noqa: ARG001
    """getMyDefaultAdministratorRights: those of channels and of groups differ; nobody is anonymous by default."""
    channels = args.flag("for_channels")
    given = world.profile.rights.get(channels, {})
    names = [name for name in ALL_RIGHTS if name not in _FOR_GROUPS]
    names += _FOR_CHANNELS if channels else _FOR_GROUPS
    return {"is_anonymous": False} | {name: given.get(name) is True for name in names}


def getuserprofilephotos(world: World, args: Args, now: float) -> Json:  # noqa: ARG001
    """getUserProfilePhotos: people have none, the bot has what it set."""
    photos = world.profile.photos if find_user(world, args) is world.bot else []
    offset, limit = args.clamped("offset", 0, 0, len(photos)), args.clamped("limit", 100, 1, 100)
    return {"total_count": len(photos), "photos": photos[offset : offset + limit]}


def getuserprofileaudios(world: World, args: Args, now: float) -> Json:  # noqa: ARG001
    """getUserProfileAudios: nobody has any."""
    find_user(world, args)
    return {"total_count": 0, "audios": []}


def setmyprofilephoto(world: World, args: Args, now: float) -> bool:  # noqa: ARG001
    """setMyProfilePhoto."""
    given = args.parsed("photo", "can't parse InputProfilePhoto JSON object")
    if not isinstance(given, dict) or given.get("type") != "static":
        raise bad_request("can't parse InputProfilePhoto: only static photos can be used here")
    photo: list[Json] = content_of(take_file(world, "photo", Args(given), "photo", args))["photo"]
    world.profile.photos.insert(0, photo)
    return True


def removemyprofilephoto(world: World, args: Args, now: float) -> bool:  # noqa: ARG001
    """removeMyProfilePhoto."""
    world.profile.photos.clear()
    return True


METHODS = (
    setmyname, getmyname, setmydescription, getmydescription, setmyshortdescription, getmyshortdescription,
    setchatmenubutton, getchatmenubutton, setmydefaultadministratorrights, getmydefaultadministratorrights,
    getuserprofilephotos, getuserprofileaudios, setmyprofilephoto, removemyprofilephoto,
)  # fmt: skip


def _set(texts: dict[str, str], args: Args, name: str, limit: int) -> bool:
    text = args.text(name).strip()
    if len(text) > limit:
        raise bad_request(f"bot {name.replace('_', ' ')} is too long")
    language = args.text("language_code")
    if text:
        texts[language] = text
    else:
        texts.pop(language, None)
    return True


def _get(texts: dict[str, str], args: Args) -> str:
    return texts.get(args.text("language_code")) or texts.get("", "")


def _button_chat(world: World, args: Args) -> int:
    if not args.has("chat_id"):
        return 0
    chat = find_chat(world, args)
    if chat.type != "private":
        raise bad_request("chat_id must be of a private chat")
    return chat.id


def _button(button: Any) -> Json:
    kind = button.get("type") if isinstance(button, dict) else None
    if kind in ("default", "commands"):
        return {"type": kind}
    if kind != "web_app":
        raise bad_request("can't parse menu button: unsupported type specified")
    url = button["web_app"].get("url") if isinstance(button.get("web_app"), dict) else None
    text = button.get("text")
    if not isinstance(text, str) or not text or not isinstance(url, str) or not url.startswith("https://"):
        raise bad_request("BUTTON_INVALID")
    return {"type": kind, "text": text, "web_app": {"url": url}}
