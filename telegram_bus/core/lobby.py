"""What the leader itself says in the main chat: who is here, how they do, and how to reach one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from attrs import frozen

from telegram_bus.core.routing import LobbyTopic
from telegram_bus.core.text import units

__all__ = ["AgentLine", "BusLine", "age", "answer", "thread_link"]

SHOWN: Final = 40  # agents in one answer: more are no help on a phone
LIST_LIMIT: Final = 3_500  # UTF-16 units of the list of agents: a message has 4,096, and some are said around it

_HOW: Final = "To reach an agent, write in its thread."


@frozen(kw_only=True)
class AgentLine:
    """One agent as a person sees it; ages are seconds."""

    name: str
    link: str | None
    online: bool
    age: float
    waiting: int


@frozen(kw_only=True)
class BusLine:
    """The bus as a person sees it; `since_poll` is seconds since Telegram last answered a poll, None for never."""

    bot: str
    state: str
    detail: str | None
    since_poll: float | None
    waiting: int


def age(seconds: float) -> str:
    """A duration for people: `12 s`, `5 min`, `3 h`, `2 d`."""
    for limit, unit, size in ((120, "s", 1), (7_200, "min", 60), (172_800, "h", 3_600)):
        if seconds < limit:
            return f"{max(0, int(seconds / size))} {unit}"
    return f"{int(seconds / 86_400)} d"


def thread_link(chat_id: int, thread_id: int | None) -> str | None:
    """The address of a topic: supergroups have one (their ids begin with -100), private chats have none."""
    text = str(chat_id)
    if thread_id is None or not text.startswith("-100"):
        return None
    return f"https://t.me/c/{text[4:]}/{thread_id}"


def _agent(agent: AgentLine) -> str:
    state = f"here for {age(agent.age)}" if agent.online else f"away for {age(agent.age)}"
    waiting = f", {agent.waiting} waiting" if agent.waiting else ""
    link = f"\n  {agent.link}" if agent.link else ""
    return f"{'●' if agent.online else '○'} {agent.name} — {state}{waiting}{link}"


def _list(agents: Sequence[AgentLine]) -> str:
    if not agents:
        return "No agent is here. Start one on your machine, for example:\ntelegram-bus follower --name builder -- sh"
    lines: list[str] = []
    room = LIST_LIMIT
    for line in map(_agent, agents[:SHOWN]):
        room -= units(line) + 1
        if room < 0:
            break
        lines.append(line)
    if len(agents) > len(lines):
        lines.append(f"… and {len(agents) - len(lines)} more")
    return "\n".join(lines)


def _status(bus: BusLine, agents: Sequence[AgentLine]) -> str:
    polled = "never" if bus.since_poll is None else f"{age(bus.since_poll)} ago"
    detail = f" ({bus.detail})" if bus.detail else ""
    waiting = f"{bus.waiting} waiting" if bus.waiting else "nothing waits"
    return f"{bus.bot}: {bus.state}{detail}, last poll {polled}, {waiting}\n\n{_list(agents)}"


def answer(topic: LobbyTopic, bus: BusLine, agents: Sequence[AgentLine]) -> str:
    """The leader's answer to a message that belongs to nobody else."""
    match topic:
        case "status":
            return _status(bus, agents)
        case "agents":
            return _list(agents)
        case "help":
            return (
                f"Each agent on your machines has a thread of its own in this chat. {_HOW}\n\n"
                "/status — what is going on\n/agents — who is here\n/help — this text"
            )
        case "who":
            return f"Nobody reads the main chat but me. {_HOW}\n\n{_list(agents)}"
        case "unowned thread":
            return f"No agent has this thread, so nobody got your message. {_HOW}\n\n{_list(agents)}"
        case "unowned button":
            return "The agent that offered this button is not known any more."
        case "other chat":
            return f"{bus.bot} works in another chat; write to your agents there."
        case _:
            assert_never(topic)
