"""What shows that the bot is there: chat actions, drafts, reactions, answers to pressed buttons."""

from __future__ import annotations

from typing import Any

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.entities import read_text
from telegram_bus.sandbox.methods.finding import find_open_chat, find_thread, need_message
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.refusal import bad_request

__all__ = [
    "METHODS", "REACTIONS", "answercallbackquery", "sendchataction", "sendmessagedraft", "setmessagereaction",
]  # fmt: skip

ACTION_LIFE = 5.0  # seconds, T17
DRAFT_LIFE = 30.0  # seconds, T18
CALLBACK_LIFE = 150.0  # seconds; how long the server knows a query is not published (M12), its update lives so long
MAX_ANSWER = 200  # M12
_ACTIONS = frozenset(
    "cancel typing upload_photo record_video upload_video record_audio upload_audio record_voice upload_voice "
    "upload_document choose_sticker pick_up_location find_location record_video_note upload_video_note".split()
)
REACTIONS = frozenset(
    (
        "❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 "
        "🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 "
        "😴 😭 🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 "
        "🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡 "
    ).split()
)


def sendchataction(world: World, args: Args, now: float) -> bool:
    """sendChatAction: the thread is not looked up (T17)."""
    action = args.text("action").lower()
    if action not in _ACTIONS:
        raise bad_request("wrong parameter action in request")
    chat = find_open_chat(world, args)
    thread_id = args.integer("message_thread_id")
    until = now + ACTION_LIFE
    world.changes.add("action", chat_id=chat.id, thread_id=thread_id, action=action, until=until)
    return True


def sendmessagedraft(world: World, args: Args, now: float) -> bool:
    """sendMessageDraft: a preview that is no message (T18)."""
    text, entities = read_text(args, may_be_empty=True)
    chat = find_open_chat(world, args)
    if chat.type != "private":
        raise bad_request("TEXTDRAFT_PEER_INVALID")
    draft_id = args.integer("draft_id")
    if draft_id == 0:
        raise bad_request("invalid draft_id specified")
    thread_id = find_thread(world, chat, args)
    until = now + DRAFT_LIFE
    can_stop = args.flag("can_stop")
    _forget_drafts(world, now)
    world.drafts[chat.id, draft_id] = {"thread_id": thread_id, "until": until, "can_stop": can_stop}
    world.changes.add(
        "draft", chat_id=chat.id, thread_id=thread_id, draft_id=draft_id, text=text, entities=entities,
        until=until, can_stop=can_stop,
    )  # fmt: skip
    return True


def setmessagereaction(world: World, args: Args, now: float) -> bool:  # noqa: ARG001 - one shape for all methods
    """setMessageReaction: one emoji at most, as for everybody without Premium."""
    given = args.parsed("reaction", "can't parse reaction types JSON object")
    emoji = [_emoji(item) for item in given or []] if isinstance(given, list | None) else _not_a_list()
    chat = find_open_chat(world, args)
    message = need_message(chat, args, "message to react not found")
    if len(emoji) > 1:
        raise bad_request("REACTIONS_TOO_MANY")
    if emoji:
        message.reactions[world.bot.id] = emoji[0]
    else:
        message.reactions.pop(world.bot.id, None)
    world.changed(message)
    return True


def answercallbackquery(world: World, args: Args, now: float) -> bool:
    """answerCallbackQuery."""
    text = args.text("text")
    if len(text) > MAX_ANSWER:
        raise bad_request("MESSAGE_TOO_LONG")
    query = world.callbacks.get(args.text("callback_query_id"))
    if query is None or now - query.made > CALLBACK_LIFE:
        raise bad_request("query is too old and response timeout expired or query ID is invalid")
    query.answered = True
    world.changes.add(
        "callback_answer", id=query.id, chat_id=query.chat_id, message_id=query.message_id, text=text,
        show_alert=args.flag("show_alert"), url=args.text("url"),
    )  # fmt: skip
    return True


METHODS = (sendchataction, sendmessagedraft, setmessagereaction, answercallbackquery)


def _forget_drafts(world: World, now: float) -> None:
    world.drafts = {key: draft for key, draft in world.drafts.items() if draft["until"] > now}


def _emoji(item: Any) -> str:
    if not isinstance(item, dict):
        raise bad_request("can't parse reaction types JSON object: expected an Object")
    emoji = item.get("emoji") if item.get("type") == "emoji" else None
    plain = emoji.replace("\ufe0f", "") if isinstance(emoji, str) else ""
    if plain not in REACTIONS:
        raise bad_request("REACTION_INVALID")
    return plain


def _not_a_list() -> list[str]:
    raise bad_request("can't parse reaction types JSON object: expected an Array")
