"""What a call is about: the chat, thread, message and keyboard that its arguments name, or the refusal."""

from __future__ import annotations

from typing import Any

from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.model import World
from telegram_bus.sandbox.model_types import Chat, Json, Message, User
from telegram_bus.sandbox.refusal import bad_request, forbidden

__all__ = [
    "find_chat", "find_open_chat", "find_replied", "find_thread", "find_user", "need_message", "need_right",
    "read_keyboard", "reply_thread",
]  # fmt: skip

MAX_CALLBACK_DATA = 64  # bytes, M11
_ACTIONS = ("url", "web_app", "login_url", "switch_inline_query", "switch_inline_query_current_chat",
            "switch_inline_query_chosen_chat", "copy_text", "callback_game", "pay", "disabled")  # fmt: skip
_BUTTON_FIELDS = frozenset({"text", "callback_data", "icon_custom_emoji_id", "style", *_ACTIONS})
_OTHER_KEYBOARDS = ("keyboard", "remove_keyboard", "force_reply")


def find_chat(world: World, args: Args) -> Chat:
    """The chat of `chat_id` (M9)."""
    given = args.text("chat_id").strip()
    if not given:
        raise bad_request("chat_id is empty")
    try:
        chat = world.chats.get(int(given))
    except ValueError:
        chat = None
    if chat is None or (chat.type == "private" and not _is_met(world.users[chat.id])):
        raise bad_request("chat not found")
    if chat.migrated_to:
        raise bad_request(
            "group chat was upgraded to a supergroup chat", {"migrate_to_chat_id": chat.migrated_to}
        )  # M10
    return chat


def find_open_chat(world: World, args: Args) -> Chat:
    """The chat of `chat_id`, if the bot may write there (M9)."""
    chat = find_chat(world, args)
    if chat.type == "private":
        _need_open(world.users[chat.id])
    if chat.bot_status in {"kicked", "left"}:
        kind = "supergroup" if chat.type == "supergroup" else "group"
        said = "was kicked from" if chat.bot_status == "kicked" else "is not a member of"
        raise forbidden(f"bot {said} the {kind} chat")
    return chat


def find_thread(world: World, chat: Chat, args: Args, replied: Message | None = None) -> int:
    """The thread that a message goes to, 0 for none: asked for, or that of the message it answers (T3, T12)."""
    thread_id = args.integer("message_thread_id")
    if not (chat.is_forum or chat.type == "private"):
        # What is asked for is dropped; an answer belongs to the thread of what it answers (T2).
        return reply_thread(chat, replied)
    if thread_id == 0:
        thread_id = replied.thread_id if replied is not None else 0
    elif world.settings.topic_cache and thread_id in chat.deleted_topics:
        thread_id = 0  # still accepted, but there is no thread any more to be in (T4, T5)
    if thread_id == 0:
        if chat.general.closed:
            raise bad_request("TOPIC_CLOSED")
        return 0
    topic = chat.topics.get(thread_id)
    if topic is None or topic.pruned:
        raise bad_request("message thread not found")
    if topic.closed and not chat.bot_is_admin:
        raise bad_request("TOPIC_CLOSED")
    return thread_id


def reply_thread(chat: Chat, replied: Message | None) -> int:
    """The thread of an answer in a supergroup without topics; 0 elsewhere."""
    if replied is None or chat.type != "supergroup" or chat.is_forum:
        return 0
    return replied.thread_id or replied.message_id


def find_replied(chat: Chat, args: Args) -> Message | None:
    """The message that a new one answers (M8)."""
    reply = args.parsed("reply_parameters", "can't parse reply parameters JSON object")
    if isinstance(reply, dict):
        wanted, lenient = reply.get("message_id", 0), bool(reply.get("allow_sending_without_reply"))
    else:
        wanted, lenient = args.integer("reply_to_message_id"), args.flag("allow_sending_without_reply")
    if not wanted:
        return None
    found = chat.messages.get(wanted) if isinstance(wanted, int) else None
    if found is None and not lenient:
        raise bad_request("message to be replied not found")
    return found


def find_user(world: World, args: Args) -> User:
    """The person, or the bot, of `user_id`."""
    user_id = args.integer("user_id")
    if user_id <= 0:
        raise bad_request("invalid user_id specified")
    user = world.bot if user_id == world.bot.id else world.users.get(user_id)
    if user is None:
        raise bad_request("user not found")
    return user


def need_right(chat: Chat, right: str, doing: str) -> None:
    """Raise `Refusal` when the bot lacks a right of administrators; in a private chat it has them all."""
    if chat.type != "private" and not (chat.bot_is_admin and right in chat.rights):
        raise bad_request(f"not enough rights to {doing}")


def need_message(chat: Chat, args: Args, missing: str) -> Message:
    """The message of `message_id`; raises `Refusal` with `missing`."""
    message = chat.messages.get(args.integer("message_id"))
    if message is None:
        raise bad_request(missing)
    return message


def read_keyboard(args: Args) -> Json | None:
    """The inline keyboard of `reply_markup`; None for none and for the kinds that messages do not show (M11)."""
    markup = args.parsed("reply_markup", "can't parse reply keyboard markup JSON object")
    if markup is None:
        return None
    if not isinstance(markup, dict):
        raise bad_request("Object expected as reply markup")
    rows = markup.get("inline_keyboard")
    if rows is None:
        return None
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise bad_request('Field "inline_keyboard" must be an Array of Arrays')
    kept = [[_button(button) for button in row] for row in rows if row]
    return {"inline_keyboard": kept} if kept else None


def _is_met(user: User) -> bool:
    return user.started or user.known


def _need_open(user: User) -> None:
    if user.deactivated:
        raise forbidden("user is deactivated")
    if user.blocked:
        raise forbidden("bot was blocked by the user")
    if not user.started:
        raise forbidden("bot can't initiate conversation with a user")


def _button(button: Any) -> Json:
    prefix = "can't parse inline keyboard button: "
    if not isinstance(button, dict):
        raise bad_request(prefix + "InlineKeyboardButton must be an Object")
    if "text" not in button:
        raise bad_request(prefix + 'Can\'t find field "text"')
    if not isinstance(button["text"], str):
        raise bad_request(prefix + 'Field "text" must be of type String')
    data = button.get("callback_data")
    if data is not None and not isinstance(data, str):
        raise bad_request(prefix + 'Field "callback_data" must be of type String')
    if data:
        if len(data.encode("utf-8", "surrogatepass")) > MAX_CALLBACK_DATA:
            raise bad_request("BUTTON_DATA_INVALID")
    elif all(button.get(action) in (None, "") for action in _ACTIONS):
        raise bad_request(prefix + "Text buttons are unallowed in the inline keyboard")
    # Clients send fields of their own (telegraf: "hide"); the server keeps what it knows.
    return {name: value for name, value in button.items() if name in _BUTTON_FIELDS and value is not None}
