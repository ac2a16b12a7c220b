"""Every request and answer of other people's suites and bots is as the Bot API's documentation has it."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from tests.clients import peers
from tests.clients.cafe import PROGRAMS
from tests.clients.conftest import Conversations, Run
from tests.clients.schema import Oracle, read_oracle
from tests.clients.traffic import Call, Traffic

USER = {"id": 5, "is_bot": False, "first_name": "Olivia"}
MESSAGE = {"message_id": 2, "date": 1, "chat": {"id": 5, "type": "private"}, "from": USER, "text": "hi"}
# What clients send that is not documented, and why; of what the sandbox answers nothing is excused.
ODDITIES = {
    "ptb": {
        "sendPoll.parse_mode: no such parameter": "its defaults are added to everything that has texts",
        "setMyDefaultAdministratorRights.rights.*: missing in ChatAdministratorRights": "22.8 knows Bot API 10.1 only",
    },
    "telebot": {
        "createChatInviteLink.expire_date: * is no Integer": "its test gives a time with fractions of a second",
    },
    "telegraf_bot.mjs": {
        "*.hide: InlineKeyboardButton has no such field": "its own bookkeeping",
        "send*.method: no such parameter": "it names the method again in multipart bodies",
    },
}


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    return read_oracle(peers.aiogram_schema())


def test_the_live_tests_of_python_telegram_bot_are_as_documented(oracle: Oracle, ptb: Run) -> None:
    assert_as_documented(oracle, "ptb", ptb.traffic)


def test_the_live_tests_of_pytelegrambotapi_are_as_documented(oracle: Oracle, telebot: Run) -> None:
    assert_as_documented(oracle, "telebot", telebot.traffic)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_conversation_is_as_documented(oracle: Oracle, conversations: Conversations, program: str) -> None:
    assert_as_documented(oracle, program, conversations.traffic(program))


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        (Call("sendMessage", {"chat_id": 5, "text": "hi"}, ok=True, result=MESSAGE), []),
        (Call("sendMessage", {"chat_id": 5, "text": "hi"}, ok=True, result=MESSAGE | {"date": "1"}),
         ['result of sendMessage.date: "1" is no Integer']),
        (Call("sendMessage", {"chat_id": 5, "text": "hi"}, ok=True, result=MESSAGE | {"from": USER | {"hat": 1}}),
         ["result of sendMessage.from.hat: User has no such field"]),
        (Call("sendMessage", {"chat_id": 5, "hat": 1}, ok=True, result=MESSAGE),
         ["sendMessage.hat: no such parameter", "sendMessage.text: missing"]),
        (Call("getChatMember", {"chat_id": 5, "user_id": 5}, ok=True, result={"status": "left"}),
         ["result of getChatMember.user: missing in ChatMemberLeft"]),
        (Call("sendDocument", {"chat_id": 5, "document": "attach://a", "a": {"file_name": "a", "size": 1}}, ok=True,
              result=MESSAGE), []),
        (Call("sendHat", {}, ok=True, result=True), ["sendHat: carried out, though not documented"]),
    ],
)  # fmt: skip
def test_the_oracle_sees_what_is_not_documented(oracle: Oracle, call: Call, wrong: list[str]) -> None:
    assert oracle.in_call(call) == wrong


def test_every_documented_method_has_a_documented_result(oracle: Oracle) -> None:
    assert [method for method, kinds in oracle.results.items() if not kinds] == []


def assert_as_documented(oracle: Oracle, client: str, traffic: Traffic) -> None:
    assert len(traffic.calls) > 10
    excused = ODDITIES.get(client, {})
    differences = oracle.differences(traffic)
    wrong = [line for line in differences if not any(_is_excused(line, pattern) for pattern in excused)]
    if wrong:
        pytest.fail(f"{len(wrong)} differences:\n" + "\n".join(wrong[:25]), pytrace=False)
    idle = [pattern for pattern in excused if not any(_is_excused(line, pattern) for line in differences)]
    assert idle == [], "no longer needed"


def _is_excused(difference: str, pattern: str) -> bool:
    return not difference.startswith(("result of", "update")) and fnmatchcase(difference, pattern)
