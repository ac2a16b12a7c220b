"""What else people do, over HTTP: files as Base64 in JSON, votes, members, and a group's switches."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final

from telegram_bus.sandbox import model_people as people
from telegram_bus.sandbox.args import Upload
from telegram_bus.sandbox.engine import Engine
from telegram_bus.sandbox.http_asked import Asked
from telegram_bus.sandbox.model_doings import UnknownError
from telegram_bus.sandbox.model_types import Json

__all__ = ["PEOPLE"]

_LOOKS = ("duration", "width", "height", "length", "performer", "title", "emoji")


def _send(engine: Engine, asked: Asked, now: float) -> list[Json]:
    given = asked.fields.get("files")
    if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
        raise UnknownError("files must be a list of objects")
    files = [_sent(item) for item in given]
    return people.send_files(
        engine.world, asked.chat, asked.user, files, now, thread_id=asked.number("thread_id"),
        reply_to=asked.number("reply_to"),
    )  # fmt: skip


def _sent(item: Json) -> people.Sent:
    texts = {name: item.get(name, "") for name in ("kind", "name", "caption", "content")}
    if not all(isinstance(text, str) for text in texts.values()):
        raise UnknownError(f"{', '.join(texts)} must be texts")
    try:
        content = base64.b64decode(texts["content"], validate=True)
    except binascii.Error as error:
        raise UnknownError("content must be Base64") from error
    look = {name: item[name] for name in _LOOKS if name in item}
    return people.Sent(texts["kind"] or "document", Upload(texts["name"], content), texts["caption"], look)


def _forward(engine: Engine, asked: Asked, now: float) -> list[Json]:
    ids = asked.fields.get("message_ids")
    if not isinstance(ids, list) or not all(type(item) is int for item in ids):
        raise UnknownError("message_ids must be a list of numbers")
    source = engine.world.chats.get(asked.number("from_chat_id") or asked.chat.id)
    if source is None:
        raise UnknownError("no such from_chat_id")
    return people.forward(
        engine.world, asked.chat, asked.user, source, ids, now, comment=asked.text("comment"),
        thread_id=asked.number("thread_id"),
    )  # fmt: skip


def _pin(engine: Engine, asked: Asked, now: float) -> bool:
    people.pin_message(
        engine.world, asked.chat, asked.user, asked.number("message_id"), now, pinned=asked.flag("pinned")
    )
    return True


def _vote(engine: Engine, asked: Asked, now: float) -> Json:
    options = asked.fields.get("options", [])
    if not isinstance(options, list) or not all(type(option) is int for option in options):
        raise UnknownError("options must be a list of numbers")
    return people.vote(engine.world, asked.chat, asked.user, asked.number("message_id"), options, now)


def _join(engine: Engine, asked: Asked, now: float) -> bool:
    people.come(engine.world, asked.chat, asked.user, now)
    return True


def _leave(engine: Engine, asked: Asked, now: float) -> bool:
    people.go(engine.world, asked.chat, asked.user, now)
    return True


def _bot(engine: Engine, asked: Asked, now: float) -> Json:
    rights = asked.fields.get("rights")
    if rights is not None and not (isinstance(rights, list) and all(isinstance(right, str) for right in rights)):
        raise UnknownError("rights must be a list of texts")
    return people.set_bot_status(engine.world, asked.chat, asked.user, asked.text("status"), now, rights=rights)


def _forum(engine: Engine, asked: Asked, _now: float) -> bool:
    people.set_forum(engine.world, asked.chat, asked.user, forum=asked.flag("forum"))
    return True


def _general(engine: Engine, asked: Asked, now: float) -> Json:
    closed, hidden = asked.flag("closed", default=False), asked.flag("hidden", default=False)
    return people.switch_general(engine.world, asked.chat, asked.user, now, closed=closed, hidden=hidden)


def _title(engine: Engine, asked: Asked, now: float) -> bool:
    people.rename_chat(engine.world, asked.chat, asked.user, asked.text("title"), now)
    return True


def _migrate(engine: Engine, asked: Asked, now: float) -> Json:
    return {"chat_id": people.migrate(engine.world, asked.chat, asked.user, now)}


def _deactivate(engine: Engine, asked: Asked, _now: float) -> bool:
    people.deactivate(engine.world, asked.user)
    return True


def _stop_draft(engine: Engine, asked: Asked, now: float) -> bool:
    people.stop_draft(engine.world, asked.chat, asked.number("draft_id"), now)
    return True


PEOPLE: Final[dict[str, Callable[[Engine, Asked, float], Any]]] = {
    "send": _send,
    "forward": _forward,
    "pin": _pin,
    "vote": _vote,
    "chat/join": _join,
    "chat/leave": _leave,
    "chat/bot": _bot,
    "chat/forum": _forum,
    "chat/general": _general,
    "chat/title": _title,
    "chat/migrate": _migrate,
    "deactivate": _deactivate,
    "drafts/stop": _stop_draft,
}
