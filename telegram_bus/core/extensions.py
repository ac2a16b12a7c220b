"""The envelope kinds that this project adds (`x.<noun>.<verb>`), for peers that announce `telegram-bus-ext-v1`."""

from __future__ import annotations

from typing import Any, ClassVar

from attrs import frozen

from telegram_bus.core.envelopes import Envelope, FollowerRequest
from telegram_bus.core.urgency import Hint

__all__ = [
    "ActivitySet",
    "AgentTell",
    "ButtonsKeep",
    "Carrying",
    "Extension",
    "FileExpect",
    "FileGet",
    "FilePart",
    "FileSend",
    "HandedPart",
    "MembersList",
    "OperatorPurge",
    "OperatorRequest",
    "OperatorStop",
    "OperatorThreads",
    "OwnRequest",
    "QuestionWait",
    "SendQueue",
    "StatusGet",
    "TypingHold",
    "UpdateHand",
    "UpdatesDrop",
    "UpdatesList",
    "UpdatesRetry",
]


@frozen(kw_only=True)
class Extension(Envelope):
    """A request in nobody's name: it carries neither instance nor generation."""


@frozen(kw_only=True)
class MembersList(Extension):
    """Asks for the live members, at once or (both fields given) when their revision has passed `after_revision`.

    `wait_ms` is the longest time to wait for that, in milliseconds; the leader waits 25 s at most.
    """

    KIND: ClassVar[str] = "x.members.list"

    after_revision: int | None = None
    wait_ms: int | None = None


@frozen(kw_only=True)
class StatusGet(Extension):
    """Asks for the leader's state."""

    KIND: ClassVar[str] = "x.status.get"


@frozen(kw_only=True)
class OperatorRequest(Extension):
    """A request of whoever looks after the bus: its `auth` is the operator's secret."""


@frozen(kw_only=True)
class OperatorStop(OperatorRequest):
    """Asks the leader to end in order."""

    KIND: ClassVar[str] = "x.operator.stop"


@frozen(kw_only=True)
class UpdatesList(OperatorRequest):
    """Asks for the updates that wait and for those that were set aside, `limit` of each (100, and 1,000 at most)."""

    KIND: ClassVar[str] = "x.operator.updates.list"

    limit: int | None = None


@frozen(kw_only=True)
class UpdatesRetry(OperatorRequest):
    """Has updates delivered that were set aside; `ids` are the leader's own numbers, as in the list."""

    KIND: ClassVar[str] = "x.operator.updates.retry"

    ids: tuple[int, ...]


@frozen(kw_only=True)
class UpdatesDrop(OperatorRequest):
    """Lets go of updates that wait or were set aside."""

    KIND: ClassVar[str] = "x.operator.updates.drop"

    ids: tuple[int, ...]


@frozen(kw_only=True)
class OperatorPurge(OperatorRequest):
    """Has what is out of date deleted now; `settled`: and the bodies of all updates that were dealt with."""

    KIND: ClassVar[str] = "x.operator.purge"

    settled: bool | None = None


@frozen(kw_only=True)
class OperatorThreads(OperatorRequest):
    """Shows threads or does something to them: `action` is list, rename, bind, unbind, sync or clean.

    `keys` are those of followers; `name`, `thread_id`, `how` (close or delete) and `dry_run` are for the actions that
    take them.
    """

    KIND: ClassVar[str] = "x.operator.threads"

    action: str
    keys: tuple[str, ...] | None = None
    name: str | None = None
    thread_id: int | None = None
    how: str | None = None
    dry_run: bool | None = None


@frozen(kw_only=True)
class FilePart:
    """An open file that travels beside a request: the field of the call that it fills, and its name for people."""

    field: str
    name: str


@frozen(kw_only=True)
class FileSend(FollowerRequest):
    """The follower wants a call made that uploads files, which come beside it as open descriptors, one a part."""

    KIND: ClassVar[str] = "x.file.send"

    method: str
    params: Any
    files: tuple[FilePart, ...]
    call_id: str | None = None
    urgency: Hint | None = None


@frozen(kw_only=True)
class FileGet(FollowerRequest):
    """The follower wants a file written into the descriptor that comes beside the request.

    With `resume` that was empty when it was first asked for: what is in it is the file's beginning.
    """

    KIND: ClassVar[str] = "x.file.get"

    file_id: str
    resume: bool | None = None


@frozen(kw_only=True)
class FileExpect(Extension):
    """Says that open descriptors will come beside lines of this connection, which are not looked for otherwise."""

    KIND: ClassVar[str] = "x.file.expect"


@frozen(kw_only=True)
class OwnRequest(FollowerRequest):
    """What a registered follower of our own kind asks for beside calls; whoever announces our extensions may."""


@frozen(kw_only=True)
class ButtonsKeep(OwnRequest):
    """Has the leader keep what buttons mean, before the message with them is sent (`buttons.check_content`).

    `message_id` says under which message they stand, once that is known; `bound`: the answer to the question in
    `content` is for this very process only. The same id again gets what was kept first, with the answer.
    """

    KIND: ClassVar[str] = "x.buttons.keep"

    keyboard_id: str
    content: Any
    bound: bool | None = None
    message_id: int | None = None


@frozen(kw_only=True)
class QuestionWait(OwnRequest):
    """Asks for the answers to these questions, for `wait_ms` at most, and lets go of those that are `withdrawn`."""

    KIND: ClassVar[str] = "x.question.wait"

    questions: tuple[str, ...]
    wait_ms: int | None = None
    withdrawn: tuple[str, ...] | None = None


@frozen(kw_only=True)
class TypingHold(OwnRequest):
    """Has the leader show that the follower is at work, for `ttl_ms` (0: no more) or until it sends something.

    `lease` names the work: one that ended because something was sent does not begin again.
    """

    KIND: ClassVar[str] = "x.typing.hold"

    lease: str
    ttl_ms: int
    action: str | None = None


@frozen(kw_only=True)
class ActivitySet(OwnRequest):
    """Says what the follower does, for the status: without a text nothing in particular.

    `needs_person`: it cannot go on before a person has done something.
    """

    KIND: ClassVar[str] = "x.activity.set"

    text: str | None = None
    needs_person: bool | None = None


@frozen(kw_only=True)
class AgentTell(OwnRequest):
    """The follower has put a message into the main chat for the agent with the key `to`, which shall get it."""

    KIND: ClassVar[str] = "x.agent.tell"

    to: str
    message_id: int
    text: str


@frozen(kw_only=True)
class HandedPart:
    """One Telegram object of work that changes hands; `kind` is the name under which an update carries it."""

    kind: str
    body: Any


@frozen(kw_only=True)
class UpdateHand(OwnRequest):
    """The follower gives work that it has not done to another one, `to` its name or key; `note` is for that one.

    `token` (an integer below 2**42) is made once for this: the same again does nothing and is answered as before.
    """

    KIND: ClassVar[str] = "x.update.hand"

    to: str
    token: int
    parts: tuple[HandedPart, ...]
    note: str | None = None


Carrying = FileSend | FileGet
"""Requests beside which open descriptors travel."""


@frozen(kw_only=True)
class SendQueue(OwnRequest):
    """Asks what of the follower's calls waits to be sent."""

    KIND: ClassVar[str] = "x.send.queue"
