"""What became of a call that is made once: how it is remembered, where its messages are, and what a person is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from attrs import evolve

from telegram_bus.core.bindings import says_gone
from telegram_bus.core.codec import dumps, loads
from telegram_bus.core.errors import ApiError, BusError, RequestRefused
from telegram_bus.core.permissions import Allowed, sent_by
from telegram_bus.core.scopes import wire_id

__all__ = [
    "AGAIN",
    "FILES",
    "again_of",
    "chat_of",
    "doubt_notice",
    "moved",
    "recall",
    "remembered",
    "sent_messages",
    "strays",
    "thread_trouble",
    "wrong_place",
]

AGAIN: Final = "again"
"""The prefix of the button that sends again what may or may not have been sent (core/buttons.py)."""

FILES: Final = "__files"
"""Marks the parameters, as they are stored, of a call that had files beside it."""

EXCERPT: Final = 300
"""How much of a message its notice repeats, so that a person recognises it."""

_KINDS: Final = {
    "sendPhoto": "a photo",
    "sendDocument": "a document",
    "sendAudio": "an audio file",
    "sendVoice": "a voice message",
    "sendVideo": "a video",
    "sendAnimation": "an animation",
    "sendMediaGroup": "an album",
    "sendLocation": "a location",
}


def remembered(outcome: Any) -> bytes:
    """What to store of an outcome: a result (JSON values), or an ApiError or RequestRefused."""
    if isinstance(outcome, ApiError):
        facts = {
            "code": outcome.code,
            "description": outcome.description,
            "retry_after": outcome.retry_after,
            "migrate_to_chat_id": outcome.migrate_to_chat_id,
        }
        return dumps({"error": facts})
    if isinstance(outcome, BusError):
        return dumps({"refused": str(outcome)})
    return dumps({"result": outcome})


def recall(method: str, stored: bytes) -> Any:
    """The result that was stored; raises the ApiError or RequestRefused that was stored in its place."""
    facts = loads(stored)
    if "error" in facts:
        raise ApiError(method, **facts["error"])
    if "refused" in facts:
        raise RequestRefused(facts["refused"], method=method)
    return facts["result"]


def chat_of(params: Mapping[str, Any]) -> int | None:
    """The chat that the parameters name by number; None for a name or nothing."""
    chat = params.get("chat_id")
    found = wire_id(chat)
    if isinstance(found, float) and found.is_integer():  # 5.0 is 5 to Telegram, and counts in that chat
        return int(found)
    return found if isinstance(found, int) else None


def sent_messages(call: Allowed, result: Any) -> list[tuple[int, int, int | None]]:
    """The messages that the call sent, each (chat, message, thread)."""
    thread = call.body.get("message_thread_id")
    thread_id = thread if isinstance(thread, int) else None
    return [(int(chat), int(message), thread_id) for chat, message in sent_by(call, result, every_method=True)]


def strays(call: Allowed, result: Any) -> list[tuple[int, int, int | None]]:
    """The messages that came out in another thread than the call asked for, each (chat, message, thread it is in).

    Telegram did that with topics that had been deleted (bot-api T5), and drops the id where a chat has no topics. Only
    whole Message objects say where they are.
    """
    asked = wire_id(call.body.get("message_thread_id"))
    if asked is None:
        return []
    found = []
    for message in result if isinstance(result, list) else [result]:
        if not (isinstance(message, dict) and isinstance(message.get("chat"), dict) and "message_id" in message):
            continue
        chat, number = wire_id(message["chat"].get("id")), message["message_id"]
        thread = message.get("message_thread_id")
        if isinstance(chat, int) and type(number) is int and thread != asked:
            found.append((chat, number, thread if isinstance(thread, int) else None))
    return found


def wrong_place(call: Allowed, found: list[tuple[int, int, int | None]]) -> RequestRefused:
    """What the owner of strays hears."""
    there = "the main chat" if found[0][2] is None else f"thread {found[0][2]}"
    return RequestRefused(
        f"{call.api_method} did not reach thread {call.body.get('message_thread_id')}, which is gone: Telegram put the "
        f"message into {there} instead, and it is deleted there; register anew to get another thread",
        method=call.api_method,
    )


def thread_trouble(error: ApiError) -> Literal["not found", "closed"] | None:
    """What a refusal says of the thread: "not found" or "closed" (`Threads.thread_missing`), None for others."""
    if error.code != 400:
        return None
    if says_gone(error.description):
        return "not found"
    return "closed" if "topic_closed" in error.description.casefold() else None


def moved(call: Allowed, chat_id: int) -> Allowed:
    """The same call in the chat that its own has become.

    It replies to nothing there: messages of the old chat are not in the new one, which has others under their ids.
    """
    body = {name: value for name, value in call.body.items() if name not in ("reply_parameters", "reply_to_message_id")}
    return evolve(call, args=(call.api_method, {**body, "chat_id": chat_id}, *call.args[2:]))


def doubt_notice(method: str, body: Mapping[str, Any] | None, seq: int, tries: int) -> dict[str, Any] | None:
    """The parameters of the message that tells people of a call whose outcome nobody knows.

    `body` are the call's parameters; files that it had (`FILES`) are gone by now, so there is no button then. Returns
    None where the call had no chat that could be told.
    """
    params = {} if body is None else body
    if (chat := chat_of(params)) is None:
        return None
    said = params.get("text", params.get("caption"))
    what = _KINDS.get(method, "a message")
    if isinstance(said, str) and said.strip():
        excerpt = " ".join(said.split())
        what = f"“{excerpt[:EXCERPT]}{'…' if len(excerpt) > EXCERPT else ''}”"
    text = f"Perhaps sent, perhaps not, since the connection broke at that moment: {what}"
    notice: dict[str, Any] = {"chat_id": chat, "text": text, "disable_notification": True}
    if (thread := wire_id(params.get("message_thread_id"))) is not None:
        notice["message_thread_id"] = thread
    if FILES not in params:
        button = {"text": "Send again", "callback_data": f"tb:{AGAIN}:{seq}.{tries}"}
        notice["reply_markup"] = {"inline_keyboard": [[button]]}
    return notice


def again_of(rest: str) -> tuple[int, int] | None:
    """The call and the number of tries that a button's data names; None for anything else."""
    seq, _, tries = rest.partition(".")
    if len(rest) > 40 or not (seq.isascii() and seq.isdecimal() and tries.isascii() and tries.isdecimal()):
        return None
    return int(seq), int(tries)
