"""Whatever a client sends, a method answers or refuses: it never breaks."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from telegram_bus.sandbox import methods
from telegram_bus.sandbox.args import Args, Upload
from telegram_bus.sandbox.model_views import world_state
from telegram_bus.sandbox.refusal import Refusal
from tests.effort import examples
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
PICTURE = Upload("a.png", b"\x89PNG\r\n\x1a\n" + bytes(8) + bytes([0, 0, 0, 9]) * 2)
MEDIA = [
    PICTURE, Upload("a.txt", b"x"), Upload("", b""), "attach://one", "attach://", "https://example.org/a.png", "known",
]  # fmt: skip
KINDS = each("photo", "video", "document", "audio", "animation", "voice", [], None)
ITEMS = [
    {"type": kind, "media": media, "caption": caption}
    for kind in KINDS
    for media in each("attach://one", "known", [], None, 1)
    for caption in each("x", None, [], "x" * 1025)
]
for name in "photo document audio voice video animation video_note sticker thumbnail".split():
    LIKELY[name] = MEDIA
LIKELY |= {
    "media": [*ITEMS, *([item, item] for item in ITEMS), *([item, ITEMS[0]] for item in ITEMS)],
    "one": [PICTURE, Upload("b", b"b")],
    "caption": ["x", "<b>", "x" * 1025],
    "caption_entities": LIKELY["entities"],
    "link_preview_options": [{"is_disabled": True}, {"url": 1}, {"url": "https://h"}],
    "options": [
        ["a", "b"],
        [{"text": "a"}],
        [{"text": "a", "media": {"type": "location", "latitude": []}}],
        ["x" * 101],
    ],
    "type": ["quiz", "regular"],
    "correct_option_ids": [[0], [5], [[]], ["0"]],
    "permissions": [{"can_send_messages": False}, {"can_send_messages": []}],
    "rights": [{"can_manage_chat": True}, {"can_manage_chat": []}],
    "menu_button": [{"type": kind} for kind in each("commands", "web_app", "default", [])]
    + [
        {"type": "web_app", "text": "x", "web_app": each({"url": "https://h"}, {"url": 1}, [], None)[at]}
        for at in range(4)
    ],
    "invite_link": ["https://t.me/+x"],
    "emoji": ["🎰", "❤"],
    "quote": ["x"],
}
LIKELY["reply_parameters"] += [{"message_id": 2, "quote": value} for value in each("hello", "no", [], 1)]
for name in "latitude longitude duration width height live_period open_period close_date member_limit offset".split():
    LIKELY[name] = ["1", "1.5", "60", "nan", "inf", "-1e400", 10**400]
for name in "question title address phone_number first_name description short_description explanation".split():
    LIKELY[name] = ["x", "é😀", "x" * 1000]
for name in "is_anonymous allows_multiple_answers is_closed protect_content has_spoiler can_pin_messages".split():
    LIKELY[name] = ["true", "false"]
for name in "message_id message_thread_id reply_to_message_id draft_id user_id icon_color max_connections".split():
    LIKELY[name] = NUMBERS
for name in "name icon_custom_emoji_id callback_query_id language_code show_alert drop_pending_updates".split():
    LIKELY[name] = ["x", "true"]

some_arguments = st.fixed_dictionaries(
    {"chat_id": st.sampled_from(CHATS)},
    optional={name: st.sampled_from(likely + ODD) for name, likely in LIKELY.items()},
)


@settings(max_examples=examples(250), deadline=None)
@example(
    method="sendMediaGroup",
    params={"chat_id": "private", "media": [{"type": [], "media": "x"}]},
    as_text=False,
    further=False,
)
@given(
    method=st.sampled_from(sorted(methods.METHODS)),
    params=some_arguments,
    as_text=st.booleans(),
    further=st.booleans(),
)
def test_a_method_answers_or_refuses(method: str, params: dict[str, Any], as_text: bool, further: bool) -> None:
    talk = Talk()
    for chat in CHATS:
        talk.send(chat_id=getattr(talk, chat).id)
        talk.call("sendPoll", chat_id=getattr(talk, chat).id, question="x", options=["a"])
    talk.topic()
    known = talk.call("sendDocument", chat_id=talk.private.id, document=Upload("a", b"a"), caption="hello")
    where = getattr(talk, params["chat_id"])
    likely = {
        "from_chat_id": talk.private.id, "user_id": talk.owner.id, "message_id": max(where.messages),
        "message_ids": list(where.messages), "file_id": "known",
    }  # fmt: skip
    given = (likely if further else {}) | params | {"chat_id": where.id}
    file_id = known["document"]["file_id"]
    args = Args({name: _named(value, file_id) for name, value in _as_sent(given, as_text=as_text).items()})
    json.dumps(args.shown())
    try:
        answer = {"ok": True, "result": methods.call(talk.world, method, args, talk.now)}
    except Refusal as refusal:
        answer = refusal.body()
    json.dumps(answer)
    json.dumps(world_state(talk.world))
    assert answer["ok"] or (400 <= answer["error_code"] < 500 and answer["description"])


def _as_sent(params: dict[str, Any], *, as_text: bool) -> dict[str, Any]:
    if not as_text:
        return params
    return {name: value if isinstance(value, (str, Upload)) else json.dumps(value) for name, value in params.items()}


def _named(value: Any, file_id: str) -> Any:
    """The value with the id of a file that is there in the place of "known"."""
    if isinstance(value, str):
        return value.replace("known", file_id)
    if isinstance(value, list):
        return [_named(item, file_id) for item in value]
    return {name: _named(item, file_id) for name, item in value.items()} if isinstance(value, dict) else value
