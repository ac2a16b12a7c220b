"""What else people do: send files and albums, pin, vote, come and go, and decide on a group. Pure and synchronous."""

from __future__ import annotations

from typing import Any

import attrs

from telegram_bus.sandbox.args import Args, Upload
from telegram_bus.sandbox.entities import found_entities, trimmed, utf16_length
from telegram_bus.sandbox.media import content_of, new_file
from telegram_bus.sandbox.methods.copies import told_on
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_acts import change_general, pin, show_chat, unpin
from telegram_bus.sandbox.model_doings import MAX_CAPTION, UnknownError, enter, find_message, say
from telegram_bus.sandbox.model_files import FILE_KINDS
from telegram_bus.sandbox.model_members import ALL_RIGHTS, change_bot, join, leave
from telegram_bus.sandbox.model_types import ADMIN_RIGHTS, Chat, Json, User
from telegram_bus.sandbox.model_views import chat_state, chat_view, message_view, user_view
from telegram_bus.sandbox.refusal import Refusal

__all__ = [
    "Sent", "come", "deactivate", "forward", "go", "migrate", "pin_message", "rename_chat", "send_files",
    "set_bot_status", "set_forum", "stop_draft", "switch_general", "vote",
]  # fmt: skip

MAX_ALBUM = 10
KEPT_POLLS = 1_000  # whose votes are known; bounds the memory of a long run
_ALBUM = frozenset({"photo", "video", "document", "audio"})
_ALONE = frozenset({"document", "audio"})


@attrs.frozen
class Sent:
    """A file that a person sends; `look` holds duration, width, performer, … of those kinds that have them."""

    kind: str
    upload: Upload
    caption: str = ""
    look: Json = attrs.field(factory=dict)


def send_files(
    world: World, chat: Chat, user: User, files: list[Sent], now: float, *, thread_id: int = 0, reply_to: int = 0
) -> list[Json]:
    """A person sends a file, or several as an album. Returns the messages."""
    _need_album(files)
    for file in files:
        if file.kind not in FILE_KINDS or file.kind == "thumbnail":
            raise UnknownError(f"there is no kind of file called {file.kind!r}")
        if utf16_length(file.caption) > MAX_CAPTION:
            raise UnknownError(f"the caption is longer than {MAX_CAPTION} characters")
    thread = enter(world, chat, user, now, thread_id=thread_id, reply_to=reply_to)
    contents = [_content(world, file) for file in files]
    album = str(world.rng.randrange(10**16, 10**17)) if len(files) > 1 else ""
    messages = []
    for file, content in zip(files, contents, strict=True):
        text, _ = trimmed(file.caption, [])
        messages.append(
            world.post(
                chat, user, now, text=text, entities=found_entities(text), content=content, album=album,
                thread_id=thread, reply_to=reply_to,
            )
        )  # fmt: skip
    return [message_view(world, message) for message in messages]


def forward(
    world: World,
    chat: Chat,
    user: User,
    source: Chat,
    message_ids: list[int],
    now: float,
    *,
    comment: str = "",
    thread_id: int = 0,
) -> list[Json]:
    """A person forwards messages of another chat (or this one), as the apps do: their comment goes first.

    Returns the new messages.
    """
    originals = [find_message(source, message_id) for message_id in message_ids]
    if not originals:
        raise UnknownError("message_ids names nothing to forward")
    if any(message.service or message.is_protected for message in originals):
        raise UnknownError("this cannot be forwarded")
    said = [say(world, chat, user, comment, now, thread_id=thread_id)] if comment else []
    thread = enter(world, chat, user, now, thread_id=thread_id, reply_to=0)
    albums: dict[str, str] = {}
    for message in originals:
        album = albums.setdefault(message.album, str(world.rng.randrange(10**16, 10**17))) if message.album else ""
        new = world.post(chat, user, now, thread_id=thread, album=album, **told_on(message))
        said.append(message_view(world, new))
    return said


def pin_message(world: World, chat: Chat, user: User, message_id: int, now: float, *, pinned: bool) -> None:
    """A person pins or unpins a message; in a group only the owner may."""
    message = find_message(chat, message_id)
    _need_owner(world, chat, user)
    if pinned:
        pin(world, chat, user, message, now)
    else:
        unpin(world, chat, [message_id])


def vote(world: World, chat: Chat, user: User, message_id: int, options: list[int], now: float) -> Json:
    """A person votes in a poll; no options take the vote back. Returns the poll."""
    message = find_message(chat, message_id)
    poll = message.content.get("poll")
    if poll is None or poll["is_closed"]:
        raise UnknownError("there is no open poll")
    chosen = sorted(set(options))
    if any(not 0 <= option < len(poll["options"]) for option in chosen):
        raise UnknownError("there is no such option")
    if len(chosen) > 1 and not poll["allows_multiple_answers"]:
        raise UnknownError("only one option can be chosen")
    votes = world.votes.setdefault(poll["id"], {})
    while len(world.votes) > KEPT_POLLS:
        del world.votes[next(iter(world.votes))]
    if chosen:
        votes[user.id] = chosen
    else:
        votes.pop(user.id, None)
    counted = [
        option | {"voter_count": sum(number in ballot for ballot in votes.values())}
        for number, option in enumerate(poll["options"])
    ]
    message.content["poll"] = poll = poll | {"options": counted, "total_voter_count": len(votes)}
    world.changed(message)
    if not poll["is_anonymous"]:
        ids = [str(option["persistent_id"]) for number, option in enumerate(counted) if number in chosen]
        answer = {"poll_id": poll["id"], "user": user_view(user), "option_ids": chosen, "option_persistent_ids": ids}
        world.emit("poll_answer", answer, now)
    world.emit("poll", poll, now)
    return dict(poll)


def come(world: World, chat: Chat, user: User, now: float) -> None:
    """A person joins a group."""
    _need_group(chat)
    if user.id in chat.banned:
        raise UnknownError(f"{user.first_name} is banned from this chat")
    if user.id not in chat.members:
        join(world, chat, user, now)


def go(world: World, chat: Chat, user: User, now: float) -> None:
    """A person leaves a group."""
    _need_group(chat)
    if user is world.owner:
        raise UnknownError("the owner stays")
    if user.id in chat.members:
        leave(world, chat, user, user, now)


def set_bot_status(
    world: World, chat: Chat, user: User, status: str, now: float, *, rights: list[str] | None = None
) -> Json:
    """The owner makes the bot administrator (with these rights; some, without a list), member, kicked. Returns both."""
    _need_group(chat)
    _need_owner(world, chat, user)
    if status not in {"administrator", "member", "kicked", "left"}:
        raise UnknownError(f"the bot cannot be {status!r}: administrator, member, kicked or left")
    given = sorted(ADMIN_RIGHTS) if rights is None else rights
    if not set(given) <= set(ALL_RIGHTS):
        raise UnknownError(f"rights are {', '.join(ALL_RIGHTS)}")
    change_bot(world, chat, user, now, status=status, rights=given)
    return {"status": chat.bot_status, "rights": sorted(chat.rights)}


def set_forum(world: World, chat: Chat, user: User, *, forum: bool) -> None:
    """The owner switches topics of a supergroup on or off; the bot learns nothing of it."""
    _need_owner(world, chat, user)
    if chat.type != "supergroup":
        raise UnknownError("only a supergroup can be a forum")
    chat.is_forum = forum
    show_chat(world, chat)


def switch_general(world: World, chat: Chat, user: User, now: float, *, closed: bool, hidden: bool) -> Json:
    """The owner closes, reopens, hides or shows the topic General; what is hidden is closed. Returns the switches."""
    _need_owner(world, chat, user)
    if not chat.is_forum:
        raise UnknownError("only a forum has a topic General")
    closed = closed or hidden
    if hidden is not chat.general.hidden:
        service = "general_forum_topic_hidden" if hidden else "general_forum_topic_unhidden"
        change_general(world, chat, user, now, {service: {}}, hidden=hidden)
    if closed is not chat.general.closed:
        change_general(
            world, chat, user, now, {"forum_topic_closed" if closed else "forum_topic_reopened": {}}, closed=closed
        )
    return {"closed": closed, "hidden": hidden}


def rename_chat(world: World, chat: Chat, user: User, title: str, now: float) -> None:
    """The owner gives a group another title."""
    _need_group(chat)
    _need_owner(world, chat, user)
    title = " ".join(title.split())
    if not title:
        raise UnknownError("a group needs a title")
    if title != chat.title:
        chat.title = title
        show_chat(world, chat)
        world.post(chat, user, now, service={"new_chat_title": title})


def migrate(world: World, chat: Chat, user: User, now: float) -> int:
    """The owner makes a supergroup of a group: both tell of it, and the group is no more. Returns the new id."""
    _need_owner(world, chat, user)
    if chat.type != "group":
        raise UnknownError("only a group can become a supergroup")
    if chat.migrated_to:
        raise UnknownError(f"this group became {chat.migrated_to} already")
    new_id = -1_000_000_000_000 - world.rng.randrange(2_000_000_000, 3_000_000_000)
    new = world.chats[new_id] = Chat(
        id=new_id, type="supergroup", title=chat.title, members=list(chat.members), bot_status=chat.bot_status,
        rights=chat.rights, permissions=dict(chat.permissions), admins=dict(chat.admins), banned=set(chat.banned),
        description=chat.description, photo=dict(chat.photo),
    )  # fmt: skip
    world.changes.add("new_chat", chat_id=new_id, chat=chat_state(world, new))
    world.post(chat, user, now, service={"migrate_to_chat_id": new_id})
    chat.migrated_to = new_id
    show_chat(world, chat)
    world.post(new, user, now, service={"migrate_from_chat_id": chat.id})
    show_chat(world, new)
    return new_id


def deactivate(world: World, user: User) -> None:
    """A person deletes their account; nothing can be sent to them any more."""
    if user is world.owner:
        raise UnknownError("the owner stays")
    user.deactivated = True
    world.changes.add("user", user_id=user.id, blocked=user.blocked, deactivated=True)


def stop_draft(world: World, chat: Chat, draft_id: int, now: float) -> None:
    """A person stops what the bot is writing, if the bot lets them; the bot gets an update."""
    draft = world.drafts.get((chat.id, draft_id))
    if draft is None or draft["until"] < now or not draft["can_stop"]:
        raise UnknownError(f"there is no draft {draft_id} that can be stopped")
    del world.drafts[chat.id, draft_id]
    update: Json = {"chat": chat_view(world, chat), "draft_id": draft_id}
    if draft["thread_id"]:
        update["message_thread_id"] = draft["thread_id"]
    world.changes.add("draft_stopped", chat_id=chat.id, thread_id=draft["thread_id"], draft_id=draft_id)
    world.emit("stopped_message_generation", update, now)


def _content(world: World, file: Sent) -> Json:
    nothing: Any = Args({})
    try:
        return content_of(new_file(world, file.kind, file.upload, Args(file.look), nothing))
    except Refusal as refusal:
        raise UnknownError(refusal.description.removeprefix("Bad Request: ")) from refusal


def _need_album(files: list[Sent]) -> None:
    if not 1 <= len(files) <= MAX_ALBUM:
        raise UnknownError(f"send 1 to {MAX_ALBUM} files")
    kinds = {file.kind for file in files}
    if len(files) > 1 and (not kinds <= _ALBUM or (len(kinds) > 1 and kinds & _ALONE)):
        raise UnknownError("an album holds photos and videos, or documents only, or audio only")


def _need_group(chat: Chat) -> None:
    if chat.type == "private":
        raise UnknownError("this is a private chat")


def _need_owner(world: World, chat: Chat, user: User) -> None:
    if chat.type != "private" and user is not world.owner:
        raise UnknownError("only the owner may do that here")
