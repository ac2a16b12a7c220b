"""Who gets an update."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve, frozen

from telegram_bus.core.routing import Deliver, Drop, Lobby, Route, Rules, command_of, route
from telegram_bus.core.updates import UpdateInfo

CHAT, OWNER, STRANGER, BOT = -1001234, 11, 66, 99


@frozen
class Known:
    """Two threads and a message that followers own."""

    def of_thread(self, chat_id: int, thread_id: int) -> str | None:
        return {(CHAT, 42): "builder", (CHAT, 43): "tester"}.get((chat_id, thread_id))

    def of_message(self, chat_id: int, message_id: int) -> str | None:
        return {(CHAT, 900): "tester"}.get((chat_id, message_id))

    def given(self, chat_id: int, message_id: int) -> str | None:
        return {(CHAT, 700): "builder"}.get((chat_id, message_id))

    def shared(self, chat_id: int) -> bool:
        return False

    def chosen(self, chat_id: int, user_id: int) -> str | None:
        raise AssertionError((chat_id, user_id))


@frozen
class Sharing(Known):
    """The main chat is several agents'; this person writes to `choice`."""

    choice: str | None = None

    def shared(self, chat_id: int) -> bool:
        return True

    def chosen(self, chat_id: int, user_id: int) -> str | None:
        return self.choice


RULES = Rules(chat_id=CHAT, allowed=frozenset({OWNER}), bot_id=BOT, username="our_bot")


def routed(**fields: Any) -> Route:
    base: dict[str, Any] = {
        "update_id": 1,
        "kind": "message",
        "chat_id": CHAT,
        "sender_id": OWNER,
        "text": "hi",
    }
    return route(UpdateInfo(**{**base, **fields}), RULES, Known())


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"thread_id": 42}, Deliver(key="builder")),
        ({"thread_id": 42, "kind": "edited_message"}, Deliver(key="builder")),
        ({"thread_id": 42, "text": "/status"}, Deliver(key="builder")),
        ({"thread_id": 42, "reply_to": 900}, Deliver(key="builder")),
        ({"reply_to": 900}, Deliver(key="tester")),
        ({"reply_to": 900, "text": "/status"}, Deliver(key="tester")),
        ({"kind": "callback_query", "message_id": 900}, Deliver(key="tester")),
        ({"kind": "callback_query", "message_id": 900, "thread_id": 42}, Deliver(key="tester")),
        ({"kind": "callback_query", "message_id": 5, "thread_id": 42}, Deliver(key="builder")),
        ({"kind": "message_reaction", "message_id": 900}, Deliver(key="tester")),
        ({"thread_id": 77}, Lobby(topic="unowned")),
        ({"text": "/status"}, Lobby(topic="status")),
        ({"text": "/STATUS@Our_Bot now"}, Lobby(topic="status")),
        ({"text": "/start"}, Lobby(topic="help")),
        ({}, Lobby(topic="who")),
        ({"kind": "callback_query", "message_id": 5}, Lobby(topic="unowned button")),
        ({"chat_id": OWNER, "chat_is_private": True}, Lobby(topic="other chat")),
        ({"text": "/status@other_bot"}, Drop(reason="another bot's command")),
        ({"thread_id": 42, "text": "/build@other_bot now"}, Drop(reason="another bot's command")),
        ({"thread_id": 42, "text": "/build@other_bot", "kind": "edited_message"}, Drop(reason="another bot's command")),
        ({"thread_id": 42, "text": "/build@OUR_bot now"}, Deliver(key="builder")),
        ({"reply_to": 900, "text": "/build@our_bot"}, Deliver(key="tester")),
        ({"thread_id": 42, "text": "/build@example.org is down"}, Deliver(key="builder")),
        ({"thread_id": 42, "text": "/tmp/a@other_bot"}, Deliver(key="builder")),
        ({"thread_id": 42, "text": "see /build@other_bot"}, Deliver(key="builder")),
        ({"kind": "message_reaction", "message_id": 5}, Drop(reason="nobody's message")),
        ({"kind": "edited_message", "text": "/status"}, Drop(reason="edit of nobody's message")),
        ({"thread_id": 42, "service": True}, Drop(reason="service")),
        ({"chat_id": -5}, Drop(reason="nobody's message")),
        ({"kind": "my_chat_member"}, Drop(reason="unknown kind")),
        ({"sender_id": BOT, "thread_id": 42}, Drop(reason="own")),
    ],
    ids=str,
)
def test_route(fields: dict[str, Any], expected: Route) -> None:
    assert routed(**fields) == expected


@pytest.mark.parametrize("kind", ["message", "edited_message", "callback_query", "message_reaction", "my_chat_member"])
@pytest.mark.parametrize("sender", [STRANGER, None])
def test_a_stranger_gets_nothing_wherever_it_writes(kind: str, sender: int | None) -> None:
    for place in ({"thread_id": 42}, {"reply_to": 900}, {"message_id": 900}, {}):
        assert routed(kind=kind, sender_id=sender, **place) == Drop(reason="stranger")


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/a", "a"),
        ("/A@our_bot x", "a"),
        ("/a@other", None),
        ("a", None),
        ("/", None),
        ("/ a", "a"),
        ("", None),
    ],
)
def test_command_of(text: str, command: str | None) -> None:
    assert command_of(text, "our_bot") == command


def test_a_command_with_a_name_is_the_owner_s_while_the_bot_s_own_name_is_not_known() -> None:
    info = UpdateInfo(
        update_id=1, kind="message", chat_id=CHAT, sender_id=OWNER, message_id=5, thread_id=42, text="/build@some_bot"
    )
    assert route(info, evolve(RULES, username=None), Known()) == Deliver(key="builder")


@pytest.mark.parametrize("text", ["/agents", "/help", "/mute 2h", "/unmute"])
@pytest.mark.parametrize("place", [{}, {"thread_id": 42}, {"thread_id": 77}, {"reply_to": 900}], ids=str)
def test_some_commands_are_the_leader_s_everywhere(text: str, place: dict[str, Any]) -> None:
    assert isinstance(routed(text=text, **place), Lobby)
    assert routed(text=text.replace("/", "/x"), thread_id=42) == Deliver(key="builder")


@pytest.mark.parametrize(
    ("fields", "choice", "expected"),
    [
        ({}, "tester", Deliver(key="tester")),
        ({}, None, Lobby(topic="unowned")),
        ({"text": "/status"}, "tester", Lobby(topic="status")),
        ({"text": "/use builder"}, None, Lobby(topic="use")),
        ({"text": "/anything"}, "tester", Deliver(key="tester")),
        ({"reply_to": 900}, "builder", Deliver(key="tester")),
        ({"kind": "edited_message", "message_id": 700}, "tester", Deliver(key="builder")),
        ({"kind": "edited_message", "message_id": 5}, "tester", Drop(reason="edit of nobody's message")),
        ({"thread_id": 42}, "tester", Deliver(key="builder")),
        ({"thread_id": 77}, "tester", Lobby(topic="unowned")),
    ],
    ids=str,
)
def test_where_agents_share_the_main_chat_a_person_s_choice_counts(
    fields: dict[str, Any], choice: str | None, expected: Route
) -> None:
    base: dict[str, Any] = {"update_id": 1, "kind": "message", "chat_id": CHAT, "sender_id": OWNER, "text": "hi"}
    assert route(UpdateInfo(**{**base, **fields}), RULES, Sharing(choice=choice)) == expected


@pytest.mark.parametrize("sender", [OWNER, STRANGER, BOT, None])
def test_a_group_becomes_a_supergroup_whoever_made_it_one(sender: int | None) -> None:
    there = {"migrated": (CHAT, -1009), "service": True, "sender_id": sender}
    assert routed(**there) == Lobby(topic="migrated")
    assert routed(**there, chat_id=-1009) == Lobby(topic="migrated")
    assert routed(**{**there, "migrated": (-1, -2)}, chat_id=-2) != Lobby(topic="migrated")
