"""What a follower may call (protocol section 9): the compatible policy and, stricter, our own, as tables."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Final, Literal, cast

from attrs import frozen

from telegram_bus.core.scopes import (
    AGGREGATE,
    CROSS_TARGET,
    Caller,
    Owned,
    Problem,
    Scope,
    aggregate,
    always,
    commands,
    cross_target,
    local_file,
    same_chat,
    sent_message,
    thread,
    wire_id,
)
from telegram_bus.core.strict import (
    Look,
    names_file,
    neighbour,
    offers,
    own_callback,
    own_copy,
    own_message,
    own_reaction,
    own_thread,
)
from telegram_bus.core.values import Number

__all__ = [
    "COMPATIBLE",
    "OWN",
    "Allowed",
    "Caller",
    "Denied",
    "Owned",
    "Policy",
    "judge",
    "judge_files",
    "repeatable",
    "sent_by",
    "too_much",
]

MOST_VALUES: Final = 20_000
"""In one call, nested ones counted: Telegram's longest messages have some hundred blocks, or a hundred entities."""

MOST_CHARACTERS: Final = 1 << 20
"""In one call: Telegram takes some ten thousand, and files travel beside it."""

BusMethod = Literal["call", "callMultipart", "downloadFile"]


@frozen(kw_only=True)
class Allowed:
    """The call may go out as it stands here, without markers; `args` as in protocol section 9."""

    method: BusMethod
    args: tuple[Any, ...]
    urgency: str | None = None
    """What its follower says of it (`core.urgency.HINTS`)."""
    patient: bool = False
    """Whether its follower waits for its turn however long that takes."""

    @property
    def api_method(self) -> str:
        """The Bot API method (for `downloadFile`: `getFile`, which begins it)."""
        return "getFile" if self.method == "downloadFile" else cast(str, self.args[0])

    @property
    def body(self) -> dict[str, Any]:
        """The parameters of the Bot API method (a file comes on top in `callMultipart`)."""
        if self.method == "downloadFile":
            return {"file_id": self.args[0]}
        return self.args[1] if len(self.args) > 1 and isinstance(self.args[1], dict) else {}


@frozen(kw_only=True)
class Denied:
    """The call is refused: the method, the path of the field (None: it is the method itself), the rule it breaks.

    Nothing of the call's content is in them, so that they may stand in a log.
    """

    method: str
    field: str | None
    rule: str

    @property
    def reason(self) -> str:
        """All of it as a sentence for people."""
        return f"{self.method}: {self.rule}" if self.field is None else f"{self.method}: {self.field} {self.rule}"


@frozen(kw_only=True)
class Policy:
    """Tables method → scope: for calls, for marked `sendMessage` and `sendRichMessage`, for uploads, for files.

    `strict` holds what only our own followers are held to: who may download a file, where an upload may lie.
    """

    calls: Mapping[str, Scope]
    marked: Mapping[tuple[str, str], Scope]
    uploads: Mapping[str, Scope]
    strict: bool


COMPATIBLE: Final = Policy(
    calls={
        "getMe": always,
        "answerCallbackQuery": always,
        "answerGuestQuery": always,
        "setMyCommands": commands,
        "sendChatAction": same_chat,
        **dict.fromkeys(
            (
                "sendMessage",
                "sendMessageDraft",
                "sendRichMessage",
                "sendRichMessageDraft",
                "closeForumTopic",
                "deleteForumTopic",
                "editForumTopic",
            ),
            thread,
        ),
        **dict.fromkeys(("editMessageText", "editMessageReplyMarkup", "deleteMessage"), sent_message),
    },
    marked={
        ("sendMessage", CROSS_TARGET): cross_target,
        ("sendRichMessage", CROSS_TARGET): cross_target,
        ("sendMessage", AGGREGATE): aggregate,
    },
    uploads=dict.fromkeys(
        ("sendAudio", "sendDocument", "sendMediaGroup", "sendPhoto", "sendRichMessage", "sendVoice"), thread
    ),
    strict=False,
)
"""The table of protocol section 9, for peers without our extensions."""

_SENDS: Final = (
    "sendAnimation",
    "sendAudio",
    "sendChatAction",
    "sendDocument",
    "sendLocation",
    "sendMediaGroup",
    "sendMessage",
    "sendMessageDraft",
    "sendPhoto",
    "sendRichMessage",
    "sendRichMessageDraft",
    "sendVideo",
    "sendVoice",
)

OWN: Final = Policy(
    calls={
        "getMe": always,
        "answerCallbackQuery": own_callback,
        **dict.fromkeys(("setMyCommands", "deleteMyCommands", "getMyCommands"), offers),
        **dict.fromkeys(_SENDS, own_thread),
        **dict.fromkeys(("closeForumTopic", "deleteForumTopic", "editForumTopic"), own_thread),
        **dict.fromkeys(
            (
                "editMessageText",
                "editMessageReplyMarkup",
                "editMessageCaption",
                "editMessageMedia",
                "deleteMessage",
            ),
            own_message,
        ),
        "setMessageReaction": own_reaction,
        "copyMessage": own_copy,
    },
    marked={
        ("sendMessage", CROSS_TARGET): neighbour,
        ("sendRichMessage", CROSS_TARGET): neighbour,
    },
    uploads=dict.fromkeys(
        (
            "sendAnimation",
            "sendAudio",
            "sendDocument",
            "sendMediaGroup",
            "sendPhoto",
            "sendRichMessage",
            "sendVideo",
            "sendVoice",
        ),
        own_thread,
    )
    | {"editMessageMedia": own_message},
    strict=True,
)
"""For our own followers: fields are held to `core/methods`, commands are offers for one menu, no main chat.

`answerGuestQuery` is not in it: guest queries are delivered to nobody.
"""

_REPEATABLE: Final = frozenset({"sendchataction", "sendmessagedraft", "sendrichmessagedraft"})
_REPEATABLE_VERBS: Final = ("get", "edit", "delete", "set", "answer", "close", "reopen", "download")

_RECORDED: Final = frozenset(
    {"sendMessage", "sendRichMessage", "sendPhoto", "sendDocument", "sendVoice", "sendMediaGroup"}
)


def judge(policy: Policy, method: str, args: tuple[Any, ...], caller: Caller) -> Allowed | Denied:
    """Whether the caller may make this call, and the call as it goes out."""
    match method:
        case "call":
            return _judge_call(policy, args, caller)
        case "callMultipart":
            return _judge_upload(policy, args, caller)
        case "downloadFile":
            return _judge_download(policy, args, caller)
        case _:
            return Denied(method=_shown(method), field=None, rule="method must be call, callMultipart or downloadFile")


def judge_files(policy: Policy, args: tuple[Any, ...], fields: Sequence[str], caller: Caller) -> Allowed | Denied:
    """Whether the caller may make this call with open files in these fields; `args` are its method and parameters."""
    api_method, body = _parts(args)
    scope = policy.uploads.get(api_method)
    if scope is None and api_method in policy.calls:
        return Denied(method=api_method, field=None, rule="takes no files")
    if scope is None:
        return _unknown(args, policy.uploads)
    if len(set(fields)) != len(fields):
        return Denied(method=api_method, field=None, rule="each file needs a field of its own")
    if problem := too_much(body) or scope(body, caller) or _described(api_method, body, caller, fields):
        return _denied(api_method, problem)
    return Allowed(method="call", args=(api_method, body))


def repeatable(api_method: str) -> bool:
    """Whether a Bot API call may be made twice; what is not known to bear it may not (send, copy, forward, create)."""
    name = api_method.lower()
    return name in _REPEATABLE or name.startswith(_REPEATABLE_VERBS)


def sent_by(call: Allowed, result: Any, *, every_method: bool = False) -> tuple[tuple[Number, Number], ...]:
    """The (chat id, message id) pairs that the call sent, from its result: one message or a list.

    Only the methods that the protocol names count, unless `every_method` (our own followers) is set. A message that
    says no chat is in the chat that the call named.
    """
    sends = call.method != "downloadFile" and (every_method or call.api_method in _RECORDED)
    named = wire_id(call.body.get("chat_id"))
    found: list[tuple[Number, Number]] = []
    for message in (result if isinstance(result, list) else [result]) if sends else []:
        message_id = message.get("message_id") if isinstance(message, dict) else None
        if type(message_id) is int:
            chat = message.get("chat")
            chat_id = wire_id(chat.get("id")) if isinstance(chat, dict) else None
            if (where := named if chat_id is None else chat_id) is not None:
                found.append((where, message_id))
    return tuple(found)


def _judge_call(policy: Policy, args: tuple[Any, ...], caller: Caller) -> Allowed | Denied:
    api_method, body = _parts(args)
    scope = policy.calls.get(api_method)
    if scope is None:
        return _unknown(args, policy.calls)
    given = args[1] if len(args) > 1 and isinstance(args[1], dict) else {}
    for marker in (CROSS_TARGET, AGGREGATE) if body is not given else ():
        if given.get(marker) is True and (marked := policy.marked.get((api_method, marker))) is not None:
            scope = marked
            break
    problem = too_much(body) or scope(body, caller)
    if problem is None:
        problem = _described(api_method, body, caller) if policy.strict else _on_disk(body)
    if problem is not None:
        return _denied(api_method, problem)
    return Allowed(method="call", args=(api_method, body) if policy.strict else _cleaned(args))


def _judge_upload(policy: Policy, args: tuple[Any, ...], caller: Caller) -> Allowed | Denied:
    api_method, body = _parts(args)
    scope = policy.uploads.get(api_method)
    if scope is None:
        return _unknown(args, policy.uploads)
    problem = too_much(body) or scope(body, caller)
    if problem is None and policy.strict:
        fields = [name for name in args[2:3] if type(name) is str]
        problem = _described(api_method, body, caller, fields) or _misplaced_upload(args, caller.upload_root)
    return Allowed(method="callMultipart", args=_cleaned(args)) if problem is None else _denied(api_method, problem)


def _judge_download(policy: Policy, args: tuple[Any, ...], caller: Caller) -> Allowed | Denied:
    file_id = args[0] if args else None
    if policy.strict and not (type(file_id) is str and caller.owned.file(file_id)):
        return Denied(method="downloadFile", field="file_id", rule="must be that of a file of this follower's")
    return Allowed(method="downloadFile", args=args)


def too_much(body: dict[str, Any]) -> Problem | None:
    """Whether a call is larger than any that Telegram takes: to look into all of it would hold up everybody else."""
    values = characters = 0
    waiting: list[Any] = [body]
    while waiting:
        one = waiting.pop()
        values += len(one)
        if values > MOST_VALUES:
            return Problem("parameters", f"must have {MOST_VALUES} values at most, nested ones counted")
        if isinstance(one, dict):
            characters += sum(map(len, one))
            one = one.values()
        for inner in one:
            if isinstance(inner, str):
                characters += len(inner)
            elif isinstance(inner, dict | list):
                waiting.append(inner)
        if characters > MOST_CHARACTERS:
            return Problem("parameters", f"must have {MOST_CHARACTERS} characters at most")
    return None


def _on_disk(body: dict[str, Any]) -> Problem | None:
    """Whether a call names a file of the disk of a Bot API server, which may be the owner's own and on this machine."""
    rule = "must be a file id, an address or an attachment, not a path"
    if (path := local_file(body)) is not None:
        return Problem(path if re.fullmatch("[A-Za-z0-9_.]{1,200}", path) else "(odd name)", rule)
    rich = body.get("rich_message")
    if isinstance(rich, dict):
        for name in ("html", "markdown"):
            if isinstance(rich.get(name), str) and names_file(rich[name]):
                return Problem(f"rich_message.{name}", "must not name files of the server's disk")
    return None


def _described(api_method: str, body: dict[str, Any], caller: Caller, files: Sequence[str] = ()) -> Problem | None:
    """What is wrong with the fields of a call, nested ones too, by the description of its method."""
    methods = _methods()
    direct = methods.file_fields(api_method) if files else ()
    for name in files:
        if name in body or (name not in direct and not methods.may_attach(api_method, name)):
            return Problem(methods.shown(name), "takes no file here")
    look = Look(caller, files)
    problem: Problem | None = methods.check(api_method, body, look.visit, files)
    if problem is not None:
        return problem
    idle = next((name for name in files if not (name in direct or name in look.used)), None)
    return None if idle is None else Problem(idle, "is a file that nothing in the call refers to")


@functools.cache
def _methods() -> ModuleType:
    from telegram_bus.core import methods  # noqa: PLC0415 - a follower, which asks what is repeatable, needs none

    return methods


def _parts(args: tuple[Any, ...]) -> tuple[str, dict[str, Any]]:
    """The Bot API method ("" where none is named) and its parameters, without markers."""
    api_method = args[0] if args and type(args[0]) is str else ""
    return api_method, _unmarked(args[1]) if len(args) > 1 and isinstance(args[1], dict) else {}


def _denied(api_method: str, problem: Problem) -> Denied:
    return Denied(method=api_method, field=problem.field, rule=problem.rule)


def _unknown(args: tuple[Any, ...], table: Mapping[str, Scope]) -> Denied:
    named = args[0] if args and type(args[0]) is str else None
    if named is None:
        return Denied(method="(no method)", field=None, rule="is not for followers")
    from telegram_bus.core.instead import hint  # noqa: PLC0415 - for refusals only

    return Denied(method=_shown(named), field=None, rule="is not for followers" + hint(named[:64], table))


def _shown(method: str) -> str:
    return method if re.fullmatch("[A-Za-z0-9]{1,64}", method) else "(odd name)"


def _misplaced_upload(args: tuple[Any, ...], root: str | None) -> Problem | None:
    """Whether an upload is anything but a file below the caller's own directory (the shell looks for links)."""
    path = args[3] if len(args) > 3 else None
    if root is None:
        return Problem("path", "is not taken: files go as open descriptors beside x.file.send")
    if type(path) is not str or not path.startswith(root.rstrip("/") + "/") or ".." in path.split("/"):
        return Problem("path", f"must be that of a file in {root}")
    return None


def _unmarked(body: dict[str, Any]) -> dict[str, Any]:
    if CROSS_TARGET not in body and AGGREGATE not in body:
        return body
    return {name: value for name, value in body.items() if name not in (CROSS_TARGET, AGGREGATE)}


def _cleaned(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments without markers, untouched where there are none."""
    if len(args) > 1 and isinstance(args[1], dict) and (CROSS_TARGET in args[1] or AGGREGATE in args[1]):
        return (args[0], _unmarked(args[1]), *args[2:])
    return args
