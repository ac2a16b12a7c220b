"""python-telegram-bot's own Bot, which nobody here wrote, talks to the sandbox under Trio."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, ReactionTypeEmoji
from telegram.constants import ChatAction, ParseMode
from telegram.error import BadRequest, Conflict, Forbidden, InvalidToken
from telegram.request import HTTPXRequest

from telegram_bus.testing import Sandbox


@asynccontextmanager
async def open_bot(sandbox: Sandbox, token: str | None = None) -> AsyncIterator[Bot]:
    # Bot.initialize() gathers with asyncio; entering its requests is all that Trio needs.
    requests = HTTPXRequest(), HTTPXRequest()
    bot = Bot(
        token or sandbox.token,
        base_url=f"{sandbox.api_root}/bot",
        request=requests[0],
        get_updates_request=requests[1],
    )
    async with requests[0], requests[1]:
        yield bot


async def test_a_conversation_in_a_topic(sandbox: Sandbox) -> None:
    async with open_bot(sandbox) as bot:
        me = await bot.get_me()
        assert me.id == sandbox.bot_id
        topic = await bot.create_forum_topic(sandbox.chat_id, "amber")
        thread = topic.message_thread_id
        await bot.send_chat_action(sandbox.chat_id, ChatAction.TYPING, message_thread_id=thread)
        buttons = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="yes")]])
        sent = await bot.send_message(
            sandbox.chat_id,
            "<b>Shall</b> I?",
            parse_mode=ParseMode.HTML,
            message_thread_id=thread,
            reply_markup=buttons,
        )
        assert sent.is_topic_message
        assert [entity.type for entity in sent.entities] == ["bold"]
        shown = sandbox.wait_for_message("Shall I?", thread_id=thread)
        sandbox.press(shown, "Yes")
        sandbox.say("now", thread_id=thread)
        created, query, message = await bot.get_updates(timeout=5)
        assert created.message is not None
        assert created.message.forum_topic_created is not None
        assert query.callback_query is not None
        assert query.callback_query.data == "yes"
        assert await query.callback_query.answer("done")
        assert message.message is not None
        assert message.message.message_thread_id == thread
        await message.message.reply_text("later", do_quote=True)
        await message.message.set_reaction(ReactionTypeEmoji("👍"))
        edited = await sent.edit_text("Shall not")
        assert edited is not True
        assert await sent.delete()
        assert await bot.get_updates(offset=message.update_id + 1) == ()
    assert sandbox.wait_for_message("later")["reply_to_message"]["text"] == "now"
    assert sandbox.messages(thread_id=thread, by_bot=False)[-1]["reactions"] == [
        {"emoji": "👍", "by": [sandbox.bot_id]}
    ]


async def test_refusals_become_its_exceptions(sandbox: Sandbox) -> None:
    async with open_bot(sandbox) as bot:
        with pytest.raises(BadRequest, match="Message thread not found"):
            await bot.send_message(sandbox.chat_id, "x", message_thread_id=999)
        with pytest.raises(BadRequest, match="The chat is not a supergroup forum"):
            await bot.close_forum_topic(sandbox.chat_id, 5)
        sandbox.block()
        with pytest.raises(Forbidden, match="bot was blocked by the user"):
            await bot.send_message(sandbox.chat_id, "x")
        await bot.set_webhook("https://example.org/hook")
        with pytest.raises(Conflict):
            await bot.get_updates()
    async with open_bot(sandbox, sandbox.token[:-3] + "xxx") as stranger:
        with pytest.raises(InvalidToken):
            await stranger.get_me()


async def test_a_second_poller_ends_the_first(sandbox: Sandbox) -> None:
    async with open_bot(sandbox) as first, open_bot(sandbox) as second, trio.open_nursery() as nursery:

        async def poll_first() -> None:
            with pytest.raises(Conflict, match="terminated by other getUpdates"):
                await first.get_updates(timeout=30)

        async def poll_second() -> None:
            (update,) = await second.get_updates(offset=1, timeout=30)
            assert update.message is not None
            assert update.message.text == "hello"

        nursery.start_soon(poll_first)
        await trio.to_thread.run_sync(lambda: sandbox.wait_for_record(kind="poll"))
        nursery.start_soon(poll_second)
        await trio.to_thread.run_sync(lambda: sandbox.wait_for_record(2, kind="poll"))
        sandbox.say("hello")
