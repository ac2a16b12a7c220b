"""What the bus has to know of a raw Telegram update; the rest of it travels unread."""

from __future__ import annotations

from typing import Any, Final, Literal

from attrs import evolve, frozen

from telegram_bus.core.envelopes import (
    Delivery,
    Forward,
    ForwardCallback,
    ForwardEditedMessage,
    ForwardMessage,
    ForwardReaction,
)
from telegram_bus.core.files import file_ids
from telegram_bus.core.identity import MAX_SAFE_INTEGER, delivery_id

__all__ = [
    "ALLOWED_UPDATES",
    "GENERAL",
    "SOURCE_MARKER",
    "UpdateInfo",
    "UpdateKind",
    "amended",
    "carried",
    "date_of",
    "describe",
    "forward",
]

UpdateKind = Literal["message", "edited_message", "callback_query", "message_reaction", "my_chat_member", "other"]

ALLOWED_UPDATES: Final = ("message", "edited_message", "callback_query", "message_reaction", "my_chat_member")
"""Sent with every poll: the server remembers the last list it was given (bot-api U9)."""

SOURCE_MARKER: Final = "pi_telegram_source_update_id"
"""The field that a carried object gets beside Telegram's own (protocol section 2)."""

GENERAL: Final = 1
"""The id of a forum's General topic: never sent with a message, always with a chat action (bot-api T3, T17)."""

_SERVICE_FIELDS: Final = frozenset({
    "forum_topic_created", "forum_topic_edited", "forum_topic_closed", "forum_topic_reopened",
    "general_forum_topic_hidden", "general_forum_topic_unhidden", "new_chat_members", "left_chat_member",
    "new_chat_title", "new_chat_photo", "delete_chat_photo", "group_chat_created", "supergroup_chat_created",
    "message_auto_delete_timer_changed", "migrate_to_chat_id", "migrate_from_chat_id", "pinned_message",
    "write_access_allowed", "chat_background_set", "boost_added", "video_chat_started", "video_chat_ended",
})  # fmt: skip
"""Fields that make a message a notice of the chat rather than something a person said (Bot API, Message)."""

_KINDS: Final[dict[UpdateKind, type[Forward]]] = {
    "message": ForwardMessage,
    "edited_message": ForwardEditedMessage,
    "callback_query": ForwardCallback,
    "message_reaction": ForwardReaction,
}


@frozen(kw_only=True)
class UpdateInfo:
    """Where an update comes from and what it is about; ids are None where the update has none.

    `thread_id` is set only for a message that really is in a topic: in groups an id without
    `is_topic_message` belongs to a reply thread, which cannot be written to (bot-api T2).
    """

    update_id: int
    kind: UpdateKind
    chat_id: int | None = None
    chat_is_private: bool = False
    thread_id: int | None = None
    message_id: int | None = None
    reply_to: int | None = None
    sender_id: int | None = None
    text: str = ""
    callback_id: str | None = None
    service: bool = False
    migrated: tuple[int, int] | None = None
    """The ids before and after, where the message says that a group became a supergroup."""
    membership: str | None = None
    """What the bot is in the chat now (`member`, `kicked`, …), where the update says so."""
    files: tuple[str, ...] = ()
    """The ids of all files in it, those of the message it replies to among them."""


def _integer(value: object) -> int | None:
    """An id; those of Telegram have 52 significant bits at most, and neither a delivery nor a store takes any other."""
    return value if type(value) is int and abs(value) <= MAX_SAFE_INTEGER else None


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _thread(message: dict[str, Any]) -> int | None:
    """The topic that a message is in; General has none, and whoever gives it one means 1 (bot-api T2, T3)."""
    thread = _integer(message.get("message_thread_id")) if message.get("is_topic_message") is True else None
    return None if thread == GENERAL else thread


def _migrated(message: dict[str, Any], chat_id: int | None) -> tuple[int, int] | None:
    to, origin = _integer(message.get("migrate_to_chat_id")), _integer(message.get("migrate_from_chat_id"))
    if chat_id is None or (to is None and origin is None):
        return None
    return (chat_id, to) if to is not None else (origin or 0, chat_id)


def _from_message(update_id: int, kind: UpdateKind, message: dict[str, Any]) -> UpdateInfo:
    chat = _mapping(message.get("chat"))
    reply = _mapping(message.get("reply_to_message"))
    # Every message in a topic "replies" to the topic's first message; that is no reply of a person.
    replied = None if "forum_topic_created" in reply else _integer(reply.get("message_id"))
    text = message.get("text", message.get("caption"))
    return UpdateInfo(
        update_id=update_id,
        kind=kind,
        chat_id=_integer(chat.get("id")),
        chat_is_private=chat.get("type") == "private",
        thread_id=_thread(message),
        message_id=_integer(message.get("message_id")),
        reply_to=replied,
        sender_id=_integer(_mapping(message.get("from")).get("id")),
        text=text if isinstance(text, str) else "",
        service=not _SERVICE_FIELDS.isdisjoint(message),
        migrated=_migrated(message, _integer(chat.get("id"))),
        files=tuple(file_ids(message)),
    )


def _from_callback(update_id: int, query: dict[str, Any]) -> UpdateInfo:
    message = _mapping(query.get("message"))
    chat = _mapping(message.get("chat"))
    data, callback_id = query.get("data"), query.get("id")
    return UpdateInfo(
        update_id=update_id,
        kind="callback_query",
        chat_id=_integer(chat.get("id")),
        chat_is_private=chat.get("type") == "private",
        thread_id=_thread(message),
        message_id=_integer(message.get("message_id")),
        sender_id=_integer(_mapping(query.get("from")).get("id")),
        text=data if isinstance(data, str) else "",
        callback_id=callback_id if isinstance(callback_id, str) else None,
        files=tuple(file_ids(message)),
    )


def _from_sender(update_id: int, kind: UpdateKind, body: dict[str, Any], sender: str) -> UpdateInfo:
    chat = _mapping(body.get("chat"))
    return UpdateInfo(
        update_id=update_id,
        kind=kind,
        chat_id=_integer(chat.get("id")),
        chat_is_private=chat.get("type") == "private",
        message_id=_integer(body.get("message_id")),
        sender_id=_integer(_mapping(body.get(sender)).get("id")),
    )


def _from_unknown(update_id: int, update: dict[str, Any]) -> UpdateInfo:
    """A kind that came after us: its one object tells who and where as the others do."""
    body: dict[str, Any] = next((value for name, value in update.items() if isinstance(value, dict)), {})
    sender = "from" if "from" in body else "user"
    return _from_sender(update_id, "other", body, sender)


def describe(update: dict[str, Any]) -> UpdateInfo:
    """Read what routing needs from a raw update; anything odd in it reads as absent.

    Raises ValueError where there is no usable `update_id`: nothing can be remembered of such an update.
    """
    update_id = _integer(update.get("update_id"))
    if update_id is None or update_id < 0:
        raise ValueError(f"an update without a usable update_id: {update.get('update_id')!r:.40}")
    for kind in ("message", "edited_message"):
        if isinstance(body := update.get(kind), dict):
            return _from_message(update_id, kind, body)
    if isinstance(body := update.get("callback_query"), dict):
        return _from_callback(update_id, body)
    if isinstance(body := update.get("message_reaction"), dict):
        return _from_sender(update_id, "message_reaction", body, "user")
    if isinstance(body := update.get("my_chat_member"), dict):
        status = _mapping(body.get("new_chat_member")).get("status")
        info = _from_sender(update_id, "my_chat_member", body, "from")
        return evolve(info, membership=status if isinstance(status, str) else None)
    return _from_unknown(update_id, update)


def date_of(update: dict[str, Any]) -> int | None:
    """When a person did it (seconds since 1970), None where Telegram does not say: a pressed button has no date."""
    for kind, name in (("message", "date"), ("edited_message", "edit_date"), ("message_reaction", "date")):
        if isinstance(body := update.get(kind), dict):
            return _integer(body.get(name))
    return None


def amended(update: dict[str, Any], edit: dict[str, Any]) -> dict[str, Any]:
    """A message that nobody has got yet, as an edit left it."""
    return {"update_id": update["update_id"], "message": edit["edited_message"]}


def carried(update: dict[str, Any], kind: UpdateKind) -> dict[str, Any]:
    """The object that travels to a follower: Telegram's own, marked with the update it came from."""
    return {**update[kind], SOURCE_MARKER: update["update_id"]}


def forward(  # the fields of the envelope
    update: dict[str, Any],
    kind: UpdateKind,
    *,
    key: str,
    instance: str,
    generation: str,
    request_id: str,
    auth: str,
    now_ms: int,
) -> Forward:
    """The envelope that carries an update to the follower `key`, now running as `instance` in `generation`.

    Raises KeyError for a kind that is not forwarded, ValueError where no delivery id exists.
    """
    envelope = _KINDS[kind]
    source = update["update_id"]
    payload_field = {"callback_query": "query", "message_reaction": "reaction_update"}.get(kind, "message")
    return envelope(
        request_id=request_id,
        auth=auth,
        recipient_instance_id=instance,
        recipient_registration_generation=generation,
        delivery=Delivery(
            delivery_id=delivery_id(envelope.KIND, key, source),
            source_update_id=source,
            recipient_binding_key=key,
        ),
        sent_at_ms=now_ms,
        **{payload_field: carried(update, kind)},
    )
