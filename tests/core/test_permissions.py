"""Our own policy, the markers, and which calls may be repeated."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import frozen

from telegram_bus.core.permissions import COMPATIBLE, OWN, Allowed, Caller, Denied, judge, repeatable, sent_by
from telegram_bus.core.values import Number, Target

CHAT, THREAD, OTHERS = 5001, 42, 43
IN_THREAD = {"chat_id": CHAT, "message_thread_id": THREAD}
TEXT = IN_THREAD | {"text": "x"}
CROSS = "__piTelegramCrossTargetDelivery"
AGGREGATE = "__piTelegramAggregateDelivery"
NEXT_DOOR = {"chat_id": CHAT, "message_thread_id": OTHERS, "text": "x", CROSS: True}
BOLD = {"type": "bold", "text": "b"}
PICTURE = {"type": "photo", "photo": {"type": "photo", "media": "file:///x"}}
DEEP: dict[str, Any] = {"type": "paragraph", "text": "x"}
for _ in range(40):
    DEEP = {"type": "blockquote", "blocks": [DEEP]}


@frozen
class Things:
    """Message 9 was sent, 9 and 10 stand in the thread; callback "c" and file "f" came."""

    def message(self, chat_id: Number, message_id: Number, /) -> bool:
        return (chat_id, message_id) == (CHAT, 9)

    def seen(self, chat_id: Number, message_id: Number, /) -> bool:
        return (chat_id, message_id) in ((CHAT, 9), (CHAT, 10))

    def callback(self, query_id: str, /) -> bool:
        return query_id == "c"

    def file(self, file_id: str, /) -> bool:
        return file_id == "f"


def caller(thread: int | None = THREAD, *, upload_root: str | None = "/home/files/a") -> Caller:
    """A follower with a thread of its own; 43 is another agent's."""
    return Caller(
        target=Target(chat_id=CHAT, thread_id=thread),
        owned=Things(),
        is_agent=lambda target: target == Target(chat_id=CHAT, thread_id=OTHERS),
        upload_root=upload_root,
    )


def own(method: str, body: Any, who: Caller | None = None) -> Allowed | Denied:
    """What our own policy says to a call."""
    return judge(OWN, "call", (method, body, {"timeout": 1}), who or caller())


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("getMe", {}),
        ("sendMessage", IN_THREAD | {"text": "file:///etc/passwd is only text"}),
        ("sendMessage", {"chat_id": "5001", "message_thread_id": "42", "text": "x"}),
        ("sendMessage", TEXT | {"reply_parameters": {"message_id": 10, "chat_id": CHAT}}),
        ("sendMessage", TEXT | {"reply_markup": {"inline_keyboard": [[{"text": "a", "callback_data": "b"}]]}}),
        ("sendMessage", TEXT | {"reply_markup": {"inline_keyboard": [[{"text": "a", "url": "http://else.where/"}]]}}),
        ("sendMessage", TEXT | {"reply_markup": {"keyboard": [["yes", {"text": "no", "request_contact": True}]]}}),
        ("sendMessage", TEXT | {"reply_markup": {"force_reply": True}, "reply_parameters": None}),
        ("sendMessage", TEXT | {"entities": [{"type": "text_mention", "offset": 0, "length": 1, "user": {"id": 7}}]}),
        ("sendMessage", TEXT | {"allow_paid_broadcast": False}),
        ("sendMessage", {"chat_id": CHAT, "message_thread_id": OTHERS, "text": "x", CROSS: True}),
        ("sendPhoto", IN_THREAD | {"photo": "https://example.org/a.png"}),
        ("sendPhoto", IN_THREAD | {"photo": "f"}),
        ("sendMediaGroup", IN_THREAD | {"media": [{"type": "photo", "media": "https://example.org/a.png"}]}),
        ("editMessageText", {"chat_id": CHAT, "message_id": 9, "text": "y"}),
        ("editMessageMedia", {"chat_id": CHAT, "message_id": 9, "media": {"type": "photo", "media": "f"}}),
        ("deleteMessage", {"chat_id": CHAT, "message_id": "9"}),
        ("setMessageReaction", {"chat_id": CHAT, "message_id": 10, "reaction": [{"type": "emoji", "emoji": "👍"}]}),
        ("copyMessage", IN_THREAD | {"from_chat_id": CHAT, "message_id": 10}),
        ("sendChatAction", IN_THREAD | {"action": "typing"}),
        ("answerCallbackQuery", {"callback_query_id": "c", "text": "done"}),
        ("editForumTopic", IN_THREAD | {"name": "Nora"}),
        ("sendLocation", IN_THREAD | {"latitude": 1, "longitude": 2.5}),
        ("sendRichMessage", IN_THREAD | {"rich_message": {"blocks": [{"type": "paragraph", "text": ["a", BOLD]}]}}),
        ("sendRichMessage", IN_THREAD | {"rich_message": {"html": "<a href='https://x.org'>file:///x</a>"}}),
        ("setMyCommands", {"commands": [{"command": "/build_2", "description": "Builds"}]}),
        ("deleteMyCommands", {"scope": {"type": "chat", "chat_id": CHAT}}),
    ],
)
def test_a_follower_may_work_in_its_own_thread(method: str, body: Any) -> None:
    """Nothing but the method and its parameters goes out, without markers."""
    expected = {name: value for name, value in body.items() if name != CROSS}
    assert own(method, body) == Allowed(method="call", args=(method, expected))


@pytest.mark.parametrize(
    ("method", "body", "named"),
    [
        ("sendMessage", {"chat_id": CHAT}, "message_thread_id"),
        ("sendMessage", {"chat_id": 1, "message_thread_id": THREAD}, "chat_id"),
        ("sendMessage", {"chat_id": "@channel", "message_thread_id": THREAD}, "chat_id"),
        ("sendMessage", {"chat_id": CHAT, "message_thread_id": OTHERS}, "message_thread_id"),
        ("sendMessage", TEXT | {"reply_parameters": {"message_id": 10, "chat_id": 7}}, "reply_parameters.chat_id"),
        ("sendMessage", IN_THREAD | {"reply_parameters": {"message_id": 11}}, "reply_parameters.message_id"),
        ("sendMessage", IN_THREAD | {"reply_to_message_id": 11}, "reply_to_message_id"),
        ("sendMessage", IN_THREAD | {"reply_parameters": '{"message_id":11}'}, "reply_parameters"),
        ("sendMessage", IN_THREAD | {"Chat_Id": 7}, "Chat_Id"),
        ("sendMessage", IN_THREAD | {"business_connection_id": "b"}, "business_connection_id"),
        ("sendMessage", IN_THREAD | {"allow_paid_broadcast": True}, "allow_paid_broadcast"),
        ("sendMessage", {"chat_id": CHAT, "message_thread_id": THREAD, CROSS: True}, "message_thread_id"),
        ("sendMessage", NEXT_DOOR | {"reply_parameters": {"message_id": 11}}, "reply_parameters.message_id"),
        ("sendMessage", NEXT_DOOR | {"reply_parameters": {"message_id": 9, "chat_id": 7}}, "reply_parameters.chat_id"),
        ("sendMessage", {"chat_id": CHAT, "message_thread_id": 44, CROSS: True}, "message_thread_id"),
        ("sendMessage", {"chat_id": CHAT, CROSS: True}, "message_thread_id"),
        ("sendMessage", {"chat_id": CHAT, AGGREGATE: True}, "message_thread_id"),
        ("sendPhoto", IN_THREAD | {"photo": "/etc/passwd"}, "photo"),
        ("sendPhoto", IN_THREAD | {"photo": "file:///etc/passwd"}, "photo"),
        ("sendMediaGroup", IN_THREAD | {"media": [{"type": "photo", "media": "file:///etc/passwd"}]}, "media.0.media"),
        ("sendMediaGroup", IN_THREAD | {"media": '[{"media":"file:///etc/passwd"}]'}, "media"),
        ("sendVideo", IN_THREAD | {"video": "f", "thumbnail": "/etc/passwd"}, "thumbnail"),
        (
            "editMessageMedia",
            {"chat_id": CHAT, "message_id": 9, "media": {"type": "photo", "media": "/x"}},
            "media.media",
        ),
        ("editMessageText", {"chat_id": CHAT, "message_id": 10}, "message_id"),
        ("editMessageText", {"inline_message_id": "i"}, "chat_id"),
        ("editMessageText", {"chat_id": CHAT, "message_id": 9, "inline_message_id": "i"}, "inline_message_id"),
        ("deleteMessage", {"chat_id": CHAT, "message_id": 10}, "message_id"),
        ("setMessageReaction", {"chat_id": CHAT, "message_id": 11}, "message_id"),
        ("copyMessage", IN_THREAD | {"from_chat_id": 7, "message_id": 10}, "from_chat_id"),
        ("copyMessage", IN_THREAD | {"from_chat_id": CHAT, "message_id": 11}, "message_id"),
        ("sendChatAction", {"chat_id": CHAT, "action": "typing"}, "message_thread_id"),
        ("answerCallbackQuery", {"callback_query_id": "d"}, "callback_query_id"),
        ("answerCallbackQuery", {}, "callback_query_id"),
        ("deleteForumTopic", {"chat_id": CHAT, "message_thread_id": OTHERS}, "message_thread_id"),
        ("setMyCommands", {"commands": [{"command": "Build", "description": "x"}]}, "commands.0.command"),
        ("setMyCommands", {"commands": [{"command": "b" * 33, "description": "x"}]}, "commands.0.command"),
        ("setMyCommands", {"commands": [{"command": "b", "description": " "}]}, "commands.0.description"),
        ("setMyCommands", {"commands": [{"command": "b", "description": "x"}] * 101}, "commands must be 100 at most"),
        ("setMyCommands", {"commands": [], "language_code": "de"}, "language_code"),
        ("setMyCommands", {"commands": [], "scope": {"type": "chat", "chat_id": 7}}, "scope.chat_id"),
        ("setMyCommands", {"commands": [], "scope": {"type": "all_chat_administrators"}}, "scope.type"),
        ("setMyCommands", {"commands": "[]"}, "commands must be a list"),
        ("answerGuestQuery", {"guest_query_id": "c"}, "answerGuestQuery"),
        ("sendMessage", IN_THREAD, "text is missing"),
        ("sendMessage", TEXT | {"text": 5}, "text must be text"),
        ("sendMessage", TEXT | {"disable_notification": "true"}, "disable_notification must be true or false"),
        (
            "sendMessage",
            TEXT | {"parsemode": "HTML"},
            "parsemode is no field of sendMessage (Bot API 10.3): use parse_mode",
        ),
        ("sendMessage", TEXT | {"reply_to_message_id": 9}, "use reply_parameters"),
        ("sendMessage", TEXT | {"zzz": 1}, "zzz is no field of sendMessage"),
        ("sendMessage", TEXT | {"my text": 1}, "(odd name)"),
        (
            "sendMessage",
            TEXT | {"reply_markup": {"inline_keyboard": [[{"text": "a", "uri": "x"}]]}},
            "reply_markup.inline_keyboard.0.0.uri is no field of InlineKeyboardButton (Bot API 10.3): use url",
        ),
        (
            "sendMessage",
            TEXT | {"reply_markup": {"inline_keyboard": [[{"url": "http://x.org"}]]}},
            "reply_markup.inline_keyboard.0.0.text is missing",
        ),
        (
            "sendMessage",
            TEXT | {"reply_markup": {"inline_keyboard": [{"text": "a"}]}},
            "reply_markup.inline_keyboard.0 must be a list",
        ),
        (
            "sendMessage",
            TEXT | {"reply_markup": {"inline_keyboard": [[{"text": "a", "web_app": {"url": "https://x"}}]]}},
            "web_app is not for followers",
        ),
        (
            "sendMessage",
            TEXT | {"reply_markup": {"inline_keyboard": [[{"text": "a", "login_url": {"url": "x"}}]]}},
            "login_url is not for followers",
        ),
        ("sendMessage", TEXT | {"reply_markup": {"keyboard": [[{"text": "a", "request_chat": {}}]]}}, "request_chat"),
        ("sendMessage", TEXT | {"reply_markup": '{"inline_keyboard":[]}'}, "reply_markup must be an object"),
        (
            "sendMessage",
            TEXT | {"ephemeral_message_parameters": {"receiver_user_id": 8}},
            "ephemeral_message_parameters",
        ),
        ("sendPhoto", IN_THREAD | {"photo": "g"}, "photo must be the id of a file which this follower"),
        ("sendPhoto", IN_THREAD | {"photo": "attach://x"}, "photo names an attachment"),
        ("sendPhoto", IN_THREAD | {"photo": "http://127.0.0.1/a.png"}, "photo must be an address on the internet"),
        ("sendPhoto", IN_THREAD | {"photo": "http://2130706433/"}, "photo must be an address on the internet"),
        ("sendPhoto", IN_THREAD | {"photo": "http://[::1]/a"}, "photo must be an address on the internet"),
        ("sendPhoto", IN_THREAD | {"photo": "http://localhost:80/a"}, "photo must be an address on the internet"),
        ("sendPhoto", IN_THREAD | {"photo": "https://a@b.org/"}, "photo must be a file id"),
        ("sendPhoto", IN_THREAD | {"photo": "ftp://b.org/"}, "photo must be a file id"),
        ("sendMediaGroup", IN_THREAD | {"media": [{"type": "sticker", "media": "f"}]}, "media.0.type must be audio or"),
        ("sendMediaGroup", IN_THREAD | {"media": [{"media": "f"}]}, "media.0.type"),
        (
            "sendRichMessage",
            IN_THREAD | {"rich_message": {"html": "<img src='FILE:/etc/passwd'>"}},
            "rich_message.html",
        ),
        (
            "sendRichMessage",
            IN_THREAD | {"rich_message": {"markdown": "![](file:///etc/passwd)"}},
            "rich_message.markdown",
        ),
        ("sendRichMessage", IN_THREAD | {"rich_message": {"blocks": [DEEP]}}, "is nested too deeply"),
        ("sendRichMessage", IN_THREAD | {"rich_message": {"blocks": [PICTURE]}}, "blocks.0.photo.media"),
        ("sendLocation", IN_THREAD | {"latitude": float("nan"), "longitude": 2}, "latitude must be a number"),
        (
            "editMessageReplyMarkup",
            {"chat_id": CHAT, "message_id": 9, "reply_markup": {"force_reply": True}},
            "inline_keyboard",
        ),
        ("getUpdates", {}, "getUpdates"),
        ("forwardMessage", IN_THREAD | {"from_chat_id": CHAT, "message_id": 9}, "forwardMessage"),
        ("SENDMESSAGE", IN_THREAD, "SENDMESSAGE"),
        (["sendMessage"], IN_THREAD, "no method"),
        ("sendMessage", None, "chat_id"),
    ],
)
def test_a_follower_may_not_reach_beyond_it(method: Any, body: Any, named: str) -> None:
    """The refusal names the field, or the method."""
    verdict = own(method, body)
    assert isinstance(verdict, Denied)
    assert named in verdict.reason


def test_a_follower_without_a_thread_touches_no_thread() -> None:
    """Unlike in the compatible reading, where it may touch any."""
    who = caller(None)
    assert isinstance(own("sendMessage", {"chat_id": CHAT, "text": "x"}, who), Allowed)
    assert isinstance(own("sendMessage", IN_THREAD, who), Denied)
    assert isinstance(own("deleteForumTopic", IN_THREAD, who), Denied)
    assert isinstance(own("deleteForumTopic", {"chat_id": CHAT}, who), Denied)
    assert isinstance(judge(COMPATIBLE, "call", ("deleteForumTopic", IN_THREAD), who), Allowed)


def test_a_follower_without_a_target_reaches_no_chat() -> None:
    """Before it has a destination it may only ask who the bot is."""
    who = Caller(target=None, owned=Things(), is_agent=lambda _target: True)
    assert isinstance(own("getMe", {}, who), Allowed)
    for method, body in (("sendMessage", IN_THREAD), ("setMessageReaction", {"chat_id": CHAT, "message_id": 9})):
        assert isinstance(own(method, body, who), Denied)


@pytest.mark.parametrize(
    ("path", "root", "allowed"),
    [
        ("/home/files/a/x.png", "/home/files/a", True),
        ("/home/files/a/../b/x.png", "/home/files/a", False),
        ("/home/files/ab/x.png", "/home/files/a", False),
        ("/home/files/a", "/home/files/a", False),
        ("x.png", "/home/files/a", False),
        (None, "/home/files/a", False),
        ("/home/files/a/x.png", None, False),
    ],
)
def test_uploads_lie_in_the_followers_own_folder(path: Any, root: str | None, allowed: bool) -> None:
    """A path of the leader's disk is not a follower's to choose."""
    args = ("sendPhoto", IN_THREAD, "photo", path, "x.png")
    assert isinstance(judge(OWN, "callMultipart", args, caller(upload_root=root)), Allowed) is allowed


def test_files_are_for_whom_they_were_sent_to() -> None:
    """Under the compatible policy they are for everybody."""
    assert isinstance(judge(OWN, "downloadFile", ("f", "a.png"), caller()), Allowed)
    assert isinstance(judge(OWN, "downloadFile", ("g", "a.png"), caller()), Denied)
    assert isinstance(judge(OWN, "downloadFile", (), caller()), Denied)
    assert isinstance(judge(COMPATIBLE, "downloadFile", ("g",), caller()), Allowed)


def test_markers_do_not_reach_telegram() -> None:
    """Nor where they mean nothing; a marker that is not true means nothing."""
    body = {"chat_id": CHAT, "message_thread_id": OTHERS, "text": "x"}
    marked = judge(COMPATIBLE, "call", ("sendMessage", body | {CROSS: True}, {"o": 1}), caller())
    assert marked == Allowed(method="call", args=("sendMessage", body, {"o": 1}))
    assert isinstance(judge(COMPATIBLE, "call", ("sendMessage", body | {CROSS: 1}), caller()), Denied)
    upload = judge(COMPATIBLE, "callMultipart", ("sendPhoto", IN_THREAD | {AGGREGATE: True}, "photo", "p"), caller())
    assert upload == Allowed(method="callMultipart", args=("sendPhoto", IN_THREAD, "photo", "p"))
    lobby = judge(COMPATIBLE, "call", ("sendMessage", {"chat_id": CHAT, AGGREGATE: True}), caller())
    assert lobby == Allowed(method="call", args=("sendMessage", {"chat_id": CHAT}))
    assert isinstance(judge(COMPATIBLE, "call", ("sendMessage", IN_THREAD | {AGGREGATE: True}), caller()), Denied)


def test_a_message_belongs_to_who_sent_it_in_the_chat_of_the_result() -> None:
    """One message or a list; where the result names no chat, that of the call."""
    send = Allowed(method="call", args=("sendMessage", {"chat_id": "5001"}))
    assert sent_by(send, {"message_id": 7}) == ((5001, 7),)
    assert sent_by(send, {"message_id": 7, "chat": {"id": 8}}) == ((8, 7),)
    group = Allowed(method="callMultipart", args=("sendMediaGroup", {"chat_id": 1}))
    assert sent_by(group, [{"message_id": 7}, {"message_id": 8}, True]) == ((1, 7), (1, 8))
    copy = Allowed(method="call", args=("copyMessage", {"chat_id": 1}))
    assert sent_by(copy, {"message_id": 7}) == ()
    assert sent_by(copy, {"message_id": 7}, every_method=True) == ((1, 7),)
    assert sent_by(Allowed(method="downloadFile", args=("f",)), {"message_id": 7}, every_method=True) == ()


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("sendMessage", False),
        ("SendMessage", False),
        ("copyMessage", False),
        ("forwardMessage", False),
        ("createForumTopic", False),
        ("postStory", False),
        ("sendChatAction", True),
        ("sendMessageDraft", True),
        ("editMessageText", True),
        ("deleteMessage", True),
        ("setMessageReaction", True),
        ("answerCallbackQuery", True),
        ("getMe", True),
    ],
)
def test_only_what_bears_it_is_repeated(method: str, expected: bool) -> None:
    """Nothing is sent, copied, forwarded or made twice."""
    assert repeatable(method) is expected
