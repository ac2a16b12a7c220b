"""What acks say: how refusals, destinations and members are put into them, and what a refused one means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from telegram_bus.core.envelopes import ABSENT, Ack, AckError, Envelope, ErrorCode, Target
from telegram_bus.core.errors import ApiError, BusError, CommitUnknown, RequestRefused

if TYPE_CHECKING:  # a follower reads answers, and needs neither for it
    from telegram_bus.core.decisions import Refuse
    from telegram_bus.core.registry import Member, Provisioned, Registry

__all__ = ["accepted", "destination", "failed", "fault_of", "members", "refused"]


def accepted(envelope: Envelope, result: Any = ABSENT) -> Ack:
    """The ack of what was done, with what came of it."""
    return Ack(request_id=envelope.request_id, ok=True, result=result)


def refused(envelope: Envelope, refusal: Refuse) -> Ack:
    """The ack of a refusal."""
    error = None if refusal.code is None else AckError(code=refusal.code)
    return Ack(
        request_id=envelope.request_id, ok=False, message=refusal.message, protocol=refusal.protocol, error=error
    )


def failed(envelope: Envelope, fault: BusError, *, method: str | None = None, extended: bool = False) -> Ack:
    """The ack of work that failed; `method` is the Bot API method that it was about.

    A peer with our extensions also gets Telegram's refusal as data, in `result`: {"apiError": {"method", "code",
    "description", "retryAfter"?, "migrateToChatId"?}}; `fault_of` reads it.
    """
    code: ErrorCode | None = None
    result: Any = ABSENT
    match fault:
        case CommitUnknown():
            code = "commit-unknown"
        case RequestRefused() if fault.code in get_args(ErrorCode):
            code = fault.code  # type: ignore[assignment]
            method = fault.method or method
        case ApiError() if extended:
            result = {"apiError": _api_error(fault)}
        case _:
            pass
    error = None if code is None else AckError(code=code, method=method)
    return Ack(request_id=envelope.request_id, ok=False, message=str(fault), error=error, result=result)


def fault_of(ack: Ack) -> BusError:
    """The fault that a refused ack reports: ApiError, CommitUnknown or RequestRefused."""
    message = ack.message or "the leader refused the request"
    if ack.error is not None:
        if ack.error.code == "commit-unknown":
            return CommitUnknown(message)
        return RequestRefused(message, code=ack.error.code, method=ack.error.method)
    told = ack.result.get("apiError") if isinstance(ack.result, dict) else None
    if isinstance(told, dict):
        match told:
            case {"method": str() as method, "code": int() as code, "description": str() as description}:
                retry_after = told.get("retryAfter")
                migrated = told.get("migrateToChatId")
                return ApiError(
                    method,
                    code,
                    description,
                    retry_after=retry_after if isinstance(retry_after, int | float) else None,
                    migrate_to_chat_id=migrated if isinstance(migrated, int) else None,
                )
            case _:
                pass
    return RequestRefused(message)


def destination(provisioned: Provisioned | None, target: Target | None) -> Any:
    """The `result` of a registration: {"chatId", "threadId"?, "slot"?, "threadName"?}, or ABSENT without a target."""
    if provisioned is None:
        return ABSENT if target is None else _target(target)
    named = {"slot": provisioned.slot, "threadName": provisioned.thread_name}
    return _target(provisioned.target) | {name: value for name, value in named.items() if value is not None}


def members(registry: Registry) -> dict[str, Any]:
    """The `result` of `x.members.list`: {"revision", "members": [...]}, the members in order of registration."""
    return {"revision": registry.revision, "members": [_member(member) for member in registry]}


def _member(member: Member) -> dict[str, Any]:
    said = member.registration
    facts: dict[str, Any] = {
        "key": member.key,
        "instanceId": member.instance_id,
        "name": said.thread_name,
        "slot": said.slot,
        "target": None if said.target is None else _target(said.target),
        "pid": said.pid,
        "cwd": said.cwd,
        "connectedAtMs": said.connected_at_ms,
        "lastHeartbeatMs": member.last_heartbeat_ms,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _target(target: Target) -> dict[str, Any]:
    return {"chatId": target.chat_id} | ({} if target.thread_id is None else {"threadId": target.thread_id})


def _api_error(fault: ApiError) -> dict[str, Any]:
    facts = {
        "method": fault.method,
        "code": fault.code,
        "description": fault.description,
        "retryAfter": fault.retry_after,
        "migrateToChatId": fault.migrate_to_chat_id,
    }
    return {name: value for name, value in facts.items() if value is not None}
