"""A term as people see it: in the chat (`/status`, `/agents`) and on the command line (`telegram-bus status`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from telegram_bus._version import __version__
from telegram_bus.core.errors import StateError
from telegram_bus.core.health import Condition, advice, worst_first
from telegram_bus.core.lobby import AgentLine, BusLine, thread_link
from telegram_bus.core.registry import Member
from telegram_bus.locks import FileLock

if TYPE_CHECKING:
    from telegram_bus.roles.icons import AgentState
    from telegram_bus.roles.term import Term

__all__ = ["agent_lines", "agent_state", "bus_line", "conditions", "follower", "status"]


def status(term: Term) -> dict[str, Any]:
    """What `x.status.get` answers; docs/protocol.md lists the fields."""
    since, found = since_poll(term), conditions(term)
    chat_id = term.threads.chat_id
    return {
        "version": __version__,
        "state": found[0].state,
        "detail": found[0].detail,
        "states": [{"state": one.state, "detail": one.detail} for one in found],
        "pid": term.pid,
        "epoch": term.store.epoch,
        "since_ms": term.since_ms,
        "bot": {"id": term.bot.id, "username": term.bot.username},
        "chat": {"id": chat_id, "kind": "private" if chat_id > 0 else "group"},
        "last_poll_ms": None if since is None else term.now_ms() - round(since * 1000),
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
    found = conditions(term)
    return BusLine(
        bot=term.bot.name,
        state=found[0].state,
        detail=found[0].detail,
        since_poll=since_poll(term),
        waiting=term.deliveries.total_waiting(),
        troubles=tuple(advice(one) for one in found if one.state not in ("serving", "starting")),
        shared=term.sharing.shared(term.threads.chat_id),
    )


def conditions(term: Term) -> list[Condition]:
    """The states that people see, the worst first."""
    polling = term.polling.value
    now = Condition(polling.state, polling.detail) if polling is not None else Condition("starting")
    more = [Condition(state, detail) for state, detail in term.troubles.items()]
    if term.sharing.no_chat is not None:
        more.append(Condition("no chat", term.sharing.no_chat))
    if term.sharing.why is not None:
        more.append(Condition("no threads", term.sharing.why))
    if term.threads.outage is not None:
        more.append(Condition("threads lost", term.threads.outage))
    if (pause := term.calls.sender.pause()) is not None:
        more.append(Condition("rate-limited", pause))
    if term.stop_wanted.is_set():
        more.append(Condition("stopping"))
    return worst_first([now, *more])


def since_poll(term: Term) -> float | None:
    """Seconds since Telegram last answered a poll."""
    polling = term.polling.value
    if polling is None or polling.last_completed is None:
        return None
    return trio.current_time() - polling.last_completed


def agent_state(term: Term, key: str) -> AgentState:
    """What an agent is, for the icon of its thread."""
    member = term.registry.by_key(key)
    if member is None:
        return "away"
    doing = term.activities.of(key, member.instance_id)
    if doing is not None:
        return "waiting" if doing.needs_person else "busy"
    return "busy" if term.deliveries.waiting(key) else "idle"


def agent_lines(term: Term, user_id: int | None = None) -> list[AgentLine]:
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
                name=term.name_of(key),
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
