"""Every fault that this package raises on purpose; each message says what happened, to what, and the next step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = [
    "AnswerLost",
    "ApiError",
    "BusError",
    "CommitUnknown",
    "Expired",
    "InvalidEnvelope",
    "LeadershipLost",
    "LineTooLong",
    "NoLeader",
    "NotSent",
    "RequestRefused",
    "SettingsError",
    "StateError",
    "single_fault",
]


class BusError(Exception):
    """The base of all faults below."""


class SettingsError(BusError):
    """A setting, option or file of settings is missing or wrong (exit code 2)."""


class StateError(BusError):
    """A file or directory of ours is not as we left it: foreign, damaged, too new (exit code 1)."""


class InvalidEnvelope(BusError):
    """A line is not a valid envelope; the message names the field."""


class LineTooLong(BusError):
    """A peer sent more than a line may hold."""


class NotSent(BusError):
    """Nothing of the request left this process, so repeating it is safe."""


class AnswerLost(BusError):
    """The request was sent and its answer will not come; repeating it is safe only if the request is."""


class CommitUnknown(AnswerLost):
    """A call that must not be repeated may or may not have been carried out."""


class NoLeader(BusError):
    """There is no leader to ask (exit code 3)."""


class LeadershipLost(BusError):
    """This process is not, or no longer, the leader; nothing was written."""


class RequestRefused(BusError):
    """The peer answered `ok: false` (exit code 4).

    `code` is the protocol's error code or None, `method` the Bot API method where the answer names one.
    """

    def __init__(self, message: str, *, code: str | None = None, method: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.method = method


class Expired(RequestRefused):
    """A question to a person has no answer any more: nobody gave one in time, or it was taken back."""


class ApiError(BusError):
    """Telegram refused a call: `code` is its error_code (an HTTP status), `description` its own text.

    `retry_after` (seconds) and `migrate_to_chat_id` are those of its `parameters`, or None.
    """

    def __init__(
        self,
        method: str,
        code: int,
        description: str,
        *,
        retry_after: float | None = None,
        migrate_to_chat_id: int | None = None,
    ) -> None:
        super().__init__(f"Telegram refused {method}: {description} ({code})")
        self.method = method
        self.code = code
        self.description = description
        self.retry_after = retry_after
        self.migrate_to_chat_id = migrate_to_chat_id


@contextmanager
def single_fault() -> Iterator[None]:
    """Let a group that holds one exception, however deep, leave as that exception.

    Nurseries wrap whatever leaves them in groups; a caller who is promised a StateError shall get one.
    """
    alone: BaseException
    try:
        yield
    except BaseExceptionGroup as group:
        alone = group
        while isinstance(alone, BaseExceptionGroup) and len(alone.exceptions) == 1:
            alone = alone.exceptions[0]
        if isinstance(alone, BaseExceptionGroup):
            raise
    else:
        return
    raise alone from alone.__cause__  # and not from the group, which would be shown before it
