"""The scopes of our own policy: what a follower may reach, in every field of its calls (protocol section 9)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from telegram_bus.core.buttons import LEADERS, kept_place
from telegram_bus.core.scopes import Body, Caller, Problem, chat_of, cross_target, same_chat, thread_of, wire_id
from telegram_bus.core.scopes import sent_message as own_message
from telegram_bus.core.values import Number, Target

__all__ = ["Look", "neighbour", "offers", "own_callback", "own_copy", "own_message", "own_reaction", "own_thread"]

_FORBIDDEN: Final[Mapping[str, str]] = {
    "allow_paid_broadcast": "is not for followers: it spends the owner's Stars",
    "business_connection_id": "is not for followers: it acts for another account",
    "direct_messages_topic_id": "is not for followers: message_thread_id names the threads of this bot",
    "ephemeral_message_id": "is not for followers: nobody knows whose message it is",
    "ephemeral_message_parameters": "is not for followers: it reaches a person outside of the thread",
    "inline_message_id": "is not for followers: nobody knows whose message it is",
    "login_url": "is not for followers: it tells a site who the person is, in the name of the bot (a url asks first)",
    "pay": "is not for followers: they take no payments",
    "request_chat": "is not for followers: it brings the bot into other chats",
    "request_managed_bot": "is not for followers: it makes other bots",
    "suggested_post_parameters": "is not for followers: they take no payments",
    "web_app": "is not for followers: it tells a page who the person is, in the name of the bot (a url asks first)",
}
"""Fields that reach beyond the caller's thread, or speak for the bot as a whole."""

_CHATS: Final = frozenset({"chat_id", "from_chat_id", "sender_chat_id"})
# Patterns are compiled when they are first needed: a follower imports this module, and judges nothing.
_COMMAND: Final = r"/?[a-z0-9_]{1,32}"
_SCOPES: Final = frozenset({"default", "chat", "all_private_chats", "all_group_chats"})
MOST_COMMANDS: Final = 100
LONGEST_ADDRESS: Final = 2_048
_FILE_ID: Final = r"[A-Za-z0-9_-]{1,512}"
_ADDRESS: Final = (
    r"https?://(?P<host>[a-z0-9_\u00a1-\uffff.-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?(?:[/?#][!-~\u00a1-\uffff]*)?"
)
_INSIDE: Final = (".localhost", ".local", ".internal", ".lan", ".home.arpa")
_FILE_LINK: Final = r"""(?i)(?:=\s*(?:["']\s*)?|\]\(\s*(?:<\s*)?|\]:\s*(?:<\s*)?)file:"""
"""An attribute of HTML, or a link of Markdown, that names a file. White space matches in one way only: in two, 50 KB of
it took a minute."""


def own_thread(body: Body, caller: Caller) -> Problem | None:
    """Exactly the caller's destination: no thread where it has none."""
    if problem := same_chat(body, caller):
        return problem
    own, named = thread_of(caller), body.get("message_thread_id")
    if own is None and named is not None:
        return Problem("message_thread_id", "must be absent: this follower has no thread")
    if own is not None and wire_id(named) != own:
        return Problem("message_thread_id", f"must be {own}")
    return None


def own_reaction(body: Body, caller: Caller) -> Problem | None:
    """A message in the caller's thread, whoever wrote it."""
    return same_chat(body, caller) or _seen("message_id", body.get("message_id"), caller)


def own_copy(body: Body, caller: Caller) -> Problem | None:
    """From the caller's thread into the caller's thread: a copy of anything else would show it what it may not see."""
    if problem := own_thread(body, caller):
        return problem
    if wire_id(body.get("from_chat_id")) != chat_of(caller):
        return Problem("from_chat_id", f"must be {chat_of(caller)}")
    return _seen("message_id", body.get("message_id"), caller)


def own_callback(body: Body, caller: Caller) -> Problem | None:
    """A query that was delivered to the caller."""
    query = body.get("callback_query_id")
    if type(query) is str and caller.owned.callback(query):
        return None
    return Problem("callback_query_id", "must be that of a callback which was delivered to this follower")


def neighbour(body: Body, caller: Caller) -> Problem | None:
    """The place of another live agent of the same chat: its thread, or the main chat where some share that."""
    if body.get("message_thread_id") is None and thread_of(caller) is not None:
        problem = same_chat(body, caller)
        if problem is None and not caller.is_agent(Target(chat_id=chat_of(caller))):
            problem = Problem("message_thread_id", "must be that of another agent")
        return problem
    if problem := cross_target(body, caller):
        return problem
    named = wire_id(body.get("message_thread_id"))
    if named is None or not caller.is_agent(Target(chat_id=chat_of(caller), thread_id=named)):
        return Problem("message_thread_id", "must be that of another agent")
    return None


def offers(body: Body, caller: Caller) -> Problem | None:
    """Commands for the menu of the caller's chat, which all followers share: each offers its own."""
    if caller.target is None:
        return same_chat(body, caller)
    if body.get("language_code"):
        return Problem("language_code", "must be absent: there is one menu for all languages")
    listed, scope = body.get("commands"), body.get("scope")
    if type(listed) is list and len(listed) > MOST_COMMANDS:
        return Problem("commands", f"must be {MOST_COMMANDS} at most")
    if isinstance(scope, dict) and scope.get("type") not in _SCOPES:
        return Problem("scope.type", "must be chat, or absent: the menu is that of this chat")
    return None


class Look:
    """What our own policy says to each field of a call (`methods.check` shows them to `visit`).

    `attached` are the names of the files that came with the call; `used` are those that it refers to.
    """

    __slots__ = ("_attached", "_caller", "used")

    def __init__(self, caller: Caller, attached: Iterable[str] = ()) -> None:
        self._caller, self._attached = caller, frozenset(attached)
        self.used: set[str] = set()

    def visit(self, owner: str, name: str, kind: str, value: Any) -> str | None:
        """The rule that the field breaks, or None."""
        if (rule := _FORBIDDEN.get(name)) is not None and value is not False:
            return rule
        if name in _CHATS and wire_id(value) != chat_of(self._caller):
            return f"must be {chat_of(self._caller)}"
        if owner == "ReplyParameters" and name == "message_id":
            problem = _seen(name, value, self._caller)
            return None if problem is None else problem.rule
        if owner == "BotCommand":
            return _command(name, value)
        if type(value) is not str:
            return None
        if owner == "InputRichMessage" and name in ("html", "markdown") and names_file(value):
            return "must not name files of the server's disk"
        if name == "callback_data" and value.startswith(LEADERS) and kept_place(value) is None:
            return f"must not begin with {LEADERS}: such buttons are the bus's own"
        return self._file(value) if kind == "file" else None

    def _file(self, value: str) -> str | None:
        if value.startswith("attach://"):
            name = value.removeprefix("attach://")
            self.used.add(name)
            return None if name in self._attached else "names an attachment, and none of that name came with the call"
        if re.fullmatch(_FILE_ID, value):
            known = self._caller.owned.file(value)
            return None if known else "must be the id of a file which this follower was sent, or has sent"
        return address_rule(value)


def names_file(markup: str) -> bool:
    """Whether HTML or Markdown has a link to a file of the server's disk; both may hide letters as `&#102;`."""
    if re.search(_FILE_LINK, markup):
        return True
    if "&" not in markup:
        return False
    from html import unescape  # noqa: PLC0415 - for few

    return re.search(_FILE_LINK, unescape(markup)) is not None


def address_rule(value: str) -> str | None:
    """Why Telegram shall not be asked to fetch this address, None where it may."""
    found = re.fullmatch(_ADDRESS, value.casefold()) if len(value) <= LONGEST_ADDRESS else None
    if found is None:
        return "must be a file id, an https:// address or an attachment, not a path"
    host = found["host"].rstrip(".")
    literal = host.strip("[]")
    if host.startswith("[") or host.rpartition(".")[2][:1].isdecimal():
        import ipaddress  # noqa: PLC0415 - 3 ms, and rarely needed

        try:
            reachable = ipaddress.ip_address(literal).is_global
        except ValueError:
            reachable = False
    else:
        reachable = "." in host and not host.endswith(_INSIDE)
    return None if reachable else "must be an address on the internet, where Telegram can fetch it"


def _command(name: str, value: Any) -> str | None:
    if name == "command" and not (type(value) is str and re.fullmatch(_COMMAND, value)):
        return "must be 1 to 32 of a-z, 0-9 and _"
    if name == "description" and not (type(value) is str and 1 <= len(value.strip()) <= 256):
        return "must be a text of 1 to 256 characters"
    return None


def _seen(path: str, message_id: Any, caller: Caller) -> Problem | None:
    named: Number | None = wire_id(message_id)
    if named is not None and caller.owned.seen(chat_of(caller), named):
        return None
    return Problem(path, "must be that of a message in this follower's thread")
