"""What agents say to each other: which one is meant, and how the message that people see reaches it, once.

An agent with a thread is written to there. One that shares the main chat is written to in it; which of those that share
it is meant, the message alone does not say, so its key goes along (`x.agent.tell`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from telegram_bus.core.codec import dumps
from telegram_bus.core.envelopes import AgentMessage, AgentSelector, Target
from telegram_bus.core.errors import RequestRefused
from telegram_bus.core.extensions import AgentTell
from telegram_bus.core.registry import Member
from telegram_bus.core.updates import describe
from telegram_bus.core.values import Number
from telegram_bus.roles.ports import Found
from telegram_bus.roles.sharing import SETTLED
from telegram_bus.store import NewUpdate

if TYPE_CHECKING:
    from telegram_bus.roles.term import Term

__all__ = ["AGENT_MESSAGES", "find", "route", "tell", "update_id_of"]

AGENT_MESSAGES: Final = 2**52
"""Ids of updates from agent to agent begin here (`update_id_of`); Telegram's own stay below 2^31 (bot-api U5)."""

MESSAGES: Final = 2**31
"""Message ids are below it, so that there is room for some bits of the chat's."""

CHATS: Final = 2**20

SUPERGROUPS: Final = -1_000_000_000_000  # their ids are below it, those of groups above


def find(term: Term, member: Member, selector: AgentSelector, *, main_chat: bool) -> Found:
    """The place of the one other agent that the selector names; only who asks for `main_chat` is given that one.

    Raises RequestRefused when there is none, or more than one.
    """
    others = [other for other in term.registry if other is not member]
    wanted = selector.thread_name if selector.thread_id is None else f"thread {selector.thread_id}"
    everyone, why = term.sharing.everyone, term.sharing.why
    if everyone and not main_chat:
        raise RequestRefused(f"agents reach each other in threads, and there are none: {why}")
    meant = _meant(term, selector, others)
    found = [] if everyone else [other for other in meant if _has_thread(other, selector.chat_id)]
    by_name = selector.thread_id is None
    shares = [other for other in meant if by_name and (everyone or other.shares)]
    if not found and shares and not main_chat:
        raise RequestRefused(f"agents reach each other in threads, and {wanted} has none: {why or 'it gets one soon'}")
    if main_chat:
        found += [other for other in shares if other not in found]
    if not found:
        here = ", ".join(sorted(term.name_of(other.key) for other in term.registry))
        raise RequestRefused(f"no other agent is called {wanted}; here are: {here}")
    if len(found) > 1:
        raise RequestRefused(f"{len(found)} agents are called {wanted}; name one by the id of its thread")
    if found[0] in shares:
        return Found(Target(chat_id=term.threads.chat_id), found[0].key, term.name_of(found[0].key))
    assert found[0].target is not None
    return Found(found[0].target)


async def route(term: Term, member: Member, message: AgentMessage) -> None:
    """Put an agent's message into the queue of the agent whose thread it stands in, once.

    Raises RequestRefused where the thread is nobody's.
    """
    chat_id, thread_id = message.target.chat_id, message.target.thread_id
    if not isinstance(chat_id, int) or not isinstance(thread_id, int):
        raise RequestRefused("the ids of a thread are whole numbers")
    key = term.threads.of_thread(chat_id, thread_id)
    if key is None:
        raise RequestRefused(f"thread {thread_id} of chat {chat_id} belongs to no agent")
    if not await _sent(term, member, chat_id, message.message_id):
        raise _not_its_own(term, member, message.message_id, "follower.routeAgentMessage")
    await _admit(term, member, key, message)


async def tell(term: Term, member: Member, request: AgentTell) -> dict[str, Any]:
    """Put an agent's message, which stands in the main chat, into the queue of the agent that it names by key, once.

    Raises RequestRefused where no such agent is here, a moment after a leader's beginning.
    """
    chat_id = term.threads.chat_id
    if not await _sent(term, member, chat_id, request.message_id):
        raise _not_its_own(term, member, request.message_id, request.KIND)
    if _unknown(term, request.to):  # it may not have found this leader yet
        await trio.sleep_until((term.sharing.opened() or trio.current_time()) + SETTLED)
    if _unknown(term, request.to) or request.to == member.key:
        raise RequestRefused(f"no other agent has the key {request.to}, or it has left meanwhile")
    place = Target(chat_id=chat_id)
    await _admit(term, member, request.to, AgentMessage(target=place, message_id=request.message_id, text=request.text))
    return {"key": request.to}


def update_id_of(chat_id: int, message_id: int) -> int:
    """The id of the update that a message from agent to agent becomes.

    A supergroup counts its messages anew: one of it must not be taken for that of the group which became it.
    """
    return AGENT_MESSAGES + abs(chat_id) % CHATS * MESSAGES + message_id


def _unknown(term: Term, key: str) -> bool:
    return term.registry.by_key(key) is None and term.threads.of_key(key) is None


async def _sent(term: Term, member: Member, chat_id: int, message_id: int) -> bool:
    known = 0 < message_id < MESSAGES and await term.store.owner_of(chat_id, message_id)
    return known == member.key


def _not_its_own(term: Term, member: Member, message_id: int, kind: str) -> RequestRefused:
    term.audit(member.key, member.peer_pid or 0, kind, "messageId", "must be its own")
    return RequestRefused(f"message {message_id} is not one that {member.key} sent")


async def _admit(term: Term, member: Member, key: str, message: AgentMessage) -> None:
    """It becomes an update of that agent: a message of the bot, in the name of the agent that wrote it."""
    chat_id, thread_id = message.target.chat_id, message.target.thread_id
    assert isinstance(chat_id, int)
    assert isinstance(thread_id, int | None)
    group = "supergroup" if thread_id is not None or chat_id < SUPERGROUPS else "group"
    body: dict[str, Any] = {
        "message_id": message.message_id,
        "date": term.now_ms() // 1000,
        "chat": {"id": chat_id, "type": "private" if chat_id > 0 else group},
        "from": {"id": term.bot.id, "is_bot": True, "first_name": member.registration.thread_name or member.key},
        "text": message.text,
    }
    if thread_id is not None:
        body |= {"message_thread_id": thread_id, "is_topic_message": True}
    update_id = update_id_of(chat_id, message.message_id)
    whole = {"update_id": update_id, "message": body}
    term.note_given(describe(whole), key)
    update = NewUpdate(
        update_id=update_id,
        kind="message",
        body=dumps(whole),
        owner_key=key,
        chat_id=chat_id,
        thread_id=thread_id,
    )
    term.deliveries.put(await term.store.admit_batch([update], None, term.now_ms()))


def _meant(term: Term, selector: AgentSelector, others: list[Member]) -> list[Member]:
    """The agents that the selector names, wherever they are written to."""
    if selector.thread_id is not None:
        return [other for other in others if other.target is not None and other.target.thread_id == selector.thread_id]
    keys = term.called(selector.thread_name or "", (other.key for other in others))
    return [other for other in others if other.key in keys]


def _has_thread(member: Member, chat_id: Number | None) -> bool:
    """Whether the agent has a thread, in this chat (None: in any)."""
    target = member.target
    return target is not None and target.thread_id is not None and chat_id in (None, target.chat_id)
