"""Whatever a client sends, a method answers or refuses: it never breaks."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from telegram_bus.sandbox import methods
from telegram_bus.sandbox.args import Args
from telegram_bus.sandbox.refusal import Refusal
from tests.sandbox.talk import Talk


def each(*values: Any) -> list[Any]:
    """Values of any kind, for the type checker's sake."""
    return list(values)


CHATS = ["private", "forum", "group"]
EMOJI = [{"type": "emoji", "emoji": "👍"}]
BUTTON = {"text": "a", "callback_data": "b"}
ODD = [0, -1, 10**30, "9" * 5000, "", " ", "x", True, 1.5, [], [[]], [{}], [1], {}, "[" * 5000, "{", "\ud800", "\0"]
NUMBERS = [1, 2, 3, 4, 999, "2", "2x"]
LIKELY: dict[str, list[Any]] = {
    "text": ["é😀", "<b>x", "<a href=", "<a =>", "*x_", "[x](", "![x](tg://emoji?id=1)", "```", ">a||", "&#x110000;"],
    "parse_mode": ["HTML", "MarkdownV2", "Markdown"],
    "entities": [[{"type": kind, "offset": at, "length": 1}] for kind in each("bold", []) for at in (0, 10**20, "0")],
    "reply_markup": [
        *({"inline_keyboard": [[BUTTON | {key: value}]]} for key in BUTTON for value in each(1, None, [])),
        *({"inline_keyboard": [[{"text": "a", "url": value}]]} for value in each([], {}, None, 1, "x")),
        *({"inline_keyboard": value} for value in each({}, None, [], [[]], [[1]], [{}], 1)),
        {"keyboard": 1},
    ],
    "reply_parameters": [{"message_id": value} for value in each(2, 999, "x", [], None, True)],
    "reaction": [EMOJI, EMOJI * 2, [{"type": []}], [{"type": "emoji", "emoji": []}], [{"type": "emoji", "emoji": "x"}]],
    "commands": [[{"command": "a", "description": value}] for value in each("b", "", 1, None)],
    "scope": [{"type": value} for value in each("chat", [], {}, None, 1)],
    "url": ["https://h", "https://[", "https://", "http://h", "https://h:x", "\n"],
    "message_ids": [[2], [2, 2, 3], [[]], [{}], [None], [999]],
    "allowed_updates": [["message"], '["message"]', [[]], [None]],
    "action": ["typing"],
}  # fmt: skip
for name in "message_id message_thread_id reply_to_message_id draft_id user_id icon_color max_connections".split():
    LIKELY[name] = NUMBERS
for name in "name icon_custom_emoji_id callback_query_id language_code show_alert drop_pending_updates".split():
    LIKELY[name] = ["x", "true"]

some_arguments = st.fixed_dictionaries(
    {"chat_id": st.sampled_from(CHATS)},
    optional={name: st.sampled_from(likely + ODD) for name, likely in LIKELY.items()},
)


@settings(max_examples=600, deadline=None)
@given(method=st.sampled_from(sorted(methods.METHODS)), params=some_arguments, as_text=st.booleans())
def test_a_method_answers_or_refuses(method: str, params: dict[str, Any], as_text: bool) -> None:
    talk = Talk()
    talk.topic()
    for chat in CHATS:
        talk.send(chat_id=getattr(talk, chat).id)
    args = Args(_as_sent(params | {"chat_id": getattr(talk, params["chat_id"]).id}, as_text=as_text))
    json.dumps(args.shown())
    try:
        answer = {"ok": True, "result": methods.call(talk.world, method, args, talk.now)}
    except Refusal as refusal:
        answer = refusal.body()
    json.dumps(answer)
    assert answer["ok"] or (400 <= answer["error_code"] < 500 and answer["description"])


def _as_sent(params: dict[str, Any], *, as_text: bool) -> dict[str, Any]:
    if not as_text:
        return params
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in params.items()}
