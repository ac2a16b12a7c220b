"""Work that changes hands: admitted for the other follower in one transaction, which is the decision.

Before it the donor has the work (frozen: its program does not get it), after it the recipient has, by the journal like
everything else that is its own. A donor that does not hear the answer asks again with the same token.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from telegram_bus import crash
from telegram_bus.core.codec import dumps
from telegram_bus.core.errors import RequestRefused
from telegram_bus.core.extensions import UpdateHand
from telegram_bus.core.handing import handed_updates
from telegram_bus.core.registry import Member
from telegram_bus.core.updates import describe
from telegram_bus.store import NewUpdate

if TYPE_CHECKING:
    from telegram_bus.roles.term import Term

__all__ = ["hand_over"]

log = logging.getLogger(__name__)


async def hand_over(term: Term, member: Member, request: UpdateHand) -> dict[str, Any]:
    """Give the work to whom the request names, and say who that is: {key, name, present}.

    Raises RequestRefused where that is nobody, several, or the member itself, and where the member never got what it
    gives away; and StateError.
    """
    by = member.registration.thread_name or member.key
    updates = handed_updates(request.token, request.parts, by, request.note)
    decided, owner = await term.store.admitted_for(updates[0]["update_id"], term.now_ms())
    if decided:  # it is asked again, and whoever bears that name by now, the work has gone where it went
        return _answer(term, owner or request.to)
    key = _recipient(term, member, request.to)
    rows, given = [], []
    for number, (update, part) in enumerate(zip(updates, request.parts, strict=True)):
        info = describe(update)
        passed = await term.possessions.passed_on(member, info)
        if passed is None:
            decided, owner = await term.store.admitted_for(updates[0]["update_id"], term.now_ms())
            if decided:  # asked twice at once: the other one has given it away meanwhile
                return _answer(term, owner or request.to)
            term.audit(member.key, member.peer_pid or 0, request.KIND, f"parts.{number}", "must be of its own thread")
            raise RequestRefused(f"parts[{number}] is of no message that {member.key} was given or has sent")
        given.append(passed)
        rows.append(
            NewUpdate(
                update_id=info.update_id,
                kind=part.kind,
                body=dumps(update),
                owner_key=key,
                chat_id=info.chat_id,
                thread_id=info.thread_id,
            )
        )
    admitted = await term.store.admit_batch(rows, None, term.now_ms())
    crash.point("after-hand-over")
    for info in given if admitted else ():
        term.note_given(info, key)
    term.deliveries.put(admitted)
    if admitted:
        log.info("%s gave work to %s", member.key, key)
    return _answer(term, key)


def _answer(term: Term, key: str) -> dict[str, Any]:
    return {"key": key, "name": term.name_of(key), "present": term.registry.by_key(key) is not None}


def _recipient(term: Term, member: Member, wanted: str) -> str:
    """The key of whom `wanted` names: somebody who is here, or else somebody who has a thread."""
    here = [other.key for other in term.registry]
    known = list(dict.fromkeys([*(binding.key for binding in term.threads.all()), *here]))
    for among in (here, known):
        found = [wanted] if wanted in among else term.called(wanted, among)
        if found == [member.key]:
            raise RequestRefused(f"{wanted} is the follower that asks; work is given to another one")
        if len(found) > 1:
            raise RequestRefused(f"{len(found)} agents are called {wanted}; name one by its key: {', '.join(found)}")
        if found:
            return found[0]
    raise RequestRefused(f"no agent is called {wanted}; there are: {', '.join(sorted(map(term.name_of, known)))}")
