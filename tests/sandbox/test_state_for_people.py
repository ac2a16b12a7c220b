"""What only people see of the sandbox's chats, and what of it somebody who comes late is told."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

import pytest

from telegram_bus.sandbox import model_doings as doings
from telegram_bus.sandbox import model_people as people
from telegram_bus.sandbox.args import Upload
from telegram_bus.sandbox.model_changes import RECENT, Changes
from telegram_bus.sandbox.model_views import world_state
from tests.sandbox.talk import Talk

Json = dict[str, Any]


def shown(talk: Talk, message_id: int) -> Json:
    (chat,) = [chat for chat in world_state(talk.world)["chats"] if chat["id"] == talk.owner.id]
    (message,) = [message for message in chat["messages"] if message["message_id"] == message_id]
    return dict(message)


def test_people_see_who_voted_for_what() -> None:
    talk = Talk()
    poll = talk.call("sendPoll", chat_id=talk.owner.id, question="Tea?", options=["yes", "no"])
    assert shown(talk, poll["message_id"])["votes"] == []
    people.vote(talk.world, talk.private, talk.owner, poll["message_id"], [1], talk.now)
    assert shown(talk, poll["message_id"])["votes"] == [{"user_id": talk.owner.id, "options": [1]}]


def test_a_caption_can_be_changed_taken_away_and_is_limited() -> None:
    talk = Talk()
    sent = people.Sent("document", Upload("a.txt", b"x"), "old")
    (message,) = people.send_files(talk.world, talk.private, talk.owner, [sent], talk.now)

    def edit(caption: str) -> Json:
        return doings.edit(talk.world, talk.private, talk.owner, message["message_id"], caption, talk.now)

    assert edit("new")["caption"] == "new"
    with pytest.raises(doings.UnknownError, match="longer than 1024"):
        edit("x" * 1025)
    assert "caption" not in edit("")


def test_recent_changes_are_those_of_the_wanted_kinds_among_the_newest() -> None:
    changes = Changes()
    changes.add("draft", text="long ago")
    for number in range(RECENT - 1):
        changes.add("message", number=number)
    changes.add("draft", text="now")
    changes.add("drafting", text="another kind")
    assert changes.recent(("draft", "action")) == [{"seq": RECENT + 1, "kind": "draft", "text": "now"}]


def test_the_page_asks_for_all_its_modules_at_once() -> None:
    page = files("telegram_bus.sandbox") / "page"
    modules = {item.name for item in page.iterdir() if item.name.endswith(".js")}
    asked = re.findall(r'(?:modulepreload" href|module" src)="/page/([^"]+)"', (page / "index.html").read_text())
    assert sorted(asked) == sorted(modules)
