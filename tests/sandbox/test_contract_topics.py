"""Topics, row by row: T1 to T19 of the Bot API contract."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from telegram_bus.sandbox import model_doings as doings
from tests.sandbox.talk import Rows, Talk

ROWS = Rows()


@pytest.mark.parametrize("check", ROWS.params)
def test_contract(check: Callable[[Talk], None]) -> None:
    check(Talk())


@ROWS.row("T1")
def get_me_alone_tells_of_threaded_mode(talk: Talk) -> None:
    me = talk.call("getMe")
    assert me["has_topics_enabled"] is True
    assert me["allows_users_to_create_topics"] is True
    assert "has_topics_enabled" not in talk.send()["from"]
    doings.change_settings(talk.world, threaded_mode=False)
    assert talk.call("getMe")["has_topics_enabled"] is False


@ROWS.row("T2")
def a_message_in_a_topic_says_so_and_others_do_not(talk: Talk) -> None:
    for chat in (talk.private, talk.forum):
        thread = talk.topic(chat.id)
        inside = talk.send(chat_id=chat.id, message_thread_id=thread)
        assert (inside["message_thread_id"], inside["is_topic_message"]) == (thread, True)
        outside = talk.send(chat_id=chat.id)
        assert not {"message_thread_id", "is_topic_message"} & set(outside)
        said = talk.say(chat=chat, thread_id=thread)
        assert (said["message_thread_id"], said["is_topic_message"]) == (thread, True)


@ROWS.row("T3")
def an_unknown_thread_is_refused_and_general_is_no_thread(talk: Talk) -> None:
    for chat in (talk.private, talk.forum):
        for thread in (1, 999):
            refused = talk.refused("sendMessage", chat_id=chat.id, text="x", message_thread_id=thread)
            assert refused == "message thread not found"
    in_group = talk.send(chat_id=talk.group.id, message_thread_id=999)
    assert "message_thread_id" not in in_group


@ROWS.row("T4")
def a_topic_deleted_a_moment_ago_still_takes_a_send_where_the_lookup_is_cached(talk: Talk) -> None:
    doings.change_settings(talk.world, topic_cache=True)
    for chat in (talk.private, talk.forum):
        by_bot, by_owner, kept = (talk.topic(chat.id) for _ in range(3))
        talk.call("deleteForumTopic", chat_id=chat.id, message_thread_id=by_bot)
        doings.delete_topic(talk.world, chat, by_owner, talk.now)
        talk.now += 59
        for thread in (by_bot, by_owner):
            sent = talk.send(chat_id=chat.id, message_thread_id=thread)
            assert not {"message_thread_id", "is_topic_message"} & set(sent)
            gone = talk.refused("editForumTopic", chat_id=chat.id, message_thread_id=thread, name="x")
            assert gone == "TOPIC_ID_INVALID"
        assert talk.send(chat_id=chat.id, message_thread_id=kept)["message_thread_id"] == kept
        for thread in (by_bot, by_owner, 999):
            talk.now += thread != 999
            refused = talk.refused("sendMessage", chat_id=chat.id, text="x", message_thread_id=thread)
            assert refused == "message thread not found"


@ROWS.row("T5")
def a_send_to_a_deleted_topic_goes_nowhere_else(talk: Talk) -> None:
    thread = talk.topic()
    doings.delete_topic(talk.world, talk.private, thread, talk.now)
    before = set(talk.private.messages)
    assert talk.refused("sendMessage", chat_id=talk.private.id, text="x", message_thread_id=thread) == (
        "message thread not found"
    )
    assert set(talk.private.messages) == before


@ROWS.row("T6")
def creating_needs_a_forum_a_right_a_name_and_a_colour(talk: Talk) -> None:
    made = talk.call("createForumTopic", chat_id=talk.private.id, name="one", icon_color=9367192)
    assert made == {"message_thread_id": made["message_thread_id"], "name": "one", "icon_color": 9367192}
    assert talk.refused("createForumTopic", chat_id=talk.group.id, name="x") == "the chat is not a forum"
    assert talk.refused("createForumTopic", chat_id=talk.private.id, name=" \n ") == "name must be non-empty"
    for color in (-1, 0x1000000):
        refused = talk.refused("createForumTopic", chat_id=talk.private.id, name="x", icon_color=color)
        assert refused == "invalid icon color specified"
    doings.change_settings(talk.world, threaded_mode=False)
    assert talk.refused("createForumTopic", chat_id=talk.private.id, name="x") == "the chat is not a forum"
    talk.forum.rights = frozenset()
    assert talk.refused("createForumTopic", chat_id=talk.forum.id, name="x") == "not enough rights to create a topic"


@ROWS.row("T7")
def a_name_is_tidied_and_cut_not_refused(talk: Talk) -> None:
    made = talk.call("createForumTopic", chat_id=talk.private.id, name="  a \n\n b  ")
    assert made["name"] == "a b"
    long = talk.call("createForumTopic", chat_id=talk.private.id, name="😀" * 200)
    assert long["name"] == "😀" * 128


@ROWS.row("T8")
def a_topics_id_is_that_of_its_service_message(talk: Talk) -> None:
    first = talk.send(chat_id=talk.forum.id)["message_id"]
    assert first >= 2
    thread = talk.topic(talk.forum.id)
    assert thread == first + 1
    assert "forum_topic_created" in talk.forum.messages[thread].service
    assert talk.send(chat_id=talk.forum.id)["message_id"] == thread + 1


@ROWS.row("T9")
def the_allowed_colours_are_allowed(talk: Talk) -> None:
    for color in (7322096, 16766590, 13338331, 9367192, 16749490, 16478047):
        assert talk.call("createForumTopic", chat_id=talk.private.id, name="x", icon_color=color)["icon_color"] == color


@ROWS.row("T10")
def editing_says_what_is_wrong(talk: Talk) -> None:
    for chat in (talk.private, talk.forum):
        thread = talk.topic(chat.id, "old")
        edit = {"chat_id": chat.id, "message_thread_id": thread}
        assert talk.call("editForumTopic", **edit) is True
        assert talk.call("editForumTopic", **edit, name="") is True
        assert talk.refused("editForumTopic", **edit, name="old") == "TOPIC_NOT_MODIFIED"
        assert talk.call("editForumTopic", **edit, name="new") is True
        assert chat.topics[thread].name == "new"
        assert talk.refused("editForumTopic", chat_id=chat.id, name="x") == "invalid forum topic identifier specified"
        assert talk.refused("editForumTopic", chat_id=chat.id, name="x", message_thread_id=999) == "TOPIC_ID_INVALID"


@ROWS.row("T11")
def closing_works_in_forums_only(talk: Talk) -> None:
    private, forum = talk.topic(), talk.topic(talk.forum.id)
    for method in ("closeForumTopic", "reopenForumTopic"):
        refused = talk.refused(method, chat_id=talk.private.id, message_thread_id=private)
        assert refused == "the chat is not a supergroup forum"
    there = {"chat_id": talk.forum.id, "message_thread_id": forum}
    assert talk.refused("reopenForumTopic", **there) == "TOPIC_NOT_MODIFIED"
    assert talk.call("closeForumTopic", **there) is True
    assert talk.refused("closeForumTopic", **there) == "TOPIC_NOT_MODIFIED"
    assert talk.call("reopenForumTopic", **there) is True


@ROWS.row("T12")
def an_admin_writes_into_a_closed_topic_and_others_do_not(talk: Talk) -> None:
    there = {"chat_id": talk.forum.id, "message_thread_id": talk.topic(talk.forum.id)}
    talk.call("closeForumTopic", **there)
    assert talk.call("sendMessage", text="x", **there)["message_thread_id"] == there["message_thread_id"]
    talk.forum.bot_status = "member"
    assert talk.refused("sendMessage", text="x", **there) == "TOPIC_CLOSED"


@ROWS.row("T13")
def deleting_takes_the_messages_and_makes_no_update(talk: Talk) -> None:
    for chat in (talk.private, talk.forum):
        thread = talk.topic(chat.id)
        inside = talk.send(chat_id=chat.id, message_thread_id=thread)["message_id"]
        outside = talk.send(chat_id=chat.id)["message_id"]
        seen = talk.ids()
        assert talk.call("deleteForumTopic", chat_id=chat.id, message_thread_id=thread) is True
        assert inside not in chat.messages
        assert outside in chat.messages
        assert talk.ids() == seen
    talk.forum.rights = frozenset({"can_manage_topics"})
    there = {"chat_id": talk.forum.id, "message_thread_id": talk.topic(talk.forum.id)}
    assert talk.refused("deleteForumTopic", **there) == "not enough rights to delete the topic"


@ROWS.row("T14")
def the_bots_own_topic_messages_come_back_and_others_do_not(talk: Talk) -> None:
    there = {"chat_id": talk.forum.id, "message_thread_id": talk.topic(talk.forum.id, "one")}
    talk.call("editForumTopic", name="two", **there)
    talk.call("closeForumTopic", **there)
    talk.call("reopenForumTopic", **there)
    talk.call("sendMessage", text="x", **there)
    kinds = "forum_topic_created forum_topic_edited forum_topic_closed forum_topic_reopened".split()
    came = [update["message"] for update in talk.updates()]
    assert [kind for message in came for kind in kinds if kind in message] == kinds
    assert {message["from"]["id"] for message in came} == {talk.world.bot.id}
    assert {message["message_thread_id"] for message in came} == {there["message_thread_id"]}


@ROWS.row("T15")
def a_persons_nameless_topic_says_that_its_name_is_implicit(talk: Talk) -> None:
    made = doings.create_topic(talk.world, talk.private, talk.owner, "", talk.now)
    (update,) = talk.updates()
    assert update["message"]["forum_topic_created"]["is_name_implicit"] is True
    assert update["message"]["from"]["id"] == talk.owner.id
    assert update["message"]["message_thread_id"] == made["thread_id"]
    talk.call("editForumTopic", chat_id=talk.private.id, message_thread_id=made["thread_id"], name="named")
    assert talk.private.topics[made["thread_id"]].name_implicit is False


@ROWS.row("T16")
def no_method_lists_topics(talk: Talk) -> None:
    assert talk.refusal("getForumTopics", chat_id=talk.private.id) == (404, "Not Found: method not found")


@ROWS.row("T17")
def a_chat_action_is_not_checked_against_the_topics(talk: Talk) -> None:
    there = {"chat_id": talk.private.id, "message_thread_id": 999}
    assert talk.call("sendChatAction", action="typing", **there) is True
    assert talk.call("sendChatAction", action="TYPING", chat_id=talk.forum.id, message_thread_id=1) is True
    assert talk.refused("sendChatAction", action="dancing", **there) == "wrong parameter action in request"


@ROWS.row("T18")
def a_draft_is_no_message_and_needs_a_private_chat_and_an_id(talk: Talk) -> None:
    thread = talk.topic()
    there = {"chat_id": talk.private.id, "message_thread_id": thread}
    before = set(talk.private.messages)
    assert talk.call("sendMessageDraft", draft_id=1, text="so f", **there) is True
    assert set(talk.private.messages) == before
    assert talk.refused("sendMessageDraft", draft_id=0, text="x", **there) == "invalid draft_id specified"
    assert talk.refused("sendMessageDraft", draft_id=1, text="x", chat_id=talk.forum.id) == "TEXTDRAFT_PEER_INVALID"


@ROWS.row("T19")
def a_pruned_topic_is_not_found_for_the_bot_and_people_go_on_there(talk: Talk) -> None:
    for chat in (talk.private, talk.forum):
        thread, other = talk.topic(chat.id), talk.topic(chat.id)
        doings.prune_topic(talk.world, chat, thread)
        for method, params in (("sendMessage", {"text": "x"}), ("sendDice", {})):
            refused = talk.refused(method, chat_id=chat.id, message_thread_id=thread, **params)
            assert refused == "message thread not found"
        said = talk.say(chat=chat, thread_id=thread)
        assert said["message_thread_id"] == thread
        assert talk.updates()[-1]["message"]["message_id"] == said["message_id"]
        answer = {"reply_parameters": {"message_id": said["message_id"]}}
        assert talk.refused("sendMessage", chat_id=chat.id, text="x", **answer) == "message thread not found"
        assert thread in chat.topics
        assert talk.send(chat_id=chat.id, message_thread_id=other)["message_thread_id"] == other


def test_icon_stickers_begin_with_the_newspaper() -> None:
    stickers = Talk().call("getForumTopicIconStickers")
    assert stickers[0]["emoji"] == "📰"
    assert {sticker["type"] for sticker in stickers} == {"custom_emoji"}
