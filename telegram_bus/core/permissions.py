"""What a follower may call (protocol section 9): the compatible policy and, stricter, our own, as tables."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast

from attrs import frozen

from telegram_bus.core.scopes import (
    AGGREGATE,
    CROSS_TARGET,
    FILE_FIELDS,
    Caller,
    Owned,
    Scope,
    aggregate,
    always,
    commands,
    cross_target,
    neighbour,
    own_callback,
    own_copy,
    own_message,
    own_reaction,
    own_thread,
    same_chat,
    sent_message,
    thread,
    wire_id,
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
]

BusMethod = Literal["call", "callMultipart", "downloadFile"]


@frozen(kw_only=True)
class Allowed:
    """The call may go out as it stands here, without markers; `args` as in protocol section 9."""

    method: BusMethod
    args: tuple[Any, ...]

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
    """The call is refused; the reason names the method, and the field where one is wrong."""

    reason: str


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
        "answerGuestQuery": own_callback,
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
    ),
    strict=True,
)
"""For our own followers. Commands are the leader's (all agents of a chat share them), and so is the main chat."""

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
            return Denied(reason=f"method must be call, callMultipart or downloadFile, not {method[:64]!r}")


def judge_files(policy: Policy, args: tuple[Any, ...], fields: Sequence[str], caller: Caller) -> Allowed | Denied:
    """Whether the caller may make this call with open files in these fields; `args` are its method and parameters."""
    verdict = _judge_upload(policy, (*args, None), caller, by_path=False)
    if isinstance(verdict, Denied):
        return verdict
    if len(set(fields)) != len(fields):
        return Denied(reason=f"{args[0]}: each file needs a field of its own")
    for name in fields:
        if name in verdict.body or not (name in FILE_FIELDS or re.fullmatch("file[0-9]", name)):
            return Denied(reason=f"{args[0]}: {name} takes no file here")
    return Allowed(method="call", args=(args[0], _unmarked(verdict.body)))


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
    api_method = args[0] if args else None
    body = args[1] if len(args) > 1 and isinstance(args[1], dict) else {}
    scope = policy.calls.get(api_method) if type(api_method) is str else None
    if scope is None:
        return _unknown(api_method)
    for marker in (CROSS_TARGET, AGGREGATE):
        if body.get(marker) is True and (marked := policy.marked.get((str(api_method), marker))) is not None:
            scope = marked
            break
    if reason := scope(_unmarked(body), caller):
        return Denied(reason=f"{api_method}: {reason}")
    if policy.strict:
        return Allowed(method="call", args=(api_method, _unmarked(body)))
    return Allowed(method="call", args=_cleaned(args))


def _judge_upload(policy: Policy, args: tuple[Any, ...], caller: Caller, *, by_path: bool = True) -> Allowed | Denied:
    api_method = args[0] if args else None
    body = args[1] if len(args) > 1 and isinstance(args[1], dict) else {}
    scope = policy.uploads.get(api_method) if type(api_method) is str else None
    if scope is None:
        return _unknown(api_method)
    if reason := scope(_unmarked(body), caller):
        return Denied(reason=f"{api_method}: {reason}")
    if by_path and policy.strict and (reason := _misplaced_upload(args, caller.upload_root)):
        return Denied(reason=f"{api_method}: {reason}")
    return Allowed(method="callMultipart", args=_cleaned(args))


def _judge_download(policy: Policy, args: tuple[Any, ...], caller: Caller) -> Allowed | Denied:
    file_id = args[0] if args else None
    if policy.strict and not (type(file_id) is str and caller.owned.file(file_id)):
        return Denied(reason="downloadFile: the file id must be that of a file which was sent to this follower")
    return Allowed(method="downloadFile", args=args)


def _unknown(api_method: Any) -> Denied:
    shown = repr(api_method)[:64] if type(api_method) is str else "(no method)"
    return Denied(reason=f"followers may not call {shown}")


def _misplaced_upload(args: tuple[Any, ...], root: str | None) -> str | None:
    """Whether an upload is anything but a file below the caller's own directory (the shell looks for links)."""
    path = args[3] if len(args) > 3 else None
    if root is None:
        return "files go as open descriptors beside x.file.send, not by their paths"
    if type(path) is not str or not path.startswith(root.rstrip("/") + "/") or ".." in path.split("/"):
        return f"path must be that of a file in {root}"
    return None


def _unmarked(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in (CROSS_TARGET, AGGREGATE)}


def _cleaned(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments without markers, untouched where there are none."""
    if len(args) > 1 and isinstance(args[1], dict) and (CROSS_TARGET in args[1] or AGGREGATE in args[1]):
        return (args[0], _unmarked(args[1]), *args[2:])
    return args
