"""Generated calls, judged by our own policy and by an oracle that was written from its description alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from telegram_bus.core.permissions import COMPATIBLE, OWN, Allowed, Denied, Policy, judge, judge_files
from tests.core.test_permissions import AGGREGATE, CHAT, CROSS, OTHERS, THREAD, caller
from tests.effort import examples

Oracle = Callable[[Any], bool]

# -- the oracle: a predicate for each field of each method, by the words of docs/permissions.md


def whole(value: Any) -> bool:
    """A number, or one in digits."""
    if isinstance(value, str):
        digits = value[1:] if value.startswith("-") else value
        return digits.isascii() and digits.isdigit() and len(digits) < 20
    return isinstance(value, int) and not isinstance(value, bool)


def one_of(*ids: int) -> Oracle:
    """One of these ids."""
    return lambda value: whole(value) and int(value) in ids


def text(value: Any) -> bool:
    """Any text."""
    return isinstance(value, str)


def flag(value: Any) -> bool:
    """Yes or no."""
    return value is True or value is False


def never(value: Any) -> bool:
    """What nobody may use; switched off it does nothing."""
    return value is False


def listed(inner: Oracle) -> Oracle:
    """A list of such values."""
    return lambda value: isinstance(value, list) and all(inner(one) for one in value)


def record(fields: Mapping[str, Oracle], *required: str) -> Oracle:
    """An object with some of these fields, and all that are required; null is as if it were absent."""

    def check(value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        there = {name: one for name, one in value.items() if one is not None}
        return set(required) <= set(there) and all(name in fields and fields[name](one) for name, one in there.items())

    return check


def file(value: Any) -> bool:
    """The follower's own file, or an address on the internet."""
    return value in ("f", "https://example.org/a.png")


seen = one_of(9, 10)
sent = one_of(9)
entity = record(
    {"type": text, "offset": whole, "length": whole, "url": text, "user": record({"id": whole, "is_bot": flag}, "id")},
    *("type", "offset", "length"),
)
reply = record({"message_id": seen, "chat_id": one_of(CHAT), "quote": text, "allow_sending_without_reply": flag})
button = record({"text": text, "url": text, "callback_data": text, "pay": lambda value: value is False}, "text")
keyboard = record({"inline_keyboard": listed(listed(button))}, "inline_keyboard")
picture = record(
    {
        "type": lambda value: value == "photo",
        "media": file,
        "caption": text,
        "caption_entities": listed(entity),
        "has_spoiler": flag,
    },
    *("type", "media"),
)
PLACE: Mapping[str, Oracle] = {"chat_id": one_of(CHAT), "message_thread_id": one_of(THREAD)}
COMMON: Mapping[str, Oracle] = {
    **PLACE,
    "disable_notification": flag,
    "reply_parameters": reply,
    "allow_paid_broadcast": never,
    "parse_mode": text,
}
SENT: Mapping[str, Oracle] = {"chat_id": one_of(CHAT), "message_id": sent, "reply_markup": keyboard, "parse_mode": text}
METHODS: Mapping[str, Oracle] = {
    "sendMessage": record(
        {**COMMON, "text": text, "entities": listed(entity), "reply_markup": keyboard},
        *("chat_id", "message_thread_id", "text"),
    ),
    "sendPhoto": record(
        {**COMMON, "photo": file, "caption": text, "reply_markup": keyboard},
        *("chat_id", "message_thread_id", "photo"),
    ),
    "sendMediaGroup": record(
        {name: check for name, check in COMMON.items() if name != "parse_mode"} | {"media": listed(picture)},
        *("chat_id", "message_thread_id", "media"),
    ),
    "copyMessage": record(
        {**COMMON, "from_chat_id": one_of(CHAT), "message_id": seen, "caption": text, "reply_markup": keyboard},
        *("chat_id", "message_thread_id", "from_chat_id", "message_id"),
    ),
    "editMessageText": record({**SENT, "text": text, "entities": listed(entity)}, "chat_id", "message_id"),
    "editMessageMedia": record(
        {"chat_id": one_of(CHAT), "message_id": sent, "media": picture, "reply_markup": keyboard},
        *("chat_id", "message_id", "media"),
    ),
    "deleteMessage": record({"chat_id": one_of(CHAT), "message_id": sent}, "chat_id", "message_id"),
    "setMessageReaction": record(
        {
            "chat_id": one_of(CHAT),
            "message_id": seen,
            "reaction": listed(record({"type": lambda value: value == "emoji", "emoji": text}, "type", "emoji")),
        },
        *("chat_id", "message_id"),
    ),
    "answerCallbackQuery": record(
        {"callback_query_id": lambda value: value == "c", "text": text, "show_alert": flag}, "callback_query_id"
    ),
    "editForumTopic": record({**PLACE, "name": text}, "chat_id", "message_thread_id"),
    "getMe": record({}),
}
ABROAD = record(
    {
        **COMMON,
        "message_thread_id": one_of(OTHERS),
        "text": text,
        "entities": listed(entity),
        "reply_markup": keyboard,
    },
    *("chat_id", "message_thread_id", "text"),
)


def permitted(method: str, body: Any) -> bool:
    """What the policy says, read from its description."""
    fields = {name: value for name, value in body.items() if name not in (CROSS, AGGREGATE)}
    if method == "sendMessage" and body.get(CROSS) is True:
        return ABROAD(fields)
    return method in METHODS and METHODS[method](fields)


# -- the calls


def mostly(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Nine good values of ten, so that calls with many fields are allowed now and then."""
    return st.integers(0, 30).flatmap(lambda number: good if number else odd)


numbers = st.sampled_from([CHAT, THREAD, OTHERS, 9, 10, 11, str(CHAT), str(THREAD), "9", "-7", "x", "9" * 20])
odd = st.one_of(
    st.none(),
    st.booleans(),
    numbers,
    st.floats(allow_nan=False),
    st.sampled_from(["", "a", "f", "g", "c", "/etc/passwd", "file:///x", "attach://a", "http://10.0.0.1/x", '{"a":1}']),
    st.just([]),
    st.just({}),
    st.just({"chat_id": 7, "message_id": 9}),
    st.just([{"type": "photo", "media": "/etc/passwd"}]),
)
words = st.sampled_from(["", "hello", "file:///etc/passwd", "/cmd"])
files = st.sampled_from(["f", "https://example.org/a.png"])


def some(fields: Mapping[str, st.SearchStrategy[Any]], *required: str) -> st.SearchStrategy[Any]:
    """An object with the required fields mostly there, others at times, and rarely one that does not exist."""
    made = st.fixed_dictionaries(
        {name: mostly(fields[name]) for name in required},
        optional={name: mostly(strategy) for name, strategy in fields.items() if name not in required},
    )
    strange = st.dictionaries(
        st.sampled_from(["chatid", "Chat_Id", "text", "from_chat_id", "inline_message_id"]), odd, max_size=1
    )
    dropped = st.lists(st.sampled_from([*fields]), max_size=1) if fields else st.just([])

    def combine(parts: tuple[dict[str, Any], dict[str, Any], list[str], int]) -> dict[str, Any]:
        whole_one, more, less, chance = parts
        if chance == 0:
            whole_one = whole_one | more
        if chance == 1:
            whole_one = {name: value for name, value in whole_one.items() if name not in less}
        return whole_one

    return st.tuples(made, strange, dropped, st.integers(0, 12)).map(combine)


chats, threads, own = (
    st.sampled_from([CHAT, str(CHAT)]),
    st.sampled_from([THREAD, str(THREAD)]),
    st.sampled_from([9, "9"]),
)
around = st.sampled_from([9, 10])
entities = st.lists(
    some(
        {
            "type": words,
            "offset": st.just(0),
            "length": st.just(1),
            "user": some({"id": st.just(7)}, "id"),
        },
        *("type", "offset", "length"),
    ),
    max_size=2,
)
replies = some({"message_id": around, "chat_id": chats, "quote": words, "allow_sending_without_reply": st.booleans()})
rows = st.lists(st.lists(some({"text": words, "url": words, "callback_data": words}, "text"), max_size=2), max_size=2)
keyboards = some({"inline_keyboard": rows}, "inline_keyboard")
pictures = some(
    {
        "type": st.just("photo"),
        "media": files,
        "caption": words,
        "caption_entities": entities,
        "has_spoiler": st.booleans(),
    },
    *("type", "media"),
)
values: Mapping[str, st.SearchStrategy[Any]] = {
    "chat_id": chats,
    "message_thread_id": threads,
    "disable_notification": st.booleans(),
    "reply_parameters": replies,
    "allow_paid_broadcast": st.just(False),
    "parse_mode": words,
    "text": words,
    "caption": words,
    "entities": entities,
    "reply_markup": keyboards,
    "photo": files,
    "from_chat_id": chats,
    "name": words,
    "show_alert": st.booleans(),
    "callback_query_id": st.just("c"),
}
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "sendMessage": ("chat_id", "message_thread_id", "text"),
    "sendPhoto": ("chat_id", "message_thread_id", "photo"),
    "sendMediaGroup": ("chat_id", "message_thread_id", "media"),
    "copyMessage": ("chat_id", "message_thread_id", "from_chat_id", "message_id"),
    "editMessageText": ("chat_id", "message_id", "text"),
    "editMessageMedia": ("chat_id", "message_id", "media"),
    "deleteMessage": ("chat_id", "message_id"),
    "setMessageReaction": ("chat_id", "message_id", "reaction"),
    "answerCallbackQuery": ("callback_query_id",),
    "editForumTopic": ("chat_id", "message_thread_id", "name"),
    "getMe": (),
    "getUpdates": (),
    "banChatMember": ("chat_id",),
}
SPECIAL: Mapping[tuple[str, str], st.SearchStrategy[Any]] = {
    ("sendMediaGroup", "media"): st.lists(pictures, max_size=2),
    ("editMessageMedia", "media"): pictures,
    ("copyMessage", "message_id"): around,
    ("setMessageReaction", "message_id"): around,
    ("setMessageReaction", "reaction"): st.lists(
        some({"type": st.just("emoji"), "emoji": words}, "type", "emoji"), max_size=1
    ),
}
OPTIONAL: Mapping[str, tuple[str, ...]] = {
    "sendMessage": ("disable_notification", "reply_parameters", "allow_paid_broadcast", "entities", "reply_markup"),
    "sendPhoto": ("caption", "parse_mode", "reply_parameters", "reply_markup"),
    "sendMediaGroup": ("reply_parameters", "disable_notification"),
    "copyMessage": ("caption", "reply_parameters", "reply_markup"),
    "editMessageText": ("parse_mode", "entities", "reply_markup"),
    "editMessageMedia": ("reply_markup",),
    "answerCallbackQuery": ("text", "show_alert"),
}


def bodies(method: str) -> st.SearchStrategy[tuple[str, Any]]:
    """Calls of one method."""
    names = (*REQUIRED[method], *OPTIONAL.get(method, ()))
    fields = {
        name: SPECIAL.get((method, name), own if name == "message_id" else values.get(name, odd)) for name in names
    }
    marked = st.sampled_from([{}] * 6 + [{CROSS: True}, {CROSS: True, "message_thread_id": OTHERS}, {AGGREGATE: True}])
    return st.tuples(
        st.just(method), st.tuples(some(fields, *REQUIRED[method]), marked).map(lambda both: both[0] | both[1])
    )


calls = st.sampled_from([*REQUIRED]).flatmap(bodies)


@settings(max_examples=examples(200), deadline=None)
@example(call=("sendMessage", {"chat_id": CHAT, "message_thread_id": OTHERS, "text": "x", CROSS: True}))
@example(call=("sendMessage", {"chat_id": CHAT, "message_thread_id": OTHERS, "text": "x", CROSS: 1}))
@given(call=calls)
def test_our_policy_allows_what_its_description_allows_and_nothing_else(call: tuple[str, dict[str, Any]]) -> None:
    method, body = call
    expected = permitted(method, body)
    verdict = judge(OWN, "call", (method, body), caller())
    event(f"{method}: {'allowed' if expected else 'refused'}")
    assert isinstance(verdict, Allowed) is expected, getattr(verdict, "reason", verdict)
    if not isinstance(verdict, Allowed):
        assert verdict.reason.startswith(method)
        assert verdict.rule


anything: st.SearchStrategy[Any] = st.recursive(
    st.one_of(odd, st.floats(), st.text(max_size=5), st.just(float("inf"))),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "media", "text", "blocks", "chat_id", "user", "photo", "x"]), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=examples(150), deadline=None)
@given(
    policy=st.sampled_from([OWN, COMPATIBLE]),
    way=st.sampled_from(["call", "callMultipart", "downloadFile", "x"]),
    method=st.sampled_from([*OWN.calls, *OWN.uploads, *COMPATIBLE.calls]),
    body=st.dictionaries(st.sampled_from([*values, "media", "rich_message", "message_id", "commands"]), anything),
    placed=st.booleans(),
)
def test_whatever_json_a_follower_sends_there_is_a_verdict(
    policy: Policy, way: str, method: str, body: dict[str, Any], placed: bool
) -> None:
    place = {"chat_id": CHAT, "message_thread_id": THREAD, "message_id": 9} if placed else {}
    verdict = judge(policy, way, (method, body | place, "photo", "/x", "x"), caller())
    assert isinstance(verdict, Allowed | Denied)
    files = judge_files(policy, (method, body | place), ["photo", "file0"], caller())
    assert isinstance(files, Allowed | Denied)
