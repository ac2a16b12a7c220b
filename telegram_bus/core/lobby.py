"""What the leader itself says in the main chat: who is here, what they do, what is wrong, and how to reach one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

from attrs import frozen

from telegram_bus.core.text import counted, units

__all__ = ["AgentLine", "BusLine", "Said", "Topic", "age", "answer", "shared_intro", "thread_link"]

SHOWN: Final = 40  # agents in one answer: more are no help on a phone
LIST_LIMIT: Final = 3_000  # UTF-16 units of the list of agents: a message has 4,096, and some are said around it
DOING_LIMIT: Final = 100  # UTF-16 units of what an agent says it does

_HOW: Final = "To reach an agent, write in its thread."
_REPLY: Final = "To reach one, reply to one of its messages, or choose it with /use NAME."
_HOW_SHARED: Final = f"All agents write here, each with its name first. {_REPLY}"

Topic = Literal["status", "agents", "help", "who", "unowned button", "other chat"]


class Said(NamedTuple):
    """A text, and the entities that link an agent's name to its thread."""

    text: str
    entities: list[dict[str, Any]]


@frozen(kw_only=True)
class AgentLine:
    """One agent as a person sees it; ages are seconds, `doing` is what it says of itself."""

    name: str
    link: str | None
    online: bool
    age: float
    waiting: int
    doing: str | None = None
    doing_age: float = 0.0
    needs_person: bool = False
    muted: bool = False
    spoken_to: bool = False
    """Whether the person who asks writes to it, where agents share the main chat."""
    spoke_last: bool = False


@frozen(kw_only=True)
class BusLine:
    """The bus as a person sees it; `since_poll` is seconds since Telegram last answered a poll, None for never.

    `troubles` are all that is wrong, each with what to do; `unowned` counts messages that wait for a person's choice;
    `shared` says whether agents share the main chat.
    """

    bot: str
    state: str
    detail: str | None
    since_poll: float | None
    waiting: int
    troubles: tuple[str, ...] = ()
    unowned: int = 0
    shared: bool = False


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


def shared_intro(why: str, *, everyone: bool) -> str:
    """What people are told once when agents share the main chat; `why` is the reason with the switch to turn."""
    who = "all agents" if everyone else "agents without a thread"
    return f"{why}.\n\nUntil then {who} write here, each with its name first. {_REPLY}"


def _state(agent: AgentLine) -> str:
    if not agent.online:
        return f"away for {age(agent.age)}"
    if agent.doing:
        doing = " ".join(agent.doing.split())
        while units(doing) > DOING_LIMIT:
            doing = doing[: DOING_LIMIT - 1].rstrip() + "…" if len(doing) > DOING_LIMIT else doing[:-1]
        return f"{doing}, for {age(agent.doing_age)}" + (" (waits for you)" if agent.needs_person else "")
    return f"here for {age(agent.age)}" + (", waits for you" if agent.needs_person else "")


def _agent(agent: AgentLine) -> str:
    more = [f"{agent.waiting} waiting"] if agent.waiting else []
    more += [word for word, is_so in (("muted", agent.muted), ("you write to it", agent.spoken_to)) if is_so]
    more += ["spoke last"] if agent.spoke_last else []
    return f"{'●' if agent.online else '○'} {agent.name} — {', '.join([_state(agent), *more])}"


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
    polled = "no poll yet" if bus.since_poll is None else f"last poll {age(bus.since_poll)} ago"
    detail = f" ({_short(bus.detail)})" if bus.detail and not bus.troubles else ""
    waiting = f"{bus.waiting} waiting" if bus.waiting else "nothing waits"
    lines = [f"{bus.bot}: {bus.state}{detail}, {polled}, {waiting}"]
    lines += [f"⚠ {_short(trouble)}" for trouble in bus.troubles[:3]]
    if bus.unowned:
        have, where = ("has", "it was") if bus.unowned == 1 else ("have", "they were")
        lines.append(f"⚠ {counted(bus.unowned, 'message')} {have} no agent yet: choose one where {where} written")
    return "\n".join(lines) + f"\n\n{_list(agents)}"


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:199] + "…"


def _said(text: str, agents: Sequence[AgentLine]) -> Said:
    """The text with each agent's name as a link to its thread."""
    links = {f"{'●' if one.online else '○'} {one.name} — ": (one.name, one.link) for one in agents if one.link}
    entities: list[dict[str, Any]] = []
    offset = 0
    for line in text.split("\n"):
        head, dash, _ = line.partition(" — ")
        if dash and (known := links.get(head + dash)) is not None:
            name, link = known
            entities.append({"type": "text_link", "offset": offset + 2, "length": units(name), "url": link})
        offset += units(line) + 1
    return Said(text, entities)


def answer(topic: Topic, bus: BusLine, agents: Sequence[AgentLine]) -> Said:
    """The leader's answer to a message that belongs to nobody else."""
    how = _HOW_SHARED if bus.shared else _HOW
    match topic:
        case "status":
            return _said(_status(bus, agents), agents)
        case "agents":
            return _said(_list(agents), agents)
        case "help":
            use = "/use NAME — whom you write to here\n" if bus.shared else ""
            each = "" if bus.shared else "Each agent on your machines has a thread of its own in this chat. "
            return Said(
                f"{each}{how}\n\n"
                f"/status — what is going on\n/agents — who is here\n{use}"
                "/mute, /mute 2h — an agent's messages make no sound (for that long); /unmute ends it\n"
                "/help — this text",
                [],
            )
        case "who":
            return _said(f"Nobody reads the main chat but me. {how}\n\n{_list(agents)}", agents)
        case "unowned button":
            return Said("The agent that offered this button is not known any more.", [])
        case "other chat":
            return Said(f"{bus.bot} works in another chat; write to your agents there.", [])
