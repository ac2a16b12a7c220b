"""Messages, keyboards and limits, row by row: the M rows of the Bot API contract that concern these methods."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from telegram_bus.sandbox import model_doings as doings
from tests.sandbox.talk import Rows, Talk

ROWS = Rows()


def keyboard(**button: Any) -> str:
    return json.dumps({"inline_keyboard": [[{"text": "A", **button}]]})


@pytest.mark.parametrize("check", ROWS.params)
def test_contract(check: Callable[[Talk], None]) -> None:
    check(Talk())


@ROWS.row("M1")
def text_is_limited_in_scalars_after_parsing(talk: Talk) -> None:
    assert len(talk.send("😀" * 4096)["text"]) == 4096
    assert talk.refused("sendMessage", chat_id=talk.private.id, text="😀" * 4097) == "message is too long"
    assert talk.send("<b>" + "x" * 4096 + "</b>", parse_mode="HTML")["entities"] == [
        {"offset": 0, "length": 4096, "type": "bold"}
    ]
    assert talk.refused("sendMessage", chat_id=talk.private.id, text="x" * 32_769) == "text is too long"


@ROWS.row("M3")
def empty_and_blank_are_refused_differently(talk: Talk) -> None:
    assert talk.refused("sendMessage", chat_id=talk.private.id) == "message text is empty"
    for blank in (" \n ", "<b> </b>"):
        refused = talk.refused("sendMessage", chat_id=talk.private.id, text=blank, parse_mode="HTML")
        assert refused == "text must be non-empty"


@ROWS.row("M4")
def offsets_are_utf16_and_white_space_is_trimmed(talk: Talk) -> None:
    sent = talk.send("  😀 <b>bold</b>  ", parse_mode="HTML")
    assert sent["text"] == "😀 bold"
    assert sent["entities"] == [{"offset": 3, "length": 4, "type": "bold"}]
    given = talk.send("  😀 x", entities=[{"type": "italic", "offset": 0, "length": 6}])
    assert given["entities"] == [{"offset": 0, "length": 4, "type": "italic"}]


@ROWS.row("M6")
def edits_say_what_is_wrong(talk: Talk) -> None:
    sent = talk.send("one", reply_markup=keyboard(callback_data="a"))
    there = {"chat_id": talk.private.id, "message_id": sent["message_id"]}
    not_modified = (
        "message is not modified: specified new message content and reply markup are exactly the same as a current "
        "content and reply markup of the message"
    )
    same = {"text": "one", "reply_markup": keyboard(callback_data="a")}
    assert talk.refused("editMessageText", **there, **same) == not_modified
    assert talk.refused("editMessageReplyMarkup", **there, reply_markup=same["reply_markup"]) == not_modified
    talk.now += 5
    edited = talk.call("editMessageText", text="two", **there)
    assert (edited["text"], edited["edit_date"]) == ("two", int(talk.now))
    assert "reply_markup" not in edited
    missing = talk.refused("editMessageText", chat_id=talk.private.id, message_id=999, text="x")
    assert missing == "message to edit not found"
    mine = talk.say("mine")
    refused = talk.refused("editMessageText", chat_id=talk.private.id, message_id=mine["message_id"], text="x")
    assert refused == "message can't be edited"


@ROWS.row("M6")
def an_edit_of_the_keyboard_alone_keeps_the_text(talk: Talk) -> None:
    sent = talk.send("one")
    there = {"chat_id": talk.private.id, "message_id": sent["message_id"]}
    edited = talk.call("editMessageReplyMarkup", reply_markup=keyboard(callback_data="b"), **there)
    assert edited["text"] == "one"
    assert edited["reply_markup"]["inline_keyboard"][0][0]["callback_data"] == "b"
    assert "reply_markup" not in talk.call("editMessageReplyMarkup", **there)


@ROWS.row("M7")
def deletions_have_their_rules(talk: Talk) -> None:
    missing = talk.refused("deleteMessage", chat_id=talk.private.id, message_id=999)
    assert missing == "message to delete not found"
    theirs = talk.say()
    assert talk.call("deleteMessage", chat_id=talk.private.id, message_id=theirs["message_id"]) is True
    created = talk.refused("deleteMessage", chat_id=talk.private.id, message_id=talk.topic())
    assert created == "message can't be deleted"
    in_group = talk.say("/x", chat=talk.group)
    refused = talk.refused("deleteMessage", chat_id=talk.group.id, message_id=in_group["message_id"])
    assert refused == "message can't be deleted"
    old = talk.send()
    talk.now += 48 * 3600 + 1
    refused = talk.refused("deleteMessage", chat_id=talk.private.id, message_id=old["message_id"])
    assert refused == "message can't be deleted"


@ROWS.row("M8")
def replies_and_reactions_need_their_message(talk: Talk) -> None:
    reply = {"message_id": 999}
    refused = talk.refused("sendMessage", chat_id=talk.private.id, text="x", reply_parameters=json.dumps(reply))
    assert refused == "message to be replied not found"
    lenient = json.dumps(reply | {"allow_sending_without_reply": True})
    assert "reply_to_message" not in talk.send(reply_parameters=lenient)
    thread = talk.topic()
    said = talk.say("question", thread_id=thread)
    answer = talk.send(reply_parameters={"message_id": said["message_id"]})
    assert answer["reply_to_message"]["text"] == "question"
    assert answer["message_thread_id"] == thread
    missing = talk.refused("setMessageReaction", chat_id=talk.private.id, message_id=999, reaction="[]")
    assert missing == "message to react not found"


@ROWS.row("M9")
def chats_that_cannot_be_written_to(talk: Talk) -> None:
    assert talk.refused("sendMessage", text="x") == "chat_id is empty"
    assert talk.refused("sendMessage", text="x", chat_id="7") == "chat not found"
    assert talk.refused("sendMessage", text="x", chat_id="nobody") == "chat not found"
    stranger = next(user for user in talk.world.users.values() if not user.started)
    assert talk.refused("sendMessage", text="x", chat_id=stranger.id) == "chat not found"
    talk.say("hello", chat=talk.world.chats[stranger.id], user=stranger)
    assert talk.send(chat_id=stranger.id)["chat"]["id"] == stranger.id
    doings.block(talk.world, talk.owner, talk.now, blocked=True)
    blocked = talk.refusal("sendMessage", text="x", chat_id=talk.private.id)
    assert blocked == (403, "Forbidden: bot was blocked by the user")
    talk.forum.bot_status = "kicked"
    kicked = talk.refusal("sendMessage", text="x", chat_id=talk.forum.id)
    assert kicked == (403, "Forbidden: bot was kicked from the supergroup chat")
    talk.group.bot_status = "left"
    left = talk.refusal("sendMessage", text="x", chat_id=talk.group.id)
    assert left == (403, "Forbidden: bot is not a member of the group chat")


@ROWS.row("M11")
def buttons_are_checked(talk: Talk) -> None:
    def refused(**button: Any) -> str:
        return talk.refused("sendMessage", chat_id=talk.private.id, text="x", reply_markup=keyboard(**button))

    assert refused(callback_data="é" * 33) == "BUTTON_DATA_INVALID"
    assert talk.send(reply_markup=keyboard(callback_data="é" * 32))["reply_markup"]
    bare = "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"
    assert refused() == bare
    assert refused(callback_data="") == bare
    assert talk.send(reply_markup=keyboard(url="https://example.org/"))["reply_markup"]
    odd = talk.send(reply_markup=keyboard(callback_data="x", hide=False, url=None))["reply_markup"]
    assert odd == {"inline_keyboard": [[{"text": odd["inline_keyboard"][0][0]["text"], "callback_data": "x"}]]}
    assert talk.send(reply_markup=json.dumps({"inline_keyboard": [[]]})).get("reply_markup") is None
    broken = talk.refused("sendMessage", chat_id=talk.private.id, text="x", reply_markup="{")
    assert broken == "can't parse reply keyboard markup JSON object"
    flat = talk.refused("sendMessage", chat_id=talk.private.id, text="x", reply_markup={"inline_keyboard": [{}]})
    assert flat == 'field "inline_keyboard" must be an Array of Arrays'


@ROWS.row("M12")
def a_query_can_be_answered_while_it_is_young(talk: Talk) -> None:
    sent = talk.send(reply_markup=keyboard(callback_data="a"))
    query = doings.press(talk.world, talk.private, talk.owner, sent["message_id"], "a", talk.now)
    too_long = talk.refused("answerCallbackQuery", callback_query_id=query, text="x" * 201)
    assert too_long == "MESSAGE_TOO_LONG"
    assert talk.call("answerCallbackQuery", callback_query_id=query, text="x" * 200) is True
    too_old = "query is too old and response timeout expired or query ID is invalid"
    assert talk.refused("answerCallbackQuery", callback_query_id="1") == too_old
    talk.now += 151
    assert talk.refused("answerCallbackQuery", callback_query_id=query) == too_old


@ROWS.row("M13")
def a_pressed_button_brings_its_whole_message(talk: Talk) -> None:
    thread = talk.topic()
    sent = talk.send(message_thread_id=thread, reply_markup=keyboard(callback_data="a"))
    doings.press(talk.world, talk.private, talk.owner, sent["message_id"], "a", talk.now)
    query = talk.updates()[-1]["callback_query"]
    assert query["message"] == sent
    assert (query["from"]["id"], query["data"]) == (talk.owner.id, "a")


@ROWS.row("M19")
def reactions_in_private_chats_never_reach_the_bot(talk: Talk) -> None:
    talk.allow(["message_reaction"])
    sent = talk.send()
    doings.react(talk.world, talk.private, talk.owner, sent["message_id"], "👍", talk.now)
    in_group = talk.send(chat_id=talk.group.id)
    doings.react(talk.world, talk.group, talk.owner, in_group["message_id"], "👍", talk.now)
    assert talk.updates() == []


@ROWS.row("H8")
def upper_case_codes_stay_as_they_are(talk: Talk) -> None:
    reaction = json.dumps([{"type": "emoji", "emoji": "x"}])
    sent = talk.send()
    there = {"chat_id": talk.private.id, "message_id": sent["message_id"]}
    assert talk.refusal("setMessageReaction", reaction=reaction, **there) == (400, "Bad Request: REACTION_INVALID")
    assert talk.refusal("sendMessage") == (400, "Bad Request: message text is empty")


def test_privacy_mode_shows_the_bot_only_what_is_meant_for_it() -> None:
    talk = Talk()
    mine = talk.send(chat_id=talk.group.id)
    name = talk.world.bot.username
    for text in ("plain", "/status", f"/status@{name}", "/status@other_bot", f"ask @{name}", "mail me@home"):
        talk.say(text, chat=talk.group)
    talk.say("a reply", chat=talk.group, reply_to=mine["message_id"])
    seen = [update["message"]["text"] for update in talk.updates()]
    assert seen == ["/status", f"/status@{name}", f"ask @{name}", "a reply"]
    doings.change_settings(talk.world, privacy=False)
    assert talk.call("getMe")["can_read_all_group_messages"] is True
    talk.say("plain", chat=talk.group)
    assert talk.updates()[-1]["message"]["text"] == "plain"


def test_a_person_who_edits_is_seen_and_one_who_deletes_is_not() -> None:
    talk = Talk()
    said = talk.say("one")
    doings.edit(talk.world, talk.private, talk.owner, said["message_id"], "two", talk.now)
    doings.delete_message(talk.world, talk.private, talk.owner, said["message_id"])
    first, second = talk.updates()
    assert first["message"]["text"] == "one"
    assert second["edited_message"]["text"] == "two"


def test_chats_members_and_commands_can_be_asked_for() -> None:
    talk = Talk()
    chat = talk.call("getChat", chat_id=talk.forum.id)
    assert (chat["type"], chat["is_forum"]) == ("supergroup", True)
    assert talk.call("getChat", chat_id=talk.private.id)["first_name"] == talk.owner.first_name
    bot = {"chat_id": talk.forum.id, "user_id": talk.world.bot.id}
    assert talk.call("getChatMember", **bot)["can_manage_topics"] is True
    owner = talk.call("getChatMember", chat_id=talk.forum.id, user_id=talk.owner.id)
    assert owner["status"] == "creator"
    assert talk.refused("getChatMember", chat_id=talk.forum.id, user_id=1) == "user not found"
    commands = [{"command": "status", "description": "who is there"}]
    scope = {"type": "chat", "chat_id": talk.private.id}
    assert talk.call("setMyCommands", commands=json.dumps(commands), scope=json.dumps(scope)) is True
    assert talk.call("getMyCommands", scope=scope) == commands
    assert talk.call("getMyCommands") == []
    assert talk.call("deleteMyCommands", scope=scope) is True
    assert talk.call("getMyCommands", scope=scope) == []
    bad = [{"command": "No Good", "description": "x"}]
    assert talk.refused("setMyCommands", commands=bad) == "BOT_COMMAND_INVALID"
