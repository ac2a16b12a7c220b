"""The café bot with pyTelegramBotAPI."""

from __future__ import annotations

import base64
import io
import os

from telebot import TeleBot, apihelper
from telebot.types import (
    CallbackQuery,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputFile,
    InputMediaPhoto,
    Message,
    ReactionTypeEmoji,
)

apihelper.API_URL = os.environ["API_ROOT"] + "/bot{0}/{1}"
apihelper.FILE_URL = os.environ["API_ROOT"] + "/file/bot{0}/{1}"
PIXEL = base64.b64decode(os.environ["PIXEL"])
bot = TeleBot(os.environ["TOKEN"])
receipts: dict[int, int] = {}


def buttons(*pairs: tuple[str, str]) -> InlineKeyboardMarkup:
    markup = InlineKeyboardMarkup()
    markup.add(*(InlineKeyboardButton(label, callback_data=data) for label, data in pairs))
    return markup


def order(message: Message) -> None:
    topic = bot.create_forum_topic(message.chat.id, "Order")
    bot.send_message(
        message.chat.id,
        "What would you like?",
        message_thread_id=topic.message_thread_id,
        reply_markup=buttons(("Tea", "order:Tea"), ("Cake", "order:Cake")),
    )


def chosen(query: CallbackQuery) -> None:
    dish, message = query.data.removeprefix("order:"), query.message
    bot.answer_callback_query(query.id, f"{dish} it is")
    markup = buttons(("Receipt", f"receipt:{dish}"))
    bot.edit_message_text(f"{dish}, then.", message.chat.id, message.message_id, reply_markup=markup)


def receipt(query: CallbackQuery) -> None:
    dish, chat, thread = query.data.removeprefix("receipt:"), query.message.chat.id, query.message.message_thread_id
    bot.answer_callback_query(query.id)
    bot.send_chat_action(chat, "upload_document", message_thread_id=thread)
    file = InputFile(io.BytesIO(f"☕ {dish}".encode()), file_name="receipt.txt")
    sent = bot.send_document(chat, file, caption="<b>Paid</b>", parse_mode="HTML", message_thread_id=thread)
    receipts[thread] = sent.message_id


def changed(message: Message) -> None:
    bot.reply_to(message, f"Changed: {message.text}")


def received(message: Message) -> None:
    content = bot.download_file(bot.get_file(message.document.file_id).file_path)
    bot.reply_to(message, f"Got {len(content)} bytes: {content.decode()}")


def album(message: Message) -> None:
    photos = [
        InputMediaPhoto(InputFile(io.BytesIO(PIXEL), file_name=f"{n}.png"), caption="Our tables" if n == 1 else None)
        for n in (1, 2)
    ]
    bot.send_media_group(message.chat.id, photos, message_thread_id=message.message_thread_id)


def done(message: Message) -> None:
    chat, thread = message.chat.id, message.message_thread_id
    bot.set_message_reaction(chat, message.message_id, [ReactionTypeEmoji("👍")])
    bot.pin_chat_message(chat, receipts[thread], disable_notification=True)
    bot.edit_message_caption("Paid. Thank you!", chat, receipts[thread])
    bot.edit_forum_topic(chat, thread, name="Order, done")


def forget(message: Message) -> None:
    bot.delete_forum_topic(message.chat.id, message.message_thread_id)


def main() -> None:
    texts = {"album": album, "done": done, "forget it": forget}
    bot.register_message_handler(order, commands=["order"])
    bot.register_message_handler(received, content_types=["document"])
    for text, answer in texts.items():
        bot.register_message_handler(answer, regexp=f"^{text}$")
    bot.register_edited_message_handler(changed)
    bot.register_callback_query_handler(chosen, func=lambda query: query.data.startswith("order:"))
    bot.register_callback_query_handler(receipt, func=lambda query: query.data.startswith("receipt:"))
    bot.infinity_polling(timeout=20, long_polling_timeout=20)


if __name__ == "__main__":
    main()
