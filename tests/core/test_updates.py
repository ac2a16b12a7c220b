"""Raw updates: what the bus reads of them, and that nothing else of them changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telegram_bus.core.envelopes import ForwardCallback, ForwardEditedMessage, ForwardReaction
from telegram_bus.core.identity import delivery_id
from telegram_bus.core.updates import SOURCE_MARKER, carried, describe, forward

CHAT = {"id": 5001, "type": "private"}
PERSON = {"id": 5001, "first_name": "Ada"}


def message(**fields: Any) -> dict[str, Any]:
    return {
        "update_id": 7,
        "message": {"message_id": 3, "chat": CHAT, "from": PERSON, "text": "hi", **fields},
    }


def test_a_message_in_a_topic_has_its_thread() -> None:
    info = describe(message(message_thread_id=42, is_topic_message=True))
    assert (info.kind, info.chat_id, info.thread_id, info.message_id, info.sender_id, info.text) == (
        "message", 5001, 42, 3, 5001, "hi",
    )  # fmt: skip


def test_a_thread_id_without_is_topic_message_is_a_reply_thread_and_no_topic() -> None:
    assert describe(message(message_thread_id=42)).thread_id is None


def test_the_reply_to_the_topic_s_first_message_is_no_reply_of_a_person() -> None:
    root = {"message_id": 42, "forum_topic_created": {"name": "x"}}
    assert describe(message(reply_to_message=root)).reply_to is None
    assert describe(message(reply_to_message={"message_id": 9})).reply_to == 9


def test_a_caption_is_text_and_a_service_message_is_known() -> None:
    assert describe({"update_id": 1, "message": {"chat": CHAT, "caption": "look"}}).text == "look"
    assert describe(message(forum_topic_edited={"name": "y"})).service


def test_a_callback_and_a_reaction_name_the_message_they_stand_on() -> None:
    query = {"id": "q1", "from": PERSON, "data": "yes", "message": {"message_id": 8, "chat": CHAT}}
    info = describe({"update_id": 2, "callback_query": query})
    assert (info.kind, info.callback_id, info.text, info.message_id) == ("callback_query", "q1", "yes", 8)
    info = describe({"update_id": 3, "message_reaction": {"chat": CHAT, "message_id": 8, "user": PERSON}})
    assert (info.kind, info.message_id, info.sender_id) == ("message_reaction", 8, 5001)


@pytest.mark.parametrize("update_id", [None, "7", 1.5, True, -1])
def test_an_update_without_a_usable_id_is_refused(update_id: object) -> None:
    with pytest.raises(ValueError, match="update_id"):
        describe({"update_id": update_id, "message": {}})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
odd_objects = st.dictionaries(
    st.sampled_from(
        [
            "chat",
            "from",
            "message_id",
            "text",
            "message_thread_id",
            "reply_to_message",
            "message",
            "data",
            "id",
        ]
    ),
    json_values,
)


@given(
    st.sampled_from(["message", "edited_message", "callback_query", "message_reaction", "my_chat_member", "poll"]),
    odd_objects | json_values,
)
def test_no_odd_update_fails(kind: str, body: object) -> None:
    assert describe({"update_id": 1, kind: body}).update_id == 1


def test_what_is_carried_is_telegram_s_object_and_the_marker() -> None:
    update = message()
    assert carried(update, "message") == {**update["message"], SOURCE_MARKER: 7}
    assert SOURCE_MARKER not in update["message"]


@pytest.mark.parametrize(
    ("kind", "envelope"),
    [
        ("edited_message", ForwardEditedMessage),
        ("callback_query", ForwardCallback),
        ("message_reaction", ForwardReaction),
    ],
)
def test_each_kind_has_its_envelope_with_the_right_delivery_id(kind: Any, envelope: Any) -> None:
    made = forward(
        {"update_id": 9, kind: {"id": "x"}}, kind,
        key="builder", instance="builder:1", generation="g", request_id="r", auth="s", now_ms=5,
    )  # fmt: skip
    assert isinstance(made, envelope)
    assert made.delivery.delivery_id == delivery_id(made.KIND, "builder", 9)


def test_scenario_55_general_is_no_thread_however_it_is_named() -> None:
    """Its messages have no thread; where something gives it id 1, that is no thread to answer in either."""
    assert describe(message()).thread_id is None
    assert describe(message(message_thread_id=1, is_topic_message=True)).thread_id is None


def test_a_direct_messages_topic_is_no_thread() -> None:
    """Its id is another one's, and followers may not send with it."""
    info = describe(message(direct_messages_topic={"topic_id": 42}))
    assert info.thread_id is None


def test_a_group_that_becomes_a_supergroup_says_so_in_both_chats() -> None:
    old = describe(message(migrate_to_chat_id=-1009))
    new = describe(message(migrate_from_chat_id=-5))
    assert old.migrated == (old.chat_id, -1009)
    assert new.migrated == (-5, new.chat_id)
    assert old.service
    assert describe(message()).migrated is None


def test_what_the_bot_is_in_the_chat_now() -> None:
    body = {"chat": {"id": 5, "type": "private"}, "from": {"id": 5}, "new_chat_member": {"status": "kicked"}}
    assert describe({"update_id": 1, "my_chat_member": body}).membership == "kicked"
    assert describe({"update_id": 1, "my_chat_member": {**body, "new_chat_member": 7}}).membership is None
