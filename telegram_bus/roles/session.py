"""One registration of a follower with one leader: how it is asked for, kept up and ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

import trio
from attrs import field, frozen

from telegram_bus import crash
from telegram_bus.core import identity
from telegram_bus.core.answers import fault_of
from telegram_bus.core.envelopes import Ack, Disconnect, Heartbeat, ProtocolIdentity, Register, Registration
from telegram_bus.core.errors import AnswerLost, BusError, NotSent, RequestRefused
from telegram_bus.wire.client import BusClient, request_once

__all__ = ["Session", "now_ms", "register"]

log = logging.getLogger(__name__)

REGISTRATION_LIMIT: Final = 30.0  # protocol section 1: how long a follower waits for its registration


def now_ms() -> int:
    """The time (epoch, ms)."""
    return time.time_ns() // 1_000_000


@frozen(kw_only=True, eq=False)
class Session:
    """One registration with one leader: what a request in its name needs. `next_id` makes ids of requests."""

    client: BusClient = field(repr=False)
    instance_id: str
    generation: str
    secret: str = field(repr=False)
    leader: ProtocolIdentity
    next_id: Callable[[], str] = field(repr=False)

    @property
    def remembers_calls(self) -> bool:
        """Whether this leader knows each call by its id, also one that an earlier leader took."""
        return identity.EXTENSIONS in self.leader.capabilities

    def fields(self, request_id: str) -> dict[str, Any]:
        """The fields that every fenced request shares."""
        return {
            "request_id": request_id,
            "auth": self.secret,
            "instance_id": self.instance_id,
            "registration_generation": self.generation,
            "sent_at_ms": now_ms(),
        }

    async def beat(self) -> Ack:
        """Say that this follower lives; raises as `BusClient.request` does."""
        return await self.client.request(Heartbeat(**self.fields(self.next_id())))

    async def is_known(self) -> bool:
        """Whether the leader still knows this registration: a refused request may mean that it does not."""
        try:
            return (await self.beat()).ok
        except (NotSent, AnswerLost):
            return False

    async def say_goodbye(self, endpoint: str) -> None:
        """Tell a leader that still listens that this registration ends.

        Over a connection of its own: whoever cancelled this follower cancelled the tasks of its client too.
        """
        try:
            await request_once(endpoint, Disconnect(**self.fields(self.next_id())))
        except BusError:
            log.debug("the leader went before this follower could say goodbye")


async def register(
    client: BusClient,
    registration: Registration,
    *,
    generation: str,
    secret: str,
    ours: ProtocolIdentity,
    next_id: Callable[[], str],
) -> tuple[Session, object]:
    """Register with the leader behind the client; returns the session, and the place that the leader gave.

    Raises what `fault_of` makes of a refusal, RequestRefused where the leader speaks another protocol,
    trio.TooSlowError, and what `BusClient.request` does.
    """
    with trio.fail_after(REGISTRATION_LIMIT):
        ack = await client.request(Register(request_id=generation, auth=secret, registration=registration))
    if not ack.ok:
        raise fault_of(ack)
    verdict = identity.compatible(ours, ack.protocol)
    if isinstance(verdict, identity.Incompatible) or ack.protocol is None:
        why = verdict.reason if isinstance(verdict, identity.Incompatible) else "missing-identity"
        raise RequestRefused(f"the leader speaks another protocol ({why}); update the older side")
    crash.point("after-register")
    session = Session(
        client=client,
        instance_id=registration.instance_id,
        generation=generation,
        secret=secret,
        leader=ack.protocol,
        next_id=next_id,
    )
    return session, ack.result
