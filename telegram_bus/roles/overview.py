"""A term as people see it: in the chat (`/status`, `/agents`) and on the command line (`telegram-bus status`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from telegram_bus._version import __version__
from telegram_bus.core.errors import StateError
from telegram_bus.core.health import advice
from telegram_bus.core.lobby import AgentLine, BusLine, thread_link
from telegram_bus.core.registry import Member
from telegram_bus.locks import FileLock

if TYPE_CHECKING:
    from telegram_bus.roles.term import Term

__all__ = ["agent_lines", "bus_line", "follower", "status"]


def status(term: Term) -> dict[str, Any]:
    """What `x.status.get` answers; docs/protocol.md lists the fields."""
    since_poll, conditions = term.since_poll(), term.conditions()
    chat_id = term.threads.chat_id
    return {
        "version": __version__,
        "state": conditions[0].state,
        "detail": conditions[0].detail,
        "states": [{"state": one.state, "detail": one.detail} for one in conditions],
        "pid": term.pid,
        "epoch": term.store.epoch,
        "since_ms": term.since_ms,
        "bot": {"id": term.bot.id, "username": term.bot.username},
        "chat": {"id": chat_id, "kind": "private" if chat_id > 0 else "group"},
        "last_poll_ms": None if since_poll is None else term.now_ms() - round(since_poll * 1000),
        "waiting": term.deliveries.total_waiting(),
        "sends": term.calls.outbox.status(),
        "standby": _has_standby(term),
        "followers": [follower(term, member) for member in term.registry],
    }


def _has_standby(term: Term) -> bool:
    """Whether a spare leader waits; a directory that cannot be read costs the status no more than that."""
    try:
        return FileLock.is_held(term.profile.standby_lock)
    except StateError:
        return False


def follower(term: Term, member: Member) -> dict[str, Any]:
    """One live follower, in the status."""
    registration, target = member.registration, member.target
    doing = term.activities.of(member.key, member.instance_id)
    return {
        "key": member.key,
        "name": registration.thread_name,
        "chat_id": target.chat_id if target is not None else None,
        "thread_id": target.thread_id if target is not None else None,
        "slot": registration.slot,
        "pid": registration.pid,
        "joined_ms": member.joined_ms,
        "connected_at_ms": registration.connected_at_ms,
        "last_heartbeat_ms": member.last_heartbeat_ms,
        "state": "serving",
        "waiting": term.deliveries.waiting(member.key),
        "sending": term.calls.outbox.waiting(member.key),
        "unknown": term.calls.outbox.doubts.count(member.key),
        "activity": doing.facts() if doing is not None else None,
    }


def bus_line(term: Term) -> BusLine:
    """The bus as a person sees it."""
    conditions = term.conditions()
    return BusLine(
        bot=term.bot.name,
        state=conditions[0].state,
        detail=conditions[0].detail,
        since_poll=term.since_poll(),
        waiting=term.deliveries.total_waiting(),
        troubles=tuple(advice(one) for one in conditions if one.state not in ("serving", "starting")),
        shared=term.sharing.shared(term.threads.chat_id),
    )


def agent_lines(term: Term, user_id: int | None) -> list[AgentLine]:
    """The agents as this person sees them: those that are here first, then those that have a thread."""
    here = {member.key: member for member in term.registry}
    bound = {binding.key: binding for binding in term.threads.all()}
    shared = term.sharing.shared(term.threads.chat_id)
    chosen = term.sharing.choice_of(user_id) if user_id is not None and shared else None
    now, lines = term.now_ms(), []
    for key in dict.fromkeys([*bound, *here]):
        member, binding = here.get(key), bound.get(key)
        left = term.away_since(key) or (binding.since_ms if binding is not None else now)
        since = member.joined_ms if member is not None else left
        shares = member.shares if member is not None else term.sharing.everyone
        doing = term.activities.of(key, member.instance_id) if member is not None else None
        lines.append(
            AgentLine(
                name=binding.name if binding is not None else term.name_of(member) if member is not None else key,
                link=None if binding is None or shares else thread_link(binding.chat_id, binding.thread_id),
                online=member is not None,
                age=(now - since) / 1000,
                waiting=term.deliveries.waiting(key),
                doing=doing.text if doing is not None else None,
                doing_age=(now - doing.since_ms) / 1000 if doing is not None else 0.0,
                needs_person=doing is not None and doing.needs_person,
                muted=term.muting.muted(key),
                spoken_to=key == chosen,
                spoke_last=shared and key == term.sharing.spoke_last,
            )
        )
    return sorted(lines, key=lambda line: not line.online)
