"""A message for another agent: where people read it first, then to the agent itself."""

from __future__ import annotations

from typing import Any, Protocol

from telegram_bus.core.envelopes import AgentMessage, AgentSelector, ResolveAgentTarget, RouteAgentMessage, Target
from telegram_bus.core.extensions import AgentTell
from telegram_bus.core.scopes import CROSS_TARGET
from telegram_bus.followers.contents import asked_by
from telegram_bus.followers.messages import SentMessage, joined, sent_message
from telegram_bus.roles.member import Member

__all__ = ["tell"]


class _Bus(Protocol):
    @property
    def name(self) -> str | None: ...
    @property
    def key(self) -> str: ...
    @property
    def target(self) -> Target | None: ...
    async def call(self, method: str, **params: Any) -> Any: ...


async def tell(bus: _Bus, member: Member, agent: str | int, text: str) -> SentMessage:
    """What `Bus.tell` does.

    An agent that shares the main chat is written to there. Where that is our place too, the leader puts our name
    before the text.
    """
    selector = AgentSelector(thread_id=agent) if isinstance(agent, int) else AgentSelector(thread_name=agent)
    ack = await member.ask(lambda fields: ResolveAgentTarget(**fields, selector=selector, main_chat=True))
    chat, thread = ack.result["chatId"], ack.result.get("threadId")
    ours = bus.target.thread_id if bus.target is not None else None
    place: dict[str, Any] = {"chat_id": chat}
    if thread is not None:
        place["message_thread_id"] = thread
    if thread is not None or ours is not None:
        place[CROSS_TARGET] = True
    who = f"from {bus.name or bus.key}" if thread is not None or ours is not None else ""
    if thread is None:
        who = f"{who} to {ack.result['name']}".lstrip()
    sent = [sent_message(await bus.call("sendMessage", **place, **body)) for body in asked_by(who, text)]
    message = joined(sent)
    if thread is None:
        key, number = ack.result["key"], message.message_id
        await member.ask(lambda fields: AgentTell(**fields, to=key, message_id=number, text=text))
    else:
        carried = AgentMessage(target=Target(chat_id=chat, thread_id=thread), message_id=message.message_id, text=text)
        await member.ask(lambda fields: RouteAgentMessage(**fields, message=carried))
    return message
