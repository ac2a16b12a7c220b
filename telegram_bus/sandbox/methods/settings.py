"""The bot's own settings: webhook and commands."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlsplit

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_polls import BY_WEBHOOK
from telegram_bus.sandbox.model_types import Json
from telegram_bus.sandbox.refusal import Refusal, bad_request

__all__ = [
    "METHODS", "deletemycommands", "deletewebhook", "getmycommands", "getwebhookinfo", "setmycommands", "setwebhook",
    "stick_allowed_updates",
]  # fmt: skip

MAX_COMMANDS = 100
_COMMAND = re.compile(r"[a-z0-9_]{1,32}")
_SCOPES = frozenset(
    "default all_private_chats all_group_chats all_chat_administrators chat chat_administrators chat_member".split()
)


def stick_allowed_updates(world: World, args: Args) -> None:
    """Take over `allowed_updates`; what is no array leaves the former choice (U9)."""
    if not args.has("allowed_updates"):
        return
    try:
        given = args.parsed("allowed_updates", "")
    except Refusal:
        return
    if isinstance(given, list):
        world.queue.allow(given)


def setwebhook(world: World, args: Args, now: float) -> bool:
    """setWebhook, so far that the conflict with getUpdates can be tested: nothing is ever sent there."""
    url = args.text("url")
    if not url:
        return deletewebhook(world, args, now)
    if not url.startswith("https://"):
        raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
    if not _host(url):
        raise bad_request("bad webhook: URL host is empty")
    stick_allowed_updates(world, args)
    if args.flag("drop_pending_updates"):
        world.queue.clear()
    world.polls.end_waiting(BY_WEBHOOK, now)
    world.webhook = {"url": url, "max_connections": args.clamped("max_connections", 40, 1, 100)}
    return True


def deletewebhook(world: World, args: Args, now: float) -> bool:  # noqa: ARG001 - one shape for all methods
    """deleteWebhook (M20)."""
    world.webhook = {}
    if args.flag("drop_pending_updates"):
        world.queue.clear()
    return True


def getwebhookinfo(world: World, args: Args, now: float) -> Json:  # noqa: ARG001
    """getWebhookInfo."""
    info: Json = {"url": "", "has_custom_certificate": False, "pending_update_count": len(world.queue)}
    return info | world.webhook


def setmycommands(world: World, args: Args, now: float) -> bool:  # noqa: ARG001
    """setMyCommands."""
    given = args.parsed("commands", "can't parse commands JSON object")
    if not isinstance(given, list):
        raise bad_request("can't parse list of bot commands: expected an Array")
    if len(given) > MAX_COMMANDS:
        raise bad_request("BOT_COMMANDS_TOO_MUCH")
    commands = [_command(item) for item in given]
    key = _scope(args)
    if commands:
        world.commands[key] = commands
    else:
        world.commands.pop(key, None)
    return True


def getmycommands(world: World, args: Args, now: float) -> list[Json]:  # noqa: ARG001
    """getMyCommands."""
    return world.commands.get(_scope(args), [])


def deletemycommands(world: World, args: Args, now: float) -> bool:  # noqa: ARG001
    """deleteMyCommands."""
    world.commands.pop(_scope(args), None)
    return True


METHODS = (setwebhook, deletewebhook, getwebhookinfo, setmycommands, getmycommands, deletemycommands)


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _command(item: Any) -> Json:
    if not isinstance(item, dict) or not all(isinstance(item.get(key), str) for key in ("command", "description")):
        raise bad_request("can't parse list of bot commands: expected command and description as String")
    name = item["command"].removeprefix("/")
    if not _COMMAND.fullmatch(name):
        raise bad_request("BOT_COMMAND_INVALID")
    description = item["description"].strip()
    if not 1 <= len(description) <= 256:
        raise bad_request("BOT_COMMAND_DESCRIPTION_INVALID")
    return {"command": name, "description": description}


def _scope(args: Args) -> tuple[str, str]:
    scope = args.parsed("scope", "can't parse bot command scope JSON object")
    if scope is None:
        scope = {"type": "default"}
    if not isinstance(scope, dict) or str(scope.get("type")) not in _SCOPES:
        raise bad_request("can't parse BotCommandScope: unsupported type specified")
    return json.dumps(scope, sort_keys=True), args.text("language_code")
