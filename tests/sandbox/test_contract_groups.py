"""Groups, members, pins, General, copies and polls, row by row where the Bot API contract numbers them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from telegram_bus.sandbox import model_doings as doings
from telegram_bus.sandbox import model_people as people
from telegram_bus.sandbox.args import Upload
from telegram_bus.sandbox.model_doings import UnknownError
from telegram_bus.sandbox.model_members import ALL_RIGHTS
from telegram_bus.sandbox.model_types import User
from tests.sandbox.talk import Rows, Talk

ROWS = Rows()
Json = dict[str, Any]


@pytest.mark.parametrize("check", ROWS.params)
def test_contract(check: Callable[[Talk], None]) -> None:
    check(Talk())


def friend(talk: Talk) -> User:
    return next(user for user in talk.world.users.values() if user.started and user is not talk.owner)


def stranger(talk: Talk) -> User:
    return next(user for user in talk.world.users.values() if not user.started)


def services(talk: Talk) -> list[str]:
    """What the service messages in the queue say, in order."""
    usual = {"message_id", "from", "chat", "date", "message_thread_id", "is_topic_message", "reply_to_message"}
    return [name for update in talk.updates() if "message" in update for name in update["message"] if name not in usual]


@ROWS.row("M9")
def who_was_seen_but_never_wrote_cannot_be_written_to(talk: Talk) -> None:
    sam = stranger(talk)
    assert talk.refused("sendMessage", text="x", chat_id=sam.id) == "chat not found"
    talk.say("/hello", chat=talk.group, user=sam)
    refused = talk.refusal("sendMessage", text="x", chat_id=sam.id)
    assert refused == (403, "Forbidden: bot can't initiate conversation with a user")
    assert talk.call("getChat", chat_id=sam.id)["first_name"] == sam.first_name
    talk.say("hello", chat=talk.world.chats[sam.id], user=sam)
    assert talk.send(chat_id=sam.id)["text"]


@ROWS.row("M9")
def a_deleted_account_is_refused(talk: Talk) -> None:
    frank = friend(talk)
    people.deactivate(talk.world, frank)
    refused = talk.refusal("sendMessage", text="x", chat_id=frank.id)
    assert refused == (403, "Forbidden: user is deactivated")
    with pytest.raises(UnknownError):
        talk.say(chat=talk.group, user=frank)


@ROWS.row("M10")
def an_upgraded_group_says_what_it_became(talk: Talk) -> None:
    new_id = people.migrate(talk.world, talk.group, talk.owner, talk.now)
    first, second = (update["message"] for update in talk.updates())
    assert (first["chat"]["id"], first["migrate_to_chat_id"]) == (talk.group.id, new_id)
    assert (second["chat"]["id"], second["migrate_from_chat_id"]) == (new_id, talk.group.id)
    for method in ("sendMessage", "getChat", "sendDocument", "getChatMemberCount"):
        with pytest.raises(Exception, match="group chat was upgraded to a supergroup chat") as caught:
            talk.call(method, chat_id=talk.group.id, text="x", document=Upload("a", b"a"))
        assert caught.value.parameters == {"migrate_to_chat_id": new_id}  # type: ignore[attr-defined]
    assert talk.send(chat_id=new_id)["chat"]["type"] == "supergroup"
    assert talk.call("getChat", chat_id=new_id)["title"] == talk.group.title
    with pytest.raises(UnknownError, match="became"):
        talk.say(chat=talk.group)
    assert talk.say("/x", chat=talk.world.chats[new_id])["chat"]["id"] == new_id


@ROWS.row("M13")
def a_message_out_of_reach_shows_only_where_it_was(talk: Talk) -> None:
    keyboard = {"inline_keyboard": [[{"text": "A", "callback_data": "a"}]]}
    sent = talk.send(reply_markup=keyboard)
    doings.press(talk.world, talk.private, talk.owner, sent["message_id"], "a", talk.now, accessible=False)
    shown = talk.updates()[-1]["callback_query"]["message"]
    assert shown == {"message_id": sent["message_id"], "chat": sent["chat"], "date": 0}


@ROWS.row("M19")
def an_administrator_that_asks_for_them_gets_reactions(talk: Talk) -> None:
    def react(emoji: str) -> list[Json]:
        offset = talk.world.queue.tail
        doings.react(talk.world, talk.forum, talk.owner, sent["message_id"], emoji, talk.now)
        return talk.updates(offset)

    sent = talk.send(chat_id=talk.forum.id)
    assert react("👍") == []  # not among the default kinds
    talk.allow(["message_reaction"])
    (update,) = react("🔥")
    seen = update["message_reaction"]
    assert (seen["old_reaction"], seen["new_reaction"]) == (
        [{"type": "emoji", "emoji": "👍"}],
        [{"type": "emoji", "emoji": "🔥"}],
    )
    people.set_bot_status(talk.world, talk.forum, talk.owner, "member", talk.now)
    assert react("👎") == []


@ROWS.row("T2")
def replies_in_a_supergroup_without_topics_have_a_thread_that_is_no_topic(talk: Talk) -> None:
    chat_id = people.migrate(talk.world, talk.group, talk.owner, talk.now)
    chat = talk.world.chats[chat_id]
    root = talk.send(chat_id=chat_id)
    assert "message_thread_id" not in root
    answer = talk.say("an answer", chat=chat, reply_to=root["message_id"])
    assert answer["message_thread_id"] == root["message_id"]
    assert "is_topic_message" not in answer
    deeper = talk.send(chat_id=chat_id, reply_parameters={"message_id": answer["message_id"]})
    assert deeper["message_thread_id"] == root["message_id"]
    asked = talk.send(chat_id=chat_id, message_thread_id=root["message_id"])
    assert "message_thread_id" not in asked


@ROWS.row("T12")
def general_is_a_machine_of_two_switches(talk: Talk) -> None:
    def does(method: str, **params: Any) -> bool:
        return bool(talk.call(method, chat_id=talk.forum.id, **params))

    def refused(method: str, **params: Any) -> str:
        return talk.refused(method, chat_id=talk.forum.id, **params)

    assert refused("reopenGeneralForumTopic") == refused("unhideGeneralForumTopic") == "TOPIC_NOT_MODIFIED"
    assert does("closeGeneralForumTopic")
    assert refused("closeGeneralForumTopic") == "TOPIC_NOT_MODIFIED"
    assert refused("sendMessage", text="x") == "TOPIC_CLOSED"
    assert does("hideGeneralForumTopic")
    assert does("unhideGeneralForumTopic")
    assert refused("closeGeneralForumTopic") == "TOPIC_NOT_MODIFIED"
    assert does("reopenGeneralForumTopic")
    assert does("hideGeneralForumTopic")
    assert talk.forum.general.closed
    assert refused("hideGeneralForumTopic") == "TOPIC_NOT_MODIFIED"
    assert does("reopenGeneralForumTopic")
    assert not talk.forum.general.hidden
    assert does("editGeneralForumTopic", name="Lobby")
    assert refused("editGeneralForumTopic", name="Lobby") == "TOPIC_NOT_MODIFIED"
    assert talk.send(chat_id=talk.forum.id)["text"]
    assert services(talk) == [
        "forum_topic_closed", "general_forum_topic_hidden", "general_forum_topic_unhidden", "forum_topic_reopened",
        "forum_topic_closed", "general_forum_topic_hidden", "general_forum_topic_unhidden", "forum_topic_reopened",
        "forum_topic_edited",
    ]  # fmt: skip
    assert talk.refused("closeGeneralForumTopic", chat_id=talk.private.id) == "the chat is not a supergroup forum"
    people.set_bot_status(talk.world, talk.forum, talk.owner, "administrator", talk.now, rights=[])
    assert refused("closeGeneralForumTopic") == "not enough rights to edit the topic"


@ROWS.row("T12")
def the_owner_closes_and_hides_general(talk: Talk) -> None:
    def switch(**state: bool) -> Json:
        return people.switch_general(
            talk.world, talk.forum, talk.owner, talk.now, **{"closed": False, "hidden": False, **state}
        )

    assert switch(hidden=True) == {"closed": True, "hidden": True}
    with pytest.raises(UnknownError, match="closed"):
        talk.say(chat=talk.forum, user=friend(talk))
    assert switch() == {"closed": False, "hidden": False}
    assert talk.say(chat=talk.forum, user=friend(talk))["text"] == "hi"
    with pytest.raises(UnknownError, match="only the owner"):
        people.switch_general(talk.world, talk.forum, friend(talk), talk.now, closed=True, hidden=False)


@ROWS.row("T14")
def pins_come_back_and_are_found_in_the_chat(talk: Talk) -> None:
    for chat in (talk.private, talk.forum):
        sent = [talk.send(f"{number}", chat_id=chat.id)["message_id"] for number in range(3)]
        offset = talk.world.queue.tail
        for message_id in (sent[1], sent[0]):
            assert talk.call("pinChatMessage", chat_id=chat.id, message_id=message_id) is True
        told = [update["message"]["pinned_message"]["message_id"] for update in talk.updates(offset)]
        assert told == [sent[1], sent[0]]
        assert talk.call("getChat", chat_id=chat.id)["pinned_message"]["message_id"] == sent[1]
        assert talk.call("unpinChatMessage", chat_id=chat.id) is True
        assert talk.call("getChat", chat_id=chat.id)["pinned_message"]["message_id"] == sent[0]
        missing = "message to unpin not found"
        assert talk.refused("unpinChatMessage", chat_id=chat.id, message_id=sent[2]) == missing
        assert talk.call("unpinAllChatMessages", chat_id=chat.id) is True
        assert "pinned_message" not in talk.call("getChat", chat_id=chat.id)
        assert talk.refused("unpinChatMessage", chat_id=chat.id) == missing
        assert talk.refused("pinChatMessage", chat_id=chat.id, message_id=9999) == "message to pin not found"
    group = {"chat_id": talk.group.id, "message_id": talk.send(chat_id=talk.group.id)["message_id"]}
    assert talk.refused("pinChatMessage", **group) == "not enough rights to manage pinned messages in the chat"


@ROWS.row("T14")
def pins_of_a_topic_are_taken_away_alone(talk: Talk) -> None:
    thread = talk.topic(talk.forum.id)
    inside = talk.send(chat_id=talk.forum.id, message_thread_id=thread)["message_id"]
    outside = talk.send(chat_id=talk.forum.id)["message_id"]
    for message_id in (inside, outside):
        talk.call("pinChatMessage", chat_id=talk.forum.id, message_id=message_id)
    there = {"chat_id": talk.forum.id, "message_thread_id": thread}
    assert talk.call("unpinAllForumTopicMessages", **there) is True
    assert talk.forum.pinned == [outside]
    assert talk.refused("unpinAllForumTopicMessages", **there) == "CHAT_NOT_MODIFIED"
    assert talk.call("unpinAllGeneralForumTopicMessages", chat_id=talk.forum.id) is True
    talk.call("pinChatMessage", chat_id=talk.forum.id, message_id=inside)
    talk.call("deleteForumTopic", **there)
    assert talk.forum.pinned == []


@ROWS.row("T18")
def a_draft_that_may_be_stopped_tells_the_bot(talk: Talk) -> None:
    thread = talk.topic()
    there = {"chat_id": talk.private.id, "message_thread_id": thread, "text": "so f"}
    talk.call("sendMessageDraft", draft_id=1, **there)
    talk.call("sendMessageDraft", draft_id=2, can_stop=True, **there)
    with pytest.raises(UnknownError):
        people.stop_draft(talk.world, talk.private, 1, talk.now)
    people.stop_draft(talk.world, talk.private, 2, talk.now)
    stopped = talk.updates()[-1]["stopped_message_generation"]
    assert (stopped["draft_id"], stopped["message_thread_id"], stopped["chat"]["id"]) == (2, thread, talk.private.id)
    talk.call("sendMessageDraft", draft_id=3, can_stop=True, **there)
    with pytest.raises(UnknownError):
        people.stop_draft(talk.world, talk.private, 3, talk.now + 31)


@ROWS.row("M8")
def a_reply_quotes_what_is_there(talk: Talk) -> None:
    said = talk.say("😀 what a day")
    quote = {"message_id": said["message_id"], "quote": "a day"}
    sent = talk.send(reply_parameters=quote)
    assert sent["quote"] == {"text": "a day", "position": 8, "is_manual": True}
    wrong = quote | {"quote": "a night"}
    assert (
        talk.refused("sendMessage", chat_id=talk.private.id, text="x", reply_parameters=wrong) == "QUOTE_TEXT_INVALID"
    )


def test_forwards_tell_where_they_are_from_and_copies_do_not() -> None:
    talk = Talk()
    where = {"chat_id": talk.forum.id, "from_chat_id": talk.private.id}
    said = talk.say("original")
    forwarded = talk.call("forwardMessage", message_id=said["message_id"], **where)
    origin = forwarded["forward_origin"]
    assert (forwarded["text"], origin["type"], origin["sender_user"]["id"]) == ("original", "user", talk.owner.id)
    onward = {"chat_id": talk.private.id, "from_chat_id": talk.forum.id}
    again = talk.call("forwardMessage", message_id=forwarded["message_id"], **onward)
    assert again["forward_origin"] == origin
    copied = talk.call("copyMessage", message_id=said["message_id"], **where)
    shown = talk.world.view(talk.forum.messages[copied["message_id"]])
    assert (shown["text"], "forward_origin" in shown, set(copied)) == ("original", False, {"message_id"})
    for method, verb in (("forwardMessage", "forward"), ("copyMessage", "copy")):
        assert talk.refused(method, message_id=999, **where) == f"message to {verb} not found"
    protected = talk.send("secret", protect_content=True)
    assert protected["has_protected_content"] is True
    refused = talk.refused("forwardMessage", message_id=protected["message_id"], **where)
    assert refused == "message has protected content and can't be forwarded"
    assert "can't be copied" in talk.refused("copyMessage", message_id=talk.topic(), **where)


def test_many_are_forwarded_and_copied_as_they_come() -> None:
    talk = Talk()
    files = [people.Sent("document", Upload("a", b"a"), "one"), people.Sent("document", Upload("b", b"b"), "two")]
    sent = people.send_files(talk.world, talk.private, talk.owner, files, talk.now)
    ids = [message["message_id"] for message in sent]
    where = {"chat_id": talk.forum.id, "from_chat_id": talk.private.id}
    for method in ("forwardMessages", "copyMessages"):
        made = talk.call(method, message_ids=json.dumps([*ids, 999]), **where)
        messages = [talk.world.view(talk.forum.messages[item["message_id"]]) for item in made]
        assert [message["caption"] for message in messages] == ["one", "two"]
        assert len({message["media_group_id"] for message in messages}) == 1
        assert messages[0]["media_group_id"] != sent[0]["media_group_id"]
        unordered = talk.refused(method, message_ids=[ids[1], ids[0]], **where)
        assert unordered == "message identifiers must be in a strictly increasing order"
        assert talk.refused(method, message_ids=[], **where) == "message identifiers are not specified"
        assert "there are no messages to" in talk.refused(method, message_ids=[999], **where)
    (bare, _) = talk.call("copyMessages", message_ids=ids, remove_caption=True, **where)
    assert "caption" not in talk.world.view(talk.forum.messages[bare["message_id"]])


def test_the_bots_rights_are_switched_and_it_is_told() -> None:
    talk = Talk()

    def switch(status: str, rights: list[str] | None = None) -> Json:
        offset = talk.world.queue.tail
        people.set_bot_status(talk.world, talk.group, talk.owner, status, talk.now, rights=rights)
        found = [update["my_chat_member"] for update in talk.updates(offset) if "my_chat_member" in update]
        assert len(found) == 1
        assert found[0]["from"]["id"] == talk.owner.id
        return dict(found[0]["new_chat_member"])

    made = switch("administrator", ["can_delete_messages"])
    assert {right for right in ALL_RIGHTS if made[right]} == {"can_delete_messages"}
    said = talk.say("plain", chat=talk.group)
    assert talk.updates()[-1]["message"] == said  # an administrator sees everything
    assert talk.call("deleteMessage", chat_id=talk.group.id, message_id=said["message_id"]) is True
    assert switch("member")["status"] == "member"
    assert switch("kicked")["status"] == "kicked"
    refused = talk.refusal("sendMessage", text="x", chat_id=talk.group.id)
    assert refused == (403, "Forbidden: bot was kicked from the group chat")
    seen = talk.ids()
    talk.say("/unseen", chat=talk.group)
    assert talk.ids() == seen
    assert switch("member")["status"] == "member"
    assert talk.send(chat_id=talk.group.id)["text"]
    with pytest.raises(UnknownError, match="only the owner"):
        people.set_bot_status(talk.world, talk.group, friend(talk), "member", talk.now)
    assert talk.call("leaveChat", chat_id=talk.group.id) is True
    assert talk.refusal("sendMessage", text="x", chat_id=talk.group.id)[0] == 403


def test_members_are_banned_restricted_promoted_and_seen() -> None:
    talk = Talk()
    frank = friend(talk)
    there = {"chat_id": talk.forum.id, "user_id": frank.id}

    def status() -> str:
        return str(talk.call("getChatMember", **there)["status"])

    talk.allow(["chat_member", "message"])
    assert talk.refused("promoteChatMember", can_pin_messages=True, **there) == (
        "not enough rights to promote/demote chat member"
    )
    every = list(ALL_RIGHTS)
    people.set_bot_status(talk.world, talk.forum, talk.owner, "administrator", talk.now, rights=every)
    assert talk.call("promoteChatMember", can_pin_messages=True, **there) is True
    assert talk.call("setChatAdministratorCustomTitle", custom_title="Chief", **there) is True
    member = talk.call("getChatMember", **there)
    assert (member["status"], member["custom_title"], member["can_pin_messages"]) == ("administrator", "Chief", True)
    admins = talk.call("getChatAdministrators", chat_id=talk.forum.id)
    assert [admin["user"]["id"] for admin in admins] == [talk.owner.id, frank.id, talk.world.bot.id]
    assert talk.call("promoteChatMember", **there) is True
    assert talk.call("restrictChatMember", permissions={"can_send_messages": False}, **there) is True
    assert status() == "restricted"
    with pytest.raises(UnknownError, match="may not write"):
        talk.say(chat=talk.forum, user=frank)
    count = talk.call("getChatMemberCount", chat_id=talk.forum.id)
    assert talk.call("banChatMember", **there) is True
    assert status() == "kicked"
    assert talk.call("getChatMemberCount", chat_id=talk.forum.id) == count - 1
    with pytest.raises(UnknownError, match="banned"):
        people.come(talk.world, talk.forum, frank, talk.now)
    assert talk.call("unbanChatMember", **there) is True
    assert status() == "left"
    people.come(talk.world, talk.forum, frank, talk.now)
    changes = [update["chat_member"] for update in talk.updates() if "chat_member" in update]
    statuses = [change["new_chat_member"]["status"] for change in changes]
    assert statuses == ["administrator", "member", "restricted", "kicked", "left", "restricted"]
    owner = {"chat_id": talk.forum.id, "user_id": talk.owner.id}
    assert talk.refused("banChatMember", **owner) == "can't remove chat owner"


def test_what_a_group_forbids_its_members_the_bot_may_not_do_either() -> None:
    talk = Talk()
    people.set_bot_status(talk.world, talk.group, talk.owner, "administrator", talk.now)
    may = {"can_send_messages": True, "can_send_photos": False}
    assert talk.call("setChatPermissions", chat_id=talk.group.id, permissions=may) is True
    people.set_bot_status(talk.world, talk.group, talk.owner, "member", talk.now)
    assert talk.send(chat_id=talk.group.id)["text"]
    document = {"chat_id": talk.group.id, "document": Upload("a", b"a")}
    assert talk.refused("sendDocument", **document) == "not enough rights to send documents to the chat"
    assert talk.call("getChat", chat_id=talk.group.id)["permissions"]["can_send_photos"] is False


def test_titles_and_descriptions_change() -> None:
    talk = Talk()
    forum = {"chat_id": talk.forum.id}
    assert talk.call("setChatTitle", title=" New  title ", **forum) is True
    people.rename_chat(talk.world, talk.forum, talk.owner, "Another", talk.now)
    titles = [update["message"]["new_chat_title"] for update in talk.updates()]
    assert titles == ["New title", "Another"]
    assert talk.call("setChatDescription", description="about", **forum) is True
    assert talk.refused("setChatDescription", description="about", **forum) == "chat description is not modified"
    assert talk.call("getChat", **forum)["description"] == "about"
    assert talk.refused("setChatTitle", chat_id=talk.group.id, title="x") == "not enough rights to change chat title"


def test_polls_are_voted_in_stopped_and_end_by_themselves() -> None:
    talk = Talk()
    question = {"chat_id": talk.group.id, "question": "tea?", "options": json.dumps(["yes", {"text": "no"}])}
    sent = talk.call("sendPoll", is_anonymous=False, open_period=60, **question)
    people.vote(talk.world, talk.group, talk.owner, sent["message_id"], [1], talk.now)
    answer, counted = talk.updates()[-2:]
    assert answer["poll_answer"]["option_ids"] == [1]
    assert [option["voter_count"] for option in counted["poll"]["options"]] == [0, 1]
    with pytest.raises(UnknownError, match="only one option"):
        people.vote(talk.world, talk.group, talk.owner, sent["message_id"], [0, 1], talk.now)
    talk.now += 60
    talk.call("getMe")
    assert talk.updates()[-1]["poll"]["is_closed"] is True
    with pytest.raises(UnknownError, match="no open poll"):
        people.vote(talk.world, talk.group, talk.owner, sent["message_id"], [0], talk.now)
    second = talk.call("sendPoll", **question)
    stopping = {"chat_id": talk.group.id, "message_id": second["message_id"]}
    assert talk.call("stopPoll", **stopping)["is_closed"] is True
    assert talk.refused("stopPoll", **stopping) == "poll has already been closed"
    quiz = talk.refused("sendPoll", type="quiz", **question)
    assert quiz == "wrong correct option ID specified"
    assert talk.refused("sendPoll", **question | {"options": []}) == "poll must have at least 1 option"


def test_places_contacts_and_dice_are_sent() -> None:
    talk = Talk()
    chat = {"chat_id": talk.private.id}
    moving = talk.call("sendLocation", latitude="1.5", longitude=2, live_period=60, **chat)
    there = {**chat, "message_id": moving["message_id"]}
    moved = talk.call("editMessageLiveLocation", latitude=3, longitude=4, **there)
    assert moved["location"] == {"latitude": 3.0, "longitude": 4.0, "live_period": 60}
    assert "live_period" not in talk.call("stopMessageLiveLocation", **there)["location"]
    assert talk.refused("editMessageLiveLocation", latitude=3, longitude=4, **there) == "message can't be edited"
    assert talk.refused("sendLocation", latitude="91", longitude=2, **chat) == "wrong latitude specified"
    venue = talk.call("sendVenue", latitude=1, longitude=2, title="t", address="a", **chat)["venue"]
    assert (venue["title"], venue["location"]["latitude"]) == ("t", 1.0)
    contact = talk.call("sendContact", phone_number="+1", first_name="A", **chat)["contact"]
    assert contact == {"phone_number": "+1", "first_name": "A"}
    assert 1 <= talk.call("sendDice", emoji="🎰", **chat)["dice"]["value"] <= 64
    assert talk.refused("sendDice", emoji="x", **chat) == "EMOTICON_INVALID"


def test_the_bots_profile_has_languages() -> None:
    talk = Talk()
    assert talk.call("getMyName") == {"name": talk.world.bot.first_name}
    talk.call("setMyName", name="Bot")
    talk.call("setMyName", name="Robot", language_code="de")
    assert talk.call("getMyName", language_code="de") == {"name": "Robot"}
    assert talk.call("getMyName", language_code="fr") == {"name": "Bot"}
    talk.call("setMyShortDescription", short_description="short")
    assert talk.call("getMyShortDescription") == {"short_description": "short"}
    assert talk.refused("setMyDescription", description="x" * 513) == "bot description is too long"
    assert talk.call("getUserProfilePhotos", user_id=talk.owner.id) == {"total_count": 0, "photos": []}


def test_links_are_made_changed_and_revoked() -> None:
    talk = Talk()
    forum = {"chat_id": talk.forum.id}
    link = talk.call("createChatInviteLink", name="guests", member_limit=3, **forum)
    assert (link["name"], link["is_revoked"]) == ("guests", False)
    edited = talk.call("editChatInviteLink", invite_link=link["invite_link"], **forum)
    assert "member_limit" not in edited
    assert talk.call("revokeChatInviteLink", invite_link=link["invite_link"], **forum)["is_revoked"] is True
    assert talk.refused("editChatInviteLink", invite_link="x", **forum) == "INVITE_HASH_EXPIRED"
    assert talk.call("exportChatInviteLink", **forum).startswith("https://t.me/+")


def test_the_preview_is_that_of_the_first_link() -> None:
    talk = Talk()
    assert talk.send("😀 see https://example.org/x now")["link_preview_options"] == {"url": "https://example.org/x"}
    off = talk.send("https://example.org/x", link_preview_options={"is_disabled": True})
    assert off["link_preview_options"] == {"is_disabled": True}
    assert "link_preview_options" not in talk.send("no link")
