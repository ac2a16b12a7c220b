"""What a follower that means harm tries in its calls and its registration, and what becomes of that."""

from __future__ import annotations

from typing import Any

import pytest

from telegram_bus.core.admission import Rules, decide
from telegram_bus.core.decisions import Provision, Refuse
from telegram_bus.core.envelopes import Ack, Register, Registration
from telegram_bus.core.identity import ours
from telegram_bus.core.ledger import Bounds, Ledger, Repeat
from telegram_bus.core.outcomes import chat_of
from telegram_bus.core.permissions import COMPATIBLE, OWN, Allowed, Denied, Policy, judge
from telegram_bus.core.registry import Registry
from telegram_bus.core.strict import names_file
from telegram_bus.core.threads import clean_name, fill_template
from tests.core.test_permissions import CHAT, IN_THREAD, TEXT, caller


@pytest.mark.parametrize(
    "markup",
    [
        {"html": "<img src='&#102;ile:///etc/passwd'>"},
        {"html": "<img src=&#x66;&#x69;le:///etc/passwd>"},
        {"markdown": "![x](f&#105;le:///etc/passwd)"},
        {"markdown": "![x](file&colon;///etc/passwd)"},
    ],
)
def test_markup_that_hides_the_letters_of_a_file_s_address_is_refused(markup: dict[str, str]) -> None:
    for policy in (OWN, COMPATIBLE):
        verdict = judge(policy, "call", ("sendRichMessage", IN_THREAD | {"rich_message": markup}), caller())
        assert isinstance(verdict, Denied), policy
        assert verdict.rule == "must not name files of the server's disk"


def test_markup_that_only_speaks_of_files_is_fine() -> None:
    rich = {"html": "<a href='https://x.org/?a=1&amp;b=2'>file:///x &amp; more</a>"}
    call = ("sendRichMessage", IN_THREAD | {"rich_message": rich})
    for policy in (OWN, COMPATIBLE):
        assert isinstance(judge(policy, "call", call, caller()), Allowed)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"rich_message": {"blocks": [{"type": "photo", "photo": {"type": "photo", "media": "file:///x"}}]}},
         "rich_message.blocks.0.photo.media"),
        ({"rich_message": '{"blocks": [{"type": "photo", "photo": {"media": "/etc/passwd"}}]}'}, "rich_message"),
        ({"\x1b[2J": {"photo": "/etc/passwd"}}, "(odd name)"),
    ],
)  # fmt: skip
def test_a_peer_of_another_kind_names_no_file_of_the_server_s_disk_either(body: dict[str, Any], field: str) -> None:
    """Telegram's own server reads none; one of the owner's, on this machine, would."""
    verdict = judge(COMPATIBLE, "call", ("sendRichMessage", IN_THREAD | body), caller())
    assert verdict == Denied(
        method="sendRichMessage", field=field, rule="must be a file id, an address or an attachment, not a path"
    )


@pytest.mark.parametrize("body", [{"rich_message": "no JSON /etc"}, {"rich_message": '{"html": "<b>x</b>"}'}])
def test_text_that_is_no_file_is_none(body: dict[str, Any]) -> None:
    assert isinstance(judge(COMPATIBLE, "call", ("sendRichMessage", IN_THREAD | body), caller()), Allowed)


@pytest.mark.parametrize("data", ["tb:own:0:g:deadbeef", "tb:again:1.0", "tb:use:deadbeef", "tb:", "tb:k:", "tb:k:x:a"])
def test_a_follower_makes_no_button_that_the_leader_takes_for_its_own(data: str) -> None:
    markup = {"inline_keyboard": [[{"text": "harmless", "callback_data": data}]]}
    verdict = judge(OWN, "call", ("sendMessage", TEXT | {"reply_markup": markup}), caller())
    assert isinstance(verdict, Denied)
    assert verdict.field == "reply_markup.inline_keyboard.0.0.callback_data"
    edit = {"chat_id": CHAT, "message_id": 9, "reply_markup": markup}
    assert isinstance(judge(OWN, "call", ("editMessageReplyMarkup", edit), caller()), Denied)


def test_a_button_whose_meaning_is_kept_is_its_follower_s() -> None:
    markup = {"inline_keyboard": [[{"text": "a", "callback_data": "tb:k:abc:0"}, {"text": "b", "callback_data": "tb"}]]}
    assert isinstance(judge(OWN, "call", ("sendMessage", TEXT | {"reply_markup": markup}), caller()), Allowed)


@pytest.mark.parametrize(
    ("chat", "found"),
    [
        (5.0, 5),
        ("-5", -5),
        ("\u0663", None),
        ("--5", None),
        (1e300, int(1e300)),
        (float("inf"), None),
        (True, None),
        ([5], None),
    ],
)
def test_a_chat_counts_for_what_telegram_takes_it_for(chat: Any, found: int | None) -> None:
    """Else a call would count in no chat's budget, and wait for no one's pause."""
    assert chat_of({"chat_id": chat}) == found


def register(**changes: Any) -> Registration:
    told: dict[str, Any] = {
        "instance_id": "a:1",
        "connected_at_ms": 0,
        "registration_generation": "g",
        "protocol": ours("1"),
    }
    return Registration(**(told | changes))


@pytest.mark.parametrize("name", ["instance_id", "profile_key", "registration_generation"])
@pytest.mark.parametrize("value", ["", "\ud800", "a\udfffb", "a\0b", "x" * 1_025])
def test_a_follower_is_known_by_nothing_that_no_store_takes(name: str, value: str) -> None:
    """Each of these ended the leader, and with each start the next one: the empty key is the leader's own."""
    envelope = Register(request_id="r", registration=register(**{name: value}))
    decision = decide(envelope, Registry(), Rules(identity=ours("1")))
    assert isinstance(decision, Refuse)
    assert decision.message.startswith("a registration's ")


def test_keys_of_other_kinds_are_fine() -> None:
    for key in ("/home/x/Ünï çode", "C:\\x", "..", "a" * 1_024, "\u202e"):
        envelope = Register(request_id="r", registration=register(profile_key=key))
        assert isinstance(decide(envelope, Registry(), Rules(identity=ours("1"))), Provision)


def test_a_thread_s_name_has_no_halves_of_characters() -> None:
    assert clean_name("\ud800no\udfffra \udc80") == "no ra"


def test_of_a_name_of_megabytes_only_the_beginning_is_looked_at() -> None:
    """The whole of it took a leader 14 s, after 8 of which it counts as frozen."""
    assert clean_name("  a" + " " * 100_000 + "b") == "a"
    assert fill_template("{name} {branch}", name="x", project="", branch="." * 100_000 + "y") is not None
    assert "y" not in (fill_template("{branch}", name="", project="", branch="a" * 100_000 + "y") or "")


def test_a_ledger_forgets_the_names_of_those_of_whom_nothing_is_left() -> None:
    """Whoever asks chooses its own name; 8,192 of a megabyte each were kept."""
    ledger = Ledger(Bounds(total_bytes=10_000))
    for number in range(100):
        ledger.begin(f"{number}", "1", "")
        ledger.settle(f"{number}", "1", Ack(request_id="1", ok=False), 5_000)
    for number in range(100, 200):
        ledger.begin(f"{number}", "1", "")
        ledger.abandon(f"{number}", "1")
    assert len(ledger._senders) <= 2
    assert ledger.look("99", "1", "") == Repeat(answer=Ack(request_id="1", ok=False))


RICH = {name: value for name, value in TEXT.items() if name != "text"}


@pytest.mark.parametrize("policy", [OWN, COMPATIBLE])
@pytest.mark.parametrize(
    ("method", "body", "words"),
    [
        ("sendMessage", TEXT | {"entities": [{"type": "bold"}] * 20_001}, "20000 values"),
        (
            "sendRichMessage",
            RICH | {"rich_message": {"blocks": [{"type": "paragraph", "text": ["a"] * 20_001}]}},
            "values",
        ),
        ("sendMessage", TEXT | {"x" * (1 << 21): 1}, "1048576 characters"),
        ("sendMessage", TEXT | {"text": "x" * (1 << 21)}, "1048576 characters"),
    ],
    ids=["entities", "nested", "name", "text"],
)
def test_a_call_is_no_larger_than_any_that_telegram_takes(
    policy: Policy, method: str, body: dict[str, Any], words: str
) -> None:
    """To look into 16 MB took 20 s, in which a leader counts as frozen and is ended."""
    verdict = judge(policy, "call", (method, body), caller())
    assert isinstance(verdict, Denied)
    assert words in verdict.rule


@pytest.mark.parametrize("begin", ["=", "](", "]: ", "](<"])
def test_white_space_in_markup_takes_no_time_by_its_square(begin: str) -> None:
    """50 KB of it took 52 s; so much would take an hour."""
    for markup in (f"{begin}{' ' * 500_000}", begin * 200_000):
        assert not names_file(markup)
    assert names_file(f"{begin}{' ' * 500_000}file:///x")
    assert names_file("<img src = \n'\tFILE:///x'>")
    assert names_file("[x]( < file:///x>)")


def test_a_long_name_of_a_field_is_compared_with_no_other() -> None:
    verdict = judge(OWN, "call", ("sendMessage", TEXT | {"x" * 1_000_000: 1}), caller())
    assert isinstance(verdict, Denied)
    assert verdict.field == "(odd name)"
