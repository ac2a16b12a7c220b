"""The café bot with aiogram."""

from __future__ import annotations

import asyncio
import base64
import os

from aiogram import Bot, Dispatcher, F
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.filters import Command
from aiogram.types import (
    BufferedInputFile,
    CallbackQuery,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaPhoto,
    Message,
    ReactionTypeEmoji,
)

PIXEL = base64.b64decode(os.environ["PIXEL"])
receipts: dict[int, int] = {}


def buttons(*pairs: tuple[str, str]) -> InlineKeyboardMarkup:
    row = [InlineKeyboardButton(text=label, callback_data=data) for label, data in pairs]
    return InlineKeyboardMarkup(inline_keyboard=[row])


async def order(message: Message, bot: Bot) -> None:
    topic = await bot.create_forum_topic(message.chat.id, "Order")
    await bot.send_message(
        message.chat.id,
        "What would you like?",
        message_thread_id=topic.message_thread_id,
        reply_markup=buttons(("Tea", "order:Tea"), ("Cake", "order:Cake")),
    )


async def chosen(query: CallbackQuery) -> None:
    dish = query.data.removeprefix("order:")
    await query.answer(f"{dish} it is")
    await query.message.edit_text(f"{dish}, then.", reply_markup=buttons(("Receipt", f"receipt:{dish}")))


async def receipt(query: CallbackQuery, bot: Bot) -> None:
    dish, chat, thread = query.data.removeprefix("receipt:"), query.message.chat.id, query.message.message_thread_id
    await query.answer()
    await bot.send_chat_action(chat, "upload_document", message_thread_id=thread)
    file = BufferedInputFile(f"☕ {dish}".encode(), filename="receipt.txt")
    sent = await bot.send_document(chat, file, caption="<b>Paid</b>", parse_mode="HTML", message_thread_id=thread)
    receipts[thread] = sent.message_id


async def changed(message: Message) -> None:
    await message.reply(f"Changed: {message.text}")


async def received(message: Message, bot: Bot) -> None:
    content = (await bot.download(message.document)).read()
    await message.reply(f"Got {len(content)} bytes: {content.decode()}")


async def album(message: Message) -> None:
    photos = [
        InputMediaPhoto(media=BufferedInputFile(PIXEL, filename=f"{n}.png"), caption="Our tables" if n == 1 else None)
        for n in (1, 2)
    ]
    await message.answer_media_group(photos)


async def done(message: Message, bot: Bot) -> None:
    chat, thread = message.chat.id, message.message_thread_id
    await message.react([ReactionTypeEmoji(emoji="👍")])
    await bot.pin_chat_message(chat, receipts[thread], disable_notification=True)
    await bot.edit_message_caption(chat_id=chat, message_id=receipts[thread], caption="Paid. Thank you!")
    await bot.edit_forum_topic(chat, thread, name="Order, done")


async def forget(message: Message, bot: Bot) -> None:
    await bot.delete_forum_topic(message.chat.id, message.message_thread_id)


async def main() -> None:
    server = TelegramAPIServer.from_base(os.environ["API_ROOT"])
    dispatcher = Dispatcher()
    dispatcher.message.register(order, Command("order"))
    dispatcher.message.register(received, F.document)
    dispatcher.message.register(album, F.text == "album")
    dispatcher.message.register(done, F.text == "done")
    dispatcher.message.register(forget, F.text == "forget it")
    dispatcher.edited_message.register(changed)
    dispatcher.callback_query.register(chosen, F.data.startswith("order:"))
    dispatcher.callback_query.register(receipt, F.data.startswith("receipt:"))
    async with Bot(os.environ["TOKEN"], session=AiohttpSession(api=server)) as bot:
        await dispatcher.start_polling(bot, polling_timeout=20)


if __name__ == "__main__":
    asyncio.run(main())
